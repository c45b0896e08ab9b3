// Runs steps in other ways and compares, as declared in cpu_case_internal.h.
#include "tests/kernels/cpu_case_internal.h"

#include "base/alloc.h"
#include "kernels/lowering/families.h"

#include <math.h>
#include <string.h>

// ---- Quantised variants of a result -----------------------------------------------------------

// The formats of the variants: uint8 with elements out of range, int8, fewer than 8 bits, and more
// than 8.
enum { N_VARIANTS = 4 };
struct variant {
    struct cpu_quant quant;
    struct msc_view expected;
};

static void *allocate(const struct cpu_runner *r, size_t n_bytes) {
    void *memory = r->b->def->allocate(r->b, n_bytes + 1);
    assert_non_null(memory);
    return memory;
}

// Copies the elements of a view to host memory, which the caller frees.
static void *fetch(const struct cpu_runner *r, const struct msc_view *v) {
    void *host = msc_alloc(msc_view_n_bytes(v) + 1);
    assert_non_null(host);
    assert_ok(r->b->def->download(r->b, host, v->data, msc_view_n_bytes(v)));
    return host;
}

static void check_same(const struct cpu_runner *r, const struct msc_view *a,
                       const struct msc_view *b) {
    void *host_a = fetch(r, a), *host_b = fetch(r, b);
    if (memcmp(host_a, host_b, msc_view_n_bytes(a)) != 0) { // cmocka's own comparison is slow
        assert_memory_equal(host_a, host_b, msc_view_n_bytes(a));
    }
    msc_free(host_a);
    msc_free(host_b);
}

static void make_variants(struct variant variants[N_VARIANTS],
                          struct msc_quantized quantized[N_VARIANTS], const struct cpu_runner *r,
                          const struct msc_view *result) {
    static const struct cpu_edit_kind kinds[N_VARIANTS] = {
        {8, false, false}, {8, true, false}, {3, false, false}, {12, true, false}};
    struct msc_array *x;
    void *host = fetch(r, result);
    assert_ok(msc_array_create_from(&x, MSC_DTYPE_F32, result->n_dims, result->dims, host));
    for (int i = 0; i < N_VARIANTS; i++) {
        struct variant *v = &variants[i];
        const struct msc_quant *q = &v->quant.edit.quant;
        cpu__set_quant(&v->quant, kinds[i], x, -1, false);
        v->quant.scales[0] *= i == 0 ? 0.7f : 1.0f;
        v->expected = *result;
        v->expected.dtype = msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
        v->expected.quant = msc_quant_is_integer(q) ? q : NULL;
        quantized[i] = (struct msc_quantized){v->expected, q};
        v->expected.data = allocate(r, msc_view_n_bytes(&v->expected));
        quantized[i].view.data = allocate(r, msc_view_n_bytes(&v->expected));
        assert_ok(r->b->def->quantize(r->b, result, &v->expected, q, 0));
    }
    msc_array_release(x);
    msc_free(host);
}

static void check_variants(const struct cpu_runner *r, const struct variant variants[],
                           const struct msc_quantized quantized[], int n) {
    for (int i = 0; i < n; i++) {
        check_same(r, &quantized[i].view, &variants[i].expected);
        cpu__fill_with_junk(r->b, quantized[i].view.data, msc_view_n_bytes(&quantized[i].view));
    }
}

void cpu__check_quantizing(const struct cpu_runner *r, const struct msc_step *s,
                           const struct msc_call *call) {
    struct variant variants[N_VARIANTS];
    struct msc_quantized quantized[N_VARIANTS];
    struct msc_view floats = call->outputs[0], none = floats, other = floats;
    if (!r->b->def->quantizes || !r->b->def->quantizes(r->b, s) ||
        msc_view_n_elements(&floats) == 0) {
        return;
    }
    make_variants(variants, quantized, r, &floats);
    none.data = NULL;
    other.data = allocate(r, msc_view_n_bytes(&floats));
    struct msc_call some = *call;
    some.quantized = quantized;
    // The last variant is not an integer variant. Kernels may quantise by themselves only if all
    // variants are integers, so the other variants are also run without the last.
    for (int n = N_VARIANTS; n >= N_VARIANTS - 1; n--) {
        some.n_quantized = n;
        some.outputs = &none;
        assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
        check_variants(r, variants, quantized, n);
        some.outputs = &other;
        assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
        check_variants(r, variants, quantized, n);
        check_same(r, &other, &floats);
        cpu__fill_with_junk(r->b, other.data, msc_view_n_bytes(&floats));
    }
    some.outputs = &none;
    some.n_quantized = 1;
    for (int i = 0; i < N_VARIANTS; i++, some.quantized++) {
        assert_ok(r->b->def->run(r->b, s, &some, 1, 0));
        check_variants(r, &variants[i], some.quantized, 1);
        r->b->def->release_memory(r->b, variants[i].expected.data, 0);
        r->b->def->release_memory(r->b, some.quantized->view.data, 0);
    }
    r->b->def->release_memory(r->b, other.data, 0);
}

