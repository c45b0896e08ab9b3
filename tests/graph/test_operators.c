// Operators that mscgym lacks: external joints in every form of a graph, and plug-ins for them.
#include "tests/graph/onnx_nets.h"

#include "base/base64.h"
#include "base/str.h"
#include "graph/external.h"
#include "graph/onnx/load.h"
#include "graph/operators_internal.h"
#include "graph/passes/bind.h"
#include "graph/reference/reference.h"
#include "graph/wide.h"

#include <string.h>

#define MODEL MSC_TESTS_MODEL("operators")

// ---- Import -----------------------------------------------------------------------------------

// The expected values are those of make_operators.py.
static void test_graph_operators__import(void **state) {
    static const char *const attrs[][2] = {
        {"domain", "made.up"},
        {"op", "Blur"},
        {"version", "3"},
        {"signature", "float32[N,4], float32[2] -> float32[N,4]"},
        {"attr_step", "int 2"},
        {"attr_gain", "float 0.1"},
        {"attr_note", "string two columns"},
        {"attr_sizes", "ints 3,-1"},
        {"attr_one", "ints 7,"},
        {"attr_scales", "floats 0.5,2"},
        {"attr_names", "strings [\"a\",\"b,c\\\"\"]"},
    };
    struct msc_graph *g = load_file(MODEL);
    (void)state;
    assert_int_equal(count_of(g, MSC_OP_EXTERNAL), 3);
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        assert_string_equal(attr_of(g, "blur", attrs[i][0]), attrs[i][1]);
    }
    assert_memory_equal(attr_of(g, "blur", "attr_odd"), "proto ", 6);
    assert_memory_equal(attr_of(g, "blur", "attr_raw"), "proto ", 6);
    assert_memory_equal(attr_of(g, "blur", "attr_table"), "proto ", 6);
    assert_string_equal(attr_of(g, "choose", "captures"), "r1");
    assert_string_equal(attr_of(g, "choose", "imports"), "other.domain=2,r.domain=2");
    assert_string_equal(attr_of(g, "count", "signature"),
                        "float32[N,4], -, float32[N,4] -> int64[found,2]");
    const struct msc_joint *choose = msc_graph_joint(g, msc_graph_find_joint(g, "choose"));
    assert_int_equal(choose->n_operands, 2);
    assert_int_equal(msc_external_n_inputs(choose), 1);
    assert_string_equal(msc_graph_tensor(g, choose->operands[1])->alias, "r1");
    msc_graph_destroy(g);
}

// JSON keeps everything: the graph that is read equals the one that was written.
static void test_graph_operators__json(void **state) {
    struct msc_graph *g = load_file(MODEL), *read = NULL;
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s.graph", scratch);
    assert_ok(msc_graph_save(g, path));
    snprintf(path, sizeof path, "%s.graph.json", scratch);
    assert_ok(msc_graph_load(&read, path));
    assert_true(msc_graph_equal(g, read, true));
    unlink(path);
    snprintf(path, sizeof path, "%s.graph.safetensors", scratch);
    unlink(path);
    msc_graph_destroy(read);
    msc_graph_destroy(g);
}

// ---- Export -----------------------------------------------------------------------------------

static const Onnx__NodeProto *find_type(const Onnx__GraphProto *g, const char *op_type) {
    for (size_t i = 0; i < g->n_node; i++) {
        if (strcmp(g->node[i]->op_type, op_type) == 0) {
            return g->node[i];
        }
    }
    fail();
    return NULL;
}

static const Onnx__AttributeProto *find_attr(const Onnx__NodeProto *node, const char *name) {
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(node->attribute[i]->name, name) == 0) {
            return node->attribute[i];
        }
    }
    fail();
    return NULL;
}

static void assert_same_attributes(const Onnx__NodeProto *a, const Onnx__NodeProto *b) {
    assert_int_equal(a->n_attribute, b->n_attribute);
    for (size_t i = 0; i < a->n_attribute; i++) {
        const Onnx__AttributeProto *x = a->attribute[i], *y = find_attr(b, x->name);
        uint8_t packed[2][2048];
        size_t n = onnx__attribute_proto__get_packed_size(x);
        assert_in_range(n, 1, sizeof packed[0]);
        assert_int_equal(n, onnx__attribute_proto__get_packed_size(y));
        onnx__attribute_proto__pack(x, packed[0]);
        onnx__attribute_proto__pack(y, packed[1]);
        assert_memory_equal(packed[0], packed[1], n);
    }
}

