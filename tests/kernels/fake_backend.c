// The backend declared in fake_backend.h.
#include "fake_backend.h"

#include "base/alloc.h"
#include "graph/reference/reference.h"

#include "tests/msc_test.h"

struct handle { // a handle of hidden memory
    unsigned char *bytes;
};

struct packed {
    struct msc_array *array; // the anchor's weight, fake-quantised
    int bits;
};

static struct fake_backend *fake_from(const struct msc_backend *b) {
    return (struct fake_backend *)b;
}

static void *address(struct fake_backend *f, void *memory) {
    return f->hides_memory && memory ? ((struct handle *)memory)->bytes : memory;
}

// ---- Memory -----------------------------------------------------------------------------------

static bool has_room(struct fake_backend *f, long long n_bytes) {
    return f->capacity_bytes == 0 || atomic_load(&f->live_bytes) + n_bytes <= f->capacity_bytes;
}

static void *fake_allocate(struct msc_backend *b, size_t n_bytes) {
    struct fake_backend *f = fake_from(b);
    int take = atomic_fetch_add(&f->n_taken, 1) + 1;
    int past = take - f->first_failing_take;
    if ((f->first_failing_take > 0 && past >= 0 && past < f->n_failing_takes) ||
        !has_room(f, (long long)n_bytes)) {
        atomic_fetch_add(&f->n_refused, 1);
        return NULL;
    }
    void *memory = msc_alloc_aligned(n_bytes);
    if (!memory) {
        return NULL;
    }
    if (f->hides_memory) {
        struct handle *handle = msc_alloc(sizeof(*handle));
        if (!handle) {
            msc_free_aligned(memory);
            return NULL;
        }
        handle->bytes = memory;
        memory = handle;
    }
    atomic_fetch_add(&f->live_buffers, 1);
    long long live = atomic_fetch_add(&f->live_bytes, (long long)n_bytes) + (long long)n_bytes;
    long long peak = atomic_load(&f->peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&f->peak_bytes, &peak, live)) {}
    return memory;
}

static void fake_release_memory(struct msc_backend *b, void *memory, size_t n_bytes) {
    struct fake_backend *f = fake_from(b);
    msc_free_aligned(address(f, memory));
    if (f->hides_memory) {
        msc_free(memory);
    }
    atomic_fetch_sub(&f->live_buffers, 1);
    atomic_fetch_sub(&f->live_bytes, (long long)n_bytes);
}

static void fake_memory(struct msc_backend *b, struct msc_backend_memory *out) {
    struct fake_backend *f = fake_from(b);
    long long live = atomic_load(&f->live_bytes);
    if (f->tells_memory) {
        out->used_bytes = (uint64_t)live;
        out->besides_bytes = (uint64_t)f->besides_bytes * (uint64_t)b->def->max_calls;
        out->room_bytes = (uint64_t)(f->capacity_bytes - live);
    }
}

static enum msc_status fake_upload(struct msc_backend *b, void *memory, const void *host,
                                   size_t n_bytes) {
    memcpy(address(fake_from(b), memory), host, n_bytes);
    return MSC_OK;
}

static enum msc_status fake_download(struct msc_backend *b, void *host, const void *memory,
                                     size_t n_bytes) {
    memcpy(host, address(fake_from(b), (void *)memory), n_bytes);
    return MSC_OK;
}

// ---- Planning ---------------------------------------------------------------------------------

static const char *fake_numerics(const struct msc_backend *b) {
    (void)b;
    return "fake/1";
}

static bool fake_fuses(const struct msc_backend *b, const struct msc_graph *g,
                       const struct msc_joint *anchor, const struct msc_joint *joint) {
    (void)g;
    return fake_from(b)->fuses && msc_op_is_elementwise(joint->op) &&
           (msc_op_is_conv(anchor->op) || msc_op_is_elementwise(anchor->op));
}

static void fake_layouts(const struct msc_backend *b, const struct msc_graph *g,
                         const struct msc_step *step, const enum msc_layout coming[],
                         struct msc_step_layouts *out) {
    enum msc_op op = step->joints[0].joint->op;
    bool is_last = fake_from(b)->uses_last && msc_op_is_conv(op);
    (void)coming;
    for (int32_t i = 0; i < step->n_inputs; i++) {
        bool has_channels = msc_graph_tensor(g, step->inputs[i])->n_dims > 2;
        out->inputs[i] = is_last && has_channels ? MSC_LAYOUT_NHWC : MSC_LAYOUT_NCHW;
    }
    out->outputs = is_last ? MSC_LAYOUT_NHWC : MSC_LAYOUT_NCHW;
    out->is_alias = op == MSC_OP_RESHAPE || op == MSC_OP_FLATTEN;
}

