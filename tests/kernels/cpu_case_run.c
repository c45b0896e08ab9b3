// Runs a case's plan step by step on the cpu or a device, as declared in cpu_case.h.
#include "tests/kernels/cpu_case_internal.h"

#include "base/alloc.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/planner.h"
#include "kernels/vulkan/vulkan.h"
#include "tests/kernels/vulkan_matrices.h"

#include <stdlib.h>
#include <string.h>

// ---- Backends ---------------------------------------------------------------------------------

// MSC_TEST_DEVICE=vulkan runs the cases on that device.
bool cpu_is_on_device(void) {
    const char *device = getenv("MSC_TEST_DEVICE");
    return device && strcmp(device, "vulkan") == 0;
}

// MSC_TEST_VARIANTS=all runs every step in every way, however long that takes.
bool cpu_runs_all_variants(void) {
    const char *variants = getenv("MSC_TEST_VARIANTS");
    return variants && strcmp(variants, "all") == 0;
}

static void print_line(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    (void)level;
    print_error("%s\n", line);
}

// Opening a device takes longer than most cases, so one device is kept open for the whole program.
// It is not closed at the end, because drivers leak memory when they are unloaded.
// test_vulkan_device.c checks closing.
static struct msc_backend *vulkan;

void cpu__open_device(void) {
    if (!cpu_is_on_device()) {
        return;
    }
    static const struct msc_log log = {.level = MSC_LOG_WARNING, .write = print_line};
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    options.n_threads = 4;
    options.log = &log;
    if (!vulkan && msc_backend_open(&vulkan, "vulkan", &options) != MSC_OK) {
        print_message("skipped: %s\n", msc_status_message());
        skip();
    }
    skip_without_matrices(vulkan);
}

bool cpu__keeps_denormals(void) {
    return !vulkan || !strstr(vulkan->def->numerics(vulkan), "no denormals");
}

static struct msc_backend *open_backend(const struct cpu_case *c) {
    struct msc_backend *b = vulkan;
    if (!b) {
        assert_ok(msc_backend_open(&b, "cpu", &c->options));
    }
    return b;
}

static void close_backend(struct msc_backend *b) {
    if (b != vulkan) {
        msc_backend_close(b);
        return;
    }
    assert_int_equal(msc_vulkan_n_messages(b), 0);
}

// Returns whether a step is run in other ways, too. On software drivers, and for large steps, only
// the first steps of an operator and then every seventh step are run in other ways. (7 does not
// divide the lengths of the tests' loops.) On a device, large steps are never run in other ways.
static bool is_varied(const struct cpu_case *c, const struct msc_step *s, int64_t n_elements) {
    enum { N_FIRST = 4, PERIOD = 7 };
    static int n_seen[MSC_OP_COUNT];
    bool is_large = s->macs >= 5e6 || n_elements >= 50000;
    if (c->is_at_limits || (is_large && vulkan)) {
        return false;
    }
    if ((!is_large && !vulkan) || cpu_runs_all_variants()) {
        return true;
    }
    int n = n_seen[s->n_joints > 0 ? s->joints[0].joint->op : MSC_OP_INPUT]++;
    return n < N_FIRST || n % PERIOD == 0;
}

// ---- Steps ------------------------------------------------------------------------------------

// The quantisation under which a step reads its input i, from an edit or from the graph's input;
// NULL: float32.
static const struct msc_quant *quant_of(const struct cpu_runner *r, const struct msc_step *s,
                                        int32_t i) {
    int32_t input = r->plan->values[s->inputs[i]].input;
    const struct msc_quant *q =
        s->slots[i] == MSC_NO_ID ? NULL : msc_edit_quant(r->c->edits[s->slots[i]]);
    return q || input == MSC_NO_ID ? q : r->c->input_quants[input];
}

// The value that a step reads through input i, quantised if necessary. The caller frees *owned.
static struct msc_view input_view(const struct cpu_runner *r, const struct msc_step *s, int32_t i,
                                  void **owned) {
    struct msc_view in = msc_plan_view(r->plan, s->inputs[i], r->data[s->inputs[i]]);
    const struct msc_quant *q = quant_of(r, s, i);
    *owned = NULL;
    if (!q) {
        return in;
    }
    struct msc_view out = in;
    out.dtype = msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
    out.quant = msc_quant_is_integer(q) ? q : NULL;
    *owned = out.data = r->b->def->allocate(r->b, msc_view_n_bytes(&out) + 1);
    assert_ok(r->b->def->quantize(r->b, &in, &out, q, 0));
    return out;
}

void cpu__fill_with_junk(struct msc_backend *b, void *memory, size_t n_bytes) {
    void *junk = msc_alloc(n_bytes + 1);
    assert_non_null(junk);
    memset(junk, 0xa5, n_bytes);
    assert_ok(b->def->upload(b, memory, junk, n_bytes));
    msc_free(junk);
}

