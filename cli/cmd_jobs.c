#include "cli/asking.h"

struct jobs_values {
    struct msc_cli_asking asking;
    const char *id;
    bool watch, cancel, resume, remove;
};

#define JOBS(member) offsetof(struct jobs_values, member)

static const struct msc_cli_option options[] = {
    {.name = "ID",
     .type = MSC_CLI_TEXT,
     .help = "a job (default: all jobs of the user, newest first)",
     .offset = JOBS(id),
     .is_positional = true},
    {.name = "watch",
     .type = MSC_CLI_FLAG,
     .help = "follow the job until it ends",
     .offset = JOBS(watch)},
    {.name = "cancel",
     .type = MSC_CLI_FLAG,
     .help = "stop the job after its current round; a second time, at once",
     .offset = JOBS(cancel)},
    {.name = "resume",
     .type = MSC_CLI_FLAG,
     .help = "continue a failed or cancelled job",
     .offset = JOBS(resume)},
    {.name = "remove",
     .type = MSC_CLI_FLAG,
     .help = "stop the job at once and remove all its files",
     .offset = JOBS(remove)},
    {0},
};

static int cmd_jobs(const struct msc_cli_call *call, void *payload) {
    const struct jobs_values *v = payload;
    int n = v->watch + v->cancel + v->resume + v->remove;
    struct msc_cli_words words = {.n = 0};
    if (n > 1 || (n == 1 && !v->id)) {
        return msc_cli_fail(
            call, MSC_FAIL(MSC_E_INVALID, n > 1 ? "jobs: expected one of --watch, --cancel, "
                                                  "--resume and --remove"
                                                : "jobs: ID is missing: the job to change"));
    }
    msc_cli_add_word(&words, v->watch    ? "watch"
                             : v->cancel ? "cancel"
                             : v->resume ? "resume"
                             : v->remove ? "remove"
                                         : "jobs");
    if (v->id) {
        msc_cli_add_word(&words, "--");
        msc_cli_add_word(&words, v->id);
    }
    return msc_cli_ask(call, &v->asking, &words);
}

const struct msc_cli_command msc_cmd_jobs = {
    .name = "jobs",
    .summary = "lists the jobs of mscgym serve, or changes one",
    .usage = "[ID] [options]",
    .description = "Prints a line for each job: ID, state, name, and the best plan so far. Needs "
                   "Python 3.",
    .examples = "  mscgym jobs\n"
                "  mscgym jobs 3f0c91d2a47b --watch\n",
    .options = options,
    .shared = msc_cli_server_options,
    .values_size = sizeof(struct jobs_values),
    .run = cmd_jobs,
};
