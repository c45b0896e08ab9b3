#include "tests/kernels/cpu_case.h"

#include "base/alloc.h"
#include "kernels/reference.h"
#include "kernels/reference_quant.h"
#include "kernels/vulkan/vulkan.h"

#include "tests/joint_attrs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- Backends ---------------------------------------------------------------------------------

// MSC_TEST_DEVICE=vulkan runs the same cases there.
static bool is_on_vulkan(void) {
    const char *device = getenv("MSC_TEST_DEVICE");
    return device && strcmp(device, "vulkan") == 0;
}

static void print_line(void *payload, enum msc_log_level level, const char *line) {
    (void)payload;
    (void)level;
    print_error("%s\n", line);
}

// Opening a device takes longer than most cases: one is kept for the whole program. It is not even
// closed at the end, since drivers lose some memory of their own when they are unloaded;
// test_vulkan_device.c checks closing.
static struct msc_backend *vulkan;

static void open_vulkan(void) {
    static const struct msc_log log = {.level = MSC_LOG_WARNING, .write = print_line};
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    options.n_threads = 4;
    options.log = &log;
    if (!vulkan && msc_backend_open(&vulkan, "vulkan", &options) != MSC_OK) {
        print_message("%s\n", msc_status_message());
        skip();
    }
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

// ---- Cases ------------------------------------------------------------------------------------

void cpu_case_init(struct cpu_case *c, uint64_t seed) {
    if (is_on_vulkan()) {
        open_vulkan();
    }
    memset(c, 0, sizeof(*c));
    c->low = -2.0f;
    c->high = 2.0f;
    c->options = (struct msc_backend_options)MSC_BACKEND_OPTIONS_INIT;
    msc_rng_seed(&c->rng, seed, 0);
    assert_ok(msc_graph_create(&c->g, "case"));
}

void cpu_case_finish(struct cpu_case *c) {
    for (int i = 0; i < c->n_inputs; i++) {
        msc_array_release(c->inputs[i]);
    }
    msc_sites_finish(&c->sites);
    msc_free(c->quants);
    msc_graph_destroy(c->g);
}

// ---- Building ---------------------------------------------------------------------------------

struct msc_array *cpu_random(struct cpu_case *c, int n_dims, const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    float *x = msc_array_data(a);
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        x[i] = c->low + (c->high - c->low) * (float)msc_rng_double(&c->rng);
    }
    return a;
}

int32_t cpu_input(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]) {
    int32_t tensor;
    char name[16];
    snprintf(name, sizeof(name), "x%d", c->n_inputs);
    assert_ok(msc_graph_add_input(&tensor, c->g, name, name, MSC_DTYPE_F32, layout, n_dims, dims));
    c->inputs[c->n_inputs++] = cpu_random(c, n_dims, dims);
    return tensor;
}

static int32_t add_weight(struct cpu_case *c, const char *layout, struct msc_array *data) {
    int32_t tensor;
    char name[24];
    snprintf(name, sizeof(name), "w%d", (int)msc_graph_n_tensors(c->g));
    assert_ok(msc_graph_add_weight(&tensor, c->g, name, NULL, layout, data));
    msc_array_release(data);
    return tensor;
}

int32_t cpu_weight(struct cpu_case *c, const char *layout, int n_dims, const int64_t dims[]) {
    return add_weight(c, layout, cpu_random(c, n_dims, dims));
}

int32_t cpu_constant(struct cpu_case *c, int n_dims, const int64_t dims[], const float *elements) {
    struct msc_array *data;
    if (elements) {
        assert_ok(msc_array_create_from(&data, MSC_DTYPE_F32, n_dims, dims, elements));
    } else {
        data = cpu_random(c, n_dims, dims);
    }
    struct msc_weight_spec weight = {"const", add_weight(c, "", data)};
    return cpu_joint_weights(c, MSC_OP_CONSTANT, 0, NULL, "", 1, &weight);
}

int32_t cpu_joint_weights(struct cpu_case *c, enum msc_op op, int32_t n_inputs,
                          const int32_t inputs[], const char *attributes, int32_t n_weights,
                          const struct msc_weight_spec weights[]) {
    struct joint_attrs attrs;
    int32_t joint;
    joint_attrs_read(&attrs, attributes);
    struct msc_joint_spec spec = {.op = op,
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .n_weights = n_weights,
                                  .weights = weights,
                                  .n_attrs = attrs.n,
                                  .attrs = attrs.rows};
    if (op == MSC_OP_SPLIT) {
        spec.n_outputs = 3;
    }
    assert_ok(msc_graph_add_joint(&joint, c->g, &spec));
    return msc_graph_joint(c->g, joint)->outputs[0];
}

