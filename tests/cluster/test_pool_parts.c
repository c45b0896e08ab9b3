// Parts of a trial. Tests which worker is sent which part, how answers combine in any order, and
// how many parts a second worker checks.
#include "../msc_test.h"
#include "base/str.h"
#include "tests/search/batch_env.h"
#include "cluster/pool_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_BATCHES 6
#define N_WORKERS 4

// Answers of the workers. The trial has three parts of two batches each. Two workers hold the
// second part: worker 1 runs out of memory, worker 2 evaluates it.
struct answer {
    int32_t worker;
    size_t part, n_batches;
    const char *end; // further members of the outcome
};
static const struct answer answers[] = {
    {0, 0, 2, ""},
    {1, 1, 0, ",\"state\":\"failed\",\"cause\":\"environment\",\"reason\":\"out of memory\""},
    {2, 1, 2, ""},
    {3, 2, 1, ",\"state\":\"pruned\",\"cause\":\"none\",\"reason\":\"over its bound\""},
};
#define N_ANSWERS (sizeof answers / sizeof answers[0])

struct scene {
    struct msc_pool pool;
    struct msc_pool_job job;
    struct msc_evaluation evaluation;
    struct msc_pool_worker workers[N_WORKERS];
    struct msc_arena arena; // memory for the arrays of `trial`
    struct msc_trial trial;
    struct msc_trial *trials[2]; // both point to `trial`
    double bounds[2];
};

static void begin_scene(struct scene *s, struct msc_env *env, double bound) {
    struct msc_pool_job *job = &s->job;
    *s = (struct scene){.bounds = {bound, bound}, .trials = {&s->trial, &s->trial}};
    assert_ok(msc_trial_init(&s->trial, &s->arena, msc_env_space(env)));
    s->trial.id = 3;
    s->evaluation = (struct msc_evaluation){.trials = s->trials, .n = 2, .bounds = s->bounds};
    assert_ok(msc_pool__open_job(job, env, &s->evaluation, NULL));
    s->pool.options.env = env;
    s->pool.job = job;
    for (int32_t w = 0; w < N_WORKERS; w++) {
        s->workers[w] = (struct msc_pool_worker){.number = w, .state = MSC_POOL_READY};
    }
    s->pool.workers = s->workers;
    s->pool.n_workers = N_WORKERS;
}

static void give_parts(struct scene *s) {
    for (size_t i = 0; i < N_BATCHES / 2; i++) {
        const struct msc_pool_shard shard = {
            .range = {2 * i, 2}, .n_trials = 1, .holders[0].worker = MSC_POOL_NOBODY};
        assert_ok(msc_pool__add_shard(&s->pool, &shard));
    }
    for (size_t i = 0; i < N_ANSWERS; i++) {
        struct msc_pool_shard *shard = &s->job.shards[answers[i].part];
        bool is_copy = i > 0 && answers[i - 1].part == answers[i].part;
        msc_pool__give(&shard->holders[is_copy], &s->workers[answers[i].worker]);
    }
}

static void end_scene(struct scene *s) {
    msc_free(s->job.shards);
    msc_arena_finish(&s->job.arena);
    msc_arena_finish(&s->arena);
    msc_str_finish(&s->pool.message);
}

static void take(struct scene *s, const struct answer *a) {
    const double halves[2 * N_BATCHES] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
                                          0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    struct msc_str line = {0}, values = {0};
    msc_node_write_doubles(&values, halves, 2 * a->n_batches);
    msc_str_printf(&line,
                   "{\"id\":%zu,\"outcomes\":[{\"id\":3,\"n\":%zu,\"values\":\"%s\",\"reuse\":0,"
                   "\"time_us\":1%s}]}",
                   a->part, a->n_batches, msc_str_text(&values), a->end);
    cJSON *answer = cJSON_Parse(msc_str_text(&line));
    assert_ok(msc_pool__take_answer(&s->pool, &s->workers[a->worker], answer));
    cJSON_Delete(answer);
    msc_str_finish(&values);
    msc_str_finish(&line);
}

// True if the trial has ended or a part is still open: the search can continue.
static bool goes_on(const struct scene *s) {
    bool is_asked = false;
    for (size_t i = 0; i < s->job.n_shards; i++) {
        is_asked |= !s->job.shards[i].is_done;
    }
    return s->job.trials[0].is_done || is_asked;
}

