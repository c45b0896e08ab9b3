// Variants of steps: each gives the same bits as the choice by rule, on random convolutions and
// linear layers, of floats and of integers; and choices that are kept are taken by later backends
// for equal and similar work.
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "kernels/cpu/cpu.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "kernels/vulkan/vulkan.h"
#include "tests/joint_attrs.h"
#include "tests/kernels/kernel_cases.h"
#include "tests/msc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 60, VULKAN_ROUNDS = 4, MOST_SLOTS = 8 };

// Two joints with weights in a row, and a relu between them, on one batch.
struct net {
    struct msc_rng rng;
    struct msc_graph *g;
    struct msc_dataset *data;
    struct msc_backend *backend;
    struct msc_evaluator *ev;
    int32_t output;
    float scales[MOST_SLOTS];
    int32_t zero_points[MOST_SLOTS];
    struct msc_edit quantised[MOST_SLOTS];
    const struct msc_edit *edits[MOST_SLOTS];
    struct msc_array *result; // of the last run
};

static int64_t from_to(struct net *n, int64_t low, int64_t high) {
    return low + (int64_t)msc_rng_below(&n->rng, (uint32_t)(high - low + 1));
}

static struct msc_array *draw(struct net *n, int n_dims, const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        ((float *)msc_array_data(a))[i] = (float)(2 * msc_rng_double(&n->rng) - 1);
    }
    return a;
}

static int32_t add_layer(struct net *n, const char *name, int32_t x, const char *attributes,
                         int n_dims, const int64_t dims[]) {
    char weight[16];
    int32_t w, joint;
    struct msc_array *a = draw(n, n_dims, dims);
    snprintf(weight, sizeof(weight), "%s.w", name);
    assert_ok(msc_graph_add_weight(&w, n->g, weight, NULL, n_dims == 4 ? "OIHW" : "OI", a));
    msc_array_release(a);
    assert_ok(kernel_add_joint(&joint, n->g, n_dims == 4 ? MSC_OP_CONV2D : MSC_OP_LINEAR, 1, &x,
                               attributes, 1, &(struct msc_weight_spec){"weight", w}));
    return msc_graph_joint(n->g, joint)->outputs[0];
}

static int32_t add_layers(struct net *n, int32_t x, bool is_conv, int64_t channels) {
    int64_t middle = from_to(n, 1, 70), out = from_to(n, 1, 70);
    int64_t k = 2 * from_to(n, 0, 2) + 1, groups = from_to(n, 0, 5) == 0 ? 2 : 1;
    char attributes[64];
    int32_t joint;
    middle += groups == 2 && middle % 2 == 1;
    snprintf(attributes, sizeof(attributes), "padding=%d,%d,%d,%d;strides=%d,%d", (int)(k / 2),
             (int)(k / 2), (int)(k / 2), (int)(k / 2), (int)from_to(n, 1, 2),
             (int)from_to(n, 1, 2));
    const int64_t conv1[] = {middle, channels, k, k}, linear1[] = {middle, channels};
    const int64_t conv2[] = {out - out % groups + groups, middle / groups, 3, 3},
                  linear2[] = {out, middle};
    x = add_layer(n, "a", x, is_conv ? attributes : "", is_conv ? 4 : 2, is_conv ? conv1 : linear1);
    assert_ok(kernel_add_joint(&joint, n->g, MSC_OP_RELU, 1, &x, "", 0, NULL));
    x = msc_graph_joint(n->g, joint)->outputs[0];
    return add_layer(n, "b", x,
                     !is_conv      ? ""
                     : groups == 2 ? "padding=1,1,1,1;groups=2"
                                   : "padding=1,1,1,1",
                     is_conv ? 4 : 2, is_conv ? conv2 : linear2);
}