static enum msc_status fake_prepare(struct msc_backend *b, const struct msc_plan *plan,
                                    struct msc_step *step) {
    struct fake_backend *f = fake_from(b);
    assert_int_not_equal(step->kind, MSC_STEP_ALIAS);
    step->kernel = (void *)plan;
    atomic_fetch_add(&f->live_kernels, 1);
    return MSC_OK;
}

static void fake_release(struct msc_backend *b, struct msc_step *step) {
    atomic_fetch_sub(&fake_from(b)->live_kernels, 1);
    step->kernel = NULL;
}

// ---- Weights ----------------------------------------------------------------------------------

static enum msc_status fake_weights(struct msc_backend *b, const struct msc_step *step,
                                    const struct msc_edit *const edits[], void **out,
                                    size_t *n_bytes) {
    struct fake_backend *f = fake_from(b);
    const struct msc_plan *plan = step->kernel;
    *out = NULL;
    *n_bytes = 0;
    atomic_fetch_add(&f->n_packed, 1);
    const struct msc_quant *quant = msc_edit_quant(edits[0]);
    if (step->n_weight_slots == 0 || f->does_nothing) {
        return MSC_OK;
    }
    const struct msc_slot *slot = &plan->sites.slots[step->weight_slots[0]];
    const struct msc_array *w = msc_graph_tensor(plan->graph, slot->tensor)->data;
    struct packed *p = msc_alloc_zero(1, sizeof(*p));
    p->bits = quant ? quant->bits : 32;
    MSC_TRY(msc_edit_apply(&p->array, w, edits[0]));
    atomic_fetch_add(&f->live_weights, 1);
    *out = p;
    *n_bytes = msc_array_n_bytes(w);
    return MSC_OK;
}

static void fake_release_weights(struct msc_backend *b, const struct msc_step *step,
                                 void *weights) {
    struct packed *p = weights;
    assert_non_null(step->kernel);
    msc_array_release(p->array);
    msc_free(p);
    atomic_fetch_sub(&fake_from(b)->live_weights, 1);
}

// ---- Running ----------------------------------------------------------------------------------

// Copies between the two layouts; `to_last` is the direction.
static void move_channels(void *out, const void *in, const struct msc_view *v, bool to_last) {
    size_t size = msc_dtype_bytes(v->dtype);
    int64_t n = v->dims[0], c = v->dims[1];
    int64_t rest = msc_view_n_elements(v) / (n * c);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k++) {
            for (int64_t r = 0; r < rest; r++) {
                size_t plain = (size_t)((i * c + k) * rest + r) * size;
                size_t last = (size_t)((i * rest + r) * c + k) * size;
                memcpy((char *)out + (to_last ? last : plain),
                       (const char *)in + (to_last ? plain : last), size);
            }
        }
    }
}

// A plain copy in host memory; quantised integers become float32.
static struct msc_view plain_copy(struct fake_backend *f, const struct msc_view *v,
                                  struct msc_arena *arena) {
    struct msc_view out = *v;
    size_t n = (size_t)msc_view_n_elements(v);
    out.layout = MSC_LAYOUT_NCHW;
    out.data = msc_arena_alloc(arena, n * 8 + 1);
    if (v->layout == MSC_LAYOUT_NHWC) {
        move_channels(out.data, address(f, v->data), v, false);
    } else {
        memcpy(out.data, address(f, v->data), msc_view_n_bytes(v));
    }
    if (v->quant) {
        float *x = msc_arena_array(arena, n + 1, sizeof(float));
        for (size_t i = 0; i < n; i++) {
            int q = v->dtype == MSC_DTYPE_U8 ? ((uint8_t *)out.data)[i] : ((int8_t *)out.data)[i];
            x[i] = ((float)q - (float)v->quant->zero_points[0]) * v->quant->scales[0];
        }
        out.data = x;
        out.dtype = MSC_DTYPE_F32;
        out.quant = NULL;
    }
    return out;
}

