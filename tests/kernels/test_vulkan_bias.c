// Biases on the cpu and vulkan backends, either rounded to the step of integer sums or not. The
// vulkan backend is tested with every method by which it multiplies integers. Expected results come
// from bias_case.h. Skipped if there is no Vulkan device.
#include "kernels/engine/evaluator.h"
#include "kernels/vulkan/vk_conv_gemm.h"
#include "kernels/vulkan/vk_pipeline.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/kernels/bias_case.h"
#include "tests/kernels/vulkan_kept.h"

#include <stdio.h>
#include <stdlib.h>

static struct bias_case bench;
static float found[BIAS_TRIALS][BIAS_MAX_Y];

// ---- Running ----------------------------------------------------------------------------------

static enum msc_status keep(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    const int *first = payload;
    (void)batch;
    assert_int_equal(msc_view_n_elements(&values[0]), bias_count_y(bench.shape));
    memcpy(found[(size_t)*first + trial], values[0].data,
           (size_t)bias_count_y(bench.shape) * sizeof(float));
    return MSC_OK;
}

static void check_trial(int index, const char *where) {
    const float *y = found[index], *expected = bench.trials[index].expected;
    for (int64_t i = 0; i < bias_count_y(bench.shape); i++) {
        if (memcmp(&y[i], &expected[i], sizeof(float)) != 0) {
            print_error("%s, %s, input %d, weight %d, bias %d, element %d: %.9g, expected %.9g\n",
                        where, bench.shape->name, index / BIAS_KINDS / BIAS_WEIGHTS,
                        index / BIAS_KINDS % BIAS_WEIGHTS, index % BIAS_KINDS, (int)i, (double)y[i],
                        (double)expected[i]);
            fail();
        }
    }
}

static struct msc_evaluator *open_evaluator(struct msc_backend *b, struct msc_dataset **data) {
    const struct bias_shape *s = bench.shape;
    bool is_linear = s->op == MSC_OP_LINEAR_BIAS;
    struct msc_input_spec spec = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = is_linear ? 2 : 4,
                                  .dims = {s->n, s->in, s->height, s->width}};
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev;
    int32_t wanted = msc_graph_output(bench.g, 0);
    options.backend = b;
    assert_ok(msc_dataset_create_whole(data, &spec, (const struct msc_array *const[]){bench.x}, 1));
    assert_ok(msc_evaluator_create(&ev, bench.g, *data, &wanted, 1, &options));
    assert_int_equal(msc_evaluator_sites(ev)->n_slots, 3);
    return ev;
}

static void run(struct msc_evaluator *ev, int first, int n) {
    struct msc_eval_trial trials[BIAS_TRIALS] = {{.edits = NULL}};
    const struct msc_sink sink = {.batch = keep, .payload = &first};
    for (int i = 0; i < n; i++) {
        trials[i].edits = bench.trials[first + i].slots;
    }
    assert_ok(msc_evaluator_run(ev, trials, (size_t)n, &sink, MSC_EVAL_FRESH));
    for (int i = 0; i < n; i++) {
        assert_string_equal(trials[i].message, "");
    }
}

// ---- Dispatches and packs ---------------------------------------------------------------------

static PFN_vkCmdDispatch dispatch_of_device;
static int n_dispatches;

static VKAPI_ATTR void VKAPI_CALL count_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                                 uint32_t z) {
    n_dispatches++;
    dispatch_of_device(commands, x, y, z);
}

static int count_run(struct msc_evaluator *ev, int trial) {
    n_dispatches = 0;
    run(ev, trial, 1);
    return n_dispatches;
}

// A bias that is added to the integer sums needs no additional dispatch.
static void check_dispatches(struct msc_evaluator *ev) {
    for (int i = 0; i < BIAS_TRIALS; i += BIAS_KINDS) {
        int usual = count_run(ev, i + BIAS_FLOAT);
        assert_true(usual > 0);
        assert_int_equal(count_run(ev, i + BIAS_SMALL), usual);
        assert_int_equal(count_run(ev, i + BIAS_LARGEST), usual);
    }
}

// The weight is quantised once, when it is packed, and not again when it is multiplied.
static void check_packs(struct msc_evaluator *ev, struct msc_backend *b) {
    const struct msc_plan *plan = msc_evaluator_plan(ev, 0);
    const struct msc_step *step = NULL;
    for (int i = 0; i < plan->n_steps && !step; i++) {
        step = plan->steps[i].n_joints > 0 ? &plan->steps[i] : NULL;
    }
    assert_non_null(step);
    for (int i = 0; i < BIAS_TRIALS; i++) {
        const struct bias_trial *t = &bench.trials[i];
        struct msc_view in = msc_plan_view(plan, step->inputs[0], NULL);
        struct msc_view out = msc_plan_view(plan, step->outputs[0], NULL);
        void *packed;
        size_t n_bytes;
        int n_packs = 0;
        in.quant = &t->x_edit.quant;
        in.dtype = msc_quant_dtype(in.quant);
        in.data = b->def->allocate(b, msc_view_n_bytes(&in));
        out.data = b->def->allocate(b, msc_view_n_bytes(&out));
        assert_true(in.data && out.data);
        assert_ok(b->def->weights(b, step, &t->slots[1], &packed, &n_bytes));
        const struct msc_call call = {.inputs = &in, .outputs = &out, .weights = packed};
        assert_ok(b->def->run(b, step, &call, 1, 0));
        for (int kind = 0; kind < MSC_VK_PACK_KINDS; kind++) {
            n_packs += ((const struct msc_vk_variant *)packed)->packs[kind].weight != NULL;
        }
        assert_int_equal(n_packs, 1);
        b->def->release_weights(b, step, packed);
        b->def->release_memory(b, in.data, msc_view_n_bytes(&in));
        b->def->release_memory(b, out.data, msc_view_n_bytes(&out));
    }
}

