// What the search engine itself costs: toy trials, which take next to no time to evaluate, through
// agent, loop and a record that is synced at each commit.
//
//     bench_engine [--agent NAME] [--tasks 48] [--parallel 64] [--trials 20000] [--repeats 5]
//
// Prints for each repeat the trials a second of wall time, and of wall time less the time that the
// system took to sync the record; then both medians.
#include "agents/agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "env/env.h"
#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPEATS = 99 };

static double sync_seconds;

int __real_fsync(int descriptor);
int __real_fdatasync(int descriptor);
int __wrap_fsync(int descriptor);
int __wrap_fdatasync(int descriptor);

int __wrap_fsync(int descriptor) {
    double start = msc_clock_seconds();
    int result = __real_fsync(descriptor);
    sync_seconds += msc_clock_seconds() - start;
    return result;
}

int __wrap_fdatasync(int descriptor) {
    double start = msc_clock_seconds();
    int result = __real_fdatasync(descriptor);
    sync_seconds += msc_clock_seconds() - start;
    return result;
}

struct settings {
    const char *agent;
    int tasks, parallel, trials, repeats;
};

struct rates {
    double wall, engine; // trials a second
};

static enum msc_status run_search(struct msc_env *env, const cJSON *agent, const struct settings *s,
                                  const char *record, struct rates *out) {
    struct msc_goal goal;
    struct msc_search_result result;
    MSC_TRY(msc_env_read_goal(&goal, msc_env_space(env), NULL));
    struct msc_search_options o = {.env = env,
                                   .agent_config = agent,
                                   .goal = &goal,
                                   .record_path = record,
                                   .numerics = "toy",
                                   .parallel = (uint32_t)s->parallel,
                                   .budget = {.trials = s->trials}};
    sync_seconds = 0;
    double start = msc_clock_seconds();
    MSC_TRY(msc_search_run(&result, &o));
    double wall = msc_clock_seconds() - start;
    double n = (double)result.n_new;
    *out = (struct rates){n / wall, n / (wall - sync_seconds)};
    msc_search_result_finish(&result);
    return MSC_OK;
}

static enum msc_status run_once(const struct settings *s, const char *folder, struct rates *out) {
    const struct msc_env_def *def = msc_env_find("toy");
    struct msc_env_host host = {.abi = MSC_ENV_ABI};
    struct msc_env *env = NULL;
    char path[512];
    enum msc_status status = MSC_OK;
    cJSON *config = cJSON_CreateObject();
    cJSON *agent = cJSON_CreateObject();
    snprintf(path, sizeof(path), "%s/engine.jsonl", folder);
    MSC_TRY_OUT(msc_json_add_number(config, "tasks", s->tasks));
    MSC_TRY_OUT(msc_json_add_number(config, "choices", 2));
    MSC_TRY_OUT(msc_json_add_text(agent, "type", s->agent));
    MSC_TRY_OUT(msc_env_create(&env, def, config, &host));
    status = run_search(env, agent, s, path, out);
out:
    unlink(path);
    msc_env_destroy(env);
    cJSON_Delete(config);
    cJSON_Delete(agent);
    return status;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[], int n) {
    qsort(values, (size_t)n, sizeof(values[0]), compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int read_settings(struct settings *s, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        int *number = strcmp(argv[i], "--tasks") == 0      ? &s->tasks
                      : strcmp(argv[i], "--parallel") == 0 ? &s->parallel
                      : strcmp(argv[i], "--trials") == 0   ? &s->trials
                      : strcmp(argv[i], "--repeats") == 0  ? &s->repeats
                                                           : NULL;
        if (strcmp(argv[i], "--agent") == 0) {
            s->agent = argv[i + 1];
        } else if (number) {
            *number = atoi(argv[i + 1]);
        } else {
            return 0;
        }
    }
    return argc % 2 == 1 && s->repeats >= 1 && s->repeats <= MAX_REPEATS;
}

int main(int argc, char **argv) {
    struct settings s = {"random", 48, 64, 20000, 5};
    char folder[] = "bench_engine_XXXXXX";
    double wall[MAX_REPEATS];
    double engine[MAX_REPEATS];
    int failed = 0;
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "usage: bench_engine [--agent NAME] [--tasks N] [--parallel N] [--trials N] "
                        "[--repeats N]\n");
        return 2;
    }
    if (!mkdtemp(folder)) {
        perror("bench_engine");
        return 3;
    }
    printf("agent %s, %d binary tasks, rounds of %d, %d trials\n", s.agent, s.tasks, s.parallel,
           s.trials);
    for (int i = 0; i < s.repeats && !failed; i++) {
        struct rates r;
        if (run_once(&s, folder, &r) != MSC_OK) {
            fprintf(stderr, "bench_engine: %s\n", msc_status_message());
            failed = 1;
            break;
        }
        wall[i] = r.wall;
        engine[i] = r.engine;
        printf("%10.0f trials/s of wall time %10.0f less the time in fsync\n", r.wall, r.engine);
    }
    rmdir(folder);
    if (!failed) {
        printf("%10.0f                       %10.0f medians\n", median(wall, s.repeats),
               median(engine, s.repeats));
    }
    return failed;
}
