// The table of placement: the dynamic program against exhaustive search, files and their mistakes,
// and points worked out by hand.
#include "env/placement/place_table.h"

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "env/env.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"
#include "tests/trial_room.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILES MSC_TESTS_FOLDER "/env/files"

// Random latencies and prices. Longer pieces may cost less or more than their parts, and about one
// piece in ten cannot run.
static struct msc_place_table *draw(struct msc_rng *rng, size_t n_groups, size_t n_backends) {
    struct msc_place_table *p = NULL;
    assert_ok(msc_place_table_create(&p, n_groups, n_backends));
    for (size_t first = 0; first < n_groups; first++) {
        for (size_t last = first; last < n_groups; last++) {
            for (size_t b = 0; b < n_backends; b++) {
                double us = (double)(last - first + 1) * (1.0 + 9.0 * msc_rng_double(rng));
                *msc_place_table_us(p, first, last, b) = msc_rng_below(rng, 10) == 0 ? NAN : us;
            }
        }
    }
    for (size_t i = 0; i < n_groups * n_backends * n_backends; i++) {
        p->cut_us[i] =
            4.0 * msc_rng_double(rng) - 1.0; // a piece may be faster after another backend
    }
    return p;
}

// The sum of a point by the definition, with pieces found from their ends.
static double sum_by_hand(const struct msc_place_table *p, const uint32_t choices[]) {
    double sum = 0.0;
    size_t first = 0;
    for (size_t i = 0; i < p->n_groups; i++) {
        if (i > 0 && choices[i] != choices[i - 1]) {
            first = i;
            sum += p->cut_us[(i * p->n_backends + choices[i - 1]) * p->n_backends + choices[i]];
        }
        if (i + 1 == p->n_groups || choices[i + 1] != choices[i]) {
            sum += p->us[(first * p->n_groups + i) * p->n_backends + choices[i]];
        }
    }
    return sum;
}

// A made-up loss: what each group adds depends on the variants of its neighbours; some are unknown.
static double made_up_loss(const struct msc_place_table *p, const uint32_t variants[]) {
    uint32_t code = 7;
    double sum = 0.0;
    for (size_t i = 0; i < p->n_groups; i++) {
        code = code * 31 + variants[i];
        sum += variants[i] > 0 ? 0.001 * (double)(code % 5) : 0.0;
    }
    return sum > 0.0 && code % 7 == 3 ? NAN : sum;
}

static bool is_within(const struct msc_place_table *p, const uint32_t choices[], double most) {
    uint32_t variants[MSC_PLACE_MOST_GROUPS];
    bool is_network = true;
    for (size_t i = 0; i < p->n_groups; i++) {
        variants[i] = p->backends[choices[i]].variant;
        is_network = is_network && variants[i] == 0;
    }
    return isinf(most) || is_network || made_up_loss(p, variants) <= most;
}

// The least sum over all points whose loss is within a bound; +inf if no such point can run.
static double search_all(const struct msc_place_table *p, double most) {
    uint32_t choices[MSC_PLACE_MOST_GROUPS] = {0};
    double least = INFINITY;
    for (;;) {
        double us = sum_by_hand(p, choices);
        assert_true(isnan(us) ? isnan(msc_place_table_predict(p, choices))
                              : us == msc_place_table_predict(p, choices));
        least = us < least && is_within(p, choices, most) ? us : least;
        size_t i = 0;
        while (i < p->n_groups && ++choices[i] == p->n_backends) {
            choices[i++] = 0;
        }
        if (i == p->n_groups) {
            return least;
        }
    }
}

