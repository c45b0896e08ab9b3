// Weights of 2 to 7 bits, packed in exported files. Stored bytes are worked out by hand, and
// every width is read back.
#include "graph/onnx/onnx_file_internal.h"

#include "tests/graph/onnx_files.h"

#include "graph/edit.h"
#include "graph/packing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/msc_pack_%d.onnx", (int)getpid());
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    unlink(scratch);
    return 0;
}

enum { MAX_SLOTS = 4, MAX_SCALES = 8 };

// A 1 x 1 convolution whose weight [n / columns, columns, 1, 1] is the given integers times 0.5.
struct packed {
    struct msc_graph *g;
    struct msc_sites sites;
    const struct msc_edit *edits[MAX_SLOTS];
    struct msc_edit edit;
    float scales[MAX_SCALES];
    int32_t zero_points[MAX_SCALES];
};

static void make_packed(struct packed *p, const char *target, int32_t bits, bool is_signed,
                        int64_t n, int64_t columns, const int32_t values[]) {
    struct msc_array *data;
    int32_t w;
    *p = (struct packed){.g = NULL};
    assert_ok(msc_graph_create(&p->g, "packed"));
    int32_t x = add_input(p->g, "x", "NCHW", 4, DIMS(1, columns, 1, 1));
    assert_ok(msc_array_create(&data, MSC_DTYPE_F32, 4, DIMS(n / columns, columns, 1, 1)));
    for (int64_t i = 0; i < n; i++) {
        ((float *)msc_array_data(data))[i] = 0.5f * (float)values[i];
    }
    assert_ok(msc_graph_add_weight(&w, p->g, "w", NULL, "OIHW", data));
    msc_array_release(data);
    int32_t y = add_conv(p->g, "conv", x, w);
    assert_ok(msc_graph_set_outputs(p->g, 1, &y));
    assert_ok(msc_graph_finalize(p->g));
    const struct msc_site_scheme scheme = {.target = msc_target_find(target)};
    assert_ok(msc_sites_find(&p->sites, p->g, &scheme));
    assert_true(p->sites.n_slots <= MAX_SLOTS);
    for (int i = 0; i < MAX_SCALES; i++) {
        p->scales[i] = 0.5f;
    }
    p->edit = msc_edit_quantize(
        (struct msc_quant){.bits = bits,
                           .low = is_signed ? -(1 << (bits - 1)) : 0,
                           .high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1,
                           .axis = -1,
                           .n = 1,
                           .scales = p->scales,
                           .zero_points = p->zero_points});
}

static void export_packed(struct packed *p) {
    int32_t slot = msc_sites_find_slot(&p->sites, msc_graph_find_joint(p->g, "conv"), 1);
    msc_edit_seal(&p->edit);
    p->edits[slot] = &p->edit;
    const struct msc_onnx_export_options options = {.sites = &p->sites, .slot_edits = p->edits};
    assert_ok(msc_onnx_save(p->g, scratch, &options));
}

static void finish_packed(struct packed *p) {
    msc_sites_finish(&p->sites);
    msc_graph_destroy(p->g);
}

static int count(const Onnx__ModelProto *model, const char *op_type) {
    int n = 0;
    for (size_t i = 0; i < model->graph->n_node; i++) {
        n += strcmp(model->graph->node[i]->op_type, op_type) == 0;
    }
    return n;
}

static const Onnx__TensorProto *initializer(const Onnx__ModelProto *model, const char *name) {
    for (size_t i = 0; i < model->graph->n_initializer; i++) {
        if (strcmp(model->graph->initializer[i]->name, name) == 0) {
            return model->graph->initializer[i];
        }
    }
    print_error("no initialiser is '%s'\n", name);
    fail();
    return NULL;
}

// The weight read from the file equals the one written.
static void check_read_again(const int32_t values[], int64_t n) {
    struct msc_graph *g = load_file(scratch);
    const struct msc_tensor *w = weight_of(g, "conv", "weight");
    assert_int_equal(msc_array_n_elements(w->data), n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(((const float *)msc_array_data(w->data))[i] == 0.5f * (float)values[i]);
    }
    msc_graph_destroy(g);
}