static int64_t version_of(const Onnx__ModelProto *m, const char *domain) {
    for (size_t i = 0; i < m->n_opset_import; i++) {
        if (m->opset_import[i]->domain && strcmp(m->opset_import[i]->domain, domain) == 0) {
            return m->opset_import[i]->version;
        }
    }
    return 0;
}

static void test_graph_operators__export(void **state) {
    static const char *const types[] = {"Blur", "Choose", "Count"};
    struct msc_graph *g = load_file(MODEL), *again;
    Onnx__ModelProto *before, *after;
    (void)state;
    assert_ok(msc_onnx_save(g, scratch, NULL));
    assert_ok(msc_onnx_model_read(&before, MODEL));
    assert_ok(msc_onnx_model_read(&after, scratch));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const Onnx__NodeProto *a = find_type(before->graph, types[i]);
        const Onnx__NodeProto *b = find_type(after->graph, types[i]);
        assert_same_attributes(a, b);
        assert_string_equal(b->domain, "made.up");
        assert_string_equal(b->name, a->name);
        assert_int_equal(a->n_input, b->n_input);
        for (size_t k = 0; k < a->n_input; k++) {
            assert_string_equal(a->input[k], b->input[k]);
        }
        assert_string_equal(a->output[0], b->output[0]);
    }
    assert_int_equal(version_of(after, "made.up"), 3);
    assert_int_equal(version_of(after, "other.domain"), 2);
    assert_int_equal(version_of(after, "r.domain"), 2);
    msc_onnx_model_free(before);
    msc_onnx_model_free(after);
    // The exported model states the types that an import needs.
    again = load_file(scratch);
    assert_true(msc_graph_equal(g, again, true));
    msc_graph_destroy(again);
    msc_graph_destroy(g);
}

// If a value that a graph in an attribute reads gets another name, the graph reads the new name.
// The name is not one that the graph defines: then it would read its own value.
static void test_graph_operators__renamed_capture(void **state) {
    static const char *const names[][2] = {
        {"renamed", "renamed"}, {"sum", "sum_1"}, {"one", "one_1"}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct msc_graph *g = load_file(MODEL);
        Onnx__ModelProto *m;
        assert_ok(msc_graph_set_alias(g, msc_graph_find_tensor(g, "r1"), names[i][0]));
        assert_ok(msc_graph_finalize(g));
        assert_ok(msc_onnx_save(g, scratch, NULL));
        assert_ok(msc_onnx_model_read(&m, scratch));
        const Onnx__GraphProto *body = find_attr(find_type(m->graph, "Choose"), "body")->g;
        assert_string_equal(find_type(m->graph, "Relu")->output[0], names[i][1]);
        assert_string_equal(body->node[0]->input[0], names[i][1]);
        assert_string_equal(body->node[0]->input[1], "one");
        msc_onnx_model_free(m);
        msc_graph_destroy(g);
    }
}

// Public names are kept, so such a clash is refused.
static void test_graph_operators__public_capture(void **state) {
    struct msc_graph *g = load_file(MODEL);
    int32_t r1 = msc_graph_find_tensor(g, "r1"), outputs[3];
    (void)state;
    assert_ok(msc_graph_set_alias(g, r1, "sum"));
    for (int32_t i = 0; i < 2; i++) {
        outputs[i] = msc_graph_output(g, i);
    }
    outputs[2] = r1;
    assert_ok(msc_graph_set_outputs(g, 3, outputs));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(msc_onnx_save(g, scratch, NULL), MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "reads the model's 'sum', and defines another"));
    msc_graph_destroy(g);
}

// ---- Lengths ----------------------------------------------------------------------------------

