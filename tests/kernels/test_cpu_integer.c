// Integer joints on the cpu backend, compared bit by bit with the reference kernels: the
// quantisation in the model itself, and products and convolutions of the quantised integers.
#include "base/alloc.h"
#include "base/rng.h"
#include "graph/reference/reference.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"
#include "kernels/lowering/digits.h"
#include "tests/joint_attrs.h"
#include "tests/kernels/kernel_cases.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

// ---- Graphs -----------------------------------------------------------------------------------

struct bench {
    struct msc_graph *g;
    struct msc_rng rng;
    struct msc_input_spec spec;
    struct msc_array *x;
    int n_constants;
};

static void open_bench(struct bench *b, uint64_t seed) {
    *b = (struct bench){.x = NULL};
    msc_rng_seed(&b->rng, seed, 3);
    assert_ok(msc_graph_create(&b->g, "integer"));
}

static void close_bench(struct bench *b) {
    msc_graph_destroy(b->g);
    msc_array_release(b->x);
}

// Random bytes including the extremes; floats around 0.
static struct msc_array *draw(struct bench *b, enum msc_dtype dtype, int n_dims,
                              const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, dtype, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        uint64_t number = msc_rng_below(&b->rng, 256);
        if (dtype == MSC_DTYPE_F32) {
            ((float *)msc_array_data(a))[i] = ((float)number - 120.0f) * 0.0371f;
        } else if (dtype == MSC_DTYPE_I32) {
            ((int32_t *)msc_array_data(a))[i] = (int32_t)number * 317 - 40000;
        } else {
            ((uint8_t *)msc_array_data(a))[i] = (uint8_t)(number < 8 ? 128 : number);
        }
    }
    return a;
}

static int32_t add_input(struct bench *b, enum msc_dtype dtype, const char *layout, int n_dims,
                         const int64_t dims[]) {
    int32_t tensor;
    b->spec = (struct msc_input_spec){.name = "x", .dtype = dtype, .n_dims = n_dims};
    memcpy(b->spec.dims, dims, sizeof(dims[0]) * (size_t)n_dims);
    b->x = draw(b, dtype, n_dims, dims);
    assert_ok(msc_graph_add_input(&tensor, b->g, "x", "x", dtype, layout, n_dims, dims));
    return tensor;
}

// The output of a constant joint. Takes ownership of the array.
static int32_t add_constant(struct bench *b, const char *layout, struct msc_array *array) {
    int32_t weight, joint;
    char name[16];
    snprintf(name, sizeof(name), "c%d", b->n_constants++);
    assert_ok(msc_graph_add_weight(&weight, b->g, name, name, layout, array));
    struct msc_joint_spec spec = {.op = MSC_OP_CONSTANT,
                                  .n_weights = 1,
                                  .weights = &(struct msc_weight_spec){"const", weight}};
    assert_ok(msc_graph_add_joint(&joint, b->g, &spec));
    msc_array_release(array);
    return msc_graph_joint(b->g, joint)->outputs[0];
}

static int32_t add_numbers(struct bench *b, enum msc_dtype dtype, int64_t n, const void *numbers) {
    struct msc_array *a;
    assert_ok(msc_array_create_from(&a, dtype, n > 0 ? 1 : 0, &n, numbers));
    return add_constant(b, "", a);
}

static int32_t add_scale(struct bench *b, float scale) {
    return add_numbers(b, MSC_DTYPE_F32, 0, &scale);
}

static int32_t add_zero(struct bench *b, enum msc_dtype dtype, int zero) {
    uint8_t code = (uint8_t)zero;
    return add_numbers(b, dtype, 0, &code);
}

static const struct msc_joint *add_joint(struct bench *b, enum msc_op op, int32_t n,
                                         const int32_t inputs[], int32_t n_attrs,
                                         const struct msc_attr attrs[], int32_t n_outputs) {
    int32_t joint;
    struct msc_joint_spec spec = {.op = op,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .n_attrs = n_attrs,
                                  .attrs = attrs,
                                  .n_outputs = n_outputs};
    assert_ok(msc_graph_add_joint(&joint, b->g, &spec));
    return msc_graph_joint(b->g, joint);
}

