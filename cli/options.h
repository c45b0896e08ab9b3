// Command-line options from a table: each row says name, argument, help and where its value goes.
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
// Values not given stay zero; counts and choices are -1. "--name value" and "--name=value" are the
// same, "--" ends the options.
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
    MSC_CLI_LIST,     // struct msc_cli_list: every time it is given; positional: all that are left
};

struct msc_cli_list {
    const char **items;
    size_t n;
};

struct msc_cli_option {
    const char *name;     // without dashes; NULL ends a table
    char letter;          // "-o" as well; 0: none
    const char *argument; // "FILE"; NULL for flags and positional ones
    enum msc_cli_type type;
    const char *help;
    size_t offset;
    bool is_positional;
    bool is_required;  // positional ones only
    const char *names; // of a choice: "auto|always|never"
    const char *needs; // the option without which it says nothing; NULL: none
};

// What all commands share; the struct of a command's values begins with it.
struct msc_cli_common {
    bool help, quiet, json;
    int64_t log_level; // index for msc_log_level_at
    int64_t color;     // enum msc_color
    const char *device;
    const char *isa;
    int64_t threads;
    uint64_t memory_bytes;
    struct msc_cli_list bind;
};

extern const struct msc_cli_option msc_cli_basic_options[];
extern const struct msc_cli_option msc_cli_model_options[];

// Reads arguments into `values`, which must be zero. `tables` is NULL-terminated. MSC_E_INVALID
// names the argument and suggests a known one. With --help nothing is required.
enum msc_status msc_cli_parse(void *values, const struct msc_cli_option *const tables[], int argc,
                              char *const argv[], struct msc_arena *arena);
// One line an option.
void msc_cli_help_options(const struct msc_cli_option options[], struct msc_str *out);

// "N=8" of --bind, as bindings in the arena.
enum msc_status msc_cli_bindings(const struct msc_binding **out, size_t *n,
                                 const struct msc_cli_list *list, struct msc_arena *arena);

#endif
