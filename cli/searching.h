// What `search` and `resume` share: the supervised process and the result.
#ifndef MSC_CLI_SEARCHING_H
#define MSC_CLI_SEARCHING_H

#include "cli/cli.h"
#include "pipeline/processor.h"

// Options of both. The struct of a command's values begins with it.
struct msc_cli_search {
    struct msc_cli_common common;
    const char *path; // configuration or record
    int64_t trials;
    double seconds;
    const char *log;     // KIND:WHERE
    const char *cluster; // KIND:WHERE, too
    const char *numerics, *node_path, *copy_to, *worker_program;
    bool dry_run, accept_new_numerics, warm_start, retry_failed;
    const char *on_improve, *on_end; // programs (cli/hooks.h)
    bool serve;                      // a page that follows it
    int64_t port;
    // Optional: prints the result for the command, which is no report then.
    enum msc_status (*print)(const struct msc_cli_search *values, const struct cJSON *reports);
};

#define MSC_CLI_SEARCH(member) offsetof(struct msc_cli_search, member)

#define MSC_CLI_SEARCH_OPTIONS                                                                     \
    {.name = "trials",                                                                             \
     .argument = "N",                                                                              \
     .type = MSC_CLI_COUNT,                                                                        \
     .help = "budget: trials in all, without baselines",                                           \
     .offset = MSC_CLI_SEARCH(trials)},                                                            \
        {.name = "time",                                                                           \
         .argument = "TIME",                                                                       \
         .type = MSC_CLI_DURATION,                                                                 \
         .help = "budget: time over all launches, such as 8h",                                     \
         .offset = MSC_CLI_SEARCH(seconds)},                                                       \
        {.name = "log",                                                                            \
         .argument = "KIND:WHERE",                                                                 \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "tensorboard:DIR: also write the trials for TensorBoard",                         \
         .offset = MSC_CLI_SEARCH(log)},                                                           \
        {.name = "cluster",                                                                        \
         .argument = "KIND:WHERE",                                                                 \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "local:N, ray:HOST:PORT, slurm[:PARTITION][:N]: measure trials by workers",       \
         .offset = MSC_CLI_SEARCH(cluster)},                                                       \
        {.name = "numerics",                                                                       \
         .argument = "ID",                                                                         \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "with --cluster: that of the workers to take, where they differ",                 \
         .offset = MSC_CLI_SEARCH(numerics)},                                                      \
        {.name = "node-path",                                                                      \
         .argument = "DIR",                                                                        \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "with --cluster ray or slurm: where nodes have an environment that is code",      \
         .needs = "cluster",                                                                       \
         .offset = MSC_CLI_SEARCH(node_path)},                                                     \
        {.name = "copy-to",                                                                        \
         .argument = "DIR",                                                                        \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "with --cluster slurm: copy what workers read to this folder of each node",       \
         .needs = "cluster",                                                                       \
         .offset = MSC_CLI_SEARCH(copy_to)},                                                       \
        {.name = "worker-program",                                                                 \
         .argument = "PATH",                                                                       \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "with --cluster ray or slurm: mscgym on nodes (default: as in their PATH)",       \
         .needs = "cluster",                                                                       \
         .offset = MSC_CLI_SEARCH(worker_program)},                                                \
        {.name = "serve",                                                                          \
         .type = MSC_CLI_FLAG,                                                                     \
         .help = "serve a page that follows it to browsers on this machine",                       \
         .offset = MSC_CLI_SEARCH(serve)},                                                         \
        {.name = "port",                                                                           \
         .argument = "N",                                                                          \
         .type = MSC_CLI_COUNT,                                                                    \
         .help = "with --serve: port (default: any that is free)",                                 \
         .needs = "serve",                                                                         \
         .offset = MSC_CLI_SEARCH(port)},                                                          \
        {.name = "on-improve",                                                                     \
         .argument = "CMD",                                                                        \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "program, or JSON list of words, to run when a better trial is found",            \
         .offset = MSC_CLI_SEARCH(on_improve)},                                                    \
        {.name = "on-end",                                                                         \
         .argument = "CMD",                                                                        \
         .type = MSC_CLI_TEXT,                                                                     \
         .help = "the same to run at the end of a search",                                         \
         .offset = MSC_CLI_SEARCH(on_end)},                                                        \
        {.name = "dry-run",                                                                        \
         .type = MSC_CLI_FLAG,                                                                     \
         .help = "say what it will cost, and stop",                                                \
         .offset = MSC_CLI_SEARCH(dry_run)},                                                       \
        {.name = "retry-failed",                                                                   \
         .type = MSC_CLI_FLAG,                                                                     \
         .help = "do trials again that failed for want of memory or a device",                     \
         .offset = MSC_CLI_SEARCH(retry_failed)},                                                  \
        {.name = "warm-start",                                                                     \
         .type = MSC_CLI_FLAG,                                                                     \
         .help = "go on with a fresh agent that is told all old trials",                           \
         .offset = MSC_CLI_SEARCH(warm_start)},                                                    \
    {                                                                                              \
        .name = "accept-new-numerics", .type = MSC_CLI_FLAG,                                       \
        .help = "go on although results may now differ in their last bits",                        \
        .offset = MSC_CLI_SEARCH(accept_new_numerics)                                              \
    }

typedef enum msc_status (*msc_cli_open)(struct msc_processor **out, const char *path,
                                        const struct msc_processor_options *options);

// Runs all under supervision; returns the exit code. `options` holds what only one of the commands
// knows.
int msc_cli_run_search(const struct msc_cli_call *call, const struct msc_cli_search *values,
                       struct msc_processor_options *options, msc_cli_open open);

// Device, threads, memory, bindings and log, for every command that opens a processor.
enum msc_status msc_cli_fill_options(struct msc_processor_options *out,
                                     const struct msc_cli_call *call,
                                     const struct msc_cli_common *common);

// The same for one that opens a model by itself; a device that is not named stays as it is.
enum msc_status msc_cli_fill_model_options(struct msc_model_options *out,
                                           const struct msc_cli_call *call,
                                           const struct msc_cli_common *common);

#endif