static void test_env_placement__program_equals_exhaustive_search(void **state) {
    (void)state;
    struct msc_rng rng;
    int n_mixed = 0, n_impossible = 0;
    msc_rng_seed(&rng, 44, 0);
    for (int round = 0; round < 400; round++) {
        size_t n_groups = 1 + (size_t)msc_rng_below(&rng, 6);
        size_t n_backends = 1 + (size_t)msc_rng_below(&rng, 3);
        struct msc_place_table *p = draw(&rng, n_groups, n_backends);
        uint32_t choices[MSC_PLACE_MOST_GROUPS];
        double us, least = search_all(p, INFINITY);
        enum msc_status status = msc_place_table_best(&us, p, choices);
        if (isinf(least)) {
            assert_int_equal(status, MSC_E_NOT_FOUND);
            n_impossible++;
        } else {
            assert_ok(status);
            assert_true(us == least);
            assert_true(msc_place_table_predict(p, choices) == least);
            n_mixed += msc_place_table_n_pieces(p, choices) > 1;
        }
        msc_place_table_close(p);
    }
    assert_true(n_mixed > 50 && n_impossible > 5);
}

static enum msc_status measure_made_up(double *loss, void *payload, const uint32_t variants[]) {
    *loss = made_up_loss(payload, variants);
    return MSC_OK;
}

// The first half of the backends runs the network, the other half a variant; or a third each.
static void test_env_placement__bounded_search_equals_exhaustive_search(void **state) {
    (void)state;
    struct msc_rng rng;
    int n_inside = 0, n_network = 0;
    msc_rng_seed(&rng, 58, 0);
    for (int round = 0; round < 300; round++) {
        size_t n_groups = 1 + (size_t)msc_rng_below(&rng, 5);
        size_t n_variants = 2 + (size_t)msc_rng_below(&rng, 2);
        size_t n_backends = n_variants * (1 + (size_t)msc_rng_below(&rng, 2));
        struct msc_place_table *p = draw(&rng, n_groups, n_backends);
        p->n_variants = n_variants;
        for (size_t i = 0; i < n_backends; i++) {
            p->backends[i].variant = (uint32_t)(i * n_variants / n_backends);
        }
        const struct msc_place_bound bound = {
            .most = 0.006 * msc_rng_double(&rng), .measure = measure_made_up, .payload = p};
        uint32_t choices[MSC_PLACE_MOST_GROUPS], variants[MSC_PLACE_MOST_GROUPS];
        double us, loss, least = search_all(p, bound.most), unbound = search_all(p, INFINITY);
        enum msc_status status = msc_place_table_best_within(&us, p, &bound, choices);
        assert_int_equal(status, isinf(least) ? MSC_E_NOT_FOUND : MSC_OK);
        if (status == MSC_OK) {
            assert_true(us == least && msc_place_table_predict(p, choices) == least);
            msc_place_table_variants(variants, p, choices);
            assert_ok(msc_place_table_loss(&loss, p, &bound, variants));
            assert_true(loss <= bound.most);
            n_network += loss == 0.0 && least > unbound;
            n_inside += loss > 0.0 && least > unbound;
        }
        msc_place_table_close(p);
    }
    assert_true(n_inside > 10 && n_network > 10);
}

// Three groups, two runtimes, the network and a variant of bytes; the table is in the file. The
// first runtime has slow integers, the second a slow last group. Each figure is a sum of the file's
// numbers.
static void test_env_placement__parts_and_bits_together_are_best(void **state) {
    (void)state;
    struct msc_place_table *p = NULL;
    struct msc_place_bound bound = {.most = 0.001};
    uint32_t choices[3];
    double us, only_float, only_bytes;
    const double none = NAN;
    assert_ok(msc_place_table_load(&p, FILES "/placement_variants.json"));
    assert_int_equal(p->n_variants, 2);
    assert_string_equal(p->backends[3].label, "openvino small.onnx");
    // The loss of bytes in the last group is above the bound, that of the first two within it.
    assert_ok(msc_place_table_best_within(&us, p, &bound, choices));
    assert_true(us == 30 + 2 + 20);
    assert_true(choices[0] == 3 && choices[1] == 3 && choices[2] == 0);
    // Of the network alone, and of the bytes alone, any mix is slower.
    bound.most = 0.0;
    assert_ok(msc_place_table_best_within(&only_float, p, &bound, choices));
    assert_true(only_float == 100);
    for (size_t i = 0; i < 36; i++) {
        p->us[i] = p->backends[i % 4].variant == 0 ? none : p->us[i];
    }
    assert_ok(msc_place_table_best(&only_bytes, p, choices));
    assert_true(only_bytes == 30 + 2 + 60);
    assert_true(us < only_float && us < only_bytes);
    msc_place_table_close(p);
}

