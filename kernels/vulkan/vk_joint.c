#include "kernels/vulkan/vk_joint.h"

#include "base/alloc.h"
#include "kernels/lowering/lowering.h"

#include <assert.h>
#include <string.h>

// ---- Helpers for families ----------------------------------------------------------------------

enum msc_status msc_vk_joint_refuse(const struct msc_vk_joint_desc *d) {
    return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", d->joint->name);
}

struct msc_vk_stage *msc_vk_joint_stage(struct msc_vk_joint *k, uint64_t n, int n_in) {
    assert(k->n_stages < MSC_VK_JOINT_STAGES);
    struct msc_vk_stage *s = &k->stages[k->n_stages++];
    s->n = n;
    s->n_in = n_in;
    s->turns = 16;
    for (int i = 0; i < n_in; i++) {
        s->in[i] = i;
    }
    return s;
}

enum msc_status msc_vk_joint_numbers(struct msc_vk_stage *s, struct msc_vk_backend *b,
                                     const void *numbers, size_t n_bytes) {
    return msc_vk_upload_new(b->vk, &s->numbers, numbers, n_bytes);
}

uint32_t msc_vk_element(enum msc_dtype dtype) {
    // The number of each element type in shaders/elements.glsl, plus 1; 0: the shaders do not
    // support the type.
    static const uint8_t numbers[MSC_DTYPE_COUNT] = {
        [MSC_DTYPE_F32] = 1, [MSC_DTYPE_I32] = 2,   [MSC_DTYPE_U32] = 3,  [MSC_DTYPE_I64] = 4,
        [MSC_DTYPE_I8] = 5,  [MSC_DTYPE_U8] = 6,    [MSC_DTYPE_I16] = 7,  [MSC_DTYPE_U16] = 8,
        [MSC_DTYPE_F16] = 9, [MSC_DTYPE_BF16] = 10, [MSC_DTYPE_BOOL] = 11};
    return numbers[dtype] > 0 ? numbers[dtype] - 1u : MSC_VK_NO_ELEMENT;
}

bool msc_vk_joint_has_elements(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d) {
    bool has = b->vk->has_int64;
    for (int i = 0; i < d->n_x; i++) {
        has = has && (d->x[i].dtype == MSC_DTYPE_NONE ||
                      msc_vk_element(d->x[i].dtype) != MSC_VK_NO_ELEMENT);
    }
    for (int i = 0; i < d->n_y; i++) {
        has = has && msc_vk_element(d->y[i].dtype) != MSC_VK_NO_ELEMENT;
    }
    return has;
}

bool msc_vk_is_real(enum msc_dtype dtype) {
    return dtype == MSC_DTYPE_F32 || dtype == MSC_DTYPE_F16 || dtype == MSC_DTYPE_BF16;
}

bool msc_vk_joint_i64(int64_t *out, const struct msc_vk_joint_desc *d, const char *key) {
    return msc_joint_attr_i64(d->joint, key, out);
}

int msc_vk_joint_axis(const struct msc_vk_joint_desc *d, const char *key, int n_dims) {
    return msc_lowering_axis(d->joint, key, n_dims);
}

void msc_vk_strides(int32_t strides[], int n_dims, const int64_t dims[]) {
    int64_t stride = 1;
    for (int i = n_dims - 1; i >= 0; i--) {
        strides[i] = (int32_t)stride;
        stride *= dims[i];
    }
}

void msc_vk_broadcast_strides(int32_t strides[], const struct msc_view *v, int n_dims) {
    int64_t stride = 1;
    for (int i = n_dims - 1, k = v->n_dims - 1; i >= 0; i--, k--) {
        strides[i] = k >= 0 && v->dims[k] != 1 ? (int32_t)stride : 0;
        stride *= k >= 0 ? v->dims[k] : 1;
    }
}

// ---- Preparing --------------------------------------------------------------------------------

static enum msc_status vk_joint_describe(struct msc_vk_joint_desc *d, const struct msc_plan *plan,
                                         const struct msc_step *step) {
    const struct msc_step_joint *j = &step->joints[0];
    *d = (struct msc_vk_joint_desc){
        .plan = plan, .joint = j->joint, .n_x = j->n_operands, .n_y = step->n_outputs};
    if (step->n_joints != 1 || d->n_x > MSC_VK_JOINT_OPERANDS || d->n_y > MSC_VK_JOINT_OUTPUTS) {
        return msc_vk_joint_refuse(d);
    }
    for (int i = 0; i < d->n_x; i++) {
        const struct msc_operand *o = &j->operands[i];
        if (o->kind == MSC_OPERAND_INPUT) {
            d->x[i] = msc_plan_view(plan, step->inputs[o->index], NULL);
        } else if (o->kind == MSC_OPERAND_WEIGHT) {
            d->x[i] = msc_view_of_array(msc_graph_tensor(plan->graph, o->index)->data);
        }
    }
    for (int i = 0; i < d->n_y; i++) {
        d->y[i] = msc_plan_view(plan, step->outputs[i], NULL);
    }
    d->call = (struct msc_reference_call){.graph = plan->graph,
                                          .joint = d->joint,
                                          .n_operands = d->n_x,
                                          .operands = d->x,
                                          .n_outputs = d->n_y,
                                          .outputs = d->y};
    return MSC_OK;
}