// Fills `values` with all integers of this width, repeated.
static void fill_codes(int32_t values[], int64_t n, int32_t bits, bool is_signed) {
    int32_t n_codes = 1 << bits;
    for (int64_t i = 0; i < n; i++) {
        values[i] = (int32_t)(i * 5 % n_codes) - (is_signed ? n_codes / 2 : 0);
    }
}

// ---- Sizes ------------------------------------------------------------------------------------

// Packing costs 170 bytes of nodes for each part of the bits, plus 40 bytes. So 1520 integers need
// as many bytes packed to 6 bits (1140 bytes of data) as they need in 8 bits. The padding to a
// multiple of four elements is included.
static void test_graph_onnx_pack__sizes(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        int32_t bits, packed;
        int64_t n_bytes;
    } rows[] = {
        {1, 2, 4, 1},           {840, 2, 4, 420},        {844, 2, 2, 211},   {3040, 3, 4, 1520},
        {3048, 3, 3, 1143},     {100000, 4, 4, 50000},   {1520, 6, 8, 1520}, {1524, 6, 6, 1143},
        {1530, 6, 6, 1149},     {4400, 7, 8, 4400},      {4408, 7, 7, 3857}, {100000, 5, 5, 62500},
        {100000, 8, 8, 100000}, {100000, 9, 16, 200000}, {7, 16, 16, 14},    {0, 3, 4, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(msc_packed_bits(rows[i].n, rows[i].bits), rows[i].packed);
        assert_int_equal(msc_packed_bytes(rows[i].n, rows[i].bits), rows[i].n_bytes);
    }
}

// ---- Stored bytes -----------------------------------------------------------------------------

static void check_data(const Onnx__ModelProto *model, const char *name, enum msc_onnx_type type,
                       size_t n_bytes, const void *expected) {
    const Onnx__TensorProto *t = initializer(model, name);
    assert_int_equal(t->data_type, type);
    assert_int_equal(t->raw_data.len, n_bytes);
    assert_memory_equal(t->raw_data.data, expected, n_bytes);
}

// In 3 bits 1 is 001, -1 is 111, 3 is 011, -4 is 100 and 2 is 010. The low two bits of two integers
// make one 4-bit number, with the first integer in its low half: 0xd, 0x3, 0x2. Two of these
// numbers make a byte. The high bits 0, 1, 0, 1, 0 make 0xa.
static void test_graph_onnx_pack__parts(void **state) {
    (void)state;
    static const int32_t values[] = {1, -1, 3, -4, 2};
    struct packed p;
    Onnx__ModelProto *model;
    make_packed(&p, "generic", 3, true, 5, 1, values);
    export_packed(&p);
    assert_ok(msc_onnx_model_read(&model, scratch));
    check_data(model, "w_packed", MSC_ONNX_UINT4, 2, "\x3d\x02");
    check_data(model, "w_packed_1", MSC_ONNX_UINT4, 1, "\x0a");
    check_data(model, "bits_of", MSC_ONNX_INT8, 32,
               "\0\0\1\0\2\0\3\0\0\1\1\1\2\1\3\1\0\2\1\2\2\2\3\2\0\3\1\3\2\3\3\3");
    const Onnx__TensorProto *signs = initializer(model, "bits_of_1");
    assert_int_equal(signs->raw_data.len, 64);
    // The entry for 0xa in the table of high bits.
    assert_memory_equal(signs->raw_data.data + 40, "\0\xfc\0\xfc", 4);
    assert_int_equal(count(model, "Slice"), 1);
    msc_onnx_model_free(model);
    check_read_again(values, 5);
    finish_packed(&p);
}