// A loss is measured once, and kept; what cannot be measured is passed over.
static enum msc_status count_losses(double *loss, void *payload, const uint32_t variants[]) {
    int *n = payload;
    (*n)++;
    *loss = variants[0] == 1 ? NAN : 0.0005;
    return MSC_OK;
}

static void test_env_placement__losses_are_kept(void **state) {
    (void)state;
    struct msc_place_table *p = NULL;
    int n = 0;
    const struct msc_place_bound bound = {.most = 0.001, .measure = count_losses, .payload = &n};
    uint32_t choices[3];
    double us;
    assert_ok(msc_place_table_load(&p, FILES "/placement_variants.json"));
    p->n_losses = 0;
    assert_ok(msc_place_table_best_within(&us, p, &bound, choices));
    assert_true(p->backends[choices[0]].variant == 0);
    assert_int_equal(p->n_losses, 1);
    int n_first = n;
    assert_ok(msc_place_table_best_within(&us, p, &bound, choices));
    assert_int_equal(n, 2 * n_first - 1); // only the unknown ones again
    msc_place_table_close(p);
    // Losses of the file, and many more.
    p = NULL;
    assert_ok(msc_place_table_load(&p, FILES "/placement_variants.json"));
    for (uint32_t i = 0; i < 200; i++) {
        assert_ok(msc_place_table_add_loss(p, (const uint32_t[]){2 + i, 0, 0}, i));
    }
    for (uint32_t i = 0; i < 200; i++) {
        assert_ok(msc_place_table_loss(&us, p, &bound, (const uint32_t[]){2 + i, 0, 0}));
        assert_true(us == i);
    }
    assert_ok(msc_place_table_loss(&us, p, &bound, (const uint32_t[]){1, 1, 1}));
    assert_true(us == 0.02);
    msc_place_table_close(p);
}

// Three groups on two backends: group 1 is slow on the first. The table is in the file.
static void test_env_placement__a_slow_group_moves(void **state) {
    (void)state;
    struct msc_place_table *p = NULL;
    uint32_t choices[3];
    double us;
    assert_ok(msc_place_table_load(&p, FILES "/placement.json"));
    assert_int_equal(p->n_groups, 3);
    assert_string_equal(p->backends[1].name, "cpu");
    assert_true(isnan(*msc_place_table_us(p, 0, 2, 1)));
    assert_ok(msc_place_table_best(&us, p, choices));
    assert_int_equal(choices[0], 0);
    assert_int_equal(choices[1], 1);
    assert_int_equal(choices[2], 0);
    assert_true(us == 10 + 2 + 12 + 3 + 11);
    assert_int_equal(msc_place_table_n_pieces(p, choices), 3);
    msc_place_table_close(p);
}

static void test_env_placement__files_keep_everything(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    struct msc_place_table *p = NULL, *again = NULL;
    char path[TEMP_FOLDER_BYTES + 16];
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/t.json", folder);
    assert_ok(msc_place_table_load(&p, FILES "/placement.json"));
    assert_ok(msc_place_table_save(p, path));
    assert_ok(msc_place_table_load(&again, path));
    assert_true(msc_hash_equal(msc_place_table_hash(p), msc_place_table_hash(again)));
    assert_true(again->cut_bytes[1] == 4096 && again->cut_bytes[2] == 1024);
    *msc_place_table_us(again, 1, 1, 0) += 1e-9;
    assert_false(msc_hash_equal(msc_place_table_hash(p), msc_place_table_hash(again)));
    *msc_place_table_us(again, 1, 1, 0) = *msc_place_table_us(p, 1, 1, 0);
    *msc_place_table_cut(again, 2, 1, 0) += 1e-9;
    assert_false(msc_hash_equal(msc_place_table_hash(p), msc_place_table_hash(again)));
    msc_place_table_close(p);
    msc_place_table_close(again);
    temp_folder_remove(folder);
}

