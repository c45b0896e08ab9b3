// Constant folding must give the same results as the kernels. Every foldable operator is run in all
// types that it accepts, over special numbers and all pairs of them. Each operator is run once with
// constants and once with inputs of the network. The operators come from the table of operators.
// Some operators need attributes, or operands of different types; they have rows in `forms`.
#include "graph/reference/reference.h"

#include "data/dtype.h"
#include "graph/passes/constant_internal.h"

#include "graph/passes/bind.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double special[] = {
    0.0,
    -0.0,
    1,
    -1,
    2,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3,
    -7,
    63,
    64,
    100,
    1e-45,
    -1e-45,
    1.17549435e-38,
    3.4028234664e38,
    -3.4028234664e38,
    8388607.5,
    16777217,
    2147483647,
    -2147483648.0,
    4294967295.0,
    9223372036854774784.0,
    -9223372036854775808.0,
    1e30,
    INFINITY,
    -INFINITY,
    NAN,
};

enum { N_SPECIAL = sizeof(special) / sizeof(special[0]), N_PAIRS = N_SPECIAL * N_SPECIAL };

// An operator that needs attributes, or operands of different types.
static const struct form {
    enum msc_op op;
    const char *attrs[3][2];
    int n_outputs;           // number of outputs; 0: one
    enum msc_dtype types[3]; // types of the operands; NONE: the type under test
    // true: the elements are 0 to 0.75 (scales), or integers 0 to 3 (positions)
    bool is_small[3];
} forms[] = {
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "float32"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "float64"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "float16"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "bfloat16"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "int64"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "int32"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "int8"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "uint8"}}},
    {.op = MSC_OP_CAST, .attrs = {{"dtype", "bool"}}},
    {.op = MSC_OP_RESHAPE, .attrs = {{"shape", "2,-1"}}},
    {.op = MSC_OP_EXPAND_DIMS, .attrs = {{"axis", "1"}}},
    {.op = MSC_OP_PERMUTE_DIMS, .attrs = {{"axes", "1,0"}}},
    {.op = MSC_OP_SPLIT, .attrs = {{"axis", "0"}, {"indices_or_sections", "1,5,"}}, .n_outputs = 3},
    {.op = MSC_OP_STRIDED_SLICE,
     .attrs = {{"begin", "-1"}, {"end", "-9223372036854775808"}, {"strides", "-3"}}},
    {.op = MSC_OP_TAKE,
     .attrs = {{"axis", "0"}},
     .types = {MSC_DTYPE_NONE, MSC_DTYPE_I64},
     .is_small = {false, true}},
    {.op = MSC_OP_BROADCAST_TO, .attrs = {{"shape", "3,961,2"}}},
    {.op = MSC_OP_TILE, .attrs = {{"repeats", "2,3"}}},
    {.op = MSC_OP_WHERE, .types = {MSC_DTYPE_BOOL}},
    {.op = MSC_OP_MAX, .attrs = {{"axis", "1"}}},
    {.op = MSC_OP_MIN, .attrs = {{"axis", "1"}}},
    {.op = MSC_OP_SUM, .attrs = {{"axis", "1"}}},
    {.op = MSC_OP_PROD, .attrs = {{"axis", "1"}}},
    {.op = MSC_OP_MAX, .attrs = {{"axis", "-2"}, {"keepdims", "1"}}},
    {.op = MSC_OP_SUM, .attrs = {{"axis", ""}}},
    {.op = MSC_OP_QUANTIZE, .types = {MSC_DTYPE_F32, MSC_DTYPE_F32}, .is_small = {false, true}},
    {.op = MSC_OP_QUANTIZE,
     .attrs = {{"axis", "1"}, {"dtype", "int8"}},
     .types = {MSC_DTYPE_F32, MSC_DTYPE_F32}},
    {.op = MSC_OP_DEQUANTIZE, .attrs = {{"axis", "1"}}, .types = {MSC_DTYPE_NONE, MSC_DTYPE_F32}},
};

struct folding {
    enum msc_op op;
    const struct form *form; // NULL: operands of the same type
    int n_operands, n_outputs;
    struct msc_array *operands[3];
};

static int n_operands_of(enum msc_op op) {
    struct msc_op_role role;
    int n = 0;
    while (n < 3 && msc_op_role(op, n, &role) && !role.is_attribute && !role.is_optional) {
        n++;
        if (role.is_repeated && n == 2) {
            break;
        }
    }
    return n;
}

// Element `i` of an operand. With has_pairs, the elements run through all pairs of special numbers;
// otherwise they are the numbers from `first` on.
static double element(int64_t i, int64_t first, bool is_small, bool has_pairs) {
    int64_t at = !has_pairs ? i : i % 2 == 0 ? i / 2 / N_SPECIAL : i / 2;
    return is_small ? (double)(i % 4) : special[(at + first) % N_SPECIAL];
}