// Returns whether a step may run on the host because it has no shader. This holds for means and
// norms of more elements than the loops of some drivers allow, and for all steps if the number of
// workgroups is limited.
static bool may_run_on_host(const struct msc_step *s) {
    if (getenv("MSC_VULKAN_GROUPS")) {
        return true;
    }
    for (int32_t i = 0; i < s->n_joints; i++) {
        enum msc_op op = s->joints[i].joint->op;
        if (op == MSC_OP_MEAN || op == MSC_OP_LAYER_NORM) {
            return true;
        }
    }
    return false;
}

static bool is_on_device(const struct cpu_runner *r, const struct msc_step *s) {
    return strcmp(msc_backend_place(r->b, s).device, "vulkan") == 0;
}

static void run_step(struct cpu_runner *r, struct msc_step *s) {
    struct msc_view inputs[MSC_STEP_MAX_INPUTS], outputs[CPU_CASE_MAX];
    void *owned[MSC_STEP_MAX_INPUTS], *weights = NULL;
    size_t n_bytes = 0;
    if (s->kind == MSC_STEP_ALIAS) {
        r->data[s->outputs[0]] = r->data[s->inputs[0]];
        return;
    }
    r->c->n_steps++;
    if (r->b == vulkan && !is_on_device(r, s)) {
        r->c->n_on_host++;
        assert_true(r->c->is_at_limits || may_run_on_host(s));
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = input_view(r, s, i, &owned[i]);
    }
    for (int32_t i = 0; i < s->n_outputs; i++) {
        int32_t v = s->outputs[i];
        r->data[v] = r->b->def->allocate(r->b, r->plan->values[v].n_bytes + 1);
        cpu__fill_with_junk(r->b, r->data[v], r->plan->values[v].n_bytes);
        outputs[i] = msc_plan_view(r->plan, v, r->data[v]);
    }
    if (s->n_joints > 0) {
        const struct msc_edit *edits[MSC_STEP_MAX_WEIGHTS] = {NULL};
        for (int32_t i = 0; i < s->n_weight_slots; i++) {
            edits[i] = r->c->edits[s->weight_slots[i]];
        }
        assert_ok(r->b->def->weights(r->b, s, edits, &weights, &n_bytes));
    }
    struct msc_call call = {.inputs = inputs, .outputs = outputs, .weights = weights};
    // The step runs twice, first on the last thread: the result must not depend on earlier calls or
    // on the thread.
    assert_ok(r->b->def->run(r->b, s, &call, 1, r->c->options.n_threads - 1));
    assert_ok(r->b->def->run(r->b, s, &call, 1, 0));
    if (is_varied(r->c, s, msc_view_n_elements(&outputs[0]))) {
        cpu__check_quantizing(r, s, &call);
        cpu__check_moving(r, s, &call);
        cpu__check_together(r, s, &call);
        cpu__check_integers(r, s, &call);
    }
    if (s->n_joints > 0) {
        r->b->def->release_weights(r->b, s, weights);
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        if (owned[i]) {
            r->b->def->release_memory(r->b, owned[i], 0);
        }
    }
}

// ---- Plans ------------------------------------------------------------------------------------

void cpu_run(struct msc_array **out, struct cpu_case *c, int index) {
    struct msc_graph *g;
    struct cpu_runner r = {.c = c};
    int32_t wanted = msc_graph_output(c->g, index);
    c->n_steps = c->n_on_host = 0;
    assert_ok(msc_graph_clone(&g, c->g));
    r.b = open_backend(c);
    assert_ok(msc_plan_create(&r.plan, g, r.b, &wanted, 1));
    r.data = msc_alloc_zero((size_t)r.plan->n_values + 1, sizeof(r.data[0]));
    for (int32_t i = 0; i < r.plan->n_values; i++) {
        if (r.plan->values[i].input != MSC_NO_ID) {
            const struct msc_array *x = c->inputs[r.plan->values[i].input];
            r.data[i] = r.b->def->allocate(r.b, msc_array_n_bytes(x) + 1);
            assert_non_null(r.data[i]);
            assert_ok(r.b->def->upload(r.b, r.data[i], msc_array_data(x), msc_array_n_bytes(x)));
        }
    }
    for (int32_t i = 0; i < r.plan->n_steps; i++) {
        run_step(&r, &r.plan->steps[i]);
    }
    const struct msc_value *v = &r.plan->values[r.plan->live_out[0]];
    assert_int_equal(v->layout, MSC_LAYOUT_NCHW);
    assert_ok(msc_array_create(out, v->dtype, v->n_dims, v->dims));
    assert_ok(r.b->def->download(r.b, msc_array_data(*out), r.data[r.plan->live_out[0]],
                                 msc_array_n_bytes(*out)));
    for (int32_t i = 0; i < r.plan->n_steps; i++) {
        const struct msc_step *s = &r.plan->steps[i];
        for (int32_t k = 0; s->kind != MSC_STEP_ALIAS && k < s->n_outputs; k++) {
            r.b->def->release_memory(r.b, r.data[s->outputs[k]], 0);
        }
    }
    for (int32_t i = 0; i < r.plan->n_values; i++) {
        if (r.plan->values[i].input != MSC_NO_ID) {
            r.b->def->release_memory(r.b, r.data[i], 0);
        }
    }
    msc_free(r.data);
    msc_plan_destroy(r.plan);
    close_backend(r.b);
}