// ---- Moving elements --------------------------------------------------------------------------

static void quantise_view(const struct cpu_runner *r, struct msc_view *v,
                          const struct msc_quant *q) {
    struct msc_view floats = *v;
    v->dtype = msc_quant_is_integer(q) ? msc_quant_dtype(q) : MSC_DTYPE_F32;
    v->quant = msc_quant_is_integer(q) ? q : NULL;
    v->data = allocate(r, msc_view_n_bytes(v));
    assert_ok(r->b->def->quantize(r->b, &floats, v, q, 0));
}

void cpu__check_moving(const struct cpu_runner *r, const struct msc_step *s,
                       const struct msc_call *call) {
    struct variant variants[N_VARIANTS];
    struct msc_quantized quantized[N_VARIANTS];
    struct msc_view inputs[MSC_STEP_MAX_INPUTS];
    if (!r->b->def->is_movement || !r->b->def->is_movement(r->b, s) ||
        msc_view_n_elements(&call->outputs[0]) == 0) {
        return;
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        if (call->inputs[i].quant) {
            return; // a variant can be made only from floats
        }
    }
    make_variants(variants, quantized, r, &call->outputs[0]);
    for (int f = 0; f < N_VARIANTS; f++) {
        struct msc_call moving = *call;
        for (int32_t i = 0; i < s->n_inputs; i++) {
            inputs[i] = call->inputs[i];
            quantise_view(r, &inputs[i], quantized[f].quant);
        }
        moving.inputs = inputs;
        moving.outputs = &quantized[f].view;
        assert_ok(r->b->def->run(r->b, s, &moving, 1, 0));
        check_variants(r, &variants[f], &quantized[f], 1);
        for (int32_t i = 0; i < s->n_inputs; i++) {
            r->b->def->release_memory(r->b, inputs[i].data, 0);
        }
        r->b->def->release_memory(r->b, variants[f].expected.data, 0);
        r->b->def->release_memory(r->b, quantized[f].view.data, 0);
    }
}

// ---- Calls together ---------------------------------------------------------------------------

void cpu__check_together(const struct cpu_runner *r, const struct msc_step *s,
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
        const struct msc_edit *none[MSC_STEP_MAX_WEIGHTS] = {NULL};
        assert_ok(r->b->def->weights(r->b, s, none, &weights, &n_bytes));
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

// ---- Inputs as integers -----------------------------------------------------------------------

// An input as integers and as floats.
struct both {
    float scale;
    int32_t zero_point;
    struct msc_quant quant;
    void *owned[2]; // memory of the integers and of the floats; NULL: the call's own memory is used
};

// Sets a scale near the scale that the range of `v` implies, and a random zero point.
static void set_random_quant(struct both *x, struct msc_rng *rng, bool is_signed, const float v[],
                             int64_t n) {
    float low = 0.0f, high = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        low = isfinite(v[i]) && v[i] < low ? v[i] : low;
        high = isfinite(v[i]) && v[i] > high ? v[i] : high;
    }
    int32_t least = is_signed ? -128 : 0;
    float range = high > low ? high - low : 1.0f;
    x->scale = range / 255.0f * (0.5f + (float)msc_rng_double(rng));
    x->zero_point = least + (int32_t)msc_rng_below(rng, 256);
    x->quant = (struct msc_quant){.bits = 8,
                                  .low = least,
                                  .high = least + 255,
                                  .axis = -1,
                                  .n = 1,
                                  .scales = &x->scale,
                                  .zero_points = &x->zero_point};
}

// Makes both views of an input. The input may be empty.
static void make_both(const struct cpu_runner *r, struct both *x, struct msc_rng *rng,
                      bool is_signed, struct msc_view *integers, struct msc_view *floats) {
    int64_t n = msc_view_n_elements(floats);
    float *host = fetch(r, floats);
    set_random_quant(x, rng, is_signed, host, n);
    integers->dtype = msc_quant_dtype(&x->quant);
    integers->quant = &x->quant;
    x->owned[0] = integers->data = allocate(r, msc_view_n_bytes(integers));
    assert_ok(r->b->def->quantize(r->b, floats, integers, &x->quant, 0));
    void *bytes = fetch(r, integers);
    for (int64_t i = 0; i < n; i++) {
        int32_t q = is_signed ? ((int8_t *)bytes)[i] : ((uint8_t *)bytes)[i];
        host[i] = (float)(q - x->zero_point) * x->scale;
    }
    x->owned[1] = floats->data = allocate(r, msc_view_n_bytes(floats));
    assert_ok(r->b->def->upload(r->b, floats->data, host, msc_view_n_bytes(floats)));
    msc_free(bytes);
    msc_free(host);
}