static struct msc_array *make_operand(const struct folding *f, int operand, enum msc_dtype dtype,
                                      const int64_t dims[2], int64_t first) {
    struct msc_array *numbers, *out;
    bool is_small = f->form && f->form->is_small[operand];
    bool has_type = f->form && f->form->types[operand] != MSC_DTYPE_NONE;
    assert_ok(msc_array_create(&numbers, MSC_DTYPE_F64, dims[1] > 0 ? 2 : 1, dims));
    for (int64_t i = 0; i < msc_array_n_elements(numbers); i++) {
        ((double *)msc_array_data(numbers))[i] = element(i, first, is_small, dims[0] == N_PAIRS);
    }
    assert_ok(msc_array_convert(&out, numbers, has_type ? f->form->types[operand] : dtype));
    msc_array_release(numbers);
    return out;
}

// How operands are combined: both of shape [pairs, 2]; a column and a row, broadcast; pairs and a
// vector of scales; or vectors of FEW_NUMBERS elements, broadcast. Such a vector is short enough
// for shape inference to follow its values. The special values are cut into FEW_BLOCKS vectors, and
// all combinations of these vectors are tried.
enum { FEW_NUMBERS = 8, FEW_BLOCKS = (N_SPECIAL + FEW_NUMBERS - 1) / FEW_NUMBERS };
enum together {
    TOGETHER_ALIKE,
    TOGETHER_BROADCAST,
    TOGETHER_SCALES,
    TOGETHER_FEW,
    TOGETHER_COUNT = TOGETHER_FEW + FEW_BLOCKS * FEW_BLOCKS,
};

static void make_operands(struct folding *f, enum msc_dtype dtype, int together) {
    static const int64_t pairs[2] = {N_PAIRS, 2}, scales[2] = {2, 0};
    int64_t n = together < TOGETHER_FEW ? N_SPECIAL : FEW_NUMBERS;
    int64_t block = together < TOGETHER_FEW ? 0 : together - TOGETHER_FEW;
    for (int i = 0; i < f->n_operands; i++) {
        const int64_t lines[2] = {i == 0 ? n : 1, i == 0 ? 1 : n};
        const int64_t *dims = together == TOGETHER_ALIKE ? pairs : lines;
        if (together == TOGETHER_SCALES) {
            dims = i == 0 ? pairs : scales;
        }
        int64_t first = (i == 0 ? block / FEW_BLOCKS : block % FEW_BLOCKS) * FEW_NUMBERS;
        f->operands[i] = make_operand(f, i, dtype, dims, first + (i > 1 ? 5 : 0));
    }
}

static enum msc_status add_operands(int32_t inputs[], const struct folding *f, struct msc_graph *g,
                                    bool are_constants) {
    for (int i = 0; i < f->n_operands; i++) {
        const struct msc_array *a = f->operands[i];
        struct msc_weight_spec weight = {.role = "const"};
        struct msc_joint_spec spec = {.op = MSC_OP_CONSTANT, .n_weights = 1, .weights = &weight};
        char name[2][16];
        int32_t joint;
        snprintf(name[0], sizeof(name[0]), "x%d", i);
        snprintf(name[1], sizeof(name[1]), "w%d", i);
        if (!are_constants) {
            MSC_TRY(msc_graph_add_input(&inputs[i], g, name[0], name[0], msc_array_dtype(a), "",
                                        msc_array_n_dims(a), msc_array_dims(a)));
            continue;
        }
        spec.name = name[0];
        MSC_TRY(msc_graph_add_weight(&weight.tensor, g, name[1], name[1], "", a));
        MSC_TRY(msc_graph_add_joint(&joint, g, &spec));
        inputs[i] = msc_graph_joint(g, joint)->outputs[0];
    }
    return MSC_OK;
}

