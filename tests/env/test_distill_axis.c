// The distillation loss of outputs whose samples run along an axis other than the first, or that
// have no sample axis. Expected values are computed from the formula that also gives the inputs'
// elements.
#include "env/distill_internal.h"

#include "base/str.h"
#include "kernels/engine/backends.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

enum { STEPS = 3, WIDTH = 4, MAX_SAMPLES = 5, LENGTH = STEPS * WIDTH };

struct bench {
    struct msc_graph *g;
    struct msc_dataset *data;
    struct msc_env_host host;
    struct msc_log log;
    struct msc_str lines; // the warnings so far
    struct msc_distill *d;
};

static void note(void *payload, enum msc_log_level level, const char *line) {
    if (level == MSC_LOG_WARNING) {
        msc_str_printf(payload, "%s\n", line);
    }
}

// ---- The network ------------------------------------------------------------------------------

static int32_t add_joint(struct bench *b, const struct msc_joint_spec *spec) {
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, b->g, spec));
    return msc_graph_joint(b->g, joint)->outputs[0];
}

static int32_t add_unary(struct bench *b, enum msc_op op, const char *name, int32_t x, int n_attrs,
                         const struct msc_attr attrs[]) {
    return add_joint(b, &(struct msc_joint_spec){.op = op,
                                                 .name = name,
                                                 .n_inputs = 1,
                                                 .inputs = &x,
                                                 .n_attrs = n_attrs,
                                                 .attrs = attrs});
}

// For a tensor x [N,3,4]: the product of x and its transpose, [N,3,3].
static int32_t add_product(struct bench *b, int32_t x) {
    const struct msc_attr turned[] = {{"axes", "0,2,1"}};
    int32_t operands[2] = {x, add_unary(b, MSC_OP_PERMUTE_DIMS, "turned", x, 1, turned)};
    return add_joint(
        b, &(struct msc_joint_spec){
               .op = MSC_OP_MATMUL, .name = "product", .n_inputs = 2, .inputs = operands});
}

static double element(int64_t sample, int64_t i) {
    return (double)(1 + (sample * 7 + i * 5) % 11);
}

static void make_data(struct bench *b, int64_t n, int64_t batch) {
    const struct msc_input_spec spec = {.name = "x",
                                        .dtype = MSC_DTYPE_F32,
                                        .n_dims = 3,
                                        .dims = {-1, STEPS, WIDTH},
                                        .is_batched = true};
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, 3, (const int64_t[]){n, STEPS, WIDTH}));
    for (int64_t i = 0; i < n * LENGTH; i++) {
        ((float *)msc_array_data(a))[i] = (float)element(i / LENGTH, i % LENGTH);
    }
    assert_ok(msc_dataset_create(&b->data, &spec, &a, 1, NULL, batch));
    msc_array_release(a);
}

// The outputs that a network may have, with x [N,3,4] (samples, steps, width) and root = sqrt(x):
// - `moved`: root as [3,N,4].
// - `middle`: the mean of root over the samples, [3,4].
// - `class`: the int64 argmax of root over the steps, [N,4].
// - `greatest`: the int64 argmax of the product of root and its transpose.
enum { MOVED = 1, MIDDLE = 2, CLASS = 4, GREATEST = 8 };