// ---- Comparison -------------------------------------------------------------------------------

struct check {
    struct msc_array *expected;
    const char *what;
};

static enum msc_status compare(void *payload, size_t trial, size_t batch,
                               const struct msc_view values[]) {
    const struct check *c = payload;
    (void)trial;
    (void)batch;
    assert_int_equal(values[0].dtype, msc_array_dtype(c->expected));
    assert_int_equal(msc_view_n_elements(&values[0]), msc_array_n_elements(c->expected));
    size_t width = msc_dtype_bytes(values[0].dtype);
    for (int64_t i = 0; i < msc_array_n_elements(c->expected); i++) {
        const char *found = (const char *)values[0].data + (size_t)i * width;
        if (memcmp(found, (const char *)msc_array_data(c->expected) + (size_t)i * width, width)) {
            struct msc_array *a;
            assert_ok(msc_array_create_from(&a, values[0].dtype, 0, NULL, found));
            print_error("%s: element %lld is %g, expected %g\n", c->what, (long long)i,
                        msc_array_get_double(a, 0), msc_array_get_double(c->expected, i));
            fail();
        }
    }
    return MSC_OK;
}

// Returns whether the step that makes the last joint's output ran with this kernel family.
static bool runs_by(const struct msc_evaluator *ev, const char *kernel) {
    const struct msc_plan *plan = msc_evaluator_plan(ev, 0);
    for (int32_t i = plan->n_steps - 1; i >= 0; i--) {
        if (plan->steps[i].kind == MSC_STEP_RUN) {
            struct msc_placement p = msc_backend_place(plan->backend, &plan->steps[i]);
            return strcmp(p.kernel, kernel) == 0;
        }
    }
    return false;
}

// Runs the graph's value `y` with and without integer units. `kernel` is the family of the last
// step.
static void check(struct bench *b, int32_t y, const char *kernel, const char *what) {
    struct check c = {.what = what};
    struct msc_dataset *data;
    char name[64];
    snprintf(name, sizeof(name), "%s", msc_graph_tensor(b->g, y)->name);
    assert_ok(msc_graph_set_outputs(b->g, 1, &y));
    assert_ok(msc_graph_finalize(b->g));
    y = msc_graph_find_tensor(b->g, name);
    assert_ok(
        msc_dataset_create_whole(&data, &b->spec, (const struct msc_array *const[]){b->x}, 1));
    assert_ok(msc_reference_run_graph(&c.expected, b->g, (const struct msc_array *const[]){b->x},
                                      &y, 1, NULL));
    for (int allow_int8 = 0; allow_int8 <= 1; allow_int8++) {
        struct msc_backend_options bo = MSC_BACKEND_OPTIONS_INIT;
        struct msc_evaluator_options eo = MSC_EVALUATOR_OPTIONS_INIT;
        struct msc_eval_trial trial = {.edits = NULL};
        const struct msc_sink sink = {.batch = compare, .payload = &c};
        struct msc_backend *backend;
        struct msc_evaluator *ev;
        bo.allow_int8 = allow_int8 == 1;
        assert_ok(msc_backend_open(&backend, "cpu", &bo));
        eo.backend = backend;
        assert_ok(msc_evaluator_create(&ev, b->g, data, &y, 1, &eo));
        if (!runs_by(ev, kernel)) {
            print_error("%s: expected to run by %s\n", what, kernel);
            fail();
        }
        assert_ok(msc_evaluator_run(ev, &trial, 1, &sink, 0));
        assert_string_equal(trial.message, "");
        msc_evaluator_destroy(ev);
        msc_backend_close(backend);
    }
    msc_array_release(c.expected);
    msc_dataset_destroy(data);
}

// ---- Products and convolutions ----------------------------------------------------------------

// Weights: zero point of the first channel, its increase per channel, and whether all values
// minus their zero points fit int8.
struct weights {
    const char *name;
    enum msc_dtype dtype;
    int zero, step;
    bool fits;
};
static const struct weights weights[] = {
    {"int8", MSC_DTYPE_I8, 0, 0, true},
    {"uint8 around 128", MSC_DTYPE_U8, 128, 0, true},
    {"uint8", MSC_DTYPE_U8, 0, 0, true},
    {"uint8 around 3", MSC_DTYPE_U8, 3, 0, false},
    {"int8 around others", MSC_DTYPE_I8, -2, 1, false},
};
enum { N_WEIGHTS = sizeof(weights) / sizeof(weights[0]) };

