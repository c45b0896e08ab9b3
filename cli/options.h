// Command-line options from a table: each row has the name, the argument, the help and the place of
// the value. Parsing, --help, the manual page and the shell completions are all made from these
// tables.
//
//     struct values {
//         struct msc_cli_common common; // first
//         const char *config;
//         int64_t trials;
//     };
//     static const struct msc_cli_option options[] = {
//         {.name = "CONFIG", .type = MSC_CLI_TEXT, .is_positional = true, .is_required = true,
//          .help = "the configuration", .offset = offsetof(struct values, config)},
//         {.name = "trials", .argument = "N", .type = MSC_CLI_COUNT, .help = "trials in all",
//          .offset = offsetof(struct values, trials)},
//         {0},
//     };
//
// The values of options that are not given are zero, or -1 for counts and choices. "--name value"
// and "--name=value" mean the same; "--" ends the options.
#ifndef MSC_CLI_OPTIONS_H
#define MSC_CLI_OPTIONS_H

#include "base/alloc.h"
#include "graph/graph.h"

#include <stdbool.h>
#include <stdint.h>

struct msc_str;

enum msc_cli_type {
    MSC_CLI_FLAG,     // bool
    MSC_CLI_TEXT,     // const char *
    MSC_CLI_COUNT,    // int64_t, 0 or more; -1: not given
    MSC_CLI_DURATION, // double, seconds; 0: not given
    MSC_CLI_BYTES,    // uint64_t
    MSC_CLI_CHOICE,   // int64_t, index into `names`; -1: not given
    MSC_CLI_LIST,     // struct msc_cli_list: all values given; positional: all remaining arguments
};

struct msc_cli_list {
    const char **items;
    size_t n;
};

// Values that completion offers in addition to `names`.
enum msc_cli_values {
    MSC_CLI_NO_VALUES,
    MSC_CLI_FILES,
    MSC_CLI_FOLDERS,
    MSC_CLI_AGENTS, // built-in agents, and files
    MSC_CLI_ENVS,   // built-in environments, and files
};

struct msc_cli_option {
    const char *name;     // name without dashes; NULL ends a table
    char letter;          // 'o' if "-o" means the same; 0: none
    const char *argument; // name of the value, such as "FILE"; NULL: a flag or positional
    enum msc_cli_type type;
    const char *help;    // a phrase without a full stop, in --help, the manual page and completions
    const char *details; // further sentences for the manual page; NULL: none
    size_t offset;
    bool is_positional;
    bool is_required; // positional arguments only
    // "auto|always|never": all values of a choice. For other types: values that completion offers.
    const char *names;
    enum msc_cli_values values;
    const char *needs; // option without which this one has no effect; NULL: none
};

// Values of the options that all commands share; the struct of a command's values begins with it.
struct msc_cli_common {
    bool help, quiet, json;
    int64_t log_level; // index for msc_log_level_at
    int64_t color;     // enum msc_color
    const char *device;
    const char *isa;
    int64_t threads;
    uint64_t memory_bytes;
    struct msc_cli_list bind;
    struct msc_cli_list operators; // paths of plug-ins
};

// Levels of instructions that --isa takes, for completion.
#define MSC_CLI_ISA_NAMES                                                                          \
    "sse41|avx|avx2|avx2_vnni|avx512_core|avx512_core_vnni|avx512_core_bf16|avx512_core_amx|"      \
    "neon|neon_dotprod|neon_i8mm"

extern const struct msc_cli_option msc_cli_basic_options[];
extern const struct msc_cli_option msc_cli_model_options[];

// Reads arguments into `values`, which must be zero. `tables` is NULL-terminated. MSC_E_INVALID
// names the argument and suggests a known one. With --help no argument is required.
enum msc_status msc_cli_parse(void *values, const struct msc_cli_option *const tables[], int argc,
                              char *const argv[], struct msc_arena *arena);

// Reads the values of --bind, such as "N=8", into the arena.
enum msc_status msc_cli_bindings(const struct msc_binding **out, size_t *n,
                                 const struct msc_cli_list *list, struct msc_arena *arena);

#endif
