// Search with a pool of workers: the record equals the record of a single process, whatever happens
// to the workers. The reference records are made by the same search without a pool.
#include "../msc_test.h"
#include "base/str.h"
#include "tests/search/batch_env.h"
#include "fake_bridge.h"
#include "records/race.h"
#include "cluster/node_message.h"
#include "cluster/pool.h"
#include "tests/search/search_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_SEEDS 500

struct subject {
    const struct msc_env_def *def;
    const char *env, *agent;
    const char *race; // NULL: no race
    uint32_t parallel;
    int64_t n_trials;     // 0: 40 trials
    const char *numerics; // numerics id of the workers; NULL: "test", as in this process
    const struct msc_cancel *cancel;
};

// Runs a search, with a pool unless `bridge` is NULL. If the search fails, its status message is
// set again after cleaning up.
static enum msc_status run(const char *path, const struct subject *s, struct fake_bridge *bridge,
                           struct msc_pool_figures *figures) {
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    struct msc_search_result result = {0};
    struct cJSON *config = cJSON_Parse(s->env), *agent = cJSON_Parse(s->agent);
    struct cJSON *race = s->race ? cJSON_Parse(s->race) : NULL;
    struct msc_env *env = NULL;
    struct msc_goal goal;
    struct msc_race rungs = {0};
    struct msc_search_options o = {.agent_config = agent,
                                   .goal = &goal,
                                   .record_path = path,
                                   .numerics = s->numerics ? s->numerics : "test",
                                   .own_numerics = "test",
                                   .seed = 5,
                                   .race = &rungs,
                                   .parallel = s->parallel,
                                   .cancel = s->cancel,
                                   .budget = {.trials = s->n_trials > 0 ? s->n_trials : 40}};
    assert_ok(msc_env_create(&env, s->def, config, &host));
    assert_ok(msc_env_read_goal(&goal, msc_env_space(env), config));
    if (race) {
        assert_ok(msc_race_read(&rungs, race, msc_env_n_batches(env), "race"));
    }
    o.env = env;
    if (bridge) {
        const struct msc_pool_options pool = {.env = env,
                                              .bridge = fake_bridge_bridge(bridge),
                                              .init = "",
                                              .program = "test",
                                              .build = "test",
                                              .numerics = o.numerics,
                                              .is_foreign = s->numerics != NULL,
                                              .cancel = s->cancel,
                                              .now_s = fake_bridge_now_s,
                                              .payload = bridge};
        assert_ok(msc_pool_open(&o.pool, &pool));
    }
    enum msc_status status = msc_search_run(&result, &o);
    char message[512];
    snprintf(message, sizeof message, "%s", msc_status_message());
    status = status == MSC_OK && result.end == MSC_SEARCH_END_CANCELLED ? MSC_E_CANCELLED : status;
    msc_search_result_finish(&result);
    if (bridge && figures) {
        *figures = msc_pool_figures(o.pool);
    }
    msc_pool_close(o.pool);
    msc_env_destroy(env);
    cJSON_Delete(config);
    cJSON_Delete(agent);
    cJSON_Delete(race);
    return status == MSC_OK ? MSC_OK : msc_status_restore(status, message);
}

static const struct subject subjects[] = {
    {.def = &msc_env_batch, .env = "{}", .agent = "{\"type\":\"random\"}", .parallel = 8},
    {.def = &msc_env_batch,
     .env = "{\"batches\":3}",
     .agent = "{\"type\":\"evolutionary\",\"bounded\":true}",
     .parallel = 12},
    {.def = &msc_env_batch,
     .env = "{\"batches\":8}",
     .agent = "{\"type\":\"evolutionary\"}",
     .race = "{\"rungs\":[2,4]}",
     .parallel = 8},
    {.def = NULL, // NULL means the toy environment
     .env = "{\"tasks\":6,\"choices\":3,\"interaction\":0.5}",
     .agent = "{\"type\":\"evolutionary\",\"bounded\":true}",
     .parallel = 8},
};
#define N_SUBJECTS (sizeof subjects / sizeof subjects[0])

static struct subject subject_of(size_t i) {
    struct subject s = subjects[i % N_SUBJECTS];
    s.def = s.def ? s.def : msc_env_find("toy");
    return s;
}

static void make_references(struct fixture *f, char paths[N_SUBJECTS][FIXTURE_PATH_BYTES]) {
    for (size_t i = 0; i < N_SUBJECTS; i++) {
        char name[20];
        struct subject s = subject_of(i);
        snprintf(name, sizeof name, "alone%zu.jsonl", i);
        fixture_join(paths[i], f, name);
        assert_ok(run(paths[i], &s, NULL, NULL));
    }
}

