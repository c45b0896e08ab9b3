// Pooling and resizing in NHWC.
#include "base/alloc.h"
#include "graph/reference/reference_resize.h"
#include "kernels/lowering/lowering.h"
#include "kernels/lowering/pool.h"
#include "kernels/vulkan/vk_kernels.h"

#include <string.h>

struct kernel {
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_block *geometry; // numbers of a pool's axes, or the taps of a resize
    int32_t input;
    uint64_t n;          // number of outputs
    uint64_t turns;      // loop iterations per output
    uint32_t numbers[5]; // further parameters of the shader
    int n_numbers;
};

static void vk_window_release(void *memory, struct msc_vk_backend *b) {
    struct kernel *k = memory;
    if (k) {
        msc_vk_free(b->vk, k->geometry);
        msc_free(k);
    }
}

static enum msc_status vk_window_run(void *kernel, struct msc_vk_backend *b,
                                     const struct msc_call calls[], int n) {
    const struct kernel *k = kernel;
    uint32_t push[7] = {(uint32_t)k->n, 0};
    memcpy(push + 2, k->numbers, sizeof(k->numbers));
    uint32_t groups = msc_vk_spread(b->vk, k->n, k->turns, &push[1]);
    struct msc_vk_simple simple = {
        k->pipeline, k->input, k->geometry, push, (uint32_t)(2 + k->n_numbers) * 4, groups, 0};
    simple.turns = (double)k->n * (double)k->turns;
    return msc_vk_simple_run(&simple, b, calls, n);
}

typedef enum msc_status (*init_fn)(struct kernel *k, struct msc_vk_backend *b,
                                   const struct msc_plan *plan, const struct msc_step *step);

static enum msc_status vk_window_create(void **out, struct msc_vk_backend *b,
                                        const struct msc_plan *plan, const struct msc_step *step,
                                        init_fn init) {
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    if (step->n_inputs != 1 || j->operands[0].kind != MSC_OPERAND_INPUT ||
        !msc_lowering_is_f32(plan->graph, j->joint)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", j->joint->name);
    }
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    k->input = j->operands[0].index;
    k->n = (uint64_t)msc_dims_product(y->n_dims, y->dims);
    enum msc_status status = init(k, b, plan, step);
    if (status != MSC_OK) {
        vk_window_release(k, b);
        return status;
    }
    *out = k;
    return MSC_OK;
}

// True if the channels are innermost in memory: the value is NHWC, or both layouts have the same
// order.
static bool is_last(const struct msc_value *v) {
    return v->layout == MSC_LAYOUT_NHWC || msc_lowering_layouts_coincide(v->n_dims, v->dims);
}

// ---- Pooling ----------------------------------------------------------------------------------

// Loop iterations of a pool per output: loops over planes, rows and columns inside each other.
static uint64_t pool_turns(const struct msc_pool *pool) {
    const struct msc_pool_axis *a = pool->axes;
    return (uint64_t)(a[0].kernel * (a[1].kernel * (a[2].kernel + 2) + 2) + 1);
}