static void test_graph_operators__bind(void **state) {
    const struct msc_binding binding = {"N", 5};
    struct msc_graph *g = load_file(MODEL), *bound;
    (void)state;
    assert_ok(msc_graph_bind_open(&bound, g, &binding, 1));
    const struct msc_tensor *t = msc_graph_tensor(bound, msc_graph_find_tensor(bound, "chosen"));
    assert_int_equal(t->dims[0], 5);
    assert_int_equal(t->dims[1], 4);
    t = msc_graph_tensor(bound, msc_graph_find_tensor(bound, "counted"));
    assert_int_equal(t->dims[0], -1);
    assert_int_equal(t->dims[1], 2);
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
}

static void test_graph_operators__signatures(void **state) {
    static const struct {
        const char *signature, *message;
    } rows[] = {
        {"float32[N,3] -> float32[N]", NULL},
        {"float32[2,3] -> float32[]", NULL},
        {"float32[N] -> float32[N]",
         "operand 0 is float32[2,3], but its signature says float32[N]"},
        {"int64[2,3] -> float32[N]", "but its signature says int64[2,3]"},
        {"float32[N,N] -> float32[N]", "operand 0 is float32[2,3]"},
        {"-> float32[N]", "the signature has 0 operands, expected 1"},
        {"float32[2,3]", "lacks outputs"},
        {"float32[2,3] -> float32[1],float32[2]", "exactly 1 outputs"},
        {"float32[2,3] -> float33[1]", "is invalid"},
        {"float32[2,3] -> float32[1", "is invalid"},
        {"float32[2,3] -> float32[-7]", "is invalid"},
        {"float32[2,3] -> float32[99999999999999999999]", "is invalid"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct msc_graph *g;
        int32_t joint;
        assert_ok(msc_graph_create(&g, "signature"));
        int32_t x = add_input(g, "x", "", 2, DIMS(2, 3));
        struct msc_joint_spec spec = {
            .op = MSC_OP_EXTERNAL,
            .n_inputs = 1,
            .inputs = IDS(x),
            .n_attrs = 2,
            .attrs = (struct msc_attr[]){{"op", "Any"}, {"signature", rows[i].signature}}};
        enum msc_status status = msc_graph_add_joint(&joint, g, &spec);
        if (rows[i].message) {
            assert_int_equal(status, MSC_E_INVALID);
            assert_non_null(strstr(msc_status_message(), rows[i].message));
        } else {
            assert_int_equal(status, MSC_OK);
        }
        msc_graph_destroy(g);
    }
}

// Writes a field that holds the last `length` bytes of the buffer before them.
static size_t wrap(uint8_t *end, size_t length, uint8_t key) {
    size_t n_count = length < 128 ? 1 : length < 16384 ? 2 : 3;
    for (size_t i = 0; i < n_count; i++) {
        end[-(ptrdiff_t)(length + i + 1)] =
            (uint8_t)((length >> 7 * (n_count - 1 - i) & 0x7f) | (i > 0 ? 0x80 : 0));
    }
    end[-(ptrdiff_t)(length + n_count + 1)] = key;
    return length + n_count + 1;
}

// A message that is nested 100,000 times would overflow the stack of a reader.
static void test_graph_operators__deep_attribute(void **state) {
    static uint8_t bytes[1 << 20];
    struct msc_str text = {0};
    struct msc_graph *g;
    int32_t joint;
    size_t n = 0;
    (void)state;
    for (int i = 0; i < 33333; i++) { // of an attribute, its graph, a node and so on
        static const uint8_t keys[] = {0x2a, 0x0a, 0x32};
        for (size_t k = 0; k < sizeof keys; k++) {
            n = wrap(bytes + sizeof bytes, n, keys[k]);
        }
    }
    msc_str_append(&text, "proto ");
    assert_ok(msc_base64_write(&text, bytes + sizeof bytes - n, n));
    assert_ok(msc_graph_create(&g, "deep"));
    int32_t x = add_input(g, "x", "", 2, DIMS(2, 3));
    struct msc_joint_spec spec = {
        .op = MSC_OP_EXTERNAL,
        .n_inputs = 1,
        .inputs = IDS(x),
        .n_attrs = 3,
        .attrs = (struct msc_attr[]){{"op", "Any"},
                                     {"signature", "float32[2,3] -> float32[2]"},
                                     {"attr_body", msc_str_text(&text)}}};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    assert_ok(msc_graph_set_outputs(g, 1, msc_graph_joint(g, joint)->outputs));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(msc_onnx_save(g, scratch, NULL), MSC_E_UNSUPPORTED);
    assert_non_null(strstr(msc_status_message(), "nested too deeply"));
    msc_graph_destroy(g);
    msc_str_finish(&text);
}

// ---- Plug-ins ---------------------------------------------------------------------------------

static enum msc_status blur(const struct msc_operator_call *call) {
    int64_t step, sizes[2], n_elements = msc_operator_n_elements(&call->outputs[0]);
    float gain, scales[2];
    const char *note;
    int n;
    MSC_TRY(msc_operator_int(&step, call, "step", 0));
    MSC_TRY(msc_operator_float(&gain, call, "gain", 0));
    MSC_TRY(msc_operator_text(&note, call, "note", ""));
    MSC_TRY(msc_operator_ints(sizes, &n, call, "sizes", 2));
    assert_int_equal(n, 2);
    MSC_TRY(msc_operator_floats(scales, &n, call, "scales", 2));
    assert_int_equal(n, 2);
    assert_string_equal(note, "two columns");
    for (int64_t i = 0; i < n_elements; i++) {
        ((float *)call->outputs[0].data)[i] =
            ((const float *)call->inputs[0].data)[i] * gain * scales[1] + (float)(step + sizes[1]);
    }
    return MSC_OK;
}

// Adds the captured value.
static enum msc_status choose(const struct msc_operator_call *call) {
    int64_t n_elements = msc_operator_n_elements(&call->outputs[0]);
    assert_int_equal(call->n_inputs, 2);
    for (int64_t i = 0; i < n_elements; i++) {
        ((float *)call->outputs[0].data)[i] =
            ((const float *)call->inputs[0].data)[i] + ((const float *)call->inputs[1].data)[i];
    }
    return MSC_OK;
}

// Row and column of each element above 3: the length is known only now.
static enum msc_status count_found(const struct msc_operator_call *call) {
    const float *x = call->inputs[0].data;
    int64_t n = 0, n_elements = msc_operator_n_elements(&call->inputs[0]);
    assert_int_equal(call->inputs[1].dtype, MSC_DTYPE_NONE);
    assert_int_equal(call->outputs[0].dims[0], -1);
    for (int64_t i = 0; i < n_elements; i++) {
        n += x[i] > 3;
    }
    MSC_TRY(call->allocate(call, 0, (const int64_t[]){n, 2}));
    int64_t *out = call->outputs[0].data;
    for (int64_t i = 0; i < n_elements; i++) {
        if (x[i] > 3) {
            *out++ = i / 4;
            *out++ = i % 4;
        }
    }
    return MSC_OK;
}

static enum msc_status refuse(const struct msc_operator_call *call) {
    (void)call;
    return MSC_FAIL(MSC_E_INVALID, "not today");
}

static const struct msc_operator_def definitions[] = {
    {.domain = "made.up", .op = "Blur", .compute = blur},
    {.domain = "made.up", .op = "Choose", .compute = choose},
    {.domain = "made.up", .op = "Count", .compute = count_found},
};

static struct msc_operators *open_set(const struct msc_operator_def *operators, int n) {
    struct msc_operators *set;
    assert_ok(msc_operators_create(&set));
    assert_ok(msc_operators_add(
        set,
        &(struct msc_operators_source){.name = "test", .n_operators = n, .operators = operators}));
    return set;
}

static struct msc_graph *load_with(struct msc_operators *set) {
    struct msc_graph *g = NULL;
    const struct msc_onnx_import_options options = {.operators = set};
    assert_ok(msc_onnx_load(&g, MODEL, &options));
    return g;
}

// Runs the graph on [2,4] numbers 0, 1, ... Tensors: chosen, counted.
static enum msc_status run_numbers(struct msc_array *out[2], const struct msc_graph *g) {
    const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct msc_array *x;
    int32_t wanted[] = {msc_graph_find_tensor(g, "chosen"), msc_graph_find_tensor(g, "counted")};
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, 2, DIMS(2, 4), numbers));
    enum msc_status status =
        msc_reference_run_graph(out, g, (const struct msc_array *const[]){x}, wanted, 2, NULL);
    msc_array_release(x);
    return status;
}

