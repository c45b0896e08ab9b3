#include "cli/cli.h"
#include "cli/table.h"
#include "cli/watching.h"

#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

// Time between two reads of the file.
#define REFRESH_MS 500
// Number of points of the curve "best value over trials" in JSON.
#define JSON_PARTS 60

struct watch_values {
    struct msc_cli_common common;
    const char *record;
    bool once;
};

#define WATCH(member) offsetof(struct watch_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record of a search, running or not",
     .offset = WATCH(record),
     .is_positional = true,
     .is_required = true},
    {.name = "once",
     .type = MSC_CLI_FLAG,
     .help = "print the current state and exit",
     .offset = WATCH(once)},
    {0},
};

// ---- The terminal -----------------------------------------------------------------------------

static volatile sig_atomic_t is_stopped;

static void stop_watching(int number) {
    (void)number;
    is_stopped = 1;
}

struct keys { // the terminal's mode while keys are read one by one, without echo
    bool is_terminal;
    struct termios before;
};

static void open_keys(struct keys *keys) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = stop_watching};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        sigaction(ends[i], &action, NULL);
    }
    keys->is_terminal = tcgetattr(STDIN_FILENO, &keys->before) == 0;
    if (keys->is_terminal) {
        struct termios now = keys->before;
        now.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
}

static void close_keys(const struct keys *keys) {
    if (keys->is_terminal) {
        tcsetattr(STDIN_FILENO, TCSANOW, &keys->before);
    }
}

// Waits until it is time to read the file again. False: the user ends the command.
static bool wait_for_keys(const struct keys *keys) {
    struct pollfd ready = {.fd = keys->is_terminal ? STDIN_FILENO : -1, .events = POLLIN};
    char key = 0;
    int n = poll(&ready, 1, REFRESH_MS);
    if (n > 0 && read(STDIN_FILENO, &key, 1) != 1) {
        return false; // end of input
    }
    return !is_stopped && key != 'q' && key != 'Q' && key != 4; // Ctrl-D
}

// ---- Showing ----------------------------------------------------------------------------------

static enum msc_status show_once(struct msc_follow *follow, const struct watch_values *v) {
    struct msc_str text = {0};
    cJSON *object = NULL;
    enum msc_status status = MSC_OK;
    if (v->common.json) {
        MSC_TRY(msc_follow_describe(&object, follow, JSON_PARTS));
        status = msc_cli_print_json(object);
        cJSON_Delete(object);
        return status;
    }
    status = msc_cli_write_watch(&text, follow, msc_cli_terminal_columns());
    if (status == MSC_OK) {
        status = msc_cli_print_str(&text);
    }
    msc_str_finish(&text);
    return status;
}

// Cuts a text so that it has fewer lines than the terminal. Returns the number of lines kept.
static size_t fit_lines(struct msc_str *text) {
    struct winsize size = {0};
    size_t n = 0;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
    for (size_t i = 0; i < text->length; i++) {
        n += text->data[i] == '\n';
        if (is_known && n + 1 >= size.ws_row) {
            text->length = i + 1;
            text->data[text->length] = '\0';
        }
    }
    return n;
}

// Replaces the last *n_lines lines on the screen, and sets *n_lines to the number of new lines.
static enum msc_status show_again(size_t *n_lines, struct msc_follow *follow) {
    struct msc_str text = {0};
    struct msc_str screen = {0};
    enum msc_status status = msc_cli_write_watch(&text, follow, msc_cli_terminal_columns());
    if (status == MSC_OK) {
        if (*n_lines > 0) {
            msc_str_printf(&screen, "\033[%zuA\r", *n_lines);
        }
        msc_str_append(&screen, "\033[J");
        *n_lines = fit_lines(&text);
        // The text is already safe to show. msc_cli_print would escape the control sequences.
        msc_str_append(&screen, msc_str_text(&text));
        msc_str_append(&screen, "q ends");
        status = msc_str_status(&screen);
    }
    if (status == MSC_OK &&
        (fwrite(screen.data, 1, screen.length, stdout) != screen.length || fflush(stdout) != 0)) {
        status = MSC_FAIL(MSC_E_IO, "cannot write standard output: %s", strerror(errno));
    }
    msc_str_finish(&screen);
    msc_str_finish(&text);
    return status;
}

static enum msc_status keep_watching(struct msc_follow *follow) {
    struct keys keys;
    size_t n_lines = 0;
    enum msc_status status = MSC_OK;
    open_keys(&keys);
    do {
        status = msc_follow_read(follow);
        if (status == MSC_OK) {
            status = show_again(&n_lines, follow);
        }
    } while (status == MSC_OK && wait_for_keys(&keys));
    close_keys(&keys);
    printf("\r\033[K");
    return status;
}

static enum msc_status watch_record(const struct msc_cli_call *call, const struct watch_values *v) {
    struct msc_follow *follow = NULL;
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_follow_open(&follow, v->record, &call->console->log));
    MSC_TRY_OUT(msc_follow_read(follow));
    status =
        v->once || v->common.json || !is_terminal ? show_once(follow, v) : keep_watching(follow);
out:
    msc_follow_close(follow);
    return status;
}

static int cmd_watch(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = watch_record(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_watch = {
    .name = "watch",
    .summary = "shows the progress of a search from another terminal",
    .usage = "RECORD [options]",
    .description = "On a terminal it continues until q or Ctrl-C. It only reads the record and "
                   "does not lock it, so the search is not disturbed. The budget shown is the one "
                   "that the record began with.",
    .examples = "  mscgym watch msc_workspace/digits.jsonl\n"
                "  mscgym watch msc_workspace/digits.jsonl --once\n"
                "  mscgym watch msc_workspace/digits.jsonl --json | jq .left_s\n",
    .options = options,
    .values_size = sizeof(struct watch_values),
    .run = cmd_watch,
};