// Builds the joint over constants or over inputs, with a copy of each of its outputs.
static enum msc_status build(struct msc_graph **out, const struct folding *f, bool are_constants) {
    struct msc_attr attrs[3];
    int32_t inputs[3], outputs[3], joint, n_attrs = 0;
    struct msc_graph *g;
    enum msc_status status;
    for (int i = 0; f->form && i < 3 && f->form->attrs[i][0]; i++) {
        attrs[n_attrs++] = (struct msc_attr){f->form->attrs[i][0], f->form->attrs[i][1]};
    }
    assert_ok(msc_graph_create(&g, "folding"));
    MSC_TRY_OUT(add_operands(inputs, f, g, are_constants));
    struct msc_joint_spec spec = {.op = f->op,
                                  .name = "y",
                                  .n_inputs = f->n_operands,
                                  .inputs = inputs,
                                  .n_attrs = n_attrs,
                                  .attrs = attrs,
                                  .n_outputs = f->n_outputs};
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &spec));
    for (int i = 0; i < f->n_outputs; i++) {
        struct msc_joint_spec copy = {
            .op = MSC_OP_IDENTITY, .n_inputs = 1, .inputs = &msc_graph_joint(g, joint)->outputs[i]};
        int32_t copied;
        MSC_TRY_OUT(msc_graph_add_joint(&copied, g, &copy));
        outputs[i] = msc_graph_joint(g, copied)->outputs[0];
    }
    MSC_TRY_OUT(msc_graph_set_outputs(g, f->n_outputs, outputs));
    MSC_TRY_OUT(msc_graph_finalize(g));
out:
    if (status != MSC_OK) {
        msc_graph_destroy(g);
        return status;
    }
    *out = g;
    return MSC_OK;
}

static void assert_equal_bits(const struct folding *f, const struct msc_array *folded,
                              const struct msc_array *computed) {
    size_t bytes = msc_dtype_bytes(msc_array_dtype(computed));
    assert_int_equal(msc_array_dtype(folded), msc_array_dtype(computed));
    assert_int_equal(msc_array_n_bytes(folded), msc_array_n_bytes(computed));
    for (int64_t i = 0; i < msc_array_n_elements(computed); i++) {
        const char *a = (const char *)msc_array_data(folded) + (size_t)i * bytes;
        const char *b = (const char *)msc_array_data(computed) + (size_t)i * bytes;
        if (memcmp(a, b, bytes) != 0) {
            print_error("%s of %s, element %d: folded %.17g, computed %.17g\n",
                        msc_op_info(f->op)->name, msc_dtype_name(msc_array_dtype(f->operands[0])),
                        (int)i, msc_array_get_double(folded, i), msc_array_get_double(computed, i));
            fail();
        }
    }
}

// The constant that an output copies, or MSC_NO_ID if it is not constant.
static int32_t constant_of(const struct msc_graph *g, int output) {
    int32_t copy = msc_graph_producer(g, msc_graph_output(g, output));
    return msc_graph_weight_of(g, msc_graph_joint(g, copy)->operands[0]);
}

// If no kernel computes a result (an integer divided by 0), it must not be folded either.
static void compare(const struct folding *f, const struct msc_graph *run,
                    const struct msc_graph *bound) {
    struct msc_array *computed[3];
    int32_t wanted[3];
    for (int i = 0; i < f->n_outputs; i++) {
        wanted[i] = msc_graph_output(run, i);
    }
    enum msc_status status =
        msc_reference_run_graph(computed, run, (const struct msc_array *const *)f->operands, wanted,
                                (size_t)f->n_outputs, NULL);
    for (int i = 0; i < f->n_outputs; i++) {
        int32_t weight = constant_of(bound, i);
        if ((status == MSC_OK) != (weight != MSC_NO_ID)) {
            print_error("%s of %s is %s, and computed: %s\n", msc_op_info(f->op)->name,
                        msc_dtype_name(msc_array_dtype(f->operands[0])),
                        weight == MSC_NO_ID ? "not folded" : "folded",
                        status == MSC_OK ? "yes" : msc_status_message());
            fail();
        } else if (status == MSC_OK) {
            assert_equal_bits(f, msc_graph_tensor(bound, weight)->data, computed[i]);
            msc_array_release(computed[i]);
        }
    }
}

// Returns whether the operator accepts these operands.
static bool try_operands(struct folding *f, enum msc_dtype dtype, int together) {
    struct msc_graph *run = NULL, *constant = NULL, *bound = NULL;
    make_operands(f, dtype, together);
    bool is_taken = build(&run, f, false) == MSC_OK;
    if (is_taken) {
        assert_ok(build(&constant, f, true));
        assert_ok(msc_graph_bind(&bound, constant, NULL, 0));
        compare(f, run, bound);
    }
    msc_graph_destroy(run);
    msc_graph_destroy(constant);
    msc_graph_destroy(bound);
    for (int i = 0; i < f->n_operands; i++) {
        msc_array_release(f->operands[i]);
    }
    return is_taken;
}

static bool try_form(enum msc_op op, const struct form *form) {
    struct folding f = {.op = op,
                        .form = form,
                        .n_operands = n_operands_of(op),
                        .n_outputs = form && form->n_outputs > 0 ? form->n_outputs : 1};
    bool is_taken = false;
    for (int dtype = MSC_DTYPE_NONE + 1; dtype < MSC_DTYPE_COUNT; dtype++) {
        for (int together = 0; together < TOGETHER_COUNT; together++) {
            is_taken = try_operands(&f, (enum msc_dtype)dtype, together) || is_taken;
        }
    }
    return is_taken;
}