static void open_bench(struct bench *b, unsigned which, int64_t n, int64_t batch) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    const int32_t prims[3] = {0, MSC_NO_ID, MSC_NO_ID};
    int32_t x, prim, outputs[4], n_outputs = 0;
    memset(b, 0, sizeof *b);
    assert_ok(msc_graph_create(&b->g, "axes"));
    assert_ok(msc_graph_add_symbol(&prim, b->g, "N"));
    assert_ok(msc_graph_add_symbolic_input(&x, b->g, "x", NULL, MSC_DTYPE_F32, "", 3,
                                           (const int64_t[]){-1, STEPS, WIDTH}, prims));
    int32_t root = add_unary(b, MSC_OP_SQRT, "root", x, 0, NULL);
    const struct msc_attr moved[] = {{"axes", "1,0,2"}};
    const struct msc_attr middle[] = {{"axis", "0"}, {"keepdims", "0"}};
    const struct msc_attr class[] = {{"axis", "1"}};
    if (which & MOVED) {
        outputs[n_outputs++] = add_unary(b, MSC_OP_PERMUTE_DIMS, "moved", root, 1, moved);
    }
    if (which & MIDDLE) {
        outputs[n_outputs++] = add_unary(b, MSC_OP_MEAN, "middle", root, 2, middle);
    }
    if (which & CLASS) {
        outputs[n_outputs++] = add_unary(b, MSC_OP_ARGMAX, "class", root, 1, class);
    }
    if (which & GREATEST) {
        int32_t product = add_product(b, root);
        outputs[n_outputs++] = add_unary(b, MSC_OP_ARGMAX, "greatest", product, 1, class);
    }
    assert_ok(msc_graph_set_outputs(b->g, n_outputs, outputs));
    assert_ok(msc_graph_finalize(b->g));
    make_data(b, n, batch);
    b->log = (struct msc_log){MSC_LOG_INFO, note, &b->lines};
    b->host = (struct msc_env_host){.abi = MSC_ENV_ABI,
                                    .graph = b->g,
                                    .dataset = b->data,
                                    .n_threads = 1,
                                    .memory_bytes = (uint64_t)1 << 28,
                                    .log = &b->log};
    assert_ok(msc_backend_open(&b->host.backend, "cpu", &options));
}

static void close_bench(struct bench *b) {
    msc_distill_destroy(b->d);
    msc_backend_close(b->host.backend);
    msc_str_finish(&b->lines);
    msc_dataset_destroy(b->data);
    msc_graph_destroy(b->g);
}

// ---- Samples not along the first axis
// -----------------------------------------------------------

// An output computed elsewhere: different from the square roots in most elements.
static double other_element(int64_t sample, int64_t i) {
    return sqrt(element(sample, i)) + (double)((sample + 3 * i) % 5);
}

// The outputs of other_element for all samples, batch after batch, each [3,samples,4].
static struct msc_array *other_output(int64_t n, int64_t batch) {
    const int64_t n_elements = n * LENGTH;
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, 1, &n_elements));
    float *to = msc_array_data(a);
    for (int64_t first = 0; first < n; first += batch) {
        int64_t in_batch = n - first < batch ? n - first : batch;
        for (int64_t step = 0; step < STEPS; step++) {
            for (int64_t i = 0; i < in_batch * WIDTH; i++) {
                *to++ = (float)other_element(first + i / WIDTH, step * WIDTH + i % WIDTH);
            }
        }
    }
    return a;
}

// The mean of 1 - cos over samples.
static double expected_cosine(int64_t n) {
    double sum = 0;
    for (int64_t s = 0; s < n; s++) {
        double yz = 0, yy = 0, zz = 0;
        for (int64_t i = 0; i < LENGTH; i++) {
            double y = sqrt(element(s, i)), z = other_element(s, i);
            yz += y * z, yy += y * y, zz += z * z;
        }
        sum += 1 - yz / sqrt(yy * zz);
    }
    return sum / (double)n;
}

// Batches with as many samples as there are steps, with fewer, with more, and with one.
static void test_env_distill_axis__samples_in_the_middle(void **state) {
    static const int64_t batches[] = {3, 2, 5, 1};
    const struct msc_distill_options o = {.kind = MSC_LOSS_COSINE};
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        struct bench b;
        struct msc_distill_run run = {.edits = NULL};
        struct msc_array_list rows = {0};
        open_bench(&b, MOVED, MAX_SAMPLES, batches[i]);
        assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
        assert_string_equal(msc_str_text(&b.lines), "");
        assert_ok(msc_distill_compute_reference(b.d));
        struct msc_array *other = other_output(MAX_SAMPLES, batches[i]);
        assert_ok(msc_distill_judge(b.d, &run, (const struct msc_array *const[]){other}));
        double expected = expected_cosine(MAX_SAMPLES);
        assert_true(fabs(run.loss - expected) < 1e-6 * expected);
        // The float model's outputs have one row per sample.
        assert_ok(msc_distill_outputs(b.d, NULL, &rows));
        assert_int_equal(msc_array_n_dims(rows.arrays[0]), 3);
        assert_int_equal(msc_array_dim(rows.arrays[0], 0), MAX_SAMPLES);
        for (int64_t k = 0; k < (int64_t)MAX_SAMPLES * LENGTH; k++) {
            double found = msc_array_get_double(rows.arrays[0], k);
            assert_true(fabs(found - sqrt(element(k / LENGTH, k % LENGTH))) < 1e-5);
        }
        msc_array_list_finish(&rows);
        msc_array_release(other);
        close_bench(&b);
    }
}