static void open_net_on(struct net *n, uint64_t seed, const char *device, const char *folder) {
    struct msc_backend_options bo = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options eo = MSC_EVALUATOR_OPTIONS_INIT;
    int32_t x, y;
    memset(n, 0, sizeof(*n));
    msc_rng_seed(&n->rng, seed, 1);
    bool is_conv = from_to(n, 0, 3) > 0;
    int64_t dims[] = {from_to(n, 1, 3), from_to(n, 1, 70), from_to(n, 1, 15), from_to(n, 1, 15)};
    struct msc_input_spec spec = {.name = "x", .dtype = MSC_DTYPE_F32, .n_dims = is_conv ? 4 : 2};
    memcpy(spec.dims, dims, sizeof(dims));
    assert_ok(msc_graph_create(&n->g, "net"));
    assert_ok(msc_graph_add_input(&x, n->g, "x", "x", MSC_DTYPE_F32, is_conv ? "NCHW" : "NC",
                                  spec.n_dims, dims));
    y = add_layers(n, x, is_conv, dims[1]);
    assert_ok(msc_graph_set_outputs(n->g, 1, &y));
    assert_ok(msc_graph_finalize(n->g));
    n->output = msc_graph_output(n->g, 0);
    struct msc_array *in = draw(n, spec.n_dims, dims);
    assert_ok(msc_dataset_create_whole(&n->data, &spec, (const struct msc_array *const[]){in}, 1));
    msc_array_release(in);
    bo.cache_folder = folder;
    assert_ok(msc_backend_open(&n->backend, device, &bo));
    eo.backend = n->backend;
    assert_ok(msc_evaluator_create(&n->ev, n->g, n->data, &n->output, 1, &eo));
}

static void open_net(struct net *n, uint64_t seed, const char *folder) {
    open_net_on(n, seed, "cpu", folder);
}

static void close_net(struct net *n) {
    msc_array_release(n->result);
    msc_evaluator_destroy(n->ev);
    msc_backend_close(n->backend);
    msc_dataset_destroy(n->data);
    msc_graph_destroy(n->g);
}

// Quantises all activations to uint8 or int8, and all weights to int8 or fewer bits.
static void quantise(struct net *n) {
    const struct msc_sites *sites = msc_evaluator_sites(n->ev);
    bool is_signed = from_to(n, 0, 1) == 1;
    assert_true(sites->n_slots <= MOST_SLOTS);
    for (int32_t i = 0; i < sites->n_slots; i++) {
        bool is_weight = sites->slots[i].kind == MSC_SITE_WEIGHT;
        int32_t most = (1 << from_to(n, 3, 7)) - 1, low = is_signed ? -128 : 0;
        n->scales[i] = is_weight ? 1.0f / (float)most : (float)from_to(n, 1, 9) * 0.004f;
        n->zero_points[i] = is_weight ? 0 : (int32_t)from_to(n, low, low + 255);
        struct msc_quant quant = {.bits = 8,
                                  .low = is_weight ? -most : low,
                                  .high = is_weight ? most : low + 255,
                                  .axis = -1,
                                  .n = 1,
                                  .scales = &n->scales[i],
                                  .zero_points = &n->zero_points[i]};
        n->quantised[i] = msc_edit_quantize(quant);
        n->edits[i] = sites->slots[i].kind == MSC_SITE_BIAS ? NULL : &n->quantised[i];
    }
}

static enum msc_status take(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    struct net *n = payload;
    (void)trial;
    (void)batch;
    msc_array_release(n->result);
    n->result = NULL;
    return msc_array_create_from(&n->result, MSC_DTYPE_F32, values[0].n_dims, values[0].dims,
                                 values[0].data);
}

static void run(struct net *n) {
    const struct msc_sink sink = {.batch = take, .payload = n};
    struct msc_eval_trial trial = {.edits = n->edits};
    assert_ok(msc_evaluator_run(n->ev, &trial, 1, &sink, MSC_EVAL_FRESH));
    assert_string_equal(trial.message, "");
}

static const struct msc_plan *plan_of(const struct net *n) {
    return msc_evaluator_plan(n->ev, 0);
}

