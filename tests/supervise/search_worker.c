// Runs a search on the toy environment under supervision; test_supervise.c starts and kills it.
//
//     search_worker RECORD TRIALS ENV AGENT LIMIT_S QUIET_S
//
// If the search ends or is cancelled, prints how it ended and exits with 0. Exits with 1 after an
// error. Some values of RECORD make every worker misbehave instead:
// - crash: aborts; exit: exits with 42; vanish: a library calls exit(0); hang: never ends.
// - environment: prints the environment variables that the worker was started with.
// - lost: every worker loses its device. "lost N": only the first N workers lose it, and the N-th
//   cannot even open its device. The next worker prints how many workers lost their device.
#include "base/json.h"
#include "base/str.h"
#include "env/env.h"
#include "records/record.h"
#include "search/search.h"
#include "supervise/supervise.h"
#include "supervise/worker_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_log(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    (void)level;
    fprintf(stderr, "%s\n", line);
}

static const struct msc_log log_to_stderr = {.level = MSC_LOG_WARNING, .write = write_log};

static enum msc_status search(char **argv, struct msc_worker *worker, struct msc_cancel *cancel) {
    enum msc_status status = MSC_OK;
    cJSON *env_config = NULL;
    cJSON *agent_config = NULL;
    struct msc_env *env = NULL;
    struct msc_goal goal;
    struct msc_search_result result = {0};
    struct msc_search_options options = {
        .goal = &goal,
        .record_path = argv[1],
        .numerics = "test",
        .parallel = 8,
        .budget = MSC_BUDGET_NONE,
        .log = &log_to_stderr,
        .cancel = cancel,
        .worker = worker,
    };
    const struct msc_env_host host = {.cancel = cancel};
    msc_parse_i64(&options.budget.trials, argv[2]);
    msc_parse_double(&options.trial_seconds, argv[5]);
    msc_parse_double(&options.quiet_seconds, argv[6]);
    MSC_TRY_OUT(msc_json_parse(&env_config, argv[3], strlen(argv[3]), "env"));
    MSC_TRY_OUT(msc_json_parse(&agent_config, argv[4], strlen(argv[4]), "agent"));
    MSC_TRY_OUT(msc_env_create(&env, msc_env_find("toy"), env_config, &host));
    MSC_TRY_OUT(msc_env_read_goal(&goal, msc_env_space(env), env_config));
    options.env = env;
    options.agent_config = agent_config;
    MSC_TRY_OUT(msc_search_run(&result, &options));
    printf("%s\n", msc_search_end_name(result.end));
out:
    msc_search_result_finish(&result);
    msc_env_destroy(env);
    cJSON_Delete(env_config);
    cJSON_Delete(agent_config);
    return status;
}

// Workers count the losses in the page that they share with their parent.
static int lose(const char *record, struct msc_worker *worker) {
    int64_t n = INT64_MAX, n_left = (int64_t)atomic_load(&worker->page->n_left);
    if (record[4] != '\0' && !msc_parse_i64(&n, record + 5)) {
        return 1;
    }
    bool is_last = n_left == n - 1;
    enum msc_status status = n_left == n ? MSC_OK
                                         : MSC_FAIL(is_last ? MSC_E_DEVICE : MSC_E_LOST,
                                                    is_last ? "it cannot be opened" : "it is gone");
    bool is_leaving = msc_worker_leave(worker, status);
    if (!is_leaving) {
        printf("after %d, %s\n", (int)n_left, msc_status_name(status));
    }
    msc_worker_close(worker);
    return is_leaving ? 3 : 0;
}

static int work(char **argv) {
    static struct msc_cancel cancel;
    struct msc_worker worker;
    if (getenv("STOPS_AT_ONCE")) {
        msc_worker_stop_at_once();
    }
    if (msc_worker_open(&worker, &cancel) != MSC_OK) {
        return 1;
    }
    if (strcmp(argv[1], "crash") == 0) {
        abort();
    }
    if (strcmp(argv[1], "exit") == 0) {
        msc_worker_close(&worker);
        return 42;
    }
    if (strcmp(argv[1], "vanish") == 0) {
        exit(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "hang") == 0) { // hangs before its search begins
        msc_worker_set_quiet(&worker, 0.2);
        pause();
    }
    if (strncmp(argv[1], "lost", 4) == 0) {
        return lose(argv[1], &worker);
    }
    if (strcmp(argv[1], "environment") == 0) {
        const char *policy = getenv("OMP_WAIT_POLICY");
        printf("%s %d\n", policy ? policy : "-", msc_worker_is_wanted());
        msc_worker_close(&worker);
        return 0;
    }
    enum msc_status status = search(argv, &worker, &cancel);
    msc_worker_close(&worker);
    if (status != MSC_OK) {
        fprintf(stderr, "%s\n", msc_status_message());
    }
    return status == MSC_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 7) {
        return 2;
    }
    if (msc_worker_is_wanted()) {
        return work(argv);
    }
    int exit_code = 1;
    const struct msc_supervise_options options = {
        .argv = argv, .log = &log_to_stderr, .lost_pause_s = 0.001};
    if (msc_supervise(&exit_code, &options) != MSC_OK) {
        fprintf(stderr, "%s\n", msc_status_message());
        return 1;
    }
    return exit_code;
}
