// Edits: bias rounding, channel masks and chains of edits, their hashes, and which edits fit which
// slots. Expected values come from numpy.
#include "graph/edit.h"

#include "tests/graph/onnx_files.h"

#include <string.h>

// ---- Values -----------------------------------------------------------------------------------

// Expected values from numpy 1.24 in float32: q = clip(rint(b / step), -2^31, 2^31 - 1), b' =
// float32(q) * step.
static const struct {
    float bias, step;
    int32_t q;
    float rounded;
} biases[] = {
    {0x1.99999ap-4f, 0x1p-1f, 0, 0.0f},
    {-0x1p-2f, 0x1p-1f, 0, 0.0f},
    {0x1.8p-1f, 0x1p-1f, 2, 1.0f},
    {0x1.4p+0f, 0x1p-1f, 2, 1.0f},
    {-0x1.cp+0f, 0x1p-1f, -4, -2.0f},
    {0x1.65a0bcp+31f, 0x1p+0f, INT32_MAX, 0x1p+31f},
    {-0x1.65a0bcp+31f, 0x1p+0f, INT32_MIN, -0x1p+31f},
    {0x1.0624dep-10f, 0x1.333334p-2f, 0, 0.0f},
    {0x1.e240b4p+16f, 0x1.a36e2ep-14f, 1234567040, 0x1.e240b4p+16f},
    {0x1.eccccp+2f, 0x1.930bep-7f, 626, 0x1.ecc984p+2f},
};
enum { N_BIASES = sizeof(biases) / sizeof(biases[0]) };

static struct msc_array *array_of(int n_dims, const int64_t dims[], const float values[]) {
    struct msc_array *a;
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, n_dims, dims, values));
    return a;
}

static void check_apply(const struct msc_array *x, const struct msc_edit *e,
                        const float expected[]) {
    struct msc_array *y;
    assert_ok(msc_edit_apply(&y, x, e));
    assert_int_equal(msc_array_n_elements(y), msc_array_n_elements(x));
    assert_memory_equal(msc_array_data(y), expected, msc_array_n_bytes(x));
    msc_array_release(y);
}

static void test_graph_edit__round_bias(void **state) {
    float values[N_BIASES], steps[N_BIASES], rounded[N_BIASES];
    const int64_t n = N_BIASES;
    (void)state;
    for (int i = 0; i < N_BIASES; i++) {
        values[i] = biases[i].bias;
        steps[i] = biases[i].step;
        rounded[i] = biases[i].rounded;
        assert_int_equal(msc_bias_round(values[i], steps[i]), biases[i].q);
    }
    struct msc_array *b = array_of(1, &n, values);
    struct msc_edit e = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = N_BIASES, .steps = steps}};
    msc_edit_seal(&e);
    check_apply(b, &e, rounded);
    msc_array_release(b);
    // One step for all elements of two rows: 0.7 / 0.25 = 2.8 rounds to 3.
    struct msc_array *rows = array_of(2, DIMS(2, 2), (const float[]){0.7f, -0.7f, 0.1f, 0.125f});
    e.rounding = (struct msc_bias_rounding){.n = 1, .steps = (const float[]){0.25f}};
    check_apply(rows, &e, (const float[]){0.75f, -0.75f, 0.0f, 0.0f});
    // One step per index of the last axis.
    e.rounding = (struct msc_bias_rounding){.n = 2, .steps = (const float[]){0.25f, 0.5f}};
    check_apply(rows, &e, (const float[]){0.75f, -0.5f, 0.0f, 0.0f});
    // A shift of 0.4 is added first: the sums 1.1, -0.3, 0.5 and 0.525 round to 4, -1, 2 and 1
    // steps.
    e.rounding.shift = 0.4f;
    check_apply(rows, &e, (const float[]){1.0f - 0.4f, -0.5f - 0.4f, 0.5f - 0.4f, 0.5f - 0.4f});
    msc_array_release(rows);
}

static const bool kept[3] = {true, false, true};

static void test_graph_edit__keep_channels(void **state) {
    static const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct msc_edit e = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 3, kept}};
    (void)state;
    struct msc_array *first = array_of(2, DIMS(3, 4), x), *last = array_of(2, DIMS(4, 3), x);
    check_apply(first, &e, (const float[]){1, 2, 3, 4, 0, 0, 0, 0, 9, 10, 11, 12});
    e.mask.axis = 1;
    check_apply(last, &e, (const float[]){1, 0, 3, 4, 0, 6, 7, 0, 9, 10, 0, 12});
    struct msc_array *middle = array_of(3, DIMS(2, 3, 2), x);
    check_apply(middle, &e, (const float[]){1, 2, 0, 0, 5, 6, 7, 8, 0, 0, 11, 12});
    msc_array_release(first);
    msc_array_release(last);
    msc_array_release(middle);
}