// Runs every variant of every step; returns how many were compared.
static int check_variants(struct net *n) {
    int n_compared = 0;
    run(n);
    struct msc_array *expected = msc_array_retain(n->result);
    for (int32_t s = 0; s < plan_of(n)->n_steps; s++) {
        const struct msc_step *step = &plan_of(n)->steps[s];
        struct msc_variants v = {.n = 0};
        bool has_any = n->backend->def->variants(n->backend, step, &v);
        for (int i = 0; has_any && i < v.n; i++) {
            n->backend->def->choose(n->backend, step, i);
            run(n);
            if (memcmp(msc_array_data(n->result), msc_array_data(expected),
                       msc_array_n_bytes(expected)) != 0) {
                print_error("%s, %s, %s: other bits than by rule\n", step->joints[0].joint->name,
                            v.work.kind, v.names[i]);
                fail();
            }
            n_compared++;
        }
        n->backend->def->choose(n->backend, step, -1);
    }
    msc_array_release(expected);
    return n_compared;
}

static int check_nets(const char *device, uint64_t n_rounds) {
    int n_compared = 0;
    for (uint64_t seed = 0; seed < n_rounds; seed++) {
        struct net n;
        open_net_on(&n, seed, device, NULL);
        n_compared += check_variants(&n);
        quantise(&n);
        n_compared += check_variants(&n);
        close_net(&n);
    }
    return n_compared;
}

// On the device that MSC_TEST_DEVICE names. Products have a variant at least.
static void test_kernels_variants__equal_bits(void **state) {
    const char *device = getenv("MSC_TEST_DEVICE");
    bool is_vulkan = device && strcmp(device, "vulkan") == 0;
    uint64_t n_rounds = is_vulkan ? VULKAN_ROUNDS : ROUNDS;
    (void)state;
    if (is_vulkan && msc_vulkan_list(NULL, 0) == 0) {
        print_message("skipped: there is no Vulkan device\n");
        skip();
    }
    assert_true(check_nets(device ? device : "cpu", n_rounds) > (int)n_rounds);
}

// A step has no variants before its first run, and those of integers once it computed integers.
static void test_kernels_variants__after_a_run(void **state) {
    struct msc_variants v;
    struct net n;
    (void)state;
    open_net(&n, 3, NULL);
    for (int32_t s = 0; s < plan_of(&n)->n_steps; s++) {
        assert_false(n.backend->def->variants(n.backend, &plan_of(&n)->steps[s], &v));
    }
    quantise(&n);
    run(&n);
    int n_integers = 0;
    for (int32_t s = 0; s < plan_of(&n)->n_steps; s++) {
        if (n.backend->def->variants(n.backend, &plan_of(&n)->steps[s], &v)) {
            assert_int_equal(strncmp(v.work.kind, "int8", 4), 0);
            assert_true(v.by_rule >= 0 && v.by_rule < v.n && v.kept == -1);
            n_integers++;
        }
    }
    assert_int_equal(n_integers, 2);
    close_net(&n);
}

static int kept_of(struct net *n, struct msc_variants *v) {
    quantise(n);
    run(n);
    for (int32_t s = 0; s < plan_of(n)->n_steps; s++) {
        if (n->backend->def->variants(n->backend, &plan_of(n)->steps[s], v)) {
            return v->kept;
        }
    }
    fail();
    return -1;
}