static int32_t add_weight_zeros(struct bench *b, const struct weights *w, int64_t channels) {
    uint8_t zeros[512];
    for (int64_t c = 0; c < channels; c++) {
        zeros[c] = (uint8_t)(w->zero + (int)c % 5 * w->step);
    }
    return add_numbers(b, w->dtype, channels, zeros);
}

// A form of an operator: its types, and its operands after x and the weight.
struct form {
    enum msc_dtype x, y;
    const struct weights *w;
    bool has_bias, is_per_channel;
};

static int32_t list_operands(struct bench *b, int32_t operands[9], const struct form *f,
                             bool is_quantized, int32_t x, int32_t w, int64_t channels) {
    int x_zero = f->x == MSC_DTYPE_U8 ? 117 : -9;
    float scales[512];
    if (!is_quantized) {
        const int32_t all[] = {x, w, add_zero(b, f->x, x_zero),
                               add_weight_zeros(b, f->w, channels)};
        memcpy(operands, all, sizeof(all));
        return 4;
    }
    for (int64_t c = 0; c < channels; c++) {
        scales[c] = 0.0021f + 0.00037f * (float)(c % 7);
    }
    const int32_t all[] = {x,
                           add_scale(b, 0.0173f),
                           add_zero(b, f->x, x_zero),
                           w,
                           add_numbers(b, MSC_DTYPE_F32, f->is_per_channel ? channels : 0, scales),
                           add_weight_zeros(b, f->w, channels),
                           add_scale(b, 0.0311f),
                           add_zero(b, f->y, f->y == MSC_DTYPE_U8 ? 101 : 4)};
    memcpy(operands, all, sizeof(all));
    if (f->has_bias) {
        operands[8] = add_constant(b, "O", draw(b, MSC_DTYPE_I32, 1, &channels));
    }
    return 8 + f->has_bias;
}

static struct form form_of(int i) {
    return (struct form){.x = i & 1 ? MSC_DTYPE_I8 : MSC_DTYPE_U8,
                         .y = i & 2 ? MSC_DTYPE_I8 : MSC_DTYPE_U8,
                         .w = &weights[i / 2 % N_WEIGHTS],
                         .has_bias = i % 3 != 0,
                         .is_per_channel = i % 5 != 0};
}
enum { N_FORMS = 2 * N_WEIGHTS };

// Checks a convolution or product of a row, with the types and zero points of the form.
static void check_row(const struct kernel_case *row, const struct form *f, enum msc_op op) {
    struct bench b;
    struct kernel_operand o[KERNEL_MAX_OPERANDS];
    struct joint_attrs attrs;
    int32_t operands[9];
    char what[200];
    bool is_product = row->op == MSC_OP_MATMUL_INTEGER;
    bool is_quantized = op == MSC_OP_QLINEAR_CONV || op == MSC_OP_QLINEAR_MATMUL;
    struct form form = *f;
    form.has_bias = f->has_bias && !is_product;
    assert_int_equal(kernel_case_operands(o, row), 2);
    joint_attrs_read(&attrs, row->attributes);
    snprintf(what, sizeof(what), "%s of %s, weights %s, input %s", msc_op_info(op)->name,
             row->operands, f->w->name, msc_dtype_name(f->x));
    int64_t channels = o[1].dims[is_product ? 1 : 0];
    open_bench(&b, (uint64_t)channels);
    int32_t x = add_input(&b, f->x, o[0].layout, o[0].n_dims, o[0].dims);
    int32_t w = add_constant(&b, o[1].layout, draw(&b, f->w->dtype, o[1].n_dims, o[1].dims));
    int32_t n = list_operands(&b, operands, &form, is_quantized, x, w, channels);
    int32_t y = add_joint(&b, op, n, operands, attrs.n, attrs.rows, 1)->outputs[0];
    check(&b, y, f->w->fits ? "integer" : "reference", what);
    close_bench(&b);
}