int32_t cpu_joint(struct cpu_case *c, enum msc_op op, int32_t n_inputs, const int32_t inputs[],
                  const char *attributes, int32_t weight, int32_t bias) {
    struct msc_weight_spec weights[2];
    int32_t n = 0;
    if (weight != MSC_NO_ID) {
        weights[n++] = (struct msc_weight_spec){"weight", weight};
    }
    if (bias != MSC_NO_ID) {
        weights[n++] = (struct msc_weight_spec){"bias", bias};
    }
    return cpu_joint_weights(c, op, n_inputs, inputs, attributes, n, weights);
}

void cpu_case_finish_outputs(struct cpu_case *c, int32_t n, const int32_t outputs[]) {
    assert_ok(msc_graph_set_outputs(c->g, n, outputs));
    assert_ok(msc_graph_finalize(c->g));
    assert_ok(msc_sites_find(&c->sites, c->g, false));
    assert_true(c->sites.n_slots <= CPU_CASE_MAX);
    c->quants = msc_alloc_zero((size_t)c->sites.n_slots + 1, sizeof(c->quants[0]));
    assert_non_null(c->quants);
}

void cpu_case_finish_graph(struct cpu_case *c, int32_t output) {
    cpu_case_finish_outputs(c, 1, &output);
}

// ---- Edits ------------------------------------------------------------------------------------

// One scale and zero point for the range of elements first, first + step, ... in runs of `run`.
static void set_range(struct cpu_quant *q, int index, struct cpu_edit_kind kind, float low,
                      float high) {
    low = low < 0.0f ? low : 0.0f;
    high = high > 0.0f ? high : 0.0f;
    if (!isfinite(high - low)) { // of results that are no numbers
        low = -1.0f;
        high = 1.0f;
    }
    float most = -low > high ? -low : high;
    float scale = kind.is_symmetric ? most / (float)q->quant.high
                                    : (high - low) / (float)(q->quant.high - q->quant.low);
    q->scales[index] = scale > 0.0f ? scale : 1.0f;
    q->zero_points[index] =
        kind.is_symmetric ? 0 : (int32_t)rintf(-low / q->scales[index]) + q->quant.low;
}

static void set_quant(struct cpu_quant *q, struct cpu_edit_kind kind, const struct msc_array *x,
                      int axis, bool is_weight) {
    int32_t half = 1 << (kind.bits - 1);
    int n_dims = msc_array_n_dims(x);
    const int64_t *dims = msc_array_dims(x);
    bool by_channel = kind.is_per_channel && axis >= 0;
    q->quant = (struct msc_quant){
        .bits = kind.bits,
        .low = kind.is_symmetric ? (is_weight ? 1 - half : -half) : 0,
        .high = kind.is_symmetric ? half - 1 : 2 * half - 1,
        .axis = by_channel ? axis : -1,
        .n = by_channel ? (int32_t)dims[axis] : 1,
        .scales = q->scales,
        .zero_points = q->zero_points,
    };
    assert_true(q->quant.n <= 512);
    int64_t inner = by_channel ? msc_dims_product(n_dims - axis - 1, dims + axis + 1) : 1;
    const float *elements = msc_array_data(x);
    for (int c = 0; c < q->quant.n; c++) {
        float low = 0.0f, high = 0.0f;
        for (int64_t i = 0; i < msc_array_n_elements(x); i++) {
            if (!by_channel || i / inner % dims[axis] == c) {
                low = elements[i] < low ? elements[i] : low;
                high = elements[i] > high ? elements[i] : high;
            }
        }
        set_range(q, c, kind, low, high);
    }
    msc_quant_seal(&q->quant);
}