// 8 bits with step 0.5 and zero point 10. A masked element becomes the zero point, which represents
// 0.
static struct msc_edit quantise(void) {
    static const float scale = 0.5f;
    static const int32_t zero = 10;
    return msc_edit_quantize((struct msc_quant){.bits = 8,
                                                .low = 0,
                                                .high = 255,
                                                .axis = -1,
                                                .n = 1,
                                                .scales = &scale,
                                                .zero_points = &zero});
}

static void test_graph_edit__chains(void **state) {
    (void)state;
    struct msc_array *x = array_of(1, DIMS(3), (const float[]){9, 9, 9});
    struct msc_array *other = array_of(1, DIMS(3), (const float[]){0.6f, 5, -20});
    struct msc_edit quant = quantise();
    struct msc_edit mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 3, kept}, .next = &quant};
    msc_edit_seal(&mask);
    struct msc_edit replace = {.kind = MSC_EDIT_REPLACE, .elements = other, .next = &mask};
    msc_edit_seal(&replace);
    check_apply(x, &replace, (const float[]){0.5f, 0, -5});
    struct msc_array *elements;
    assert_ok(msc_edit_elements(&elements, x, &replace));
    assert_memory_equal(msc_array_data(elements), ((const float[]){0.6f, 0, -20}), 12);
    msc_array_release(elements);
    assert_ptr_equal(msc_edit_quant(&replace), &quant.quant);
    assert_null(msc_edit_rounding(&replace));
    // No edit before the quantisation changes elements, so the array itself is returned.
    assert_ok(msc_edit_elements(&elements, x, &quant));
    assert_ptr_equal(elements, x);
    msc_array_release(elements);
    struct msc_edit round = {.kind = MSC_EDIT_ROUND_BIAS,
                             .rounding = {.n = 1, .steps = (const float[]){0.25f}}};
    msc_edit_seal(&round);
    replace.next = &round;
    check_apply(x, &replace, (const float[]){0.5f, 5, -20});
    assert_ptr_equal(msc_edit_rounding(&replace), &round.rounding);
    assert_null(msc_edit_quant(&replace));
    assert_null(msc_edit_quant(NULL));
    msc_array_release(x);
    msc_array_release(other);
}

static struct msc_hash sealed(struct msc_edit e) {
    msc_edit_seal(&e);
    return e.hash;
}

// Equal edits have equal hashes. The hash covers all edits of a chain, and a single quantisation
// has the hash of its parameters.
static void test_graph_edit__hash(void **state) {
    (void)state;
    struct msc_edit quant = quantise();
    assert_true(msc_hash_equal(quant.hash, quant.quant.hash));
    bool copy[3] = {true, false, true};
    struct msc_edit a = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 3, kept}};
    struct msc_edit b = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 3, copy}};
    assert_true(msc_hash_equal(sealed(a), sealed(b)));
    b.next = &quant;
    assert_false(msc_hash_equal(sealed(a), sealed(b)));
    copy[2] = false;
    b.next = NULL;
    assert_false(msc_hash_equal(sealed(a), sealed(b)));
    struct msc_array *x = array_of(1, DIMS(2), (const float[]){1, 2});
    struct msc_array *y = array_of(1, DIMS(2), (const float[]){1, 2});
    struct msc_array *z = array_of(1, DIMS(2), (const float[]){1, 3});
    struct msc_edit r[3] = {{.kind = MSC_EDIT_REPLACE, .elements = x},
                            {.kind = MSC_EDIT_REPLACE, .elements = y},
                            {.kind = MSC_EDIT_REPLACE, .elements = z}};
    assert_true(msc_hash_equal(sealed(r[0]), sealed(r[1])));
    assert_false(msc_hash_equal(sealed(r[0]), sealed(r[2])));
    struct msc_edit s = {.kind = MSC_EDIT_ROUND_BIAS,
                         .rounding = {.n = 1, .steps = (const float[]){0.25f}}};
    struct msc_edit t = {.kind = MSC_EDIT_ROUND_BIAS,
                         .rounding = {.n = 1, .steps = (const float[]){0.5f}}};
    assert_false(msc_hash_equal(sealed(s), sealed(t)));
    msc_array_release(x);
    msc_array_release(y);
    msc_array_release(z);
}

// ---- Slots ------------------------------------------------------------------------------------

// x [1, 3, 2, 2], convolved with a weight [2, 3, 1, 1] and a bias [2].
static struct msc_graph *biased(struct msc_sites *sites) {
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "biased"));
    struct msc_weight_spec weights[2] = {
        {"weight", add_weight(g, "w", "OIHW", 4, DIMS(2, 3, 1, 1))},
        {"bias", add_weight(g, "b", "O", 1, DIMS(2))}};
    int32_t y = add_joint(g, &(struct msc_joint_spec){
                                 .op = MSC_OP_CONV2D_BIAS,
                                 .name = "conv",
                                 .n_inputs = 1,
                                 .inputs = IDS(add_input(g, "x", "NCHW", 4, DIMS(1, 3, 2, 2))),
                                 .n_weights = 2,
                                 .weights = weights,
                             });
    assert_ok(msc_graph_set_outputs(g, 1, &y));
    assert_ok(msc_graph_finalize(g));
    assert_ok(msc_sites_find(sites, g, NULL));
    return g;
}

