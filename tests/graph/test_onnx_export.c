// ONNX export: round trips, and the nodes and bytes of edited weights and activations. Expected
// numbers are worked out by hand in the comments.
#include "graph/onnx/onnx_file_internal.h"

#include "tests/graph/onnx_files.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <unistd.h>

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/msc_export_%d.onnx", (int)getpid());
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(scratch);
    return 0;
}

static Onnx__ModelProto *save_and_read(const struct msc_graph *g,
                                       const struct msc_onnx_export_options *options) {
    Onnx__ModelProto *model;
    assert_ok(msc_onnx_save(g, scratch, options));
    assert_ok(msc_onnx_model_read(&model, scratch));
    return model;
}

// A written graph reads back equal: names, attributes, connections and elements.
static void test_graph_onnx_export__round_trip(void **state) {
    (void)state;
    static const char *const paths[] = {
        MSC_TESTS_MODEL("gemm"),       MSC_TESTS_MODEL("dims"),
        MSC_TESTS_MODEL("batch_norm"), MSC_TESTS_MODEL("names"),
        MSC_TESTS_MODEL("outputs"),    MSC_TESTS_MODEL("opset_9"),
        MSC_TESTS_MODEL("shared"),     MSC_TESTS_MODEL("view"),
        MSC_TESTS_MODEL("windows"),    MSC_TESTS_FOLDER "/../examples/digits/digits.onnx",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct msc_graph *g = load_file(paths[i]), *again;
        // The first model is written and read once before the comparison: when a constant becomes a
        // bias, the numbering of the other constants changes.
        if (i == 0) {
            assert_ok(msc_onnx_save(g, scratch, NULL));
            msc_graph_destroy(g);
            g = load_file(scratch);
        }
        assert_ok(msc_onnx_save(g, scratch, NULL));
        assert_ok(msc_onnx_load(&again, scratch, NULL));
        if (!msc_graph_equal(g, again, true)) {
            struct msc_str text = {0};
            msc_graph_print(again, &text);
            print_error("%s came back as\n%s\n", paths[i], msc_str_text(&text));
            fail();
        }
        msc_graph_destroy(g);
        msc_graph_destroy(again);
    }
}

static void test_graph_onnx_export__header(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("dims"));
    static const char *const metadata[2][2] = {{"strategy", "abc"}, {"record", "0123"}};
    struct msc_onnx_export_options options = {.metadata = metadata, .n_metadata = 2};
    Onnx__ModelProto *model = save_and_read(g, &options);
    assert_int_equal(model->ir_version, 7);
    assert_int_equal(model->n_opset_import, 1);
    assert_int_equal(model->opset_import[0]->version, 13); // the opset of the loaded file
    assert_int_equal(model->n_metadata_props, 2);
    assert_string_equal(model->metadata_props[1]->key, "record");
    assert_string_equal(model->metadata_props[1]->value, "0123");
    const Onnx__TensorShapeProto *shape = model->graph->input[0]->type->tensor_type->shape;
    assert_string_equal(shape->dim[0]->dim_param, "N");
    assert_string_equal(model->graph->output[0]->name, "z");
    msc_onnx_model_free(model);
    msc_graph_destroy(g);
}

static const Onnx__NodeProto *find_node(const Onnx__ModelProto *model, const char *output) {
    for (size_t i = 0; i < model->graph->n_node; i++) {
        if (strcmp(model->graph->node[i]->output[0], output) == 0) {
            return model->graph->node[i];
        }
    }
    print_error("no node makes '%s'\n", output);
    fail();
    return NULL;
}

static const Onnx__TensorProto *find_initializer(const Onnx__ModelProto *model, const char *name) {
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        if (strcmp(model->graph->initializer[i]->name, name) == 0) {
            return model->graph->initializer[i];
        }
    }
    return NULL;
}

static int count_nodes(const Onnx__ModelProto *model, const char *op_type) {
    int n = 0;
    for (size_t i = 0; i < model->graph->n_node; i++) {
        n += strcmp(model->graph->node[i]->op_type, op_type) == 0;
    }
    return n;
}

static void check_bytes(const Onnx__ModelProto *model, const char *name, int type, size_t n,
                        const void *expected) {
    const Onnx__TensorProto *t = find_initializer(model, name);
    assert_non_null(t);
    assert_int_equal(t->data_type, type);
    assert_int_equal(t->raw_data.len, n);
    assert_memory_equal(t->raw_data.data, expected, n);
}