// Runs without faults. Some have fewer workers than batches or trials, others have more.
static void test_search_pool__is_a_single_process(void **state) {
    struct fixture *f = *state;
    char paths[N_SUBJECTS][FIXTURE_PATH_BYTES];
    make_references(f, paths);
    for (size_t i = 0; i < N_SUBJECTS; i++) {
        for (int n = 1; n < 20; n += n < 4 ? 1 : 5) {
            struct subject s = subject_of(i);
            struct msc_pool_figures figures;
            const struct fake_bridge_options o = {
                .seed = 1, .n_workers = n, .def = s.def, .env = s.env};
            assert_ok(run(f->path, &s, fake_bridge_open(&o), &figures));
            assert_same_record(f->path, paths[i]);
            assert_int_equal(figures.n_up, n);
            assert_int_equal(figures.n_lost, 0);
            remove_record(f->path);
        }
    }
}

// All kinds of faults, drawn from 500 seeds.
static void test_search_pool__outlives_faults(void **state) {
    struct fixture *f = *state;
    struct fake_figures total = {0};
    char paths[N_SUBJECTS][FIXTURE_PATH_BYTES];
    make_references(f, paths);
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct subject s = subject_of(seed);
        const struct fake_bridge_options o = {.seed = seed,
                                              .n_workers = 1 + (int)(seed / N_SUBJECTS % 5),
                                              .n_faults = 12,
                                              .flaw = seed % 7 == 0 ? FLAW_NUMERICS
                                                      : seed % 11 == 0 && s.def == &msc_env_batch
                                                          ? FLAW_CANARY
                                                      : seed % 13 == 0 ? FLAW_DEAF
                                                                       : FLAW_NONE,
                                              .def = s.def,
                                              .env = s.env};
        struct fake_bridge *bridge = fake_bridge_open(&o);
        fake_bridge_count(bridge, &total);
        enum msc_status status = run(f->path, &s, bridge, NULL);
        if (status == MSC_E_STATE && o.n_workers == 1 && o.flaw != FLAW_NONE) {
            assert_message("no worker is left; worker");
            assert_message(o.flaw == FLAW_NUMERICS ? "its results would differ in the last bits"
                                                   : "its result for a known trial differs");
        } else {
            if (status != MSC_OK) {
                fail_msg("seed %d: %s", (int)seed, msc_status_message());
            }
            assert_same_record(f->path, paths[seed % N_SUBJECTS]);
        }
        remove_record(f->path);
    }
    // Checks that the faults did happen.
    assert_true(total.n_kills > 100 && total.n_crashes > 50 && total.n_silences > 50);
    assert_true(total.n_drops > 100 && total.n_twice > 100 && total.n_garbage > 20);
    assert_true(total.n_joins > 50);
}

// Runs the search subject_of(o.seed) with a pool. No worker may be lost, and the record must be
// right.
static void search_without_loss(struct fixture *f, char paths[][FIXTURE_PATH_BYTES],
                                struct fake_bridge_options o, struct fake_figures *total) {
    struct subject s = subject_of(o.seed);
    struct msc_pool_figures figures;
    o.def = s.def;
    o.env = s.env;
    struct fake_bridge *bridge = fake_bridge_open(&o);
    fake_bridge_count(bridge, total);
    assert_ok(run(f->path, &s, bridge, &figures));
    assert_int_equal(figures.n_lost, 0);
    assert_same_record(f->path, paths[o.seed % N_SUBJECTS]);
    remove_record(f->path);
}

// A coordinator may be busy between rounds or within one. It does not declare a worker lost while
// lines of that worker wait to be read.
static void test_search_pool__keeps_whom_it_did_not_hear(void **state) {
    struct fixture *f = *state;
    char paths[N_SUBJECTS][FIXTURE_PATH_BYTES];
    struct fake_figures total = {0};
    make_references(f, paths);
    for (uint64_t seed = 0; seed < 40; seed++) {
        const struct fake_bridge_options o = {.seed = seed, .n_workers = 3, .gap_s = 25.0};
        search_without_loss(f, paths, o, &total);
    }
    assert_true(total.n_gaps > 40);
}

// The coordinator waits for a part even if the part takes very long. Only the worker's parent
// process ends a part that exceeds the search's time limits.
static void test_search_pool__waits_for_what_takes_long(void **state) {
    struct fixture *f = *state;
    char paths[N_SUBJECTS][FIXTURE_PATH_BYTES];
    struct fake_figures total = {0};
    make_references(f, paths);
    for (uint64_t seed = 0; seed < 20; seed++) {
        const struct fake_bridge_options o = {
            .seed = seed, .n_workers = 1 + (int)(seed % 2), .slow_s = 1000.0};
        search_without_loss(f, paths, o, &total);
    }
    assert_true(total.n_slow > 10);
}

