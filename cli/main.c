// mscgym: reads the command and its options, and runs it.
#include "cli/cli.h"

#include "base/json.h"
#include "base/scratch.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "cli/color.h"
#include "cli/help.h"
#include "cli/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    enum msc_status status;
    enum msc_cli_exit code;
} exit_codes[] = {
    {MSC_OK, MSC_CLI_OK},
    {MSC_E_INVALID, MSC_CLI_USAGE},
    {MSC_E_NOMEM, MSC_CLI_ENVIRONMENT},
    {MSC_E_IO, MSC_CLI_ENVIRONMENT},
    {MSC_E_FORMAT, MSC_CLI_FAILED},
    {MSC_E_UNSUPPORTED, MSC_CLI_FAILED},
    {MSC_E_DEVICE, MSC_CLI_ENVIRONMENT},
    {MSC_E_STATE, MSC_CLI_FAILED},
    {MSC_E_NOT_FOUND, MSC_CLI_USAGE},
    {MSC_E_CANCELLED, MSC_CLI_STOPPED},
    {MSC_E_LOST, MSC_CLI_ENVIRONMENT},
};

int msc_cli_exit_code(enum msc_status status) {
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        if (exit_codes[i].status == status) {
            return exit_codes[i].code;
        }
    }
    return MSC_CLI_FAILED;
}

int msc_cli_fail(const struct msc_cli_call *call, enum msc_status status) {
    msc_console_error(call->console, msc_status_message());
    return msc_cli_exit_code(status);
}

// Prints text that is safe to show, and frees it.
static enum msc_status print_shown(struct msc_str *shown) {
    enum msc_status status = msc_str_status(shown);
    FILE *out = msc_output_file();
    if (status == MSC_OK && (fputs(msc_str_text(shown), out) < 0 || fflush(out) != 0)) {
        status = MSC_FAIL(MSC_E_IO, "standard output: %s", strerror(errno));
    }
    msc_str_finish(shown);
    return status;
}

enum msc_status msc_cli_print(const char *text) {
    struct msc_str shown = {0};
    msc_shown_append_lines(&shown, text);
    return print_shown(&shown);
}

enum msc_status msc_cli_print_str(const struct msc_str *text) {
    struct msc_str shown = {0};
    MSC_TRY(msc_str_status(text));
    msc_style_show(&shown, text);
    return print_shown(&shown);
}

enum msc_status msc_cli_print_data(const struct msc_str *json) {
    struct msc_str shown = {0};
    MSC_TRY(msc_str_status(json));
    msc_shown_append_json(&shown, msc_str_text(json));
    return print_shown(&shown);
}

enum msc_status msc_cli_print_json(const struct cJSON *value) {
    struct msc_str text = {0};
    msc_json_write_pretty(&text, value);
    enum msc_status status = msc_cli_print_data(&text);
    msc_str_finish(&text);
    return status;
}

static int print_help(const struct msc_cli_call *call, const struct msc_cli_command *command) {
    struct msc_str text = {.has_styles = call->console->has_output_colors};
    if (command) {
        msc_cli_help_command(&text, command);
    } else {
        msc_cli_help(&text);
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

static int run_command(const struct msc_cli_call *call, const struct msc_cli_command *command) {
    const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
    msc_cli_tables(tables, command);
    void *values = msc_arena_alloc(call->arena, command->values_size);
    if (!values) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    }
    const struct msc_cli_common *common = values;
    enum msc_status status = msc_cli_parse(values, tables, call->argc, call->argv, call->arena);
    msc_console_set(call->console, common->quiet, common->log_level, common->color);
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s", command->name);
        msc_console_error(call->console, msc_status_message());
        return status == MSC_E_INVALID ? MSC_CLI_USAGE : msc_cli_exit_code(status);
    }
    if (common->help) {
        return print_help(call, command);
    }
    msc_scratch_sweep();
    // Output of libraries would break the JSON.
    status = common->json ? msc_output_keep() : MSC_OK;
    return status == MSC_OK ? command->run(call, values) : msc_cli_fail(call, status);
}

static int fail_command(const struct msc_cli_call *call, const char *name) {
    const char *names[32];
    size_t n = 0;
    for (size_t i = 0; msc_cli_commands[i]; i++) {
        if (!msc_cli_commands[i]->is_hidden) {
            names[n++] = msc_cli_commands[i]->name;
        }
    }
    const char *near = msc_suggest(name, names, n);
    return msc_cli_fail(call,
                        MSC_FAIL(MSC_E_INVALID, "unknown command \"%s\"%s%s%s", name,
                                 near ? ", did you mean \"" : ": mscgym --help lists the commands",
                                 near ? near : "", near ? "\"?" : ""));
}

static int dispatch_command(struct msc_cli_call *call, int argc, char **argv) {
    if (argc < 2) {
        print_help(call, NULL);
        return MSC_CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return print_help(call, NULL);
    }
    call->argc = argc - 1;
    call->argv = argv + 1;
    if (strcmp(argv[1], "--version") == 0) {
        return msc_cli_version(call);
    }
    const struct msc_cli_command *command = msc_cli_find_command(argv[1]);
    return command ? run_command(call, command) : fail_command(call, argv[1]);
}

int main(int argc, char **argv) {
    // At the limit of a file's size the write fails with an error in place of a signal.
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
    // A parent may ignore SIGCHLD; then the exit codes of child processes would be lost.
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &normal, NULL);
    struct msc_arena arena = {0};
    struct msc_console console;
    msc_console_init(&console);
    struct msc_cli_call call = {.whole_argv = argv, .arena = &arena, .console = &console};
    int code = dispatch_command(&call, argc, argv);
    msc_arena_finish(&arena);
    return code;
}
