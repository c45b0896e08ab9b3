// Measures the cost of the search engine itself. Toy trials take almost no time to evaluate. Each
// goes through the agent, the loop and a record that is synced at each commit.
//
//     bench_engine [--agent NAME] [--tasks 48] [--parallel 64] [--trials 20000] [--repeats 5]
//                  [--json FILE]
//
// For each repeat, prints trials per second of wall time, and trials per second without the time
// that the system took to sync the record. Then prints the medians of both, which are also the rows
// of FILE.
#include "agents/agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "bench/rows.h"
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
    const char *agent, *json;
    int tasks, parallel, trials, repeats;
};

struct rates {
    double wall, engine; // trials per second: of wall time, and without the time to sync the record
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

static int engine_compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double engine_median(double values[], int n) {
    qsort(values, (size_t)n, sizeof(values[0]), engine_compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// ---- Rows -------------------------------------------------------------------------------------

static enum msc_status save_rows(const struct settings *s, const struct rates *medians) {
    cJSON *rows = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    char model[64];
    snprintf(model, sizeof(model), "toy, %d binary tasks, rounds of %d", s->tasks, s->parallel);
    struct bench_row row = {"engine", model, s->agent, "", medians->wall, 0};
    MSC_TRY_OUT(bench_row_add(rows, &row));
    row.bench = "engine less fsync";
    row.ours = medians->engine;
    MSC_TRY_OUT(bench_row_add(rows, &row));
    status = bench_rows_save(rows, s->json);
out:
    cJSON_Delete(rows);
    return status;
}

// ---- The program ------------------------------------------------------------------------------

static bool read_settings(struct settings *s, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        int *number = strcmp(argv[i], "--tasks") == 0      ? &s->tasks
                      : strcmp(argv[i], "--parallel") == 0 ? &s->parallel
                      : strcmp(argv[i], "--trials") == 0   ? &s->trials
                      : strcmp(argv[i], "--repeats") == 0  ? &s->repeats
                                                           : NULL;
        if (strcmp(argv[i], "--agent") == 0) {
            s->agent = argv[i + 1];
        } else if (strcmp(argv[i], "--json") == 0) {
            s->json = argv[i + 1];
        } else if (number) {
            *number = atoi(argv[i + 1]);
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && s->repeats >= 1 && s->repeats <= MAX_REPEATS;
}

static enum msc_status engine_bench(const struct settings *s, const char *folder) {
    double wall[MAX_REPEATS], engine[MAX_REPEATS];
    printf("agent %s, %d binary tasks, rounds of %d, %d trials\n", s->agent, s->tasks, s->parallel,
           s->trials);
    for (int i = 0; i < s->repeats; i++) {
        struct rates r;
        MSC_TRY(run_once(s, folder, &r));
        wall[i] = r.wall;
        engine[i] = r.engine;
        printf("%10.0f trials/s of wall time %10.0f less the time in fsync\n", r.wall, r.engine);
    }
    struct rates medians = {engine_median(wall, s->repeats), engine_median(engine, s->repeats)};
    printf("%10.0f                       %10.0f medians\n", medians.wall, medians.engine);
    return s->json ? save_rows(s, &medians) : MSC_OK;
}

int main(int argc, char **argv) {
    struct settings s = {
        .agent = "random", .tasks = 48, .parallel = 64, .trials = 20000, .repeats = 5};
    char folder[] = "bench_engine_XXXXXX";
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr,
                "usage: bench_engine [--agent NAME] [--tasks N] [--parallel N] [--trials N] "
                "[--repeats N] [--json FILE]\n");
        return 2;
    }
    if (!mkdtemp(folder)) {
        perror("bench_engine");
        return 3;
    }
    enum msc_status status = engine_bench(&s, folder);
    if (status != MSC_OK) {
        fprintf(stderr, "bench_engine: %s\n", msc_status_message());
    }
    rmdir(folder);
    return status != MSC_OK;
}
