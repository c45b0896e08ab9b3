// A worker of a search on several machines, for the program that starts it (docs/cluster.md).
#include "cli/output.h"
#include "cli/searching.h"

#include "pipeline/node.h"
#include "cluster/node.h"
#include "supervise/supervise.h"

#include <string.h>
#include <unistd.h>

struct worker_values {
    struct msc_cli_common common;
    int64_t place;
};

static const struct msc_cli_option options[] = {
    {.name = "place",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "number of this worker among those of its machine, from 0 (default: 0)",
     .details = "If the search names no particular GPU, workers take equal GPUs in turn.",
     .offset = offsetof(struct worker_values, place)},
    {0}};

// Reports that the parent process lives, whatever its child does. A failed write is repeated with
// the next beat.
static void beat(bool is_busy) {
    const char *line = is_busy ? "{\"beat\":1,\"busy\":true}\n" : "{\"beat\":1,\"busy\":false}\n";
    msc_node_write_line(STDOUT_FILENO, line, strlen(line), false);
}

static int serve(const struct msc_cli_call *call, size_t place) {
    static struct msc_cancel cancel; // static, because a signal may arrive until the process ends
    struct msc_worker worker = {0};
    enum msc_status status = msc_output_keep();
    if (status == MSC_OK) {
        status = msc_worker_open(&worker, &cancel);
    }
    if (status == MSC_OK) {
        status = msc_node_serve(STDIN_FILENO, msc_output_descriptor(), place, &worker, &cancel,
                                &call->console->log);
    }
    bool is_leaving = msc_worker_leave(&worker, status);
    msc_worker_close(&worker);
    return status == MSC_OK ? MSC_CLI_OK
           : is_leaving     ? msc_cli_exit_code(status) // the parent reports the error
                            : msc_cli_fail(call, status);
}

static int cmd_worker(const struct msc_cli_call *call, void *payload) {
    const struct worker_values *v = payload;
    int code = MSC_CLI_FAILED;
    const struct msc_supervise_options supervision = {
        .argv = call->whole_argv, .log = &call->console->log, .beat = beat};
    if (msc_worker_is_wanted()) {
        return serve(call, v->place > 0 ? (size_t)v->place : 0);
    }
    msc_output_give_back();
    enum msc_status status = msc_supervise(&code, &supervision);
    return status == MSC_OK ? code : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_worker = {
    .name = "worker",
    .summary = "measures trials for a search on another machine",
    .usage = "[options]",
    .description =
        "Reads requests from standard input and writes answers to standard output, as JSON lines "
        "(docs/cluster.md). `mscgym search --cluster` starts workers by itself.",
    .examples = "  mscgym search digits.json --cluster local:2\n",
    .options = options,
    .values_size = sizeof(struct worker_values),
    .run = cmd_worker,
};
