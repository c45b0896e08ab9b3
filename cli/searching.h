// Shared by search, sensitivity and resume: their options, the supervised process and the result.
#ifndef MSC_CLI_SEARCHING_H
#define MSC_CLI_SEARCHING_H

#include "cli/cli.h"
#include "pipeline/processor.h"
#include "supervise/supervise.h"

// Values of msc_cli_search_options. The struct of a command's values begins with it.
struct msc_cli_search {
    struct msc_cli_common common;
    const char *path; // configuration or record
    int64_t trials;
    double seconds;
    const char *log;     // KIND:WHERE, such as tensorboard:DIR
    const char *cluster; // KIND:WHERE, such as local:4
    const char *numerics, *node_path, *copy_to, *worker_program;
    bool dry_run, accept_new_numerics, warm_start, retry_failed;
    const char *on_improve, *on_end; // programs (cli/hooks.h)
    bool serve;                      // serve a page that follows the search
    int64_t port;
    // Optional: prints the result in place of the report.
    enum msc_status (*print)(const struct msc_cli_search *values, const struct cJSON *reports);
};

#define MSC_CLI_SEARCH(member) offsetof(struct msc_cli_search, member)

extern const struct msc_cli_option msc_cli_search_options[];

typedef enum msc_status (*msc_cli_open)(struct msc_processor **out, const char *path,
                                        const struct msc_processor_options *options);

// Runs all searches under supervision; returns the exit code. `options` has the values that only
// this command sets.
int msc_cli_run_search(const struct msc_cli_call *call, const struct msc_cli_search *values,
                       struct msc_processor_options *options, msc_cli_open open);

// Reads the value of --accuracy-drop, a number from 0 to less than 1.
enum msc_status msc_cli_parse_drop(double *out, const char *command, const char *text);

// Fills device, threads, memory, bindings and log, for every command that opens a processor.
enum msc_status msc_cli_fill_options(struct msc_processor_options *out,
                                     const struct msc_cli_call *call,
                                     const struct msc_cli_common *common);

// Like msc_cli_fill_options, for work of which nothing is kept when it stops: the first signal
// stops it. The caller closes the worker.
enum msc_status msc_cli_fill_stoppable(struct msc_processor_options *out, struct msc_worker *worker,
                                       const struct msc_cli_call *call,
                                       const struct msc_cli_common *common);

// Like msc_cli_fill_options, for a command that opens a model itself; out->device changes only if
// --device is given.
enum msc_status msc_cli_fill_model_options(struct msc_model_options *out,
                                           const struct msc_cli_call *call,
                                           const struct msc_cli_common *common);

#endif