static bool is_read(const struct msc_vk_joint *k, int operand) {
    for (int s = 0; s < k->n_stages; s++) {
        for (int i = 0; i < k->stages[s].n_in; i++) {
            if (k->stages[s].in[i] == operand) {
                return true;
            }
        }
    }
    return false;
}

// True if the device allows as many workgroups, and loop iterations per invocation, as the stage
// needs.
static bool can_run(const struct msc_vk *vk, const struct msc_vk_stage *s) {
    return s->is_by_groups ? s->n <= vk->properties.limits.maxComputeWorkGroupCount[0] &&
                                 msc_vk_can_turn(vk, s->turns)
                           : msc_vk_can_spread(vk, s->n, s->turns);
}

static enum msc_status vk_joint_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                     const struct msc_vk_joint_desc *d, const struct msc_step *step,
                                     msc_vk_joint_init family_init) {
    k->n_operands = d->n_x;
    k->n_outputs = d->n_y;
    k->n_edited = step->n_weight_slots;
    for (int i = 0; i < k->n_edited; i++) {
        k->edited[i] = step->weight_operands[i];
        int32_t tensor = step->joints[0].operands[k->edited[i]].index;
        k->weights[i] = msc_graph_tensor(d->plan->graph, tensor)->data;
    }
    MSC_TRY(family_init(k, b, d));
    bool can_all = msc_vk_fits(b, (int64_t)k->scratch_bytes);
    for (int i = 0; i < k->n_stages; i++) {
        can_all = can_all && can_run(b->vk, &k->stages[i]);
    }
    if (!can_all) {
        return msc_vk_joint_refuse(d);
    }
    for (int i = 0; i < d->n_x && i < MSC_VK_JOINT_OPERANDS; i++) {
        const struct msc_operand *o = &step->joints[0].operands[i];
        k->operands[i].input = o->kind == MSC_OPERAND_INPUT ? o->index : MSC_NO_ID;
        size_t n_bytes = msc_view_n_bytes(&d->x[i]);
        if (d->x[i].data && n_bytes > 0 && is_read(k, i)) {
            MSC_TRY(msc_vk_upload_new(b->vk, &k->operands[i].constant, d->x[i].data, n_bytes));
        }
    }
    return MSC_OK;
}

static bool is_plain(const struct msc_view *v) {
    return v->layout == MSC_LAYOUT_NCHW || msc_lowering_layouts_coincide(v->n_dims, v->dims);
}

static bool is_all_plain(const struct msc_vk_joint_desc *d) {
    for (int i = 0; i < d->n_x + d->n_y; i++) {
        if (!is_plain(i < d->n_x ? &d->x[i] : &d->y[i - d->n_x])) {
            return false;
        }
    }
    return true;
}