static void check_rows(const char *reader, enum msc_op plain, enum msc_op quantized) {
    const struct kernel_case *row = NULL;
    while ((row = kernel_case_next(row, reader))) {
        for (int i = 0; i < N_FORMS; i++) {
            struct form f = form_of(i);
            check_row(row, &f, quantized);
            check_row(row, &f, plain);
        }
    }
}

static void test_kernels_cpu_integer__convolutions(void **state) {
    (void)state;
    check_rows("integer_conv", MSC_OP_CONV_INTEGER, MSC_OP_QLINEAR_CONV);
}

static void test_kernels_cpu_integer__products(void **state) {
    (void)state;
    check_rows("integer_product", MSC_OP_MATMUL_INTEGER, MSC_OP_QLINEAR_MATMUL);
}

// The zero point of the input is known only at run time.
static void test_kernels_cpu_integer__dynamic(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench b;
        open_bench(&b, 5);
        int32_t x = add_input(&b, MSC_DTYPE_F32, "", 2, DIMS(9, 50));
        const struct msc_joint *q = add_joint(&b, MSC_OP_DYNAMIC_QUANTIZE, 1, &x, 0, NULL, 3);
        int32_t w = add_constant(&b, "IO", draw(&b, weights[i].dtype, 2, DIMS(50, 21)));
        const int32_t operands[] = {q->outputs[0], w, q->outputs[2],
                                    add_zero(&b, weights[i].dtype, weights[i].zero)};
        int32_t y = add_joint(&b, MSC_OP_MATMUL_INTEGER, 4, operands, 0, NULL, 1)->outputs[0];
        check(&b, y, "integer", "dynamic");
        close_bench(&b);
    }
}

// ---- Quantising -------------------------------------------------------------------------------

// Quantises x and dequantises it, with one scale and zero point or several along an axis.
static void check_linear(enum msc_dtype codes, int axis, bool is_back, bool has_extremes) {
    static const int64_t dims[4] = {2, 5, 7, 19};
    struct bench b;
    float scales[19];
    uint8_t zeros[19];
    char axis_text[16], what[80];
    open_bench(&b, 11);
    snprintf(what, sizeof(what), "%s, axis %d%s", msc_dtype_name(codes), axis,
             is_back ? ", and back" : "");
    for (int i = 0; i < 19; i++) {
        scales[i] = has_extremes && i % 4 == 1 ? 1e-30f : 0.013f * (float)(1 + i % 3);
        zeros[i] = (uint8_t)(codes == MSC_DTYPE_U8 ? 90 + i : 2 * i - 20);
    }
    snprintf(axis_text, sizeof(axis_text), "%d", axis < 0 ? 1 : axis);
    const struct msc_attr attr = {"axis", axis_text};
    int32_t x = add_input(&b, MSC_DTYPE_F32, "NCHW", 4, dims);
    float *elements = msc_array_data(b.x);
    elements[3] = has_extremes ? NAN : 0.0065f;
    elements[4] = has_extremes ? INFINITY : 0.0195f; // 0.0195 is a tie
    elements[5] = has_extremes ? -INFINITY : -0.0065f;
    elements[6] = has_extremes ? -3e38f : -0.0f;
    int64_t n = axis < 0 ? 0 : dims[axis];
    int32_t scale = add_numbers(&b, MSC_DTYPE_F32, n, scales);
    int32_t zero = add_numbers(&b, codes, n, zeros);
    int32_t y = add_joint(&b, MSC_OP_QUANTIZE, 3, (const int32_t[]){x, scale, zero}, 1, &attr, 1)
                    ->outputs[0];
    if (is_back) {
        y = add_joint(&b, MSC_OP_DEQUANTIZE, 3, (const int32_t[]){y, scale, zero}, 1, &attr, 1)
                ->outputs[0];
    }
    check(&b, y, "linear-quant", what);
    close_bench(&b);
}

static void test_kernels_cpu_integer__linear(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        for (int axis = -1; axis < 4; axis++) {
            check_linear(i & 1 ? MSC_DTYPE_I8 : MSC_DTYPE_U8, axis, i & 2, i & 4);
        }
    }
}

