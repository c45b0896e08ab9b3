// Slices and constant padding, in either layout. Slicing is a strided copy from a part of the
// input; padding is a strided copy into a part of the output.
#include "base/alloc.h"
#include "base/platform.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/movement_run.h"

#include <string.h>

struct kernel {
    struct msc_movement move;
    int64_t in_first, out_first; // offsets in elements
    int64_t n_out;
    bool fills; // the output is filled before the copy
    float value;
};

static void cpu_slice_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_slice_create(struct kernel **out, const struct msc_value *y) {
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->n_out = msc_dims_product(y->n_dims, y->dims);
    *out = k;
    return MSC_OK;
}

MSC_SIMD static void fill_floats(float out[], int64_t n, float value) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = value;
    }
}

static void cpu_slice_fill(const struct msc_view *out, int64_t first, int64_t n, float value) {
    if (!out->quant) {
        fill_floats((float *)out->data + first, n, value);
        return;
    }
    const struct msc_quant *q = out->quant;
    memset((char *)out->data + first,
           msc_quantize_value(value, q->scales[0], q->zero_points[0], q->low, q->high), (size_t)n);
}

// Fills the parts of the output between the rows that the copy writes.
static void fill_gaps(const struct kernel *k, const struct msc_view *out) {
    const struct msc_movement *m = &k->move;
    int last = m->n_dims - 1;
    bool has_rows = last >= 0 && m->out[last] == 1;
    int64_t n_row = has_rows ? m->dims[last] : 1;
    int64_t n_rows = m->n / (n_row > 0 ? n_row : 1);
    int64_t filled = 0;
    for (int64_t r = 0; r < n_rows; r++) {
        int64_t rest = r, to = k->out_first;
        for (int d = has_rows ? last - 1 : last; d >= 0; d--) {
            to += rest % m->dims[d] * m->out[d];
            rest /= m->dims[d];
        }
        cpu_slice_fill(out, filled, to - filled, k->value);
        filled = to + n_row;
    }
    cpu_slice_fill(out, filled, k->n_out - filled, k->value);
}

static enum msc_status cpu_slice_run(void *kernel, struct msc_cpu_backend *b,
                                     const struct msc_call *call, int thread) {
    (void)b;
    (void)thread;
    const struct kernel *k = kernel;
    struct msc_movement move = k->move;
    move.bytes = msc_dtype_bytes(call->outputs[0].dtype);
    if (k->fills) {
        fill_gaps(k, &call->outputs[0]);
    }
    msc_cpu_movement_run(&move, (char *)call->outputs[0].data + k->out_first * (int64_t)move.bytes,
                         (const char *)call->inputs[0].data + k->in_first * (int64_t)move.bytes);
    return MSC_OK;
}

// True for slices and for padding with zeros. Any other padding would have to be quantised too.
static bool cpu_slice_is_movement(const void *kernel) {
    const struct kernel *k = kernel;
    return !k->fills || k->value == 0.0f;
}

// ---- Slice ------------------------------------------------------------------------------------

static enum msc_status cpu_slice_prepare(void **out, struct msc_cpu_backend *b,
                                         const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    struct kernel *k = NULL;
    MSC_TRY(cpu_slice_create(&k, y));
    k->in_first = msc_movement_set_slice(&k->move, step->joints[0].joint, x, y);
    *out = k;
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_slice = {
    .prepare = cpu_slice_prepare,
    .release = cpu_slice_release,
    .run = cpu_slice_run,
    .is_movement = cpu_slice_is_movement,
    .copies = true,
};

// ---- Pad --------------------------------------------------------------------------------------

static enum msc_status cpu_pad_prepare(void **out, struct msc_cpu_backend *b,
                                       const struct msc_plan *plan, const struct msc_step *step) {
    (void)b;
    const struct msc_value *x = &plan->values[step->inputs[step->joints[0].operands[0].index]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    int64_t widths[2 * MSC_MAX_DIMS], in[MSC_MAX_DIMS], to[MSC_MAX_DIMS];
    struct kernel *k = NULL;
    MSC_TRY(cpu_slice_create(&k, y));
    msc_movement_read_pad(widths, &k->value, step->joints[0].joint, x->n_dims);
    k->fills = true;
    msc_lowering_strides(in, x->n_dims, x->dims, x->layout);
    msc_lowering_strides(to, y->n_dims, y->dims, y->layout);
    for (int i = 0; i < x->n_dims; i++) {
        k->out_first += widths[i] * to[i];
    }
    msc_movement_set(&k->move, msc_dtype_bytes(y->dtype), y->n_dims, x->dims, y->layout, in, to);
    *out = k;
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_pad = {
    .prepare = cpu_pad_prepare,
    .release = cpu_slice_release,
    .run = cpu_slice_run,
    .is_movement = cpu_slice_is_movement,
    .copies = true,
};