static bool has_run(const struct msc_vk *vk, enum msc_vk_shader shader) {
    for (size_t i = 0; i < vk->n_pipelines; i++) {
        if (vk->pipelines[i]->shader == shader) {
            return true;
        }
    }
    return false;
}

// ---- Tests ------------------------------------------------------------------------------------

static void check_shape(const struct bias_shape *s, struct msc_backend *b, const char *where) {
    struct msc_dataset *data;
    bias_case_init(&bench, s);
    struct msc_evaluator *ev = open_evaluator(b, &data);
    run(ev, 0, BIAS_TRIALS);
    for (int i = 0; i < BIAS_TRIALS; i++) {
        check_trial(i, where);
    }
    if (b->def == &msc_backend_vulkan) {
        check_dispatches(ev);
        check_packs(ev, b);
    }
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    bias_case_finish(&bench);
}

// `dot` is the value of MSC_VULKAN_DOT, `matrix` that of MSC_VULKAN_MATRIX.
static void check_device(const char *family, const char *dot, const char *matrix) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    char where[60];
    skip_without_device();
    setenv("MSC_VULKAN_FAMILY", family, 1);
    setenv("MSC_VULKAN_DOT", dot, 1);
    setenv("MSC_VULKAN_MATRIX", matrix, 1);
    enum msc_status status = msc_backend_open(&b, "vulkan", &o);
    unsetenv("MSC_VULKAN_FAMILY");
    unsetenv("MSC_VULKAN_DOT");
    unsetenv("MSC_VULKAN_MATRIX");
    assert_ok(status);
    struct msc_vk *vk = msc_vk_from(b)->vk;
    if (strcmp(matrix, "1") == 0 && !vk->has_matrix) {
        msc_backend_close(b);
        skip();
    }
    snprintf(where, sizeof(where), "family %s, dot %s, matrix %s", family, dot, matrix);
    dispatch_of_device = vk->api.vkCmdDispatch;
    vk->api.vkCmdDispatch = count_dispatch;
    for (int i = 0; i < BIAS_LONG_SUMS; i++) {
        check_shape(&bias_shapes[i], b, where);
    }
    bool is_g = !vk->tuning.is_family_u;
    assert_int_equal(has_run(vk, MSC_VK_CONV_MATRIX), is_g && vk->has_matrix);
    assert_int_equal(has_run(vk, MSC_VK_CONV_G_DOT), is_g && vk->has_dot && !vk->has_matrix);
    assert_int_equal(has_run(vk, MSC_VK_CONV_G_INT),
                     is_g && vk->prefers_int && !vk->has_dot && !vk->has_matrix);
    assert_false(has_run(vk, MSC_VK_DIGITS));
    check_shape(&bias_shapes[BIAS_LONG_SUMS], b, where);
    vk->api.vkCmdDispatch = dispatch_of_device;
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

static void test_kernels_vulkan_bias__floats(void **state) {
    (void)state;
    check_device("g", "0", "0");
}

static void test_kernels_vulkan_bias__instruction(void **state) {
    (void)state;
    check_device("g", "1", "0");
}

static void test_kernels_vulkan_bias__integers(void **state) {
    (void)state;
    check_device("g", "emulate", "0");
}

static void test_kernels_vulkan_bias__matrices(void **state) {
    (void)state;
    check_device("g", "0", "1");
}

static void test_kernels_vulkan_bias__software(void **state) {
    (void)state;
    check_device("u", "1", "0");
}

static void test_kernels_vulkan_bias__cpu(void **state) {
    (void)state;
    for (int allow_int8 = 0; allow_int8 < 2; allow_int8++) {
        struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
        struct msc_backend *b;
        o.allow_int8 = allow_int8 == 1;
        assert_ok(msc_backend_open(&b, "cpu", &o));
        for (int i = 0; i < BIAS_SHAPES; i++) {
            check_shape(&bias_shapes[i], b, "cpu");
        }
        msc_backend_close(b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_bias__cpu),
        cmocka_unit_test(test_kernels_vulkan_bias__floats),
        cmocka_unit_test(test_kernels_vulkan_bias__instruction),
        cmocka_unit_test(test_kernels_vulkan_bias__integers),
        cmocka_unit_test(test_kernels_vulkan_bias__matrices),
        cmocka_unit_test(test_kernels_vulkan_bias__software),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}