// A stop ends the search at once if no worker is evaluating.
static void test_search_pool__stops_while_nobody_is_there(void **state) {
    struct fixture *f = *state;
    struct msc_cancel cancel = {0};
    struct subject s = subject_of(0);
    s.cancel = &cancel;
    const struct fake_bridge_options o = {.seed = 1,
                                          .n_workers = 2,
                                          .flaw = FLAW_DEAF,
                                          .are_all_flawed = true,
                                          .cancel = &cancel,
                                          .stop_s = 5.0,
                                          .def = s.def,
                                          .env = s.env};
    assert_int_equal(run(f->path, &s, fake_bridge_open(&o), NULL), MSC_E_CANCELLED);
    remove_record(f->path);
}

// A worker that computes the canary correctly but other trials wrongly is detected. Either only its
// last batch is wrong, or at least a fifth of its terms. The first 64 parts of such a worker are
// all checked, so the worker escapes with probability 0.8^64 = 6e-7.
static void test_search_pool__finds_a_difference(void **state) {
    static const double shares[] = {0.0, 0.2, 0.5, 1.0};
    struct fixture *f = *state;
    const struct subject s = {.def = &msc_env_batch,
                              .env = "{\"tasks\":8}",
                              .agent = "{\"type\":\"random\"}",
                              .parallel = 2,
                              .n_trials = 300};
    for (size_t i = 0; i < 4; i++) {
        for (uint64_t seed = 1; seed <= 8; seed++) {
            const struct fake_bridge_options o = {.seed = seed,
                                                  .n_workers = 3,
                                                  .flaw = FLAW_LIES,
                                                  .lie_share = shares[i],
                                                  .def = s.def,
                                                  .env = s.env};
            assert_int_equal(run(f->path, &s, fake_bridge_open(&o), NULL), MSC_E_STATE);
            assert_message("differently: one of these machines cannot be trusted");
            remove_record(f->path);
        }
    }
}

static void test_search_pool__says_why_nobody_is_left(void **state) {
    struct fixture *f = *state;
    static const struct {
        enum fake_flaw flaw;
        const char *message;
    } rows[] = {
        {FLAW_NUMERICS, "its results would differ in the last bits (numerics \"other\", here "
                        "\"test\")"},
        {FLAW_CANARY, "its result for a known trial differs"},
        {FLAW_NUMERICS, "is refused, as were 2 before it: its results"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct subject s = subject_of(0);
        const struct fake_bridge_options o = {.seed = 2,
                                              .n_workers = 3,
                                              .flaw = rows[i].flaw,
                                              .are_all_flawed = true,
                                              .def = s.def,
                                              .env = s.env};
        assert_int_equal(run(f->path, &s, fake_bridge_open(&o), NULL), MSC_E_STATE);
        assert_message("no worker is left; worker");
        assert_message(rows[i].message);
        remove_record(f->path);
    }
}

// The error names what ended the search, not only the worker that was refused earlier.
static void test_search_pool__says_what_ended_it(void **state) {
    struct fixture *f = *state;
    const struct subject s = subject_of(0);
    const struct fake_bridge_options o = {.seed = 2,
                                          .n_workers = 2,
                                          .flaw = FLAW_NUMERICS,
                                          .error = "the head is lost",
                                          .stop_s = 0.5,
                                          .def = s.def,
                                          .env = s.env};
    assert_int_equal(run(f->path, &s, fake_bridge_open(&o), NULL), MSC_E_STATE);
    assert_message("the head is lost; worker ");
    assert_message(" is refused: its results would differ");
    remove_record(f->path);
}

// If a pool is set to other numerics than this process has, it accepts only workers with the pool's
// numerics.
static void test_search_pool__takes_other_numerics(void **state) {
    struct fixture *f = *state;
    char alone[FIXTURE_PATH_BYTES];
    struct msc_pool_figures figures;
    struct msc_record *record;
    struct subject s = subject_of(0);
    s.numerics = "other";
    const struct fake_bridge_options o = {
        .seed = 4, .n_workers = 3, .flaw = FLAW_NUMERICS, .def = s.def, .env = s.env};
    fixture_join(alone, f, "alone.jsonl");
    assert_ok(run(alone, &s, NULL, NULL));
    assert_ok(run(f->path, &s, fake_bridge_open(&o), &figures));
    assert_int_equal(figures.n_up, 1);
    assert_int_equal(figures.n_refused, 2);
    assert_same_record(f->path, alone);
    // The record's header names the numerics of this process. The record's segment names the
    // numerics of the workers.
    assert_ok(msc_record_open(&record, f->path, MSC_RECORD_READ, NULL));
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "numerics");
    assert_string_equal(own->valuestring, "test");
    assert_string_equal(msc_record_numerics(record, 0), "other");
    msc_record_close(record);
    // A worker with the right numerics id that computes the canary differently is still refused.
    s.numerics = "test";
    remove_record(f->path);
    const struct fake_bridge_options mixed = {
        .seed = 2, .n_workers = 3, .flaw = FLAW_CANARY, .def = s.def, .env = s.env};
    assert_ok(run(f->path, &s, fake_bridge_open(&mixed), &figures));
    assert_true(figures.n_refused > 0);
    remove_record(f->path);
}

