// Fixture declared in quantize_bench.h.
#include "tests/env/quantize_bench.h"

#include "kernels/backend.h"

#include <math.h>

static void prepare_host(struct bench *b, int n_threads) {
    b->host = (struct msc_env_host){.abi = MSC_ENV_ABI,
                                    .graph = b->c.g,
                                    .dataset = b->c.data,
                                    .backend = b->c.backend,
                                    .n_threads = n_threads,
                                    .memory_bytes = (uint64_t)1 << 30};
}

void prepare_bench(struct bench *b, int n_threads, int64_t batch) {
    memset(b, 0, sizeof(*b));
    quantize_case_open(&b->c, n_threads, batch);
    prepare_host(b, n_threads);
}

void prepare_bench_of(struct bench *b, struct msc_graph *g, const char *target) {
    memset(b, 0, sizeof(*b));
    quantize_case_open_graph(&b->c, g, target);
    prepare_host(b, 1);
}

enum msc_status create(struct bench *b, const char *config) {
    cJSON_Delete(b->config);
    assert_ok(msc_json_parse(&b->config, config, strlen(config), "test"));
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(b->config, "type");
    const char *name = cJSON_IsString(type) ? type->valuestring : "quantize";
    MSC_TRY(msc_env_create(&b->env, msc_env_find(name), b->config, &b->host));
    return msc_env_read_goal(&b->goal, msc_env_space(b->env), b->config);
}

void open_bench(struct bench *b, const char *config) {
    prepare_bench(b, 1, 4);
    assert_ok(create(b, config));
}

void close_env(struct bench *b) {
    msc_env_destroy(b->env);
    b->env = NULL;
}

void close_bench(struct bench *b) {
    close_env(b);
    cJSON_Delete(b->config);
    quantize_case_close(&b->c);
    msc_arena_finish(&b->arena);
}

struct msc_trial *make_trial(struct bench *b, int64_t id, const uint32_t choices[]) {
    const struct msc_space *space = msc_env_space(b->env);
    struct msc_trial *trial = msc_arena_array(&b->arena, 1, sizeof *trial);
    assert_non_null(trial);
    assert_ok(msc_trial_init(trial, &b->arena, space));
    trial->id = id;
    memcpy(trial->proposal.choices, choices, space->n_tasks * sizeof *choices);
    return trial;
}

struct msc_outcome evaluate(struct bench *b, const uint32_t choices[]) {
    struct msc_trial *trial = make_trial(b, 0, choices);
    const struct msc_evaluation e = {.trials = &trial, .n = 1};
    assert_ok(msc_env_evaluate(b->env, &b->goal, &e));
    return trial->outcome;
}

double metric(const struct bench *b, const struct msc_outcome *o, const char *name) {
    int index = msc_space_find_metric(msc_env_space(b->env), name);
    assert_true(index >= 0);
    return o->metrics[index];
}

void assert_near(double found, double expected, double relative) {
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        print_error("%.9g, expected %.9g\n", found, expected);
        fail();
    }
}

struct msc_strategy *strategy_of(struct bench *b, const uint32_t choices[]) {
    struct msc_strategy *s;
    cJSON *json;
    assert_ok(msc_env_edits(b->env, choices, &json));
    assert_ok(msc_strategy_from_json(&s, json, "edits"));
    cJSON_Delete(json);
    return s;
}