static void test_kernels_variants__kept(void **state) {
    char folder[] = "/tmp/msc_ways_XXXXXX", path[300], *text;
    struct msc_variants v;
    size_t n_bytes;
    struct net n;
    (void)state;
    assert_non_null(mkdtemp(folder));
    open_net(&n, 3, NULL);
    assert_int_equal(kept_of(&n, &v), -1);
    struct msc_kept_choice choice = {.work = v.work};
    memcpy(choice.variant, v.names[v.n - 1], sizeof(choice.variant));
    assert_int_equal(n.backend->def->keep(n.backend, &choice, 1), MSC_E_INVALID);
    close_net(&n);

    open_net(&n, 3, folder);
    assert_ok(n.backend->def->keep(n.backend, &choice, 1));
    snprintf(path, sizeof(path), "%s", msc_cpu_from(n.backend)->kept_path);
    close_net(&n);
    open_net(&n, 3, folder);
    assert_int_equal(kept_of(&n, &v), v.n - 1);
    run(&n);
    struct msc_kept_choice far = choice;
    far.work.cols *= 1000;
    snprintf(far.variant, sizeof(far.variant), "unknown");
    assert_ok(n.backend->def->keep(n.backend, &far, 1));
    assert_int_equal(msc_cpu_from(n.backend)->kept.n, 2);
    struct msc_work similar = choice.work, different = choice.work;
    similar.rows *= 2;
    snprintf(different.kind, sizeof(different.kind), "float32");
    const struct msc_choices *kept = &msc_cpu_from(n.backend)->kept;
    assert_string_equal(msc_choices_find(kept, &choice.work, 1.5)->variant, choice.variant);
    assert_string_equal(msc_choices_find(kept, &similar, 1.5)->variant, choice.variant);
    assert_string_equal(msc_choices_find(kept, &far.work, 1.5)->variant, "unknown");
    assert_null(msc_choices_find(kept, &different, 1.5));
    close_net(&n);

    // A damaged file, or one of another processor, is ignored.
    assert_ok(msc_file_read(&text, &n_bytes, path));
    for (size_t cut = 0; cut < n_bytes - 2; cut += 7) {
        assert_ok(msc_file_write(path, text, cut));
        open_net(&n, 3, folder);
        assert_int_equal(kept_of(&n, &v), -1);
        close_net(&n);
    }
    *strstr(text, "int8-") = 'j';
    assert_ok(msc_file_write(path, text, n_bytes));
    open_net(&n, 3, folder);
    assert_int_equal(kept_of(&n, &v), -1);
    close_net(&n);
    msc_free(text);
    assert_ok(msc_file_remove(path));
    assert_int_equal(rmdir(folder), 0);
}

static int keep_many(const char *path, uint64_t first) {
    struct msc_choices *kept = calloc(1, sizeof(*kept));
    struct msc_kept_choice choice = {.work = {.kind = "int8", .cols = 1, .depth = 1},
                                     .variant = "direct"};
    enum msc_status status = kept ? MSC_OK : MSC_E_NOMEM;
    for (uint64_t i = 0; i < 40 && status == MSC_OK; i++) {
        choice.work.rows = first + i;
        status = msc_choices_keep(kept, path, "a device", &choice, 1, NULL);
    }
    free(kept);
    return status == MSC_OK ? 0 : 1;
}

// Two processes keep choices of one device at the same time, and none is lost.
static void test_kernels_variants__together(void **state) {
    char folder[] = "/tmp/msc_together_XXXXXX", path[64];
    struct msc_choices *kept = test_calloc(1, sizeof(*kept));
    int ended = -1;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/choices.json", folder);
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        _exit(keep_many(path, 1));
    }
    assert_int_equal(keep_many(path, 101), 0);
    assert_int_equal(waitpid(other, &ended, 0), other);
    assert_int_equal(ended, 0);
    msc_choices_load(kept, path, "a device", NULL);
    assert_int_equal(kept->n, 80);
    test_free(kept);
    assert_ok(msc_file_remove(path));
    assert_int_equal(rmdir(folder), 0);
}

// A full table loses its oldest choice; an equal work replaces its own.
static void test_kernels_variants__full(void **state) {
    struct msc_choices *kept = test_calloc(1, sizeof(*kept));
    struct msc_kept_choice choice = {.work = {.kind = "int8", .cols = 1, .depth = 1},
                                     .variant = "direct"};
    (void)state;
    for (uint64_t i = 1; i <= MSC_MOST_CHOICES + 1; i++) {
        choice.work.rows = i;
        msc_choices_put(kept, &choice);
    }
    assert_int_equal(kept->n, MSC_MOST_CHOICES);
    assert_int_equal(kept->choices[0].work.rows, 2);
    snprintf(choice.variant, sizeof(choice.variant), "floats");
    choice.work.rows = 2;
    msc_choices_put(kept, &choice);
    assert_int_equal(kept->n, MSC_MOST_CHOICES);
    assert_string_equal(kept->choices[0].variant, "floats");
    test_free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_variants__equal_bits),
        cmocka_unit_test(test_kernels_variants__after_a_run),
        cmocka_unit_test(test_kernels_variants__kept),
        cmocka_unit_test(test_kernels_variants__together),
        cmocka_unit_test(test_kernels_variants__full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