// Doubles keep every bit when they are sent.
static void test_search_pool__doubles(void **state) {
    const double values[] = {0.0, -0.0, 1.5, -1e-310, INFINITY, NAN, 1e308};
    double read[7];
    struct msc_str text = {0};
    (void)state;
    msc_node_write_doubles(&text, values, 7);
    assert_int_equal(text.length, 7 * 16);
    assert_true(msc_node_read_doubles(read, 7, text.data));
    assert_memory_equal(read, values, sizeof values);
    assert_memory_equal(text.data + 32, "3ff8000000000000", 16); // 1.5 in IEEE 754
    assert_false(msc_node_read_doubles(read, 6, text.data));
    text.data[3] = 'g';
    assert_false(msc_node_read_doubles(read, 7, text.data));
    msc_str_finish(&text);
}

// The predicted time of a round with N workers, C seconds of work and W trials is T(N) = d C / N +
// 20 us W + 0.8 ms N. The factor d is 1 if N is at most the number of batches, else 1.18. N workers
// are worth it if C / (N T(N)) >= 0.7. For 256 trials and C = 10 the condition becomes 0.0008 N^2 +
// 0.00512 N <= 10 (1 / 0.7 - 1), so N = 70, worked out by hand.
static void test_search_pool__worth(void **state) {
    (void)state;
    // The coordinator needs 20 us per trial and 0.8 ms per worker. Later cases add the times of
    // messages and of start-up.
    const struct msc_pool_costs none = {.trial_s = 20e-6, .worker_s = 0.8e-3};
    struct msc_pool_costs slow = none, two = none;
    double round_s;
    assert_int_equal(msc_pool_worth(&round_s, &none, 10.0, INFINITY, 256, 1000), 70);
    assert_true(fabs(round_s - (10.0 / 70 + 0.00512 + 0.056)) < 1e-12);
    // With 16 batches d is 1.18: 0.0008 N^2 + 0.00512 N <= 10 (1 / 0.7 - 1.18), so N = 52.
    assert_int_equal(msc_pool_worth(&round_s, &none, 10.0, INFINITY, 256, 16), 52);
    assert_int_equal(msc_pool_worth(&round_s, &none, 0.001, INFINITY, 256, 16), 0);
    // N exceeds neither the number of trials nor `most`.
    assert_int_equal(msc_pool_worth(&round_s, &none, 1e9, INFINITY, 4, 0), 4);
    two.most = 2;
    assert_int_equal(msc_pool_worth(&round_s, &two, 10.0, INFINITY, 256, 16), 2);
    // One worker needs 40 ms. If a message takes 0.18 s, two workers take five times as long.
    slow.message_s = 0.18;
    assert_int_equal(msc_pool_worth(&round_s, &slow, 0.04, INFINITY, 32, 64), 0);
    assert_true(fabs(round_s - (0.02 + 0.00064 + 0.0016 + 0.18)) < 1e-12);
    assert_int_equal(msc_pool_worth(&round_s, &slow, 4.0, INFINITY, 32, 64), 9);
    // Start-up takes 5 s. If 10 s of search are left, 9 workers are worth it, because they shorten
    // a round of 4 s to 0.63 s. If 5.5 s are left, they are not.
    slow.start_s = 5.0;
    assert_int_equal(msc_pool_worth(&round_s, &slow, 4.0, 10.0, 32, 64), 9);
    assert_int_equal(msc_pool_worth(&round_s, &slow, 4.0, 5.5, 32, 64), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_search_pool__is_a_single_process, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__outlives_faults, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__keeps_whom_it_did_not_hear, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__waits_for_what_takes_long, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__stops_while_nobody_is_there,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__finds_a_difference, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__says_why_nobody_is_left, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__says_what_ended_it, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_search_pool__takes_other_numerics, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test(test_search_pool__doubles),
        cmocka_unit_test(test_search_pool__worth),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