static enum msc_status pool_init(struct kernel *k, struct msc_vk_backend *b,
                                 const struct msc_plan *plan, const struct msc_step *step) {
    // The rows of numbers that shaders/pool.comp reads; each row has one number for each axis.
    enum { IN, OUT, KERNEL, STRIDE, DILATION, PAD_BEGIN, PAD_END, N_ROWS };
    const struct msc_joint *joint = step->joints[0].joint;
    const struct msc_value *x = &plan->values[step->inputs[k->input]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    struct msc_pool pool;
    int32_t g[N_ROWS][3];
    if (!msc_pool_describe(&pool, plan->graph, joint) || !is_last(x) || !is_last(y) ||
        !msc_vk_can_spread(b->vk, k->n, pool_turns(&pool))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", joint->name);
    }
    for (int i = 0; i < 3; i++) {
        const struct msc_pool_axis *a = &pool.axes[i];
        const int64_t values[N_ROWS] = {a->in,       a->out,       a->kernel, a->stride,
                                        a->dilation, a->pad_begin, a->pad_end};
        for (int r = 0; r < N_ROWS; r++) {
            g[r][i] = (int32_t)values[r];
        }
    }
    k->turns = pool_turns(&pool);
    k->numbers[0] = (uint32_t)x->dims[1];
    k->n_numbers = 1;
    uint32_t constants[] = {b->vk->tuning.lanes, !b->vk->divides_exactly, pool.is_max,
                            pool.counts_padding};
    MSC_TRY(msc_vk_upload_new(b->vk, &k->geometry, g, sizeof(g)));
    MSC_VK_CHECK_CONSTANTS(MSC_VK_POOL, constants);
    return msc_vk_pipeline(&k->pipeline, b->vk, MSC_VK_POOL, constants);
}

static enum msc_status pool_prepare(void **out, struct msc_vk_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step) {
    return vk_window_create(out, b, plan, step, pool_init);
}

const struct msc_vk_family msc_vk_pool = {
    .name = "pooling", .prepare = pool_prepare, .release = vk_window_release, .run = vk_window_run};

// ---- Resizing ---------------------------------------------------------------------------------

// The taps of one output row or column, as in shaders/resize.comp.
struct taps {
    int32_t n, at[4];
    float weights[4];
};

// Lists the taps of output rows, then of output columns. The caller frees *out (msc_free).
static enum msc_status find_taps(struct taps **out, const struct msc_plan *plan,
                                 const struct msc_step *step) {
    struct msc_view x = msc_plan_view(plan, step->inputs[0], NULL);
    struct msc_view y = msc_plan_view(plan, step->outputs[0], NULL);
    struct msc_reference_call call = {.graph = plan->graph,
                                      .joint = step->joints[0].joint,
                                      .n_operands = 1,
                                      .operands = &x,
                                      .n_outputs = 1,
                                      .outputs = &y};
    struct msc_resize_taps *found;
    const struct msc_resize_taps *by_axis[MSC_MAX_DIMS];
    float extrapolation;
    MSC_TRY(msc_resize_find_taps(&found, by_axis, &extrapolation, &call));
    enum msc_status status = MSC_OK;
    struct taps *taps = msc_alloc_zero((size_t)(y.dims[2] + y.dims[3]), sizeof(*taps));
    MSC_TRY_OUT(MSC_ALLOCATED(taps));
    for (int64_t i = 0; i < y.dims[2] + y.dims[3]; i++) {
        const struct msc_resize_taps *t =
            i < y.dims[2] ? &by_axis[2][i] : &by_axis[3][i - y.dims[2]];
        taps[i].n = t->n;
        memcpy(taps[i].weights, t->weights, sizeof(t->weights));
        for (int n = 0; n < t->n; n++) {
            taps[i].at[n] = (int32_t)t->at[n];
        }
        if (t->n == 0) {
            status = MSC_FAIL(MSC_E_UNSUPPORTED, "vulkan: no shader for a cropped resize");
            goto out;
        }
    }
    *out = taps;
    taps = NULL;
out:
    msc_free(taps);
    msc_free(found);
    return status;
}

static enum msc_status resize_init(struct kernel *k, struct msc_vk_backend *b,
                                   const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_value *x = &plan->values[step->inputs[k->input]];
    const struct msc_value *y = &plan->values[step->outputs[0]];
    const struct msc_joint *joint = step->joints[0].joint;
    const char *layout = msc_joint_attr(joint, "layout");
    struct taps *taps = NULL;
    if (x->n_dims != 4 || x->layout != y->layout || x->dims[0] != y->dims[0] ||
        x->dims[1] != y->dims[1] || !layout || strcmp(layout, "NCHW") != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: no shader computes it", joint->name);
    }
    MSC_TRY(find_taps(&taps, plan, step));
    // In NCHW, each channel is an image of its own.
    const uint32_t numbers[5] = {is_last(x) ? (uint32_t)x->dims[1] : 1, (uint32_t)x->dims[2],
                                 (uint32_t)x->dims[3], (uint32_t)y->dims[2], (uint32_t)y->dims[3]};
    memcpy(k->numbers, numbers, sizeof(numbers));
    k->n_numbers = 5;
    k->turns = 4 * (4 + 1);
    uint32_t constants[] = {b->vk->tuning.lanes};
    uint64_t n_taps = (uint64_t)(y->dims[2] + y->dims[3]);
    enum msc_status status = msc_vk_upload_new(b->vk, &k->geometry, taps, n_taps * sizeof(*taps));
    msc_free(taps);
    MSC_VK_CHECK_CONSTANTS(MSC_VK_RESIZE, constants);
    return status == MSC_OK ? msc_vk_pipeline(&k->pipeline, b->vk, MSC_VK_RESIZE, constants)
                            : status;
}

static enum msc_status resize_prepare(void **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step) {
    return vk_window_create(out, b, plan, step, resize_init);
}

const struct msc_vk_family msc_vk_resize = {.name = "resize",
                                            .prepare = resize_prepare,
                                            .release = vk_window_release,
                                            .run = vk_window_run};