static void test_env_placement__files_keep_variants(void **state) {
    (void)state;
    char folder[TEMP_FOLDER_BYTES];
    struct msc_place_table *p = NULL, *again = NULL;
    char path[TEMP_FOLDER_BYTES + 16];
    temp_folder_make(folder);
    snprintf(path, sizeof path, "%s/t.json", folder);
    assert_ok(msc_place_table_load(&p, FILES "/placement_variants.json"));
    assert_ok(msc_place_table_save(p, path));
    assert_ok(msc_place_table_load(&again, path));
    assert_true(msc_hash_equal(msc_place_table_hash(p), msc_place_table_hash(again)));
    assert_int_equal(again->n_losses, 2);
    assert_memory_equal(again->losses[1].variants, ((const uint32_t[]){1, 1, 1}), 12);
    assert_true(again->losses[0].loss == 0.0004 && again->losses[1].loss == 0.02);
    assert_string_equal(again->samples, "11111111111111111111111111111111");
    assert_string_equal(again->variants[1].model, "small.onnx");
    again->variants[1].hash = "1";
    assert_false(msc_hash_equal(msc_place_table_hash(p), msc_place_table_hash(again)));
    msc_place_table_close(p);
    msc_place_table_close(again);
    temp_folder_remove(folder);
}

// Loads a changed copy of a file; `from` occurs once in it.
static void assert_mistake_in(const char *file, const char *from, const char *to,
                              const char *message) {
    char folder[TEMP_FOLDER_BYTES];
    struct msc_place_table *p = NULL;
    char *text = NULL, path[TEMP_FOLDER_BYTES + 16], changed[8192];
    size_t length;
    temp_folder_make(folder);
    assert_ok(msc_file_read(&text, &length, file));
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    snprintf(path, sizeof path, "%s/t.json", folder);
    assert_ok(msc_file_write(path, changed, strlen(changed)));
    assert_int_equal(msc_place_table_load(&p, path), MSC_E_FORMAT);
    assert_null(p);
    assert_non_null(strstr(msc_status_message(), message));
    msc_free(text);
    temp_folder_remove(folder);
}

static void assert_mistake(const char *from, const char *to, const char *message) {
    assert_mistake_in(FILES "/placement.json", from, to, message);
}

static void test_env_placement__mistakes_of_variants_are_named(void **state) {
    (void)state;
    const char *file = FILES "/placement_variants.json";
    assert_mistake_in(file, "[1, 1, 0]", "[1, 1]", "losses[0]: expected the variant of each");
    assert_mistake_in(file, "[1, 1, 0]", "[1, 2, 0]", "losses[0]: expected the variant of each");
    assert_mistake_in(file, "0.0004", "-0.0004", "losses[0]: loss is below 0");
    assert_mistake_in(file, "\"samples\"", "\"other\"", "\"samples\" is missing");
    assert_mistake_in(file, "\"model\": \"small.onnx\"", "\"model\": 1", "variants[0]: ");
    assert_mistake_in(file, "\"version\": \"1.2.3\", \"variant\": 1",
                      "\"version\": \"1.2.3\", \"variant\": 2", "backends[2]: variant is not");
    assert_mistake_in(file, "\"version\": \"2.0\", \"variant\": 1", "\"version\": \"2.0\"",
                      "backends[3]: 'openvino' is named before");
    assert_mistake_in(file, "{\"name\": \"onnxruntime\", \"version\": \"1.2.3\"}",
                      "{\"name\": \"tvm\", \"version\": \"1\", \"variant\": 1}",
                      "backends[0]: expected variant 0");
}