void cpu_case_edit(struct cpu_case *c, struct cpu_edit_kind activations,
                   struct cpu_edit_kind weights) {
    for (int32_t i = 0; i < c->sites.n_slots; i++) {
        const struct msc_slot *slot = &c->sites.slots[i];
        bool is_weight = slot->kind == MSC_SITE_WEIGHT;
        struct cpu_edit_kind kind = is_weight ? weights : activations;
        c->edits[i] = NULL;
        if (kind.bits == 0) {
            continue;
        }
        struct msc_array *x;
        const struct msc_tensor *t = msc_graph_tensor(c->g, slot->tensor);
        if (t->data) {
            x = msc_array_retain(t->data);
        } else {
            assert_ok(msc_reference_run_graph(&x, c->g, (const struct msc_array *const *)c->inputs,
                                              &slot->tensor, 1));
        }
        set_quant(&c->quants[i], kind, x, slot->channel_axis, is_weight);
        c->edits[i] = &c->quants[i].quant;
        msc_array_release(x);
    }
}

// ---- Running a plan ---------------------------------------------------------------------------

struct runner {
    struct cpu_case *c;
    struct msc_backend *b;
    struct msc_plan *plan;
    void **data; // [n_values]
};

// What a step reads through input i, quantised if there is an edit. *owned is freed by the caller.
static struct msc_view input_view(const struct runner *r, const struct msc_step *s, int32_t i,
                                  void **owned) {
    struct msc_view in = msc_plan_view(r->plan, s->inputs[i], r->data[s->inputs[i]]);
    const struct msc_quant *q = s->slots[i] == MSC_NO_ID ? NULL : r->c->edits[s->slots[i]];
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

static void fill_with_junk(struct msc_backend *b, void *memory, size_t n_bytes) {
    void *junk = msc_alloc(n_bytes + 1);
    assert_non_null(junk);
    memset(junk, 0xa5, n_bytes);
    assert_ok(b->def->upload(b, memory, junk, n_bytes));
    msc_free(junk);
}

// Steps that have no shader and run on the host: general powers, resizes and paddings that the
// reference kernels alone do.
static bool may_run_on_host(const struct msc_step *s) {
    for (int32_t i = 0; i < s->n_joints; i++) {
        enum msc_op op = s->joints[i].joint->op;
        if (op == MSC_OP_POWER || op == MSC_OP_RESIZE || op == MSC_OP_PAD) {
            return true;
        }
    }
    return false;
}

static bool is_on_device(const struct runner *r, const struct msc_step *s) {
    return strcmp(msc_backend_place(r->b, s).device, "vulkan") == 0;
}

// Forms of a result: uint8 with elements beyond the range, int8, few bits and more than 8.
enum { N_FORMS = 4 };
struct form {
    struct cpu_quant quant;
    struct msc_view expected;
};

static void *allocate(const struct runner *r, size_t n_bytes) {
    void *memory = r->b->def->allocate(r->b, n_bytes + 1);
    assert_non_null(memory);
    return memory;
}

// Elements of a view in host memory; freed by the caller.
static void *fetch(const struct runner *r, const struct msc_view *v) {
    void *host = msc_alloc(msc_view_n_bytes(v) + 1);
    assert_non_null(host);
    assert_ok(r->b->def->download(r->b, host, v->data, msc_view_n_bytes(v)));
    return host;
}

static void check_same(const struct runner *r, const struct msc_view *a, const struct msc_view *b) {
    void *host_a = fetch(r, a), *host_b = fetch(r, b);
    assert_memory_equal(host_a, host_b, msc_view_n_bytes(a));
    msc_free(host_a);
    msc_free(host_b);
}

static void make_forms(struct form forms[N_FORMS], struct msc_quantized quantized[N_FORMS],
                       const struct runner *r, const struct msc_view *result) {
    static const struct cpu_edit_kind kinds[N_FORMS] = {
        {8, false, false}, {8, true, false}, {3, false, false}, {12, true, false}};
    struct msc_array *x;
    void *host = fetch(r, result);
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, result->n_dims, result->dims, host));
    for (int i = 0; i < N_FORMS; i++) {
        struct form *f = &forms[i];
        const struct msc_quant *q = &f->quant.quant;
        set_quant(&f->quant, kinds[i], x, -1, false);
        f->quant.scales[0] *= i == 0 ? 0.7f : 1.0f;
        f->expected = *result;
        f->expected.dtype = msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
        f->expected.quant = msc_quant_is_integer(q) ? q : NULL;
        quantized[i] = (struct msc_quantized){f->expected, q};
        f->expected.data = allocate(r, msc_view_n_bytes(&f->expected));
        quantized[i].view.data = allocate(r, msc_view_n_bytes(&f->expected));
        assert_ok(r->b->def->quantize(r->b, result, &f->expected, q, 0));
    }
    msc_array_release(x);
    msc_free(host);
}