// Fails if the operator accepts none of the operands.
static void check_form(enum msc_op op, const struct form *form) {
    if (!try_form(op, form)) {
        print_error("%s takes none of the operands (%s); give it a form that it takes\n",
                    msc_op_info(op)->name, msc_status_message());
        fail();
    }
}

static void test_graph_folding__every_operator(void **state) {
    (void)state;
    for (int op = 0; op < MSC_OP_COUNT; op++) {
        bool has_form = false;
        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
            if ((int)forms[i].op == op) {
                has_form = true;
                check_form(forms[i].op, &forms[i]);
            }
        }
        if (msc_constant_is_folded((enum msc_op)op) && !has_form) {
            check_form((enum msc_op)op, NULL);
        }
    }
}

// Expected results are numpy's.
static void test_graph_folding__not_a_number(void **state) {
    (void)state;
    static const struct {
        enum msc_op op;
        float a, b;
    } rows[] = {
        {MSC_OP_MAXIMUM, NAN, 1}, {MSC_OP_MAXIMUM, 1, NAN},       {MSC_OP_MINIMUM, NAN, 1},
        {MSC_OP_MINIMUM, 1, NAN}, {MSC_OP_DIVIDE, 0, 0},          {MSC_OP_POWER, -2, 0.5f},
        {MSC_OP_ADD, NAN, 0},     {MSC_OP_MULTIPLY, INFINITY, 0}, {MSC_OP_MOD, 1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct folding f = {.op = rows[i].op, .n_operands = 2, .n_outputs = 1};
        struct msc_graph *g, *bound;
        assert_ok(msc_array_create_from(&f.operands[0], MSC_DTYPE_F32, 0, NULL, &rows[i].a));
        assert_ok(msc_array_create_from(&f.operands[1], MSC_DTYPE_F32, 0, NULL, &rows[i].b));
        assert_ok(build(&g, &f, true));
        assert_ok(msc_graph_bind(&bound, g, NULL, 0));
        int32_t weight = constant_of(bound, 0);
        assert_int_not_equal(weight, MSC_NO_ID);
        assert_true(isnan(msc_array_get_double(msc_graph_tensor(bound, weight)->data, 0)));
        msc_graph_destroy(bound);
        msc_graph_destroy(g);
        msc_array_release(f.operands[0]);
        msc_array_release(f.operands[1]);
    }
}

// Every comparison, in each way that a model can express it. Expected results are numpy's.
static void test_graph_folding__comparisons(void **state) {
    (void)state;
    static const float a[] = {1, 2, 3, NAN, NAN, -0.0f, INFINITY};
    static const float b[] = {1, 3, 2, NAN, 1, 0.0f, INFINITY};
    static const struct {
        enum msc_op op;
        int expected[7];
    } rows[] = {
        {MSC_OP_EQUAL, {1, 0, 0, 0, 0, 1, 1}},         {MSC_OP_GREATER, {0, 0, 1, 0, 0, 0, 0}},
        {MSC_OP_GREATER_EQUAL, {1, 0, 1, 0, 0, 1, 1}}, {MSC_OP_LESS, {0, 1, 0, 0, 0, 0, 0}},
        {MSC_OP_LESS_EQUAL, {1, 1, 0, 0, 0, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct folding f = {.op = rows[i].op, .n_operands = 2, .n_outputs = 1};
        struct msc_graph *g, *bound;
        assert_ok(msc_array_create_from(&f.operands[0], MSC_DTYPE_F32, 1, &(int64_t){7}, a));
        assert_ok(msc_array_create_from(&f.operands[1], MSC_DTYPE_F32, 1, &(int64_t){7}, b));
        assert_ok(build(&g, &f, true));
        assert_ok(msc_graph_bind(&bound, g, NULL, 0));
        int32_t weight = constant_of(bound, 0);
        assert_int_not_equal(weight, MSC_NO_ID);
        for (int k = 0; k < 7; k++) {
            const struct msc_array *data = msc_graph_tensor(bound, weight)->data;
            assert_int_equal(msc_array_get_i64(data, k), rows[i].expected[k]);
        }
        msc_graph_destroy(bound);
        msc_graph_destroy(g);
        msc_array_release(f.operands[0]);
        msc_array_release(f.operands[1]);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_folding__every_operator),
        cmocka_unit_test(test_graph_folding__not_a_number),
        cmocka_unit_test(test_graph_folding__comparisons),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