static void test_env_placement__mistakes_are_named(void **state) {
    (void)state;
    assert_mistake("mscgym.placement", "mscgym.pieces", "t.json: is not a table of placement");
    assert_mistake("\"last\": 1", "\"last\": 3", "runs[1]: groups 0 to 3");
    assert_mistake("[10, 40]", "[10]", "runs[0]: expected a list of 2 numbers");
    assert_mistake("[10, 40]", "[10, -1]", "runs[0]: number 1 is not a duration");
    assert_mistake("[0, 2], [1", "[null, 2], [1", "cuts[0]: expected 2 rows of 2 numbers");
    assert_mistake("[0, 2], [3", "[0, 2, 1], [3", "cuts[1]: expected 2 rows of 2 numbers");
    assert_mistake("\"group\": 2", "\"group\": 1", "cuts[1]: group 1, expected 2");
    assert_mistake("\"cuts\": [", "\"cuts\": [], \"more\": [", "0 cuts, expected 2");
    assert_mistake("\"version\": 1", "\"version\": 2", "is not a table of placement, version 1");
    assert_mistake("\"cpu\"", "\"onnxruntime\"", "backends[1]: 'onnxruntime' is named before");
    assert_mistake("\"threads\": 1", "\"threads\": 0", "t.json: threads is 0, expected");
    assert_mistake("\"rounds\": 20", "\"rounds\": 3e9", "t.json: rounds is 3000000000, expected");
    assert_mistake("\"batch\": 1", "\"batch\": -1", "t.json: batch is -1, expected");
    assert_mistake("\"conv2\"", "\"conv1\"", "groups[1]: 'conv1' is named before");
    assert_mistake("\"backends\": [", "\"backends\": [], \"more\": [", "on 0 backends");
}

// The environment: whole networks and the optimum as baselines, and a point that cannot run.
static void test_env_placement__environment(void **state) {
    (void)state;
    const struct msc_env_host host = {.folder = FILES};
    cJSON *config = cJSON_Parse("{\"file\":\"placement.json\"}");
    struct msc_env *env = NULL;
    struct msc_goal goal;
    struct trial_room rooms[2];
    assert_ok(msc_env_create(&env, msc_env_find("placement"), config, &host));
    const struct msc_space *space = msc_env_space(env);
    assert_int_equal(space->n_baselines, 3);
    assert_string_equal(space->baselines[2].label, "the exact optimum");
    assert_int_equal(space->tasks[1].most_expensive_first[0], 0); // slow there
    assert_int_equal(space->tasks[0].most_expensive_first[0], 1);
    assert_ok(msc_env_read_goal(&goal, space, NULL));
    const uint32_t whole[3] = {1, 1, 1};
    struct msc_trial *trials[] = {trial_make(&rooms[0], 0, space->baselines[2].choices, 3),
                                  trial_make(&rooms[1], 1, whole, 3)};
    const struct msc_evaluation e = {.trials = trials, .n = 2};
    assert_ok(msc_env_evaluate(env, &goal, &e));
    assert_true(trials[0]->outcome.metrics[0] == 38 && trials[0]->outcome.metrics[1] == 3);
    assert_int_equal(trials[1]->outcome.state, MSC_TRIAL_FAILED);
    msc_env_destroy(env);
    cJSON_Delete(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_placement__program_equals_exhaustive_search),
        cmocka_unit_test(test_env_placement__bounded_search_equals_exhaustive_search),
        cmocka_unit_test(test_env_placement__parts_and_bits_together_are_best),
        cmocka_unit_test(test_env_placement__losses_are_kept),
        cmocka_unit_test(test_env_placement__files_keep_variants),
        cmocka_unit_test(test_env_placement__mistakes_of_variants_are_named),
        cmocka_unit_test(test_env_placement__a_slow_group_moves),
        cmocka_unit_test(test_env_placement__files_keep_everything),
        cmocka_unit_test(test_env_placement__mistakes_are_named),
        cmocka_unit_test(test_env_placement__environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
