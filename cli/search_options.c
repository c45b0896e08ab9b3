#include "cli/searching.h"

const struct msc_cli_option msc_cli_search_options[] = {
    {.name = "trials",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "stop after N trials in all, not counting uniform baselines",
     .offset = MSC_CLI_SEARCH(trials)},
    {.name = "time",
     .argument = "TIME",
     .type = MSC_CLI_DURATION,
     .help = "stop after this much time over all launches, such as 8h, 90m or 1h30m",
     .details = "The search keeps the limit to within about one trial. The final measurement of "
                "the winner comes after it.",
     .offset = MSC_CLI_SEARCH(seconds)},
    {.name = "log",
     .argument = "tensorboard:DIR",
     .type = MSC_CLI_TEXT,
     .names = "tensorboard:",
     .help = "also write the trials as TensorBoard event files to DIR",
     .details = "DIR gets a run for each record. A failed write is a warning.",
     .offset = MSC_CLI_SEARCH(log)},
    {.name = "cluster",
     .argument = "KIND:WHERE",
     .type = MSC_CLI_TEXT,
     .names = "local:|ray:auto|ray:|slurm:",
     .help = "measure trials on workers: local:N, ray:HOST:PORT, ray:auto or slurm[:PARTITION][:N]",
     .details = "The record is the same as without workers. local:N starts N processes on this "
                "machine, which share its threads and memory. ray:HOST:PORT and ray:auto use a Ray "
                "cluster and send it the files. slurm:N and slurm:PARTITION:N start N jobs of one "
                "node each; without N, one job for each node. Under Slurm files need the same "
                "paths on all nodes, unless --copy-to copies them. On all nodes mscgym must be in "
                "the PATH or at the path that --worker-program names.",
     .offset = MSC_CLI_SEARCH(cluster)},
    {.name = "numerics",
     .argument = "ID",
     .type = MSC_CLI_TEXT,
     .help = "with --cluster: accept only workers with this numerics id (default: this machine's)",
     .details = "mscgym devices prints the id. If the two ids differ, the record holds both.",
     .offset = MSC_CLI_SEARCH(numerics)},
    {.name = "node-path",
     .argument = "DIR",
     .type = MSC_CLI_TEXT,
     .help = "with --cluster ray or slurm: folder, on all nodes, of the environment's library "
             "or program",
     .details =
         "Its path in that folder is the same as its path in the configuration's folder here.",
     .needs = "cluster",
     .offset = MSC_CLI_SEARCH(node_path)},
    {.name = "copy-to",
     .argument = "DIR",
     .type = MSC_CLI_TEXT,
     .help = "with --cluster slurm: copy what workers read to this folder of each node",
     .details = "For nodes that share no path with this machine. sbcast(1) copies the files, and "
                "the worker removes them when it ends.",
     .needs = "cluster",
     .offset = MSC_CLI_SEARCH(copy_to)},
    {.name = "worker-program",
     .argument = "PATH",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help =
         "with --cluster ray or slurm: path of mscgym on the nodes (default: mscgym in their PATH)",
     .needs = "cluster",
     .offset = MSC_CLI_SEARCH(worker_program)},
    {.name = "serve",
     .type = MSC_CLI_FLAG,
     .help = "serve a page that follows the search to browsers on this machine",
     .details = "It is the page that mscgym report --serve makes of the workspace. Its process "
                "ends with the search.",
     .offset = MSC_CLI_SEARCH(serve)},
    {.name = "port",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "with --serve: listen on this port (default: any free port)",
     .needs = "serve",
     .offset = MSC_CLI_SEARCH(port)},
    {.name = "on-improve",
     .argument = "CMD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "run this program when a better trial is found",
     .details =
         "CMD is the path of a program, or a JSON list of words such as [\"python3\", "
         "\"notify.py\"]. No shell is involved. The program finds MSCGYM_EVENT, MSCGYM_RECORD, "
         "MSCGYM_SEARCH, MSCGYM_TRIAL, MSCGYM_OBJECTIVE, MSCGYM_VALUE, MSCGYM_LOSS, MSCGYM_TRIALS "
         "and MSCGYM_ELAPSED_S in its environment. One program runs at a time, for at most a "
         "minute. If it fails, a warning is printed and the search continues.",
     .offset = MSC_CLI_SEARCH(on_improve)},
    {.name = "on-end",
     .argument = "CMD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "run this program at the end of each search",
     .details = "CMD and its environment are those of --on-improve, with the reason of the end in "
                "MSCGYM_END. If the search failed, only MSCGYM_EVENT, MSCGYM_END (failed) and "
                "MSCGYM_MESSAGE (the error) are set.",
     .offset = MSC_CLI_SEARCH(on_end)},
    {.name = "dry-run",
     .type = MSC_CLI_FLAG,
     .help = "print what the search will cost, and stop",
     .details =
         "It prints the cost of a trial, the number of trials that budget, agent and space allow, "
         "when they end, how long the winner is measured at the end, and the accuracy of the float "
         "model on the samples. If that accuracy differs from the one after training, the samples "
         "are not prepared as in training. With --json the names of numbers end in their units.",
     .offset = MSC_CLI_SEARCH(dry_run)},
    {.name = "retry-failed",
     .type = MSC_CLI_FLAG,
     .help = "repeat trials that failed for lack of memory or of a device, or at a time limit",
     .offset = MSC_CLI_SEARCH(retry_failed)},
    {.name = "warm-start",
     .type = MSC_CLI_FLAG,
     .help = "continue with a fresh agent that observes all old trials",
     .details = "This is for an agent that does not repeat its proposals.",
     .offset = MSC_CLI_SEARCH(warm_start)},
    {.name = "accept-new-numerics",
     .type = MSC_CLI_FLAG,
     .help = "continue although results may now differ in their last bits",
     .details = "Results may differ on another machine or device.",
     .offset = MSC_CLI_SEARCH(accept_new_numerics)},
    {0},
};