// A weight for which packing would cost more than it saves is stored in the next wider ONNX type.
static void test_graph_onnx_pack__small_weights(void **state) {
    (void)state;
    static const struct {
        const char *target;
        int32_t bits;
        int64_t n;
        int n_tables, type;
    } rows[] = {
        {"generic", 6, 1280, 1, MSC_ONNX_UINT4},     {"generic", 4, 1280, 0, MSC_ONNX_INT4},
        {"generic", 8, 1280, 0, MSC_ONNX_INT8},      {"onnxruntime", 6, 1520, 0, MSC_ONNX_INT8},
        {"onnxruntime", 6, 1528, 1, MSC_ONNX_UINT4}, {"onnxruntime", 3, 1280, 0, MSC_ONNX_INT4},
    };
    int32_t values[1528];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct packed p;
        Onnx__ModelProto *model;
        fill_codes(values, rows[i].n, rows[i].bits, true);
        make_packed(&p, rows[i].target, rows[i].bits, true, rows[i].n, 8, values);
        export_packed(&p);
        assert_ok(msc_onnx_model_read(&model, scratch));
        assert_int_equal(count(model, "Gather"), rows[i].n_tables);
        const char *name = rows[i].n_tables > 0 ? "w_packed" : "w_quantized";
        assert_int_equal(initializer(model, name)->data_type, rows[i].type);
        msc_onnx_model_free(model);
        check_read_again(values, rows[i].n);
        finish_packed(&p);
    }
}

// ---- Reading back -----------------------------------------------------------------------------

static void test_graph_onnx_pack__every_width(void **state) {
    (void)state;
    static const char *const targets[] = {"generic", "onnxruntime"};
    enum { N = 3 * 1333 }; // the number of elements is not a multiple of 4
    int32_t values[N];
    for (int32_t bits = 2; bits <= 8; bits++) {
        for (int k = 0; k < 4; k++) {
            struct packed p;
            bool is_signed = k % 2 == 0;
            fill_codes(values, N, bits, is_signed);
            make_packed(&p, targets[k / 2], bits, is_signed, N, 3, values);
            export_packed(&p);
            check_read_again(values, N);
            finish_packed(&p);
        }
    }
}

// The weight is so large that constant folding refuses results of its size if they are larger than
// the operands.
static void test_graph_onnx_pack__many(void **state) {
    (void)state;
    enum { N = 1100000 };
    int32_t *values = test_malloc(N * sizeof(values[0]));
    struct packed p;
    fill_codes(values, N, 6, true);
    make_packed(&p, "generic", 6, true, N, 8, values);
    export_packed(&p);
    check_read_again(values, N);
    finish_packed(&p);
    test_free(values);
}

// Integers of up to 4 bits in blocks are stored as an int4 tensor, which DequantizeLinear reads.
// Zero points of 0 are left out.
static void test_graph_onnx_pack__groups(void **state) {
    (void)state;
    enum { N = 4 * 64 };
    int32_t values[N];
    for (int32_t bits = 2; bits <= 7; bits++) {
        struct packed p;
        Onnx__ModelProto *model;
        fill_codes(values, N, bits, true);
        make_packed(&p, "generic", bits, true, N, 64, values);
        p.edit.quant.axis = 1;
        p.edit.quant.group_size = 32;
        p.edit.quant.group_axes = 1;
        p.edit.quant.n = MAX_SCALES;
        export_packed(&p);
        assert_ok(msc_onnx_model_read(&model, scratch));
        static const int n_gathers[] = {[2] = 1, [3] = 2, [5] = 1, [6] = 1, [7] = 2};
        assert_int_equal(count(model, "Gather"), bits == 4 ? 0 : n_gathers[bits]);
        const Onnx__NodeProto *last = model->graph->node[model->graph->n_node - 3];
        assert_true(bits >= 4 || (last->attribute[0]->i == MSC_ONNX_INT4));
        for (size_t i = 0; i < model->graph->n_node; i++) {
            bool is_last = strcmp(model->graph->node[i]->op_type, "DequantizeLinear") == 0;
            assert_true(!is_last || model->graph->node[i]->n_input == 2);
        }
        msc_onnx_model_free(model);
        check_read_again(values, N);
        finish_packed(&p);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_pack__sizes),
        cmocka_unit_test(test_graph_onnx_pack__parts),
        cmocka_unit_test(test_graph_onnx_pack__small_weights),
        cmocka_unit_test(test_graph_onnx_pack__every_width),
        cmocka_unit_test(test_graph_onnx_pack__many),
        cmocka_unit_test(test_graph_onnx_pack__groups),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
