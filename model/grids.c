#include "model/grids.h"

#include "base/alloc.h"

// True if the joint quantises floats, or sums of integers, that depend on the inputs.
static bool makes_grid(const struct msc_grids *grids, const struct msc_joint *j) {
    switch (j->op) {
    case MSC_OP_QUANTIZE:
    case MSC_OP_DYNAMIC_QUANTIZE:
        return grids->d->varies[j->inputs[0]] &&
               msc_dtype_is_float(msc_graph_tensor(grids->d->g, j->inputs[0])->dtype);
    case MSC_OP_QLINEAR_CONV:
    case MSC_OP_QLINEAR_MATMUL:
        return grids->d->varies[j->outputs[0]];
    default:
        return false;
    }
}

// True if the backend can return all outputs of the joint.
static bool is_named(const struct msc_grids *grids, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        if (!msc_discontinuity_name(grids->d, j->outputs[i])) {
            return false;
        }
    }
    return true;
}

static void grids_follow(struct msc_grids *grids, const struct msc_joint *j) {
    bool is_above = false, is_grid = makes_grid(grids, j) && is_named(grids, j);
    for (int32_t i = 0; i < j->n_inputs; i++) {
        is_above = is_above || grids->above[j->inputs[i]];
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        grids->above[j->outputs[i]] = is_above || is_grid;
        grids->places[j->outputs[i]] = is_grid ? (int32_t)grids->n : MSC_NO_ID;
        if (is_grid) {
            grids->tensors[grids->n++] = j->outputs[i];
        }
    }
}

enum msc_status msc_grids_create(struct msc_grids **out, const struct msc_discontinuity *d) {
    size_t n = (size_t)msc_graph_n_tensors(d->g) + 1;
    struct msc_grids *grids = msc_alloc_zero(1, sizeof *grids);
    MSC_TRY(MSC_ALLOCATED(grids));
    grids->d = d;
    grids->tensors = msc_alloc_zero(n, sizeof grids->tensors[0]);
    grids->places = msc_alloc_zero(n, sizeof grids->places[0]);
    grids->above = msc_alloc_zero(n, sizeof grids->above[0]);
    if (!grids->tensors || !grids->places || !grids->above) {
        enum msc_status status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        msc_grids_destroy(grids);
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        grids->places[i] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(d->g); i++) {
        grids_follow(grids, msc_graph_joint(d->g, i));
    }
    *out = grids;
    return MSC_OK;
}

void msc_grids_destroy(struct msc_grids *grids) {
    if (grids) {
        msc_free(grids->tensors);
        msc_free(grids->places);
        msc_free(grids->above);
        msc_free(grids);
    }
}