static struct msc_view operand_view(struct fake_backend *f, const struct msc_step *step, int k,
                                    int32_t i, const struct msc_call *call,
                                    const struct msc_view inner[], struct msc_arena *arena) {
    const struct msc_plan *plan = step->kernel;
    const struct msc_operand *o = &step->joints[k].operands[i];
    const struct packed *p = call->weights;
    switch (o->kind) {
    case MSC_OPERAND_INPUT:
        return plain_copy(f, &call->inputs[o->index], arena);
    case MSC_OPERAND_INNER:
        assert_true(o->index < k);
        return inner[o->index];
    case MSC_OPERAND_WEIGHT:
        // Only the anchor's weight has a slot.
        if (p && plan->sites.slots[step->weight_slots[0]].tensor == o->index) {
            return msc_view_of_array(p->array);
        }
        return msc_view_of_array(msc_graph_tensor(plan->graph, o->index)->data);
    default:
        return (struct msc_view){.dtype = MSC_DTYPE_NONE};
    }
}

static struct msc_view tensor_view(const struct msc_graph *g, int32_t tensor,
                                   struct msc_arena *arena) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    struct msc_view v = {.dtype = t->dtype, .n_dims = t->n_dims};
    memcpy(v.dims, t->dims, sizeof(v.dims));
    v.data = msc_arena_alloc(arena, msc_view_n_bytes(&v) + 1);
    return v;
}

static void quantize(void *y, const struct msc_view *out, const float x[],
                     const struct msc_quant *q) {
    int64_t n = msc_view_n_elements(out);
    if (!out->quant) {
        assert_int_equal(out->dtype, MSC_DTYPE_F32);
        msc_fake_quantize_run(y, x, n, q->scales[0], q->zero_points[0], q->low, q->high);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t v = msc_quantize_value(x[i], q->scales[0], q->zero_points[0], q->low, q->high);
        if (out->dtype == MSC_DTYPE_U8) {
            ((uint8_t *)y)[i] = (uint8_t)v;
        } else {
            ((int8_t *)y)[i] = (int8_t)v;
        }
    }
}

static enum msc_status fake_quantize(struct msc_backend *b, const struct msc_view *in,
                                     const struct msc_view *out, const struct msc_quant *q,
                                     int thread) {
    struct fake_backend *f = fake_from(b);
    (void)thread;
    atomic_fetch_add(&f->n_quantised, 1);
    if (!f->does_nothing) {
        assert_true(in->layout == out->layout && q->n == 1);
        quantize(address(f, out->data), out, address(f, in->data), q);
    }
    return MSC_OK;
}

static enum msc_status fake_mask(struct msc_backend *b, const struct msc_view *in,
                                 const struct msc_view *out, const struct msc_channel_mask *mask,
                                 int thread) {
    struct fake_backend *f = fake_from(b);
    int64_t outer, inner;
    (void)thread;
    MSC_TRY(msc_mask_place(&outer, &inner, in, mask));
    if (!f->does_nothing) {
        msc_mask_run(address(f, out->data), address(f, in->data), outer, inner, mask);
    }
    return MSC_OK;
}

static bool fake_quantizes(const struct msc_backend *b, const struct msc_step *step) {
    return fake_from((struct msc_backend *)b)->quantizes && step->n_outputs == 1;
}

static bool fake_is_movement(const struct msc_backend *b, const struct msc_step *step) {
    bool is_known =
        step->kind == MSC_STEP_REORDER || step->joints[0].joint->op == MSC_OP_PERMUTE_DIMS;
    return fake_from((struct msc_backend *)b)->moves && is_known;
}

static void check_moving(const struct msc_call *call) {
    assert_true(msc_hash_equal(call->inputs[0].quant->hash, call->outputs[0].quant->hash));
    assert_int_equal(call->inputs[0].dtype, call->outputs[0].dtype);
    assert_int_equal(call->n_quantized, 0);
}

