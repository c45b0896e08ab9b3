#include "kernels/vulkan/vk_host.h"

#include "base/alloc.h"

struct msc_vk_host_step {
    struct msc_step step; // a copy of the step, with the fallback backend's kernel
};

enum msc_status msc_vk_host_prepare(struct msc_vk_host_step **out, struct msc_vk_backend *b,
                                    const struct msc_plan *plan, const struct msc_step *step) {
    struct msc_vk_host_step *h = msc_alloc_zero(1, sizeof(*h));
    MSC_TRY(MSC_ALLOCATED(h));
    h->step = *step;
    h->step.kernel = NULL;
    enum msc_status status = b->host->def->prepare(b->host, plan, &h->step);
    if (status != MSC_OK) {
        msc_free(h);
        return status;
    }
    *out = h;
    return MSC_OK;
}

void msc_vk_host_release(struct msc_vk_host_step *h, struct msc_vk_backend *b) {
    if (h) {
        b->host->def->release(b->host, &h->step);
        msc_free(h);
    }
}

struct msc_placement msc_vk_host_place(const struct msc_vk_host_step *h,
                                       const struct msc_vk_backend *b) {
    return msc_backend_place(b->host, &h->step);
}

enum msc_status msc_vk_host_weights(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                    const struct msc_edit *const edits[], void **out,
                                    size_t *n_bytes) {
    return b->host->def->weights(b->host, &h->step, edits, out, n_bytes);
}

void msc_vk_host_release_weights(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                 void *weights) {
    b->host->def->release_weights(b->host, &h->step, weights);
}

static void free_views(struct msc_view views[], int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        msc_free_aligned(views[i].data);
    }
}

// Copies the views and gives each copy its own host memory. After a failure, data is NULL from the
// failed view on.
static enum msc_status allocate_views(struct msc_view out[], const struct msc_view views[],
                                      int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        out[i] = views[i];
        out[i].data = NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        out[i].data = msc_alloc_aligned(msc_view_n_bytes(&views[i]) + 1);
        if (!out[i].data) {
            return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough host memory for a step");
        }
    }
    return MSC_OK;
}

static enum msc_status vk_host_download(struct msc_vk_backend *b, const struct msc_view to[],
                                        const struct msc_view from[], int32_t n) {
    struct msc_vk_copy copies[MSC_STEP_MAX_INPUTS];
    for (int32_t i = 0; i < n; i++) {
        copies[i] =
            (struct msc_vk_copy){to[i].data, msc_vk_block_of(&from[i]), msc_view_n_bytes(&from[i])};
    }
    msc_vk_lock(b->vk);
    enum msc_status status = msc_vk_download(b->vk, copies, (size_t)n);
    msc_vk_unlock(b->vk);
    return status;
}

static enum msc_status vk_host_upload(struct msc_vk_backend *b, const struct msc_view to[],
                                      const struct msc_view from[], int32_t n) {
    enum msc_status status = MSC_OK;
    msc_vk_lock(b->vk);
    for (int32_t i = 0; i < n && status == MSC_OK; i++) {
        status =
            msc_vk_upload(b->vk, msc_vk_block_of(&to[i]), from[i].data, msc_view_n_bytes(&to[i]));
    }
    msc_vk_unlock(b->vk);
    return status;
}

enum msc_status msc_vk_host_run(struct msc_vk_host_step *h, struct msc_vk_backend *b,
                                const struct msc_call *call, int thread) {
    int32_t n_in = h->step.n_inputs, n_out = h->step.n_outputs;
    struct msc_view *views = msc_alloc_zero((size_t)(n_in + n_out) + 1, sizeof(*views));
    if (!views) {
        return MSC_FAIL(MSC_E_NOMEM, "vulkan: not enough host memory for a step");
    }
    struct msc_view *outputs = views + n_in;
    struct msc_call host = {
        .inputs = views, .outputs = outputs, .weights = call->weights, .limits = call->limits};
    enum msc_status status;
    MSC_TRY_OUT(allocate_views(views, call->inputs, n_in));
    MSC_TRY_OUT(allocate_views(outputs, call->outputs, n_out));
    MSC_TRY_OUT(vk_host_download(b, views, call->inputs, n_in));
    MSC_TRY_OUT(b->host->def->run(b->host, &h->step, &host, 1, thread));
    status = vk_host_upload(b, call->outputs, outputs, n_out);
out:
    free_views(views, n_in + n_out);
    msc_free(views);
    return status;
}