// The k-th permutation of n elements.
static void order_of(size_t order[], size_t n, size_t k) {
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (size_t i = n; i > 1; k /= i, i--) {
        size_t j = k % i, kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

// One worker runs out of memory for a part whose copy succeeds, and another stops at its bound. The
// total exceeds a bound of 0.1 but not a bound of 100. The trial ends in all 24 orders of the
// answers.
static void test_search_pool_parts__end_every_trial(void **state) {
    static const double bounds[] = {0.1, 100.0};
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    cJSON *config = cJSON_Parse("{\"batches\":6}");
    struct msc_env *env = NULL;
    (void)state;
    assert_ok(msc_env_create(&env, &msc_env_batch, config, &host));
    for (size_t k = 0; k < 2 * 24; k++) {
        struct scene s;
        size_t order[N_ANSWERS];
        order_of(order, N_ANSWERS, k / 2);
        begin_scene(&s, env, bounds[k % 2]);
        give_parts(&s);
        for (size_t i = 0; i < N_ANSWERS; i++) {
            take(&s, &answers[order[i]]);
            assert_true(goes_on(&s));
        }
        // The time of a copy does not count.
        assert_int_equal(s.job.trials[0].time_us, N_BATCHES / 2);
        end_scene(&s);
    }
    msc_env_destroy(env);
    cJSON_Delete(config);
}

struct counting_bridge {
    struct msc_bridge bridge;
    size_t n_sent[N_WORKERS];
};

static enum msc_status count_parts(struct msc_bridge *bridge, int32_t worker, const char *line,
                                   size_t length) {
    struct counting_bridge *counting = (struct counting_bridge *)bridge;
    (void)length;
    for (const char *at = line; (at = strstr(at, "\"first\":")) != NULL; at++) {
        counting->n_sent[worker]++;
    }
    return MSC_OK;
}

// The parts of a lost worker are spread over all remaining workers.
static void test_search_pool_parts__are_spread_over_all(void **state) {
    static const struct msc_bridge_def def = {.send = count_parts};
    struct counting_bridge counting = {.bridge = {.def = &def}};
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    cJSON *config = cJSON_Parse("{\"batches\":16}");
    struct msc_env *env = NULL;
    struct scene s;
    (void)state;
    assert_ok(msc_env_create(&env, &msc_env_batch, config, &host));
    begin_scene(&s, env, INFINITY);
    s.pool.options.bridge = &counting.bridge;
    for (size_t i = 0; i < 16; i++) {
        const struct msc_pool_shard shard = {
            .range = {i, 1}, .n_trials = 1, .holders[0].worker = MSC_POOL_NOBODY};
        assert_ok(msc_pool__add_shard(&s.pool, &shard));
    }
    assert_ok(msc_pool__send(&s.pool));
    assert_ok(msc_pool__send(&s.pool)); // nothing is sent twice
    for (size_t w = 0; w < N_WORKERS; w++) {
        assert_int_equal(counting.n_sent[w], 16 / N_WORKERS);
    }
    end_scene(&s);
    msc_env_destroy(env);
    cJSON_Delete(config);
}

// Plans evaluations of two trials for workers that have had `first` parts each, until each has had
// n more parts. checked[w] counts the checks that worker w makes. Returns the share of terms that
// are measured twice.
static double plan_many(size_t checked[N_WORKERS], struct msc_env *env, uint64_t first,
                        uint64_t n) {
    uint64_t parts[N_WORKERS], next_shard = 0;
    double n_once = 0.0, n_twice = 0.0;
    for (size_t w = 0; w < N_WORKERS; w++) {
        parts[w] = first;
        checked[w] = 0;
    }
    while (parts[0] < first + n) {
        struct scene s;
        begin_scene(&s, env, INFINITY);
        s.pool.next_shard = next_shard;
        for (size_t w = 0; w < N_WORKERS; w++) {
            s.workers[w].n_parts = parts[w];
        }
        assert_ok(msc_pool__plan(&s.pool));
        next_shard = s.pool.next_shard;
        for (size_t i = 0; i < s.job.n_shards; i++) {
            const struct msc_pool_shard *shard = &s.job.shards[i];
            double n_numbers = (double)(shard->n_trials * shard->range.n);
            if (shard->is_check) {
                assert_int_not_equal(shard->checker, shard->checked);
                checked[shard->checker]++;
            }
            *(shard->is_check ? &n_twice : &n_once) += n_numbers;
        }
        for (size_t w = 0; w < N_WORKERS; w++) {
            parts[w] = s.workers[w].n_parts;
        }
        end_scene(&s);
    }
    return n_twice / n_once;
}

// All workers check parts of others. Every part of a new worker is checked, but only about one in a
// hundred parts of a worker that has evaluated very many parts. A check measures one of a part's
// two trials.
static void test_search_pool_parts__are_checked_by_all(void **state) {
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    cJSON *config = cJSON_Parse("{\"batches\":16}");
    struct msc_env *env = NULL;
    size_t checked[N_WORKERS];
    (void)state;
    assert_ok(msc_env_create(&env, &msc_env_batch, config, &host));
    assert_true(plan_many(checked, env, 0, 20) == 0.5);
    double share = plan_many(checked, env, 1000000, 10000);
    assert_true(share > 0.004 && share < 0.006);
    for (size_t w = 0; w < N_WORKERS; w++) {
        assert_in_range(checked[w], 50, 150);
    }
    msc_env_destroy(env);
    cJSON_Delete(config);
}

// A worker that gets one result in five wrong passes with probability prod(1 - s_k / 5). Here s_k
// is the share of checks at its k-th part. This probability is below 1e-6 from part 62 on (0.8^62 =
// 9.8e-7). If wrong results begin later, at part k, the probability is below 1e-6 by part 3 k. In
// long searches few parts are checked.
static void test_search_pool_parts__leave_a_liar_no_chance(void **state) {
    double log_chance = 0.0, n_checked = 0.0;
    (void)state;
    for (uint64_t k = 1; k <= 100000; k++) {
        double share = msc_pool__check_share(k);
        assert_true(share >= 0.01 && share <= 1.0);
        log_chance += log1p(-0.2 * share);
        n_checked += share;
        assert_true(k < 62 || log_chance < log(1e-6));
        // The number of checks is the sum of min(1, 64 / k), about 64 (1 + ln(n / 64)). The share
        // of checks later falls to one in a hundred.
        assert_true(k != 1000 || fabs(n_checked - 64.0 * (1.0 + log(1000.0 / 64.0))) < 1.0);
        assert_true(k != 100000 || n_checked < 0.015 * 100000);
    }
    for (uint64_t first = 100; first <= 10000; first *= 10) {
        log_chance = 0.0;
        for (uint64_t k = first + 1; k <= 3 * first; k++) {
            log_chance += log1p(-0.2 * msc_pool__check_share(k));
        }
        assert_true(log_chance < log(1e-6));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_pool_parts__end_every_trial),
        cmocka_unit_test(test_search_pool_parts__are_spread_over_all),
        cmocka_unit_test(test_search_pool_parts__are_checked_by_all),
        cmocka_unit_test(test_search_pool_parts__leave_a_liar_no_chance),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
