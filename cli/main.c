// mscgym: reads the command and its options, and runs it.
#include "cli/cli.h"

#include "base/scratch.h"
#include "base/str.h"
#include "cli/color.h"
#include "cli/help.h"
#include "cli/output.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MSC_CLI_COMMAND(name) extern const struct msc_cli_command msc_cmd_##name;
#include "cli/commands.def"
#undef MSC_CLI_COMMAND

const struct msc_cli_command *const msc_cli_commands[] = {
#define MSC_CLI_COMMAND(name) &msc_cmd_##name,
#include "cli/commands.def"
#undef MSC_CLI_COMMAND
    NULL,
};

static int print_help(const struct msc_cli_call *call, const struct msc_cli_command *command) {
    struct msc_str text = {.has_styles = call->console->has_output_colors};
    if (command) {
        msc_cli_help_command(&text, command);
    } else {
        msc_cli_help(&text, call->commands);
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
    const char *names[sizeof msc_cli_commands / sizeof msc_cli_commands[0]];
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

// mscgym help [COMMAND]
static int dispatch_help(const struct msc_cli_call *call, const char *name) {
    const struct msc_cli_command *command =
        name ? msc_cli_find_command(msc_cli_commands, name) : NULL;
    return name && !command ? fail_command(call, name) : print_help(call, command);
}

static int dispatch_command(struct msc_cli_call *call, int argc, char **argv) {
    if (argc < 2) {
        print_help(call, NULL);
        return MSC_CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return print_help(call, NULL);
    }
    if (strcmp(argv[1], "help") == 0) {
        return dispatch_help(call, argc > 2 && argv[2][0] != '-' ? argv[2] : NULL);
    }
    call->argc = argc - 1;
    call->argv = argv + 1;
    if (strcmp(argv[1], "--version") == 0) {
        return msc_cli_version(call);
    }
    const struct msc_cli_command *command = msc_cli_find_command(msc_cli_commands, argv[1]);
    return command ? run_command(call, command) : fail_command(call, argv[1]);
}

// The system sends SIGBUS if a mapped file has lost the bytes that are read. After the return they
// are read again, which ends the process.
static void tell_lost_bytes(int number) {
    static const char text[] = "mscgym: a file in use was cut short or cannot be read, such as a "
                               "model's weights: put it back and run the command again\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) {
        return;
    }
}

// A program that starts this one sets MSCGYM_PARENT to its own process id: this process then stops
// when the starting thread ends. Children of this process have another parent.
static void stop_with_parent(void) {
    const char *parent = getenv("MSCGYM_PARENT");
    if (parent && strtol(parent, NULL, 10) == (long)getppid()) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
}

int main(int argc, char **argv) {
    // A write beyond the limit on file sizes then fails with an error instead of a signal.
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
    // If the parent process ignored SIGCHLD, the exit codes of child processes would be lost.
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &normal, NULL);
    const struct sigaction last = {.sa_handler = tell_lost_bytes, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGBUS, &last, NULL);
    stop_with_parent();
    struct msc_arena arena = {0};
    struct msc_console console;
    msc_console_init(&console);
    struct msc_cli_call call = {
        .whole_argv = argv, .commands = msc_cli_commands, .arena = &arena, .console = &console};
    int code = dispatch_command(&call, argc, argv);
    msc_arena_finish(&arena);
    return code;
}