// Writes an output in the requested layout to the output's memory, if there is any. Also writes the
// output's quantised variants.
static void write_output(struct fake_backend *f, const struct msc_call *call, int32_t i,
                         const struct msc_view *plain, struct msc_arena *arena) {
    const struct msc_view *to = &call->outputs[i];
    void *moved = plain->data;
    if (to->layout == MSC_LAYOUT_NHWC) {
        moved = msc_arena_alloc(arena, msc_view_n_bytes(plain) + 1);
        move_channels(moved, plain->data, plain, true);
    }
    if (to->quant) {
        check_moving(call);
        atomic_fetch_add(&f->n_moved, 1);
        quantize(address(f, to->data), to, moved, to->quant);
    } else if (to->data) {
        memcpy(address(f, to->data), moved, msc_view_n_bytes(to));
    } else {
        assert_true(call->n_quantized > 0);
        atomic_fetch_add(&f->n_unstored, 1);
    }
    for (int32_t k = 0; k < call->n_quantized; k++) {
        const struct msc_quantized *variant = &call->quantized[k];
        assert_int_equal(variant->view.layout, to->layout);
        assert_true(i == 0 && variant->quant);
        atomic_fetch_add(&f->n_fused, 1);
        quantize(address(f, variant->view.data), &variant->view, moved, variant->quant);
    }
}

static enum msc_status run_joints(struct fake_backend *f, const struct msc_step *step,
                                  const struct msc_call *call, struct msc_arena *arena) {
    const struct msc_plan *plan = step->kernel;
    struct msc_view *inner = msc_arena_array(arena, (size_t)step->n_joints, sizeof(inner[0]));
    for (int k = 0; k < step->n_joints; k++) {
        const struct msc_step_joint *j = &step->joints[k];
        bool is_last = k + 1 == step->n_joints;
        int32_t n = is_last ? step->n_outputs : 1;
        struct msc_view *operands =
            msc_arena_array(arena, (size_t)j->n_operands + 1, sizeof(operands[0]));
        struct msc_view *outputs = msc_arena_array(arena, (size_t)n, sizeof(outputs[0]));
        for (int32_t i = 0; i < j->n_operands; i++) {
            operands[i] = operand_view(f, step, k, i, call, inner, arena);
        }
        for (int32_t i = 0; i < n; i++) {
            outputs[i] = tensor_view(plan->graph, j->joint->outputs[i], arena);
        }
        struct msc_reference_call reference = {.graph = plan->graph,
                                               .joint = j->joint,
                                               .n_operands = j->n_operands,
                                               .operands = operands,
                                               .n_outputs = n,
                                               .outputs = outputs};
        MSC_TRY(msc_reference_find(j->joint->op)(&reference));
        inner[k] = outputs[0];
        for (int32_t i = 0; is_last && i < n; i++) {
            write_output(f, call, i, &outputs[i], arena);
        }
    }
    return MSC_OK;
}

static bool fails_on(const struct fake_backend *f, const struct msc_step *step,
                     const struct msc_call *call) {
    const struct packed *p = call->weights;
    for (int k = 0; f->failing_joint && k < step->n_joints; k++) {
        if (strcmp(step->joints[k].joint->name, f->failing_joint) == 0) {
            return f->failing_bits == 0 || (p && p->bits == f->failing_bits);
        }
    }
    return false;
}

static enum msc_status run_call(struct fake_backend *f, const struct msc_step *step,
                                const struct msc_call *call) {
    struct msc_arena arena = {0};
    enum msc_status status = MSC_OK;
    if (step->kind == MSC_STEP_REORDER) {
        atomic_fetch_add(&f->n_reorders, 1);
    } else if (atomic_fetch_add(&f->n_runs, 1) + 1 == f->cancel_after && f->cancel) {
        msc_cancel_raise(f->cancel, 2);
    }
    if (f->lost_after > 0 && f->n_runs > f->lost_after) {
        return MSC_FAIL(MSC_E_LOST, "the device is lost on purpose");
    }
    if (f->does_nothing) {
        return MSC_OK;
    }
    if (fails_on(f, step, call)) {
        return MSC_FAIL(MSC_E_DEVICE, "joint %s failed on purpose", f->failing_joint);
    }
    if (step->kind == MSC_STEP_REORDER) {
        assert_int_not_equal(call->inputs[0].layout, call->outputs[0].layout);
        struct msc_view plain = plain_copy(f, &call->inputs[0], &arena);
        write_output(f, call, 0, &plain, &arena);
    } else {
        status = run_joints(f, step, call, &arena);
    }
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status fake_run(struct msc_backend *b, const struct msc_step *step,
                                const struct msc_call calls[], size_t n, int thread) {
    struct fake_backend *f = fake_from(b);
    assert_true(thread >= 0 && thread < b->options.n_threads && n >= 1);
    assert_true(n == 1 || (int32_t)n <= b->def->max_calls);
    atomic_fetch_add(&f->n_launches, 1);
    if (!has_room(f, f->besides_bytes * (long long)n)) {
        atomic_fetch_add(&f->n_refused, 1);
        return MSC_FAIL(MSC_E_NOMEM, "no memory for %lld bytes besides", f->besides_bytes);
    }
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(run_call(f, step, &calls[i]));
    }
    return MSC_OK;
}

