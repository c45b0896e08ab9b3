// The fixture of the record tests, declared in records_fixture.h.
#include "records_fixture.h"

#include "../temp_folder.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const labels[] = {"8", "6 \"mse\"", "4"};
static const uint32_t order[] = {0, 1, 2};
static const struct msc_task tasks[FIXTURE_TASKS] = {
    {.name = "conv/weight", .n_choices = 3, .labels = labels, .most_expensive_first = order},
    {.name = "gr\xc3\xbc\xc3\x9f", .n_choices = 3, .labels = labels, .most_expensive_first = order},
    {.name = "fc\t1", .n_choices = 2, .labels = labels, .most_expensive_first = order},
};
static const struct msc_metric metrics[FIXTURE_METRICS] = {
    {.name = "distill_loss", .unit = ""},
    {.name = "size_bytes", .unit = "bytes", .is_exact = true},
    {.name = "accuracy", .unit = "", .is_maximised = true},
};
static const double sizes[] = {30, 20, 10};
static const struct msc_cost_factor factors[] = {{.task = 0, .by_choice = sizes},
                                                 {.task = 1, .by_choice = sizes},
                                                 {.task = 2, .by_choice = sizes}};
static const struct msc_cost_term terms[] = {
    {.scale = 1, .n_factors = 1, .factors = &factors[0]},
    {.scale = 1, .n_factors = 1, .factors = &factors[1]},
    {.scale = 1, .n_factors = 1, .factors = &factors[2]},
};
static const struct msc_cost costs[] = {{.metric = "size_bytes", .n_terms = 3, .terms = terms}};
static const uint32_t points[2][FIXTURE_TASKS] = {{0, 0, 0}, {1, 1, 1}};
static const struct msc_baseline baselines[] = {
    {.label = "8", .choices = points[0]},
    {.label = "6 \"mse\"", .choices = points[1]},
};

const struct msc_space fixture_space = {
    .n_tasks = FIXTURE_TASKS,
    .tasks = tasks,
    .n_metrics = FIXTURE_METRICS,
    .metrics = metrics,
    .n_costs = 1,
    .costs = costs,
    .n_baselines = 2,
    .baselines = baselines,
};

const struct msc_goal fixture_goal = {
    .n_objectives = 2,
    .objectives = {{.metric = 0}, {.metric = 2, .is_maximised = true}},
    .n_bounds = 1,
    .bounds = {{.metric = 1, .min = -INFINITY, .max = 100}},
};

static cJSON *parse(const char *text) {
    cJSON *value = NULL;
    assert_ok(msc_json_parse(&value, text, strlen(text), "fixture"));
    return value;
}

int fixture_setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    temp_folder_make(f->folder);
    snprintf(f->path, sizeof f->path, "%.4000s/a.jsonl", f->folder);
    cJSON *config = parse("{\"model\":\"a.onnx\",\"verbose\":\"info\","
                          "\"quantize\":{\"bits\":[8,6],\"budget\":{\"trials\":10}}}");
    cJSON *budget = parse("{\"trials\":10}");
    cJSON *env = parse("{\"type\":\"quantize\",\"graph\":\"0a\",\"weights\":\"0b\"}");
    cJSON *agent = parse("{\"type\":\"random\"}");
    cJSON *hashes = parse("{\"graph\":\"00ff\"}");
    const struct msc_record_header header = {
        .program = "mscgym 0.1.0",
        .numerics = "cpu;avx512",
        .config = config,
        .budget = budget,
        .env = env,
        .agent = agent,
        .hashes = hashes,
        .space = &fixture_space,
        .goal = &fixture_goal,
        .seed = UINT64_C(18446744073709551615),
        .parallel = 4,
    };
    assert_ok(msc_record_header_create(&f->header, &header));
    cJSON_Delete(config);
    cJSON_Delete(budget);
    cJSON_Delete(env);
    cJSON_Delete(agent);
    cJSON_Delete(hashes);
    *state = f;
    return 0;
}

int fixture_teardown(void **state) {
    struct fixture *f = *state;
    temp_folder_remove(f->folder);
    cJSON_Delete(f->header);
    free(f);
    return 0;
}

struct msc_record_line fixture_trial(int64_t id) {
    static uint32_t choices[FIXTURE_TASKS];
    static double values[FIXTURE_METRICS];
    static char no_reason[1];
    choices[0] = (uint32_t)(id % 3);
    choices[1] = (uint32_t)(id / 3 % 3);
    choices[2] = (uint32_t)(id / 9 % 2);
    values[0] = 1.0 / (double)(id + 3);
    values[1] = (double)(10 * id);
    values[2] = 0.1 * (double)id;
    return (struct msc_record_line){
        .trial =
            {
                .id = id,
                .proposal =
                    {.choices = choices, .parent = id - 1, .bound = INFINITY, .probe = id < 2},
                .outcome = {.state = MSC_TRIAL_COMPLETE,
                            .metrics = values,
                            .reason = no_reason,
                            .time_us = (uint64_t)(1000 + id),
                            .reuse_ratio = 0.5},
            },
        .repeat_of = -1,
        .retry_of = -1,
        .baseline = id < 2 ? id : -1,
        .elapsed_s = 0.25 * (double)id,
    };
}

void fixture_write(const struct fixture *f, size_t n) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_create(&record, f->path, f->header, NULL));
    for (size_t i = 0; i < n; i++) {
        const struct msc_record_line trial = fixture_trial((int64_t)i);
        assert_ok(msc_record_append_trial(record, &trial));
    }
    assert_ok(msc_record_commit(record));
    msc_record_close(record);
}

char *fixture_read(size_t *n_bytes, const char *path) {
    char *text = NULL;
    assert_ok(msc_file_read(&text, n_bytes, path));
    return text;
}

void fixture_put(const char *path, const char *data, size_t n_bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n_bytes, file), n_bytes);
    assert_int_equal(fclose(file), 0);
}

static void assert_same_double(double a, double b) {
    if (!(isnan(a) && isnan(b))) {
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static void assert_same_proposal(const struct msc_proposal *a, const struct msc_proposal *b) {
    assert_memory_equal(a->choices, b->choices, FIXTURE_TASKS * sizeof *a->choices);
    assert_int_equal(a->parent, b->parent);
    assert_same_double(a->bound, b->bound);
    assert_int_equal(a->probe, b->probe);
}

static void assert_same_outcome(const struct msc_outcome *a, const struct msc_outcome *b) {
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->cause, b->cause);
    for (size_t i = 0; i < FIXTURE_METRICS; i++) {
        assert_same_double(a->metrics[i], b->metrics[i]);
    }
    assert_same_double(a->violation, b->violation);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->time_us, b->time_us);
    assert_same_double(a->reuse_ratio, b->reuse_ratio);
}

void fixture_assert_same(const struct msc_record_line *a, const struct msc_record_line *b) {
    assert_int_equal(a->trial.id, b->trial.id);
    assert_same_proposal(&a->trial.proposal, &b->trial.proposal);
    assert_same_outcome(&a->trial.outcome, &b->trial.outcome);
    assert_int_equal(a->repeat_of, b->repeat_of);
    assert_int_equal(a->retry_of, b->retry_of);
    assert_int_equal(a->baseline, b->baseline);
    assert_same_double(a->elapsed_s, b->elapsed_s);
}