// x feeds three convolutions, each with its own weight [2, 3, 1, 1] (elements 0 ... 5), and a
// relu.
static struct msc_graph *fan_out(void) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "fan"));
    int32_t x = add_input(g, "x", "NCHW", 4, DIMS(1, 3, 2, 2));
    int32_t a = add_conv(g, "a", x, add_weight(g, "w_a", "OIHW", 4, DIMS(2, 3, 1, 1)));
    int32_t b = add_conv(g, "b", x, add_weight(g, "w_b", "OIHW", 4, DIMS(2, 3, 1, 1)));
    int32_t c = add_conv(g, "c", x, add_weight(g, "w_c", "OIHW", 4, DIMS(2, 3, 1, 1)));
    int32_t d = add_unary(g, MSC_OP_RELU, "d", x);
    assert_ok(msc_graph_set_outputs(g, 4, IDS(a, b, c, d)));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static struct msc_edit make_edit(int32_t bits, int32_t low, int32_t high, int32_t axis, int32_t n,
                                 const float scales[], const int32_t zero_points[]) {
    return msc_edit_quantize((struct msc_quant){.bits = bits,
                                                .low = low,
                                                .high = high,
                                                .axis = axis,
                                                .n = n,
                                                .scales = scales,
                                                .zero_points = zero_points});
}

static int32_t slot_of(const struct msc_sites *sites, const struct msc_graph *g, const char *joint,
                       int32_t operand) {
    int32_t slot = msc_sites_find_slot(sites, msc_graph_find_joint(g, joint), operand);
    assert_int_not_equal(slot, MSC_NO_ID);
    return slot;
}

static void test_graph_onnx_export__activations(void **state) {
    (void)state;
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, &(struct msc_site_scheme){.by_use = true}));
    const struct msc_edit *edits[6] = {NULL};
    struct msc_edit full = make_edit(8, 0, 255, -1, 1, (const float[]){0.5f}, (const int32_t[]){3});
    struct msc_edit same = make_edit(8, 0, 255, -1, 1, (const float[]){0.5f}, (const int32_t[]){3});
    struct msc_edit narrow =
        make_edit(6, -32, 31, -1, 1, (const float[]){0.25f}, (const int32_t[]){-4});
    assert_int_equal(sites.n_slots, 6);
    edits[slot_of(&sites, g, "a", 0)] = &full;
    edits[slot_of(&sites, g, "b", 0)] = &same;
    edits[slot_of(&sites, g, "c", 0)] = &narrow;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    // Equal edits share a QDQ pair, another edit has its own pair, and the relu reads the float
    // value.
    assert_int_equal(count_nodes(model, "QuantizeLinear"), 2);
    assert_int_equal(count_nodes(model, "DequantizeLinear"), 2);
    const Onnx__NodeProto *a = find_node(model, "a"), *b = find_node(model, "b");
    const Onnx__NodeProto *c = find_node(model, "c");
    assert_string_equal(a->input[0], b->input[0]);
    assert_string_not_equal(a->input[0], c->input[0]);
    assert_string_equal(find_node(model, "d")->input[0], "x");
    assert_string_equal(a->input[1], "w_a");
    const Onnx__NodeProto *q = find_node(model, find_node(model, a->input[0])->input[0]);
    assert_string_equal(q->op_type, "QuantizeLinear");
    assert_string_equal(q->input[0], "x");
    check_bytes(model, q->input[2], MSC_ONNX_UINT8, 1, "\x03");
    // The third edit has 6 bits. The value is clipped to (-32 + 4) / 4 and (31 + 4) / 4, then
    // quantised to 8-bit integers.
    q = find_node(model, find_node(model, c->input[0])->input[0]);
    const Onnx__NodeProto *clip = find_node(model, q->input[0]);
    assert_string_equal(clip->op_type, "Clip");
    check_bytes(model, clip->input[1], MSC_ONNX_FLOAT, 4, (const float[]){-7.0f});
    check_bytes(model, clip->input[2], MSC_ONNX_FLOAT, 4, (const float[]){8.75f});
    check_bytes(model, q->input[2], MSC_ONNX_INT8, 1, "\xfc");
    msc_onnx_model_free(model);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