static enum msc_status fake_download_all(struct msc_backend *b, void *const hosts[],
                                         const void *const memories[], const size_t n_bytes[],
                                         size_t n) {
    atomic_fetch_add(&fake_from(b)->n_waits, 1);
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(fake_download(b, hosts[i], memories[i], n_bytes[i]));
    }
    return MSC_OK;
}

static bool fake_compares(struct msc_backend *b, const struct msc_view *z, int64_t n) {
    return !z->quant && n <= fake_from(b)->most_compared;
}

static enum msc_status fake_compare(struct msc_backend *b, const struct msc_comparison items[],
                                    size_t n) {
    struct fake_backend *f = fake_from(b);
    if (f->lacks_memory_to_compare) {
        return MSC_FAIL(MSC_E_NOMEM, "no memory for sums");
    }
    for (size_t i = 0; i < n; i++) {
        const float *y = address(f, (void *)items[i].y), *z = address(f, items[i].z.data);
        for (int64_t s = 0; s < items[i].n_samples; s++) {
            items[i].squares[s] =
                msc_squares_sum(y + s * items[i].n, z + s * items[i].n, items[i].n);
        }
        atomic_fetch_add(&f->n_compared, 1);
    }
    return MSC_OK;
}

// A backend's abilities are part of its definition, so each combination has its own definition.
#define FAKE_DEFINITION(is_host, ...)                                                              \
    {                                                                                              \
        .name = "fake", .numerics = fake_numerics, .fuses = fake_fuses, .layouts = fake_layouts,   \
        .prepare = fake_prepare, .release = fake_release, .weights = fake_weights,                 \
        .release_weights = fake_release_weights, .run = fake_run, .quantizes = fake_quantizes,     \
        .is_movement = fake_is_movement, .quantize = fake_quantize, .mask = fake_mask,             \
        .memory_is_host = (is_host), .allocate = fake_allocate,                                    \
        .release_memory = fake_release_memory, .upload = fake_upload, .download = fake_download,   \
        __VA_ARGS__                                                                                \
    }

static const struct msc_backend_def on_host = FAKE_DEFINITION(true, .max_calls = 1);
static const struct msc_backend_def hidden = FAKE_DEFINITION(false, .max_calls = 1);
static const struct msc_backend_def device = FAKE_DEFINITION(
    false, .max_calls = 7, .download_all = fake_download_all, .memory = fake_memory);
static const struct msc_backend_def comparing =
    FAKE_DEFINITION(false, .max_calls = 7, .download_all = fake_download_all, .memory = fake_memory,
                    .compares = fake_compares, .compare = fake_compare);

#undef FAKE_DEFINITION

void fake_open(struct fake_backend *fake, int n_threads) {
    memset(fake, 0, sizeof(*fake));
    fake->base.def = &on_host;
    fake->base.options = (struct msc_backend_options)MSC_BACKEND_OPTIONS_INIT;
    fake->base.options.n_threads = n_threads;
    fake->fuses = true;
}

void fake_hide_memory(struct fake_backend *fake) {
    fake->hides_memory = true;
    fake->base.def = &hidden;
}

void fake_run_together(struct fake_backend *fake) {
    fake->hides_memory = true;
    fake->base.def = &device;
}

void fake_compare_values(struct fake_backend *fake) {
    fake_run_together(fake);
    fake->base.def = &comparing;
    fake->most_compared = INT64_MAX;
}

void fake_close(struct fake_backend *fake) {
    assert_int_equal(fake->live_buffers, 0);
    assert_int_equal(fake->live_bytes, 0);
    assert_int_equal(fake->live_weights, 0);
    assert_int_equal(fake->live_kernels, 0);
}