static void test_graph_operators__compute(void **state) {
    // chosen = x * 0.1 * 2 + 2 - 1 + x; above 3 for x = 2 and more
    const int64_t expected[] = {0, 2, 0, 3, 1, 0, 1, 1, 1, 2, 1, 3};
    struct msc_operators *set = open_set(definitions, 3);
    struct msc_graph *g = load_with(set);
    struct msc_array *out[2];
    (void)state;
    msc_operators_release(set); // the graph retains it
    assert_int_equal(msc_graph_find_uncomputed(g), MSC_NO_ID);
    assert_ok(run_numbers(out, g));
    for (int64_t i = 0; i < 8; i++) {
        double x = (double)i;
        assert_float_equal(msc_array_get_double(out[0], i), x * 0.1 * 2 + 2 - 1 + x, 1e-6);
    }
    assert_int_equal(msc_array_dim(out[1], 0), 6);
    assert_memory_equal(msc_array_data(out[1]), expected, sizeof expected);
    msc_array_release(out[0]);
    msc_array_release(out[1]);
    msc_graph_destroy(g);
}

static void test_graph_operators__refused(void **state) {
    static const struct msc_operator_def bad[] = {
        {.domain = "made.up", .op = "Blur", .compute = refuse},
        {.domain = "made.up", .op = "Choose", .compute = choose},
    };
    struct msc_array *out[2];
    struct msc_graph *g = load_file(MODEL);
    (void)state;
    assert_int_equal(msc_graph_require_computed(g), MSC_E_UNSUPPORTED);
    assert_string_equal(
        msc_status_message(),
        "joint 'blur' is the external operator made.up::Blur, which no plug-in computes: give one "
        "with --operators or \"operators\", or cut the model there with mscgym split");
    assert_int_equal(run_numbers(out, g), MSC_E_UNSUPPORTED);
    msc_graph_destroy(g);
    struct msc_operators *set = open_set(bad, 2);
    g = load_with(set);
    assert_int_equal(msc_graph_find_uncomputed(g), msc_graph_find_joint(g, "count"));
    assert_int_equal(run_numbers(out, g), MSC_E_INVALID);
    assert_string_equal(msc_status_message(), "test: joint 'blur' (Blur): not today");
    // Two plug-ins for one operator.
    assert_int_equal(msc_operators_add(set, &(struct msc_operators_source){.name = "second",
                                                                           .n_operators = 1,
                                                                           .operators = bad}),
                     MSC_E_INVALID);
    assert_non_null(strstr(msc_status_message(), "second: test also computes operator 'Blur'"));
    msc_graph_destroy(g);
    msc_operators_release(set);
}