static void check_forms(const struct runner *r, const struct form forms[],
                        const struct msc_quantized quantized[], int n) {
    for (int i = 0; i < n; i++) {
        check_same(r, &quantized[i].view, &forms[i].expected);
        fill_with_junk(r->b, quantized[i].view.data, msc_view_n_bytes(&quantized[i].view));
    }
}

// Forms of output 0, alone or beside the floats, are what quantising the floats gives.
static void check_quantizing(const struct runner *r, const struct msc_step *s,
                             const struct msc_call *call) {
    struct form forms[N_FORMS];
    struct msc_quantized quantized[N_FORMS];
    struct msc_view floats = call->outputs[0], none = floats, other = floats;
    if (!r->b->def->quantizes || !r->b->def->quantizes(r->b, s) ||
        msc_view_n_elements(&floats) == 0) {
        return;
    }
    make_forms(forms, quantized, r, &floats);
    none.data = NULL;
    other.data = allocate(r, msc_view_n_bytes(&floats));
    struct msc_call some = *call;
    some.quantized = quantized;
    some.n_quantized = N_FORMS;
    some.outputs = &none;
    assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
    check_forms(r, forms, quantized, N_FORMS);
    some.outputs = &other;
    assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
    check_forms(r, forms, quantized, N_FORMS);
    check_same(r, &other, &floats);
    some.outputs = &none;
    some.n_quantized = 1;
    for (int i = 0; i < N_FORMS; i++, some.quantized++) {
        assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
        check_forms(r, &forms[i], some.quantized, 1);
        r->b->def->release_memory(r->b, forms[i].expected.data, 0);
        r->b->def->release_memory(r->b, some.quantized->view.data, 0);
    }
    r->b->def->release_memory(r->b, other.data, 0);
}

static void quantise_view(const struct runner *r, struct msc_view *v, const struct msc_quant *q) {
    struct msc_view floats = *v;
    v->dtype = msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
    v->quant = msc_quant_is_integer(q) ? q : NULL;
    v->data = allocate(r, msc_view_n_bytes(v));
    assert_ok(r->b->def->quantize(r->b, &floats, v, q, 0));
}

// Steps that move elements give the form of the output from that of the inputs.
static void check_moving(const struct runner *r, const struct msc_step *s,
                         const struct msc_call *call) {
    struct form forms[N_FORMS];
    struct msc_quantized quantized[N_FORMS];
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    if (!r->b->def->moves || !r->b->def->moves(r->b, s) ||
        msc_view_n_elements(&call->outputs[0]) == 0) {
        return;
    }
    make_forms(forms, quantized, r, &call->outputs[0]);
    for (int f = 0; f < N_FORMS; f++) {
        struct msc_call moving = *call;
        for (int32_t i = 0; i < s->n_inputs; i++) {
            inputs[i] = call->inputs[i];
            quantise_view(r, &inputs[i], quantized[f].quant);
        }
        moving.inputs = inputs;
        moving.outputs = &quantized[f].view;
        assert_ok(r->b->def->run(r->b, s, &moving, 1, 0));
        check_forms(r, &forms[f], &quantized[f], 1);
        for (int32_t i = 0; i < s->n_inputs; i++) {
            r->b->def->release_memory(r->b, inputs[i].data, 0);
        }
        r->b->def->release_memory(r->b, forms[f].expected.data, 0);
        r->b->def->release_memory(r->b, quantized[f].view.data, 0);
    }
}

// Calls that differ in formats and weights give the same together as alone. `call` is one of them;
// the other reads floats and the float weights.
static void check_together(const struct runner *r, const struct msc_step *s,
                           const struct msc_call *call) {
    enum { N = 5 };
    struct msc_view inputs[MSC_STEP_MAX_INPUTS], outputs[N + 1];
    struct msc_call calls[N + 1];
    void *weights = NULL;
    size_t n_bytes = 0;
    if (s->n_outputs != 1) {
        return;
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = msc_plan_view(r->plan, s->inputs[i], r->data[s->inputs[i]]);
    }
    if (s->n_joints > 0) {
        assert_ok(r->b->def->weights(r->b, s, NULL, &weights, &n_bytes));
    }
    for (int i = 0; i <= N; i++) {
        outputs[i] = call->outputs[0];
        outputs[i].data = allocate(r, msc_view_n_bytes(&outputs[i]));
        calls[i] = *call;
        if (i % 2 == 1) {
            calls[i].inputs = inputs;
            calls[i].weights = weights;
        }
        calls[i].outputs = &outputs[i];
    }
    assert_ok(r->b->def->run(r->b, s, &calls[N], 1, 0));
    assert_ok(r->b->def->run(r->b, s, calls, N, 0));
    for (int i = 0; i <= N; i++) {
        check_same(r, &outputs[i], i % 2 == 1 ? &outputs[N] : &call->outputs[0]);
    }
    for (int i = 0; i <= N; i++) {
        r->b->def->release_memory(r->b, outputs[i].data, 0);
    }
    if (s->n_joints > 0) {
        r->b->def->release_weights(r->b, s, weights);
    }
}

