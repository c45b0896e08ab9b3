// The command line: a table of commands, one file each.
//
// Results go to standard output, messages to standard error. To add a command: 1. write
// cli/cmd_<name>.c, which ends in its `const struct msc_cli_command`, 2. add it to
// cli/commands.def, 3. describe it in man/mscgym.1.in (otherwise the build fails). --help, the
// options in the manual page and the completions come from the command's table.
#ifndef MSC_CLI_CLI_H
#define MSC_CLI_CLI_H

#include "base/status.h"
#include "cli/console.h"
#include "cli/options.h"

struct cJSON;
struct msc_str;

enum msc_cli_exit {
    MSC_CLI_OK = 0,
    MSC_CLI_FAILED = 1,      // no feasible result, or a file is damaged or of another kind
    MSC_CLI_USAGE = 2,       // the command line, the configuration or an input is wrong
    MSC_CLI_ENVIRONMENT = 3, // the machine fails: memory, disk or device
    MSC_CLI_STOPPED = 4,     // stopped on request; resume continues
};

struct msc_cli_command;

// The arguments of a command, and the console that it writes to.
struct msc_cli_call {
    int argc; // number of arguments of the command; argv[0] is its name
    char **argv;
    char **whole_argv;                             // arguments of the program, to start it again
    const struct msc_cli_command *const *commands; // all commands; NULL-terminated
    struct msc_arena *arena;
    struct msc_console *console;
};

struct msc_cli_command {
    const char *name;
    const char *summary;     // one line, without a full stop
    const char *usage;       // the arguments after the name: "CONFIG [options]"
    const char *description; // sentences; --help breaks the lines; may be NULL
    const char *examples;    // indented lines
    const struct msc_cli_option *options;
    const struct msc_cli_option *shared; // options shared with other commands; may be NULL
    bool uses_models;                    // the command also takes msc_cli_model_options
    bool is_hidden;                      // only for the build: not in --help and completions
    size_t values_size; // size of the options' struct, which begins with msc_cli_common
    // Runs the command with the options in `values`, a struct of values_size bytes. Returns an exit
    // code; reports an error status with msc_cli_fail.
    int (*run)(const struct msc_cli_call *call, void *values);
};

// All commands, NULL-terminated; defined in main.c. Commands themselves use msc_cli_call.commands.
extern const struct msc_cli_command *const msc_cli_commands[];

// The command of that name, or NULL.
const struct msc_cli_command *msc_cli_find_command(const struct msc_cli_command *const commands[],
                                                   const char *name);

// Tables of a command's options, in the order of --help; NULL ends them.
#define MSC_CLI_TABLE_COUNT 5
void msc_cli_tables(const struct msc_cli_option *out[MSC_CLI_TABLE_COUNT],
                    const struct msc_cli_command *command);

// Runs `mscgym --version`; argv[0] of the call is "--version". Returns an exit code.
int msc_cli_version(const struct msc_cli_call *call);

// Prints the thread's error text, and returns the exit code of the status.
int msc_cli_fail(const struct msc_cli_call *call, enum msc_status status);
int msc_cli_exit_code(enum msc_status status);

// These print text or JSON to standard output, made safe to show (base/shown.h). MSC_E_IO if
// writing fails (full disk).
enum msc_status msc_cli_print(const char *text);
enum msc_status msc_cli_print_str(const struct msc_str *text);
enum msc_status msc_cli_print_data(const struct msc_str *json);
enum msc_status msc_cli_print_json(const struct cJSON *value); // indented

#endif
