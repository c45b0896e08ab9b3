// Every allocation of planning, packing and running fails once: the n-th call returns NULL for n
// = 1, 2, ... until everything succeeds. Each failure must return MSC_E_NOMEM and leave nothing
// allocated. The linker redirects the library's allocation functions to this file.
#include "tests/kernels/cpu_case.h"

#include "base/alloc.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/planner.h"
#include "tests/short_memory.h"

// Memory of the values, allocated in advance.
enum { N_VALUES = 64, VALUE_BYTES = 1 << 16 };
static _Alignas(64) char values[N_VALUES][VALUE_BYTES];
static _Alignas(64) char integers[VALUE_BYTES];

static enum msc_status run_step(const struct cpu_case *c, struct msc_backend *b,
                                const struct msc_plan *plan, const struct msc_step *s) {
    struct msc_view inputs[8], outputs[8];
    void *weights = NULL;
    size_t n_bytes;
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = msc_plan_view(plan, s->inputs[i], values[s->inputs[i]]);
        const struct msc_quant *q =
            s->slots[i] == MSC_NO_ID ? NULL : msc_edit_quant(c->edits[s->slots[i]]);
        if (q && i == 0) {
            struct msc_view out = inputs[i];
            out.data = integers;
            out.dtype = msc_quant_dtype(q);
            out.quant = q;
            MSC_TRY(b->def->quantize(b, &inputs[i], &out, q, 0));
            inputs[i] = out;
        }
    }
    for (int32_t i = 0; i < s->n_outputs; i++) {
        outputs[i] = msc_plan_view(plan, s->outputs[i], values[s->outputs[i]]);
        assert_true(msc_view_n_bytes(&outputs[i]) <= VALUE_BYTES);
    }
    if (s->n_joints > 0) {
        const struct msc_edit *edits[MSC_STEP_MAX_WEIGHTS] = {NULL};
        for (int32_t i = 0; i < s->n_weight_slots; i++) {
            edits[i] = c->edits[s->weight_slots[i]];
        }
        MSC_TRY(b->def->weights(b, s, edits, &weights, &n_bytes));
    }
    struct msc_call call = {.inputs = inputs, .outputs = outputs, .weights = weights};
    enum msc_status status = b->def->run(b, s, &call, 1, 0);
    if (s->n_joints > 0) {
        b->def->release_weights(b, s, weights);
    }
    return status;
}

// Input of the scenario, made before allocations start to fail.
static struct cpu_case sample;

static enum msc_status run_all(void) {
    struct msc_backend *b;
    struct msc_graph *g;
    struct msc_plan *plan = NULL;
    int32_t wanted = msc_graph_output(sample.g, 0);
    MSC_TRY(msc_backend_open(&b, "cpu", &sample.options));
    enum msc_status status = msc_graph_clone(&g, sample.g);
    if (status == MSC_OK) {
        status = msc_plan_create(&plan, g, b, &wanted, 1);
    }
    for (int32_t i = 0; status == MSC_OK && i < plan->n_steps; i++) {
        if (plan->steps[i].kind != MSC_STEP_ALIAS) {
            status = run_step(&sample, b, plan, &plan->steps[i]);
        }
    }
    if (plan) {
        msc_plan_destroy(plan);
    }
    msc_backend_close(b);
    return status;
}

static int32_t unary(struct cpu_case *c, enum msc_op op, int32_t x, const char *attributes) {
    return cpu_joint(c, op, 1, &x, attributes, MSC_NO_ID, MSC_NO_ID);
}

// Builds a graph with a step of every kernel family that holds memory.
static void build(struct cpu_case *c) {
    cpu_case_init(c, 1);
    int32_t x = cpu_input(c, "NCHW", 4, DIMS(1, 4, 6, 6));
    int32_t y =
        cpu_joint(c, MSC_OP_CONV2D_BIAS, 1, &x, "padding=1,1,1,1",
                  cpu_weight(c, "OIHW", 4, DIMS(8, 4, 3, 3)), cpu_weight(c, "O", 1, DIMS(8)));
    int32_t scale = cpu_constant(c, 4, DIMS(1, 8, 1, 1), NULL);
    y = cpu_joint(c, MSC_OP_MULTIPLY, 2, IDS(y, scale), "", MSC_NO_ID, MSC_NO_ID);
    y = unary(c, MSC_OP_MAX_POOL2D, y, "pool_size=2,2;strides=2,2");
    y = unary(c, MSC_OP_RESIZE, y, "method=linear;scales=1,1,2,2");
    y = cpu_joint(c, MSC_OP_CONCAT, 2, IDS(y, y), "axis=1", MSC_NO_ID, MSC_NO_ID);
    y = unary(c, MSC_OP_PAD, y, "pad_width=0,0,1,1,0,0,1,1");
    y = unary(c, MSC_OP_STRIDED_SLICE, y, "begin=1,;end=7,;axes=2,");
    y = unary(c, MSC_OP_MEAN, y, "axis=3,;keepdims=0");
    y = unary(c, MSC_OP_PERMUTE_DIMS, y, "axes=0,2,1");
    y = cpu_joint(c, MSC_OP_LINEAR, 1, &y, "", cpu_weight(c, "OI", 2, DIMS(5, 16)), MSC_NO_ID);
    y = cpu_joint(c, MSC_OP_MATMUL, 2, IDS(unary(c, MSC_OP_PERMUTE_DIMS, y, "axes=0,2,1"), y), "",
                  MSC_NO_ID, MSC_NO_ID);
    y = unary(c, MSC_OP_SOFTMAX, y, "axis=-1");
    cpu_case_finish_graph(c, unary(c, MSC_OP_ARGMAX, y, "axis=1"));
}

static void test_kernels_cpu_memory__float(void **state) {
    (void)state;
    build(&sample);
    run_failing(run_all, 20);
    cpu_case_finish(&sample);
}

static void test_kernels_cpu_memory__integers(void **state) {
    (void)state;
    build(&sample);
    cpu_case_edit(&sample, (struct cpu_edit_kind){8, true, false},
                  (struct cpu_edit_kind){8, true, true});
    run_failing(run_all, 20);
    cpu_case_finish(&sample);
}

// Masked and quantised weights with a masked bias that is added to the integer sums.
static void test_kernels_cpu_memory__edits(void **state) {
    (void)state;
    static bool is_kept[8] = {true, true, false, true, true, true, true, true};
    float steps[8];
    build(&sample);
    cpu_case_edit(&sample, (struct cpu_edit_kind){8, true, false},
                  (struct cpu_edit_kind){8, true, true});
    int32_t bias = sample.sites.n_site_slots;
    int32_t joint = sample.sites.slots[bias].joint;
    int32_t weight = msc_sites_find_slot(&sample.sites, joint, 1);
    int32_t input = msc_sites_find_slot(&sample.sites, joint, 0);
    for (int c = 0; c < 8; c++) {
        steps[c] = sample.quants[input].scales[0] * sample.quants[weight].scales[c];
    }
    struct msc_edit mask = {
        .kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 8, is_kept}, .next = sample.edits[weight]};
    struct msc_edit round = {.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 8, .steps = steps}};
    struct msc_edit both = {
        .kind = MSC_EDIT_KEEP_CHANNELS, .mask = {0, 8, is_kept}, .next = &round};
    sample.edits[weight] = &mask;
    sample.edits[bias] = &both;
    run_failing(run_all, 20);
    cpu_case_finish(&sample);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_cpu_memory__float),
        cmocka_unit_test(test_kernels_cpu_memory__integers),
        cmocka_unit_test(test_kernels_cpu_memory__edits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