static void test_kernels_cpu_integer__dynamic_quantize(void **state) {
    static const float low[3] = {-5.0f, 0.3f, -9.0f}, high[3] = {7.0f, 11.0f, -1.0f};
    (void)state;
    for (int i = 0; i < 3 * 3; i++) {
        struct bench b;
        open_bench(&b, 2);
        int32_t x = add_input(&b, MSC_DTYPE_F32, "", 2, DIMS(3, 47));
        float *elements = msc_array_data(b.x);
        for (int64_t k = 0; k < msc_array_n_elements(b.x); k++) {
            float share = (float)((uint64_t)k * 37 % 141) / 140.0f;
            elements[k] = low[i / 3] + share * (high[i / 3] - low[i / 3]);
        }
        const struct msc_joint *q = add_joint(&b, MSC_OP_DYNAMIC_QUANTIZE, 1, &x, 0, NULL, 3);
        check(&b, q->outputs[i % 3], "linear-quant", "dynamic quantise");
        close_bench(&b);
    }
}

// A network as exporters write it: values between convolutions stay in channels-last layout.
static void test_kernels_cpu_integer__chain(void **state) {
    static const struct msc_attr conv_attrs[] = {
        {"padding", "1,1,1,1"}, {"strides", "1,1"}, {"dilation", "1,1"}};
    (void)state;
    struct bench b;
    struct form f = form_of(0);
    int32_t operands[9];
    open_bench(&b, 8);
    f.has_bias = true;
    int32_t y = add_input(&b, MSC_DTYPE_U8, "NCHW", 4, DIMS(1, 16, 10, 10));
    for (int layer = 0; layer < 2; layer++) {
        int32_t w = add_constant(&b, "OIHW", draw(&b, MSC_DTYPE_I8, 4, DIMS(16, 16, 3, 3)));
        int32_t n = list_operands(&b, operands, &f, true, y, w, 16);
        y = add_joint(&b, MSC_OP_QLINEAR_CONV, n, operands, 3, conv_attrs, 1)->outputs[0];
        const int32_t back[] = {y, operands[6], operands[7]};
        y = add_joint(&b, MSC_OP_DEQUANTIZE, 3, back, 0, NULL, 1)->outputs[0];
        y = add_joint(&b, MSC_OP_RELU, 1, &y, 0, NULL, 1)->outputs[0];
        const int32_t to[] = {y, operands[6], operands[7]};
        y = add_joint(&b, MSC_OP_QUANTIZE, 3, to, 0, NULL, 1)->outputs[0];
    }
    check(&b, y, "linear-quant", "chain");
    close_bench(&b);
}

// ---- Digits -----------------------------------------------------------------------------------

// If msc_digits_sums_fit allows sums in int32, the sums can also be computed exactly in float32. So
// either all units of all backends compute a joint in integer arithmetic, or none does.
static void test_kernels_cpu_integer__digits(void **state) {
    (void)state;
    for (int32_t largest = 1; largest <= 255; largest++) {
        for (int64_t power = 1; power <= 31; power++) {
            for (int64_t rest = ((int64_t)1 << power) - 1; rest <= (int64_t)1 << power; rest++) {
                struct msc_digits d = msc_digits_cut(largest, rest);
                bool fits = rest < 1 << 23 && largest * rest < (int64_t)1 << 31;
                assert_int_equal(msc_digits_sums_fit(largest, rest, 0), fits);
                assert_true(!fits || (d.n > 0 && d.largest * rest < 1 << 24));
                assert_true(!fits || msc_digits_cut(255, rest).n > 0);
            }
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_integer__convolutions),
        cmocka_unit_test(test_kernels_cpu_integer__products),
        cmocka_unit_test(test_kernels_cpu_integer__dynamic),
        cmocka_unit_test(test_kernels_cpu_integer__linear),
        cmocka_unit_test(test_kernels_cpu_integer__dynamic_quantize),
        cmocka_unit_test(test_kernels_cpu_integer__chain),
        cmocka_unit_test(test_kernels_cpu_integer__digits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