// A plug-in's types win over the model's, and saved forms keep them.
static enum msc_status infer_choose(const struct msc_operator_call *call) {
    call->outputs[0] = call->inputs[0]; // with its unknown length
    return MSC_OK;
}

static void test_graph_operators__infer(void **state) {
    static const struct msc_operator_def inferring[] = {
        {.domain = "made.up", .op = "Choose", .infer = infer_choose, .compute = choose}};
    struct msc_operators *set = open_set(inferring, 1);
    struct msc_graph *g = load_with(set);
    (void)state;
    assert_string_equal(attr_of(g, "choose", "signature"),
                        "float32[N,4], float32[N,4] -> float32[N,4]");
    msc_graph_destroy(g);
    msc_operators_release(set);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_operators__import),
        cmocka_unit_test(test_graph_operators__json),
        cmocka_unit_test(test_graph_operators__export),
        cmocka_unit_test(test_graph_operators__renamed_capture),
        cmocka_unit_test(test_graph_operators__public_capture),
        cmocka_unit_test(test_graph_operators__bind),
        cmocka_unit_test(test_graph_operators__signatures),
        cmocka_unit_test(test_graph_operators__deep_attribute),
        cmocka_unit_test(test_graph_operators__compute),
        cmocka_unit_test(test_graph_operators__refused),
        cmocka_unit_test(test_graph_operators__infer),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