// The class axis cannot be the sample axis.
static void test_env_distill_axis__no_classes_along_samples(void **state) {
    struct msc_distill_options o = {.kind = MSC_LOSS_KL, .kl_is_logits = true, .kl_axis = 1};
    struct bench b;
    (void)state;
    open_bench(&b, MOVED, MAX_SAMPLES, 2);
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.data, &o), MSC_E_INVALID);
    assert_message("env.kl_axis: 1 is not an axis of a sample of moved");
    b.d = NULL;
    o.kl_axis = 0;
    assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
    close_bench(&b);
}

// ---- Outputs without a sample axis
// --------------------------------------------------------------

static void test_env_distill_axis__without_samples(void **state) {
    static const char *const name = "middle";
    struct msc_distill_options o = {.kind = MSC_LOSS_MSE};
    struct bench b;
    (void)state;
    open_bench(&b, MOVED | MIDDLE, 4, 4); // as many samples as `middle` has columns
    assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
    assert_int_equal(msc_distill_n_compared(b.d), 1);
    assert_non_null(strstr(msc_str_text(&b.lines),
                           "output middle is without an axis for the samples of a batch (a batch "
                           "has 4 samples, it is [3,4]): left out of the loss"));
    msc_distill_destroy(b.d);
    b.d = NULL;
    o.tensors = &name;
    o.n_tensors = 1;
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.data, &o), MSC_E_INVALID);
    assert_message("env.loss_tensors: middle is without an axis for the samples");
    b.d = NULL;
    close_bench(&b);
    open_bench(&b, MIDDLE, 4, 2);
    o.n_tensors = 0;
    assert_int_equal(msc_distill_create(&b.d, &b.host, b.data, &o), MSC_E_INVALID);
    assert_message("graph axes has no output with an axis for the samples of a batch");
    b.d = NULL;
    close_bench(&b);
    // With batches of one sample, the output belongs to that sample.
    open_bench(&b, MIDDLE, 4, 1);
    assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
    assert_string_equal(msc_str_text(&b.lines), "");
    close_bench(&b);
}

// ---- Tensors before outputs
// ---------------------------------------------------------------------

static void test_env_distill_axis__takes_what_comes_before(void **state) {
    const struct msc_distill_options o = {.kind = MSC_LOSS_MSE, .takes_before = true};
    struct bench b;
    (void)state;
    open_bench(&b, CLASS | MOVED, MAX_SAMPLES, 2);
    assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
    assert_int_equal(msc_distill_n_compared(b.d), 1);
    assert_string_equal(msc_distill_compared_name(b.d, 0), "moved");
    assert_non_null(strstr(msc_str_text(&b.lines), "output class is int64: left out"));
    assert_false(msc_distill_is_part(b.d));
    close_bench(&b);
    // Output `greatest` cannot be compared. The product before it is compared instead, because no
    // other compared tensor depends on the product.
    open_bench(&b, GREATEST | MOVED, MAX_SAMPLES, 2);
    assert_ok(msc_distill_create(&b.d, &b.host, b.data, &o));
    assert_int_equal(msc_distill_n_compared(b.d), 2);
    assert_string_equal(msc_distill_compared_name(b.d, 0), "moved");
    assert_string_equal(msc_distill_compared_name(b.d, 1), "product:0");
    assert_non_null(strstr(msc_str_text(&b.lines),
                           "output greatest has no loss; comparing the tensors before it: "
                           "product:0"));
    assert_true(msc_distill_is_part(b.d));
    close_bench(&b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_distill_axis__samples_in_the_middle),
        cmocka_unit_test(test_env_distill_axis__no_classes_along_samples),
        cmocka_unit_test(test_env_distill_axis__without_samples),
        cmocka_unit_test(test_env_distill_axis__takes_what_comes_before),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