static void run_step(struct runner *r, struct msc_step *s) {
    struct msc_view inputs[MSC_STEP_MAX_INPUTS], outputs[CPU_CASE_MAX];
    void *owned[MSC_STEP_MAX_INPUTS], *weights = NULL;
    size_t n_bytes = 0;
    if (s->kind == MSC_STEP_ALIAS) {
        r->data[s->outputs[0]] = r->data[s->inputs[0]];
        return;
    }
    r->c->n_steps++;
    assert_true(r->b != vulkan || is_on_device(r, s) || may_run_on_host(s));
    for (int32_t i = 0; i < s->n_inputs; i++) {
        inputs[i] = input_view(r, s, i, &owned[i]);
    }
    for (int32_t i = 0; i < s->n_outputs; i++) {
        int32_t v = s->outputs[i];
        r->data[v] = r->b->def->allocate(r->b, r->plan->values[v].n_bytes + 1);
        fill_with_junk(r->b, r->data[v], r->plan->values[v].n_bytes);
        outputs[i] = msc_plan_view(r->plan, v, r->data[v]);
    }
    if (s->n_joints > 0) {
        const struct msc_quant *edit =
            s->weight_slot == MSC_NO_ID ? NULL : r->c->edits[s->weight_slot];
        assert_ok(r->b->def->weights(r->b, s, edit, &weights, &n_bytes));
    }
    struct msc_call call = {.inputs = inputs, .outputs = outputs, .weights = weights};
    // Twice, on the last thread first: nothing may depend on earlier calls or on who calls.
    assert_ok(r->b->def->run(r->b, s, &call, 1, r->c->options.n_threads - 1));
    assert_ok(r->b->def->run(r->b, s, &call, 1, 0));
    // Software drivers take their time: there large steps are run as they are, no more.
    if (r->b != vulkan || (s->macs < 5e6 && msc_view_n_elements(&outputs[0]) < 50000)) {
        check_quantizing(r, s, &call);
        check_moving(r, s, &call);
        check_together(r, s, &call);
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

void cpu_run(struct msc_array **out, struct cpu_case *c, int index) {
    struct msc_graph *g;
    struct runner r = {.c = c};
    int32_t wanted = msc_graph_output(c->g, index);
    c->n_steps = 0;
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
    const struct msc_value *v = &r.plan->values[r.plan->wanted[0]];
    assert_int_equal(v->layout, MSC_LAYOUT_PLAIN);
    assert_ok(msc_array_create(out, v->dtype, v->n_dims, v->dims));
    assert_ok(r.b->def->download(r.b, msc_array_data(*out), r.data[r.plan->wanted[0]],
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

// ---- Running the reference --------------------------------------------------------------------

// Operand i of a joint as the reference kernels see it, and its edit.
static const struct msc_quant *operand_edit(const struct cpu_case *c, const struct msc_joint *j,
                                            int32_t i) {
    int32_t slot = msc_sites_find_slot(&c->sites, j->id, i);
    return slot == MSC_NO_ID ? NULL : c->edits[slot];
}

static bool is_integer_joint(const struct cpu_case *c, const struct msc_joint *j) {
    const struct msc_quant *x = j->n_operands > 1 ? operand_edit(c, j, 0) : NULL;
    const struct msc_quant *w = j->n_operands > 1 ? operand_edit(c, j, 1) : NULL;
    return x && w && msc_quant_is_integer(x) && msc_quant_is_integer(w);
}

static void expect_joint(const struct cpu_case *c, struct msc_array *arrays[],
                         const struct msc_joint *j) {
    struct msc_view operands[MSC_STEP_MAX_INPUTS], outputs[CPU_CASE_MAX];
    struct msc_array *edited[MSC_STEP_MAX_INPUTS] = {NULL};
    bool is_integer = is_integer_joint(c, j);
    for (int32_t i = 0; i < j->n_operands; i++) {
        operands[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
        if (j->operands[i] == MSC_NO_ID) {
            continue;
        }
        const struct msc_quant *q = operand_edit(c, j, i);
        struct msc_array *x = arrays[j->operands[i]];
        if (q && is_integer) {
            assert_ok(msc_quantize_array(&edited[i], x, q));
        } else if (q) {
            assert_ok(msc_fake_quantize_array(&edited[i], x, q));
        }
        operands[i] = msc_view_of_array(edited[i] ? edited[i] : x);
        operands[i].quant = is_integer ? q : NULL;
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, j->outputs[i]);
        assert_ok(msc_array_create(&arrays[j->outputs[i]], t->dtype, t->n_dims, t->dims));
        outputs[i] = msc_view_of_array(arrays[j->outputs[i]]);
    }
    struct msc_reference_call call = {.graph = c->g,
                                      .joint = j,
                                      .n_operands = j->n_operands,
                                      .operands = operands,
                                      .n_outputs = j->n_outputs,
                                      .outputs = outputs};
    bool is_conv = msc_op_is_conv(j->op) || j->op == MSC_OP_CONV2D_TRANSPOSE;
    assert_ok(is_integer ? (is_conv ? msc_reference_quantized_conv(&call)
                                    : msc_reference_quantized_linear(&call))
                         : msc_reference_find(j->op)(&call));
    for (int32_t i = 0; i < j->n_operands; i++) {
        msc_array_release(edited[i]);
    }
}

void cpu_expect(struct msc_array **out, struct cpu_case *c, int index) {
    int32_t n = msc_graph_n_tensors(c->g);
    struct msc_array **arrays = msc_alloc_zero((size_t)n + 1, sizeof(arrays[0]));
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, i);
        arrays[i] = t->data ? msc_array_retain(t->data) : NULL;
    }
    for (int i = 0; i < c->n_inputs; i++) {
        arrays[msc_graph_input(c->g, i)] = msc_array_retain(c->inputs[i]);
    }
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        if (j->op == MSC_OP_CONSTANT) {
            arrays[j->outputs[0]] = msc_array_retain(arrays[j->weights[0].tensor]);
        } else if (j->op != MSC_OP_INPUT) {
            expect_joint(c, arrays, j);
        }
    }
    *out = msc_array_retain(arrays[msc_graph_output(c->g, index)]);
    for (int32_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
}

// ---- Comparing --------------------------------------------------------------------------------

bool cpu_is_equal(const struct msc_array *a, const struct msc_array *b) {
    size_t n_bytes = msc_array_n_bytes(a);
    if (n_bytes != msc_array_n_bytes(b)) {
        print_error("%zu bytes, expected %zu\n", n_bytes, msc_array_n_bytes(b));
        return false;
    }
    if (n_bytes == 0 || memcmp(msc_array_data(a), msc_array_data(b), n_bytes) == 0) {
        return true;
    }
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        double x = msc_array_get_double(a, i), y = msc_array_get_double(b, i);
        if (x != y && (x == x || y == y)) {
            print_error("element %lld is %.9g, expected %.9g\n", (long long)i, x, y);
            return false;
        }
    }
    return true; // zeros of different sign, or NaN of different bits
}

void cpu_check_equal(struct cpu_case *c) {
    struct msc_array *actual, *expected;
    cpu_run(&actual, c, 0);
    cpu_expect(&expected, c, 0);
    assert_true(cpu_is_equal(actual, expected));
    msc_array_release(actual);
    msc_array_release(expected);
}

void cpu_check_close(struct cpu_case *c, double bound) {
    struct msc_array *actual, *expected;
    double error = 0, power = 0;
    cpu_run(&actual, c, 0);
    cpu_expect(&expected, c, 0);
    assert_int_equal(msc_array_n_elements(actual), msc_array_n_elements(expected));
    for (int64_t i = 0; i < msc_array_n_elements(actual); i++) {
        double a = msc_array_get_double(actual, i), e = msc_array_get_double(expected, i);
        error += (a - e) * (a - e);
        power += e * e;
    }
    if (!(error <= bound * power)) {
        fail_msg("error %g of %g", error, power);
    }
    msc_array_release(actual);
    msc_array_release(expected);
}