static bool is_factor(const struct msc_step_joint *anchor, int operand, int32_t input) {
    const struct msc_operand *o = &anchor->operands[operand];
    return operand < anchor->n_operands && o->kind == MSC_OPERAND_INPUT && o->index == input;
}

// Returns whether integers in this input would make the step compute in integer arithmetic. If only
// one of the two factors is quantised, the step computes in float.
static bool may_multiply(const struct cpu_runner *r, const struct msc_step *s, int32_t input) {
    enum msc_family family = msc_family_of_step(r->plan->graph, s);
    bool has_edits = false;
    for (int32_t i = 0; i < s->n_weight_slots; i++) {
        has_edits = has_edits || r->c->edits[s->weight_slots[i]];
    }
    switch (family) {
    case MSC_FAMILY_CONV:
    case MSC_FAMILY_LINEAR:
        return has_edits && is_factor(&s->joints[0], 0, input);
    case MSC_FAMILY_MATMUL:
        return is_factor(&s->joints[0], 1, input) ||
               (is_factor(&s->joints[0], 0, input) &&
                (has_edits || s->joints[0].operands[1].kind == MSC_OPERAND_INPUT));
    default:
        return false;
    }
}

// Runs the step with `inputs` as integers, then as floats.
static void run_both(const struct cpu_runner *r, const struct msc_step *s,
                     const struct msc_call *call, const struct msc_view *const inputs[2]) {
    struct msc_view outputs[2][CPU_CASE_MAX];
    struct msc_call calls[2] = {*call, *call};
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < s->n_outputs; i++) {
            outputs[k][i] = call->outputs[i];
            outputs[k][i].data = allocate(r, msc_view_n_bytes(&outputs[k][i]));
            cpu__fill_with_junk(r->b, outputs[k][i].data, msc_view_n_bytes(&outputs[k][i]));
        }
        calls[k].inputs = inputs[k];
        calls[k].outputs = outputs[k];
        assert_ok(r->b->def->run(r->b, s, &calls[k], 1, 0));
    }
    for (int32_t i = 0; i < s->n_outputs; i++) {
        check_same(r, &outputs[0][i], &outputs[1][i]);
    }
    cpu__check_quantizing(r, s, &calls[0]);
    cpu__check_together(r, s, &calls[0]);
    for (int32_t i = 0; i < 2 * s->n_outputs; i++) {
        r->b->def->release_memory(r->b, outputs[i % 2][i / 2].data, 0);
    }
}

void cpu__check_integers(const struct cpu_runner *r, const struct msc_step *s,
                         const struct msc_call *call) {
    struct msc_view integers[MSC_STEP_MAX_INPUTS], floats[MSC_STEP_MAX_INPUTS];
    const struct msc_view *const inputs[2] = {integers, floats};
    struct msc_rng rng;
    msc_rng_seed(&rng, 77, 0);
    // Each input is made uint8 or int8 or left unchanged, and this choice moves on by one input in
    // each round. Slow steps run only one round.
    bool is_slow = s->macs > 1e6 || !r->b->def->memory_is_host;
    int32_t first = is_slow ? (int32_t)(msc_view_n_elements(&call->outputs[0]) % 2) : 0;
    for (int32_t turn = first; turn < (is_slow ? first + 1 : 3); turn++) {
        struct both both[MSC_STEP_MAX_INPUTS] = {0};
        bool has_integers = false;
        for (int32_t i = 0; i < s->n_inputs; i++) {
            integers[i] = floats[i] = call->inputs[i];
            if (floats[i].dtype == MSC_DTYPE_F32 && (turn + i) % 3 != 2 && !may_multiply(r, s, i)) {
                make_both(r, &both[i], &rng, (turn + i) % 3 == 1, &integers[i], &floats[i]);
                has_integers = true;
            }
        }
        if (has_integers) {
            run_both(r, s, call, inputs);
        }
        for (int32_t i = 0; i < 2 * s->n_inputs; i++) {
            r->b->def->release_memory(r->b, both[i / 2].owned[i % 2], 0);
        }
    }
}