// The slot of a bias comes after all other slots and belongs to no site.
static void test_graph_edit__bias_slots(void **state) {
    (void)state;
    struct msc_sites sites;
    struct msc_graph *g = biased(&sites);
    assert_int_equal(sites.n_sites, 2);
    assert_int_equal(sites.n_site_slots, 2);
    assert_int_equal(sites.n_slots, 3);
    assert_int_equal(sites.slots[2].kind, MSC_SITE_BIAS);
    assert_string_equal(msc_graph_tensor(g, sites.slots[2].tensor)->name, "b");
    int32_t conv = msc_graph_find_joint(g, "conv");
    assert_int_equal(msc_sites_find_slot(&sites, conv, 0), 0);
    assert_int_equal(msc_sites_find_slot(&sites, conv, 1), 1);
    assert_int_equal(msc_sites_find_slot(&sites, conv, 2), 2);
    assert_int_equal(msc_sites_find_slot(&sites, conv, 3), MSC_NO_ID);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

static void test_graph_edit__check(void **state) {
    (void)state;
    struct msc_sites sites;
    struct msc_graph *g = biased(&sites);
    struct msc_array *bytes;
    assert_ok(msc_array_create(&bytes, MSC_DTYPE_I8, 1, DIMS(2)));
    struct msc_array *two = array_of(1, DIMS(2), (const float[]){1, 2});
    struct msc_array *three = array_of(1, DIMS(3), (const float[]){1, 2, 3});
    static const float none[1] = {0}, step[1] = {1}, many[3] = {1, 1, 1};
    struct msc_edit quant = quantise();
    struct msc_edit mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 3, kept}};
    struct msc_edit short_mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 2, kept}};
    struct msc_edit far_mask = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {4, 3, kept}};
    struct msc_edit round = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 1, .steps = step}};
    struct msc_edit no_step = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 1, .steps = none}};
    struct msc_edit steps = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 3, .steps = many}};
    struct msc_edit fits = {.kind = MSC_EDIT_REPLACE, .elements = two, .next = &round};
    struct msc_edit longer = {.kind = MSC_EDIT_REPLACE, .elements = three};
    struct msc_edit others = {.kind = MSC_EDIT_REPLACE, .elements = bytes};
    struct msc_edit masked = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 3, kept}, .next = &quant};
    struct msc_edit twice = {.kind = MSC_EDIT_KEEP_CHANNELS, .mask = {1, 3, kept}, .next = &masked};
    struct msc_edit late = quant;
    late.next = &mask;
    struct msc_edit strange = {.kind = (enum msc_edit_kind)1000};
    struct msc_edit ahead = {.kind = MSC_EDIT_REPLACE, .elements = two, .next = &strange};
    const struct {
        const struct msc_edit *edit;
        int32_t slot; // operand: 0 is x, 1 is w, 2 is b
        const char *message;
    } rows[] = {
        {NULL, 0, NULL},
        {&twice, 0, NULL},
        {&twice, 1, NULL},
        {&fits, 2, NULL},
        {&short_mask, 0,
         "tensor x:0: a mask of 2 channels along axis 1 does not fit shape [1,3,2,2]"},
        {&far_mask, 0,
         "tensor x:0: a mask of 3 channels along axis 4 does not fit shape [1,3,2,2]"},
        {&longer, 2, "tensor b: its new elements are float32[3], expected float32[2]"},
        {&others, 2, "tensor b: its new elements are int8[2], expected float32[2]"},
        {&fits, 0, "tensor x:0 is an activation, which cannot be replaced"},
        {&round, 1, "tensor w is a weight, which cannot be rounded to int32"},
        {&quant, 2, "tensor b is a bias, which cannot be quantised"},
        {&no_step, 2, "bias b: step 0 of channel 0 is not a positive number"},
        {&steps, 2, "bias b: found 3 rounding steps, expected 1 or 2"},
        {&strange, 0, "tensor x:0: the edit has an unknown kind"},
        {&ahead, 2, "tensor b: the edit has an unknown kind"},
        {&late, 1, "tensor w is quantised before it is masked; order edits as replace, mask"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum msc_status status = msc_edit_check(rows[i].edit, g, &sites.slots[rows[i].slot]);
        assert_int_equal(status, rows[i].message == NULL ? MSC_OK : MSC_E_INVALID);
        if (rows[i].message != NULL) {
            assert_message(rows[i].message);
        }
    }
    msc_array_release(bytes);
    msc_array_release(two);
    msc_array_release(three);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_edit__round_bias),
        cmocka_unit_test(test_graph_edit__keep_channels),
        cmocka_unit_test(test_graph_edit__chains),
        cmocka_unit_test(test_graph_edit__hash),
        cmocka_unit_test(test_graph_edit__bias_slots),
        cmocka_unit_test(test_graph_edit__check),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