static void test_graph_onnx_export__weights(void **state) {
    (void)state;
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit *edits[6] = {NULL};
    // The rows 0 1 2 and 3 4 5, divided by 0.5 and 1, give 0 2 4 and 3 4 5.
    struct msc_edit byte =
        make_edit(8, -127, 127, 0, 2, (const float[]){0.5f, 1.0f}, (const int32_t[]){0, 0});
    // 0 ... 5 divided by 0.5 and clipped at 7 give 0 2 4 6 7 7, stored two per byte.
    struct msc_edit nibble =
        make_edit(4, -7, 7, -1, 1, (const float[]){0.5f}, (const int32_t[]){0});
    struct msc_edit wide =
        make_edit(12, 0, 4095, -1, 1, (const float[]){0.01f}, (const int32_t[]){5});
    edits[slot_of(&sites, g, "a", 1)] = &byte;
    edits[slot_of(&sites, g, "b", 1)] = &nibble;
    edits[slot_of(&sites, g, "c", 1)] = &wide;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    assert_int_equal(count_nodes(model, "QuantizeLinear"), 0);
    // Every use of the weight is edited, so the dequantised value takes the weight's name and no
    // float copy is left.
    assert_null(find_initializer(model, "w_a"));
    const Onnx__NodeProto *a = find_node(model, "w_a");
    assert_string_equal(a->op_type, "DequantizeLinear");
    assert_string_equal(a->attribute[0]->name, "axis");
    assert_int_equal(a->attribute[0]->i, 0);
    check_bytes(model, a->input[0], MSC_ONNX_INT8, 6, "\0\2\4\3\4\5");
    check_bytes(model, a->input[1], MSC_ONNX_FLOAT, 8, (const float[]){0.5f, 1.0f});
    const Onnx__NodeProto *b = find_node(model, "w_b");
    assert_int_equal(b->n_attribute, 0);
    check_bytes(model, b->input[0], MSC_ONNX_INT4, 3, "\x20\x64\x77");
    check_bytes(model, b->input[2], MSC_ONNX_INT4, 1, "\0");
    check_bytes(model, find_node(model, "w_c")->input[0], MSC_ONNX_UINT16, 12,
                (const uint16_t[]){5, 105, 205, 305, 405, 505});
    msc_onnx_model_free(model);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// Constant operands of Einsum are stored as integers, whatever the order of their axes.
static void test_graph_onnx_export__einsum_weights(void **state) {
    (void)state;
    static const char path[] =
        MSC_TESTS_FOLDER "/kernels/cases/test_fused_einsum_weights/model.onnx";
    struct msc_graph *g = load_file(path);
    struct msc_sites sites;
    const struct msc_edit *edits[64] = {NULL};
    struct msc_edit byte =
        make_edit(8, -127, 127, -1, 1, (const float[]){0.03125f}, (const int32_t[]){0});
    assert_ok(msc_sites_find(&sites, g, NULL));
    assert_in_range(sites.n_slots, 24, 64);
    for (int32_t i = 0; i < sites.n_slots; i++) {
        edits[i] = sites.slots[i].kind == MSC_SITE_WEIGHT ? &byte : NULL;
    }
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    assert_int_equal(count_nodes(model, "DequantizeLinear"), 12);
    assert_int_equal(count_nodes(model, "Einsum"), 0);
    for (int i = 0; i < 12; i++) {
        char name[8];
        snprintf(name, sizeof(name), "c%d", i);
        assert_null(find_initializer(model, name));
        const Onnx__TensorProto *codes = find_initializer(model, find_node(model, name)->input[0]);
        assert_non_null(codes);
        assert_int_equal(codes->data_type, MSC_ONNX_INT8);
    }
    msc_onnx_model_free(model);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// Weights quantised in blocks, as opset 21 defines them. If a block covers several axes, these axes
// are stored as one.
static void test_graph_onnx_export__groups(void **state) {
    (void)state;
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit *edits[6] = {NULL};
    struct msc_edit a = make_edit(4, -7, 7, 1, 4, (const float[]){0.5f, 1.0f, 1.0f, 1.0f},
                                  (const int32_t[]){0, 0, 0, 0});
    a.quant.group_size = 2;
    a.quant.group_axes = 1;
    struct msc_edit b = a;
    b.quant.group_axes = 3;
    msc_edit_seal(&a);
    msc_edit_seal(&b);
    // The scales have the shape of the stored blocks: [2, 2, 1, 1] for w_a and [2, 2] for w_b.
    edits[slot_of(&sites, g, "a", 1)] = &a;
    edits[slot_of(&sites, g, "b", 1)] = &b;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    const Onnx__NodeProto *blocks = find_node(model, "w_a");
    assert_string_equal(blocks->op_type, "DequantizeLinear");
    assert_string_equal(blocks->attribute[0]->name, "block_size");
    assert_int_equal(blocks->attribute[0]->i, 2);
    assert_int_equal(blocks->attribute[1]->i, 1);
    assert_int_equal(find_initializer(model, blocks->input[1])->n_dims, 4);
    // The weights 0 1 2 and 3 4 5, with scale 0.5 for the first two, give 0 2 2 3 4 5, stored two
    // per byte.
    check_bytes(model, blocks->input[0], MSC_ONNX_INT4, 3, "\x20\x32\x54");
    const Onnx__NodeProto *shaped = find_node(model, "w_b");
    assert_string_equal(shaped->op_type, "Reshape");
    check_bytes(model, shaped->input[1], MSC_ONNX_INT64, 32, (const int64_t[]){2, 3, 1, 1});
    blocks = find_node(model, shaped->input[0]);
    const Onnx__TensorProto *stored = find_initializer(model, blocks->input[0]);
    const Onnx__TensorProto *scale = find_initializer(model, blocks->input[1]);
    assert_true(stored->n_dims == 2 && stored->dims[0] == 2 && stored->dims[1] == 3);
    assert_true(scale->n_dims == 2 && scale->dims[0] == 2 && scale->dims[1] == 2);
    check_bytes(model, blocks->input[0], MSC_ONNX_INT4, 3, "\x20\x32\x54");
    msc_onnx_model_free(model);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// Weights are stored in the edit's 16-bit float type, with a Cast to float32. Activations are
// clipped to the largest number of this type, then cast to this type and back. Without the Clip,
// ONNX Runtime's Cast turns 3.4e38 into infinity. With the Clip, the result is 3.3895314e38.
static void test_graph_onnx_export__float_types(void **state) {
    (void)state;
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit *edits[6] = {NULL};
    struct msc_edit f16 = msc_edit_quantize(msc_quant_of_float(MSC_DTYPE_F16));
    struct msc_edit bf16 = msc_edit_quantize(msc_quant_of_float(MSC_DTYPE_BF16));
    edits[slot_of(&sites, g, "a", 1)] = &f16;
    edits[slot_of(&sites, g, "b", 1)] = &bf16;
    edits[slot_of(&sites, g, "a", 0)] = &f16;
    edits[slot_of(&sites, g, "b", 0)] = &bf16;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    assert_null(find_initializer(model, "w_a"));
    const Onnx__NodeProto *a = find_node(model, "w_a");
    assert_string_equal(a->op_type, "Cast");
    assert_int_equal(a->attribute[0]->i, MSC_ONNX_FLOAT);
    // 0 1 2 3 4 5 as float16 and as bfloat16.
    check_bytes(model, a->input[0], MSC_ONNX_FLOAT16, 12,
                (const uint16_t[]){0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500});
    check_bytes(model, find_node(model, "w_b")->input[0], MSC_ONNX_BFLOAT16, 12,
                (const uint16_t[]){0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0});
    const Onnx__NodeProto *back = find_node(model, find_node(model, "a")->input[0]);
    assert_string_equal(back->op_type, "Cast");
    const Onnx__NodeProto *there = find_node(model, back->input[0]);
    assert_int_equal(there->attribute[0]->i, MSC_ONNX_FLOAT16);
    const Onnx__NodeProto *clipped = find_node(model, there->input[0]);
    assert_string_equal(clipped->op_type, "Clip");
    check_bytes(model, clipped->input[2], MSC_ONNX_FLOAT, 4, (const float[]){65504.0f});
    back = find_node(model, find_node(model, "b")->input[0]);
    there = find_node(model, back->input[0]);
    assert_int_equal(there->attribute[0]->i, MSC_ONNX_BFLOAT16);
    clipped = find_node(model, there->input[0]);
    assert_string_equal(clipped->op_type, "Clip");
    assert_string_equal(clipped->input[0], "x");
    check_bytes(model, clipped->input[1], MSC_ONNX_FLOAT, 4, (const float[]){-3.3895314e38f});
    check_bytes(model, clipped->input[2], MSC_ONNX_FLOAT, 4, (const float[]){3.3895314e38f});
    msc_onnx_model_free(model);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// If one joint reads a weight as floats and another joint reads it quantised, the weight is stored
// in both forms.
static void test_graph_onnx_export__weight_in_both_forms(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MODEL("shared"));
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit **edits = msc_alloc_zero((size_t)sites.n_slots, sizeof(*edits));
    struct msc_edit q = make_edit(8, -127, 127, -1, 1, (const float[]){0.1f}, (const int32_t[]){0});
    edits[slot_of(&sites, g, "second", 1)] = &q;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    assert_non_null(find_initializer(model, "w"));
    assert_string_equal(find_node(model, "a")->input[1], "w");
    const Onnx__NodeProto *second = find_node(model, "b");
    assert_string_equal(second->input[1], "w_dequantized");
    assert_string_equal(find_node(model, "w_dequantized")->op_type, "DequantizeLinear");
    msc_onnx_model_free(model);
    msc_free(edits);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

// A mask is exported as a Mul before the consumer, followed by a QDQ pair if the edit also
// quantises. If a weight has a replacement, the replacement's elements are stored.
static void test_graph_onnx_export__masks_and_replaced(void **state) {
    (void)state;
    static const bool kept[3] = {true, false, true};
    static const float elements[6] = {6, 7, 8, 9, 10, 11};
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    struct msc_array *other;
    assert_ok(msc_sites_find(&sites, g, NULL));
    assert_ok(msc_array_create_from(&other, MSC_DTYPE_F32, 4, DIMS(2, 3, 1, 1), elements));
    const struct msc_edit *edits[6] = {NULL};
    struct msc_edit byte = make_edit(8, 0, 255, -1, 1, (const float[]){0.5f}, (const int32_t[]){3});
    struct msc_edit mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 3, kept}};
    struct msc_edit both = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 3, kept}, .next = &byte};
    struct msc_edit replace = {.kind = MSC_EDIT_REPLACE, .elements = other};
    struct msc_edit some = {.kind = MSC_EDIT_REPLACE, .elements = other, .next = &mask};
    msc_edit_seal(&mask);
    msc_edit_seal(&both);
    msc_edit_seal(&replace);
    msc_edit_seal(&some);
    edits[slot_of(&sites, g, "a", 0)] = &mask;
    edits[slot_of(&sites, g, "b", 0)] = &both;
    edits[slot_of(&sites, g, "a", 1)] = &replace;
    edits[slot_of(&sites, g, "b", 1)] = &some;
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    Onnx__ModelProto *model = save_and_read(g, &options);
    const Onnx__NodeProto *a = find_node(model, "a"), *b = find_node(model, "b");
    const Onnx__NodeProto *mul = find_node(model, a->input[0]);
    assert_string_equal(mul->op_type, "Mul");
    assert_string_equal(mul->input[0], "x");
    assert_int_equal(find_initializer(model, mul->input[1])->n_dims, 3);
    check_bytes(model, mul->input[1], MSC_ONNX_FLOAT, 12, (const float[]){1, 0, 1});
    const Onnx__NodeProto *back = find_node(model, b->input[0]);
    assert_string_equal(back->op_type, "DequantizeLinear");
    mul = find_node(model, find_node(model, back->input[0])->input[0]);
    assert_string_equal(mul->op_type, "Mul");
    assert_string_equal(find_node(model, "c")->input[0], "x");
    assert_string_equal(a->input[1], "w_a");
    check_bytes(model, "w_a", MSC_ONNX_FLOAT, 24, elements);
    assert_string_equal(b->input[1], "w_b");
    check_bytes(model, "w_b", MSC_ONNX_FLOAT, 24, (const float[]){6, 0, 8, 9, 0, 11});
    msc_onnx_model_free(model);
    // An edit that does not fit is reported, and no file is written.
    mask.mask.n = 2;
    unlink(scratch);
    assert_int_equal(msc_onnx_save(g, scratch, &options), MSC_E_INVALID);
    assert_message("tensor x:0: a mask of 2 channels along axis 1 does not fit shape [1,3,2,2]");
    assert_false(msc_file_exists(scratch));
    msc_array_release(other);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

static bool has_attribute(const Onnx__NodeProto *node, const char *name) {
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(node->attribute[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

// ONNX Runtime's AveragePool on bytes refuses the attribute dilations, whatever its value.
static void test_graph_onnx_export__dilations(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MORE("quantized_average"));
    Onnx__ModelProto *model = save_and_read(g, NULL);
    const Onnx__NodeProto *pool = find_node(model, "p");
    assert_string_equal(pool->op_type, "AveragePool");
    assert_false(has_attribute(pool, "dilations"));
    msc_onnx_model_free(model);
    msc_graph_destroy(g);
    g = load_file(MSC_TESTS_MORE("pad_infinite_dilated"));
    model = save_and_read(g, NULL);
    assert_true(has_attribute(find_node(model, "y"), "dilations"));
    msc_onnx_model_free(model);
    msc_graph_destroy(g);
}

// Opset 21 expects scale and bias per channel, so a value per group is repeated for all channels of
// the group.
static void test_graph_onnx_export__groups_of_channels(void **state) {
    (void)state;
    struct msc_graph *g = load_file(MSC_TESTS_MORE("group_norm_18"));
    Onnx__ModelProto *model = save_and_read(g, NULL);
    const Onnx__NodeProto *norm = find_node(model, "y");
    for (int i = 1; i < 3; i++) {
        const Onnx__NodeProto *flat = find_node(model, norm->input[i]);
        const Onnx__NodeProto *wide = find_node(model, flat->input[0]);
        assert_string_equal(wide->op_type, "Expand");
        check_bytes(model, wide->input[1], MSC_ONNX_INT64, 16, (const int64_t[]){2, 3});
    }
    msc_onnx_model_free(model);
    msc_graph_destroy(g);
    g = load_file(MSC_TESTS_MORE("group_norm_18_channels"));
    model = save_and_read(g, NULL);
    assert_int_equal(model->graph->n_node, 1);
    msc_onnx_model_free(model);
    msc_graph_destroy(g);
}

static void test_graph_onnx_export__errors(void **state) {
    (void)state;
    struct msc_graph *g = fan_out();
    struct msc_sites sites;
    assert_ok(msc_sites_find(&sites, g, NULL));
    const struct msc_edit *edits[6] = {NULL};
    struct msc_edit off =
        make_edit(8, 0, 255, -1, 1, (const float[]){0.5f}, (const int32_t[]){300});
    struct msc_edit huge =
        make_edit(16, -40000, 10, -1, 1, (const float[]){0.5f}, (const int32_t[]){0});
    struct msc_onnx_export_options options = {.sites = &sites, .slot_edits = edits};
    unlink(scratch);
    edits[slot_of(&sites, g, "a", 0)] = &off;
    assert_int_equal(msc_onnx_save(g, scratch, &options), MSC_E_INVALID);
    assert_message("joint 'a': zero point 300 of 'x' is not in 0 to 255");
    edits[slot_of(&sites, g, "a", 0)] = &huge;
    assert_int_equal(msc_onnx_save(g, scratch, &options), MSC_E_UNSUPPORTED);
    assert_message("no integer type of ONNX");
    assert_false(msc_file_exists(scratch));
    assert_int_not_equal(msc_onnx_save(g, "/nowhere/at/all.onnx", NULL), MSC_OK);
    assert_message("/nowhere/at/all.onnx");
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
    const struct msc_attr layout[] = {{"data_layout", "NHWC"}, {"out_layout", "NHWC"}};
    assert_ok(msc_graph_create(&g, "nhwc"));
    struct msc_weight_spec w = {"weight", add_weight(g, "w", "OIHW", 4, DIMS(2, 3, 1, 1))};
    int32_t y = add_joint(g, &(struct msc_joint_spec){
                                 .op = MSC_OP_CONV2D,
                                 .name = "conv",
                                 .n_inputs = 1,
                                 .inputs = IDS(add_input(g, "x", "NHWC", 4, DIMS(1, 2, 2, 3))),
                                 .n_weights = 1,
                                 .weights = &w,
                                 .n_attrs = 2,
                                 .attrs = layout,
                             });
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    assert_int_equal(msc_onnx_save(g, scratch, NULL), MSC_E_UNSUPPORTED);
    assert_message("joint 'conv': ONNX has no equivalent of nn.conv2d with data_layout 'NHWC'");
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_export__round_trip),
        cmocka_unit_test(test_graph_onnx_export__header),
        cmocka_unit_test(test_graph_onnx_export__activations),
        cmocka_unit_test(test_graph_onnx_export__weights),
        cmocka_unit_test(test_graph_onnx_export__einsum_weights),
        cmocka_unit_test(test_graph_onnx_export__groups),
        cmocka_unit_test(test_graph_onnx_export__float_types),
        cmocka_unit_test(test_graph_onnx_export__weight_in_both_forms),
        cmocka_unit_test(test_graph_onnx_export__masks_and_replaced),
        cmocka_unit_test(test_graph_onnx_export__dilations),
        cmocka_unit_test(test_graph_onnx_export__groups_of_channels),
        cmocka_unit_test(test_graph_onnx_export__errors),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