enum msc_status msc_vk_joint_prepare(void **out, struct msc_vk_backend *b,
                                     const struct msc_vk_family *family,
                                     const struct msc_plan *plan, const struct msc_step *step) {
    struct msc_vk_joint_desc d;
    MSC_TRY(vk_joint_describe(&d, plan, step));
    if (!family->takes_layouts && !is_all_plain(&d)) {
        return msc_vk_joint_refuse(&d);
    }
    struct msc_vk_joint *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    enum msc_status status = vk_joint_init(k, b, &d, step, family->init);
    if (status != MSC_OK) {
        msc_vk_joint_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

void msc_vk_joint_release(void *kernel, struct msc_vk_backend *b) {
    struct msc_vk_joint *k = kernel;
    if (k) {
        for (int i = 0; i < k->n_stages; i++) {
            msc_vk_free(b->vk, k->stages[i].numbers);
        }
        for (int i = 0; i < MSC_VK_JOINT_OPERANDS; i++) {
            msc_vk_free(b->vk, k->operands[i].constant);
        }
        msc_free(k);
    }
}

// ---- Constant operands under edits ------------------------------------------------------------

struct variant {
    struct msc_vk_block *blocks[MSC_VK_JOINT_OPERANDS]; // edited operands; NULL: not edited
};

void msc_vk_joint_release_weights(void *weights, struct msc_vk_backend *b) {
    struct variant *v = weights;
    for (int i = 0; v && i < MSC_VK_JOINT_OPERANDS; i++) {
        msc_vk_free(b->vk, v->blocks[i]);
    }
    msc_free(v);
}

static enum msc_status upload_edited(struct msc_vk_block **out, struct msc_vk_backend *b,
                                     const struct msc_array *weight, const struct msc_edit *edit,
                                     size_t *n_bytes) {
    struct msc_array *array;
    MSC_TRY(msc_edit_apply(&array, weight, edit));
    msc_vk_lock(b->vk);
    enum msc_status status =
        msc_vk_upload_new(b->vk, out, msc_array_data(array), msc_array_n_bytes(array));
    msc_vk_unlock(b->vk);
    *n_bytes += msc_array_n_bytes(array);
    msc_array_release(array);
    return status;
}

enum msc_status msc_vk_joint_weights(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_edit *const edits[], void **out,
                                     size_t *n_bytes) {
    const struct msc_vk_joint *k = kernel;
    struct variant *v = NULL;
    enum msc_status status = MSC_OK;
    for (int i = 0; i < k->n_edited && status == MSC_OK; i++) {
        if (!edits[i]) {
            continue;
        }
        v = v ? v : msc_alloc_zero(1, sizeof(*v));
        status = v ? upload_edited(&v->blocks[k->edited[i]], b, k->weights[i], edits[i], n_bytes)
                   : MSC_FAIL(MSC_E_NOMEM, "vulkan: out of memory");
    }
    if (status != MSC_OK && v) {
        msc_vk_lock(b->vk);
        msc_vk_joint_release_weights(v, b);
        msc_vk_unlock(b->vk);
        return status;
    }
    *out = v;
    return status;
}

// ---- Running ----------------------------------------------------------------------------------

// The operands of n calls.
struct operands {
    const struct msc_vk_block *blocks[MSC_VK_JOINT_OPERANDS][MSC_VK_MAX_CALLS];
    struct msc_vk_block *scratch[MSC_VK_MAX_CALLS];
};

static void vk_joint_find_operand(struct operands *o, const struct msc_vk_joint *k,
                                  const struct msc_vk_backend *b, const struct msc_call calls[],
                                  int n, int i) {
    const struct msc_vk_joint_operand *operand = &k->operands[i];
    for (int c = 0; c < n; c++) {
        const struct variant *v = calls[c].weights;
        bool is_input = i < k->n_operands && operand->input != MSC_NO_ID;
        o->blocks[i][c] = is_input            ? msc_vk_block_of(&calls[c].inputs[operand->input])
                          : v && v->blocks[i] ? v->blocks[i]
                          : operand->constant ? operand->constant
                                              : b->nothing;
    }
}

static enum msc_status vk_joint_dispatch(const struct msc_vk_joint *k, const struct msc_vk_stage *s,
                                         struct msc_vk_backend *b, const struct operands *o,
                                         const struct msc_call calls[], int n) {
    enum msc_vk_kind kinds[MSC_VK_MAX_BINDINGS];
    int n_written = k->n_outputs + (k->scratch_bytes > 0 ? 1 : 0);
    int n_bindings = s->n_in + n_written + (s->numbers ? 1 : 0);
    uint32_t push[2 + MSC_VK_JOINT_PUSH] = {(uint32_t)s->n, 1};
    struct msc_vk_dispatch d;
    assert(n_bindings <= MSC_VK_MAX_BINDINGS);
    for (int i = 0; i < n_bindings; i++) {
        bool is_written = i >= s->n_in && i < s->n_in + n_written;
        kinds[i] = is_written ? MSC_VK_READ_WRITE : MSC_VK_READ;
    }
    msc_vk_dispatch_init(&d, s->pipeline, n_bindings, kinds);
    for (int c = 0; c < n; c++) {
        struct msc_vk_call *call = msc_vk_add_call(&d);
        for (int i = 0; i < s->n_in; i++) {
            int operand = s->in[i];
            call->blocks[i] = operand == MSC_VK_JOINT_ABSENT ? b->nothing : o->blocks[operand][c];
        }
        for (int i = 0; i < k->n_outputs; i++) {
            call->blocks[s->n_in + i] = msc_vk_block_of(&calls[c].outputs[i]);
        }
        if (k->scratch_bytes > 0) {
            call->blocks[s->n_in + k->n_outputs] = o->scratch[c];
        }
        if (s->numbers) {
            call->blocks[s->n_in + n_written] = s->numbers;
        }
    }
    memcpy(push + 2, s->push, (size_t)s->n_push * sizeof(push[0]));
    d.groups[0] = s->is_by_groups ? (uint32_t)s->n : msc_vk_spread(b->vk, s->n, s->turns, &push[1]);
    d.work = msc_vk_turns_work((double)s->n * (double)s->turns *
                               (s->is_by_groups ? b->vk->tuning.lanes : 1));
    d.push = push;
    d.push_bytes = (uint32_t)(2 + s->n_push) * 4;
    return msc_vk_dispatch(b->vk, &d);
}

enum msc_status msc_vk_joint_run(void *kernel, struct msc_vk_backend *b,
                                 const struct msc_call calls[], int n) {
    const struct msc_vk_joint *k = kernel;
    struct operands o = {0};
    enum msc_status status = MSC_OK;
    for (int i = 0; i < MSC_VK_JOINT_OPERANDS; i++) {
        vk_joint_find_operand(&o, k, b, calls, n, i);
    }
    if (k->scratch_bytes > 0) {
        MSC_TRY_OUT(msc_vk_take(o.scratch, b, n, k->scratch_bytes));
    }
    for (int s = 0; s < k->n_stages; s++) {
        if (k->stages[s].n > 0) {
            MSC_TRY_OUT(vk_joint_dispatch(k, &k->stages[s], b, &o, calls, n));
        }
    }
out:
    msc_vk_give(o.scratch, b, n);
    return status;
}
