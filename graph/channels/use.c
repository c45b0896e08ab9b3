// Effects of removing units: the remaining indices of an axis, the cost of the smaller network, and
// the masks that make the network compute as if the units were removed.
#include "base/alloc.h"
#include "graph/channels.h"
#include "graph/cost.h"
#include "graph/reshape.h"

// ---- Queries ----------------------------------------------------------------------------------

static const int32_t *units_of(const struct msc_channels *c, int32_t tensor, int axis) {
    return c->units[tensor * MSC_MAX_DIMS + axis];
}

int32_t msc_channels_unit(const struct msc_channels *c, int32_t tensor, int axis, int64_t index) {
    const int32_t *units = units_of(c, tensor, axis);
    return units == NULL ? MSC_NO_ID : units[index];
}

int64_t msc_channels_count(const struct msc_channels *c, int32_t tensor, int axis, int64_t end,
                           const bool is_gone[]) {
    const int32_t *units = units_of(c, tensor, axis);
    int64_t n = end;
    for (int64_t i = 0; units != NULL && i < end; i++) {
        n -= units[i] != MSC_NO_ID && is_gone[units[i]];
    }
    return n;
}

enum msc_status msc_channels_check(const struct msc_channels *c, const bool is_gone[]) {
    for (int32_t i = 0; i < c->n_groups; i++) {
        const struct msc_channel_group *group = &c->groups[i];
        int32_t n = 0;
        for (int32_t k = 0; k < group->n_units; k++) {
            n += !is_gone[group->first_unit + k];
        }
        if (n == 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "channels of %s: all %d would be pruned, at least one must remain",
                            group->name, (int)group->n_units);
        }
    }
    return MSC_OK;
}

// ---- Costs ------------------------------------------------------------------------------------

// The number of elements that pruning adds for a shared parameter: the elements of the copies that
// joints get, minus the elements of the parameter if no joint reads it any more.
static double followers_cost(const struct msc_channels *c, const struct msc_graph *g,
                             int32_t tensor, const bool is_gone[]) {
    const int32_t *readers;
    int32_t n_readers = msc_graph_consumers(g, tensor, &readers), n_cut = 0;
    double n = 0;
    for (int32_t i = 0; i < c->n_followers; i++) {
        const struct msc_channel_follower *f = &c->followers[i];
        if (f->tensor != tensor) {
            continue;
        }
        int64_t all = msc_graph_tensor(g, tensor)->dims[f->axis];
        int64_t left = msc_channels_count(c, f->of_tensor, f->of_axis, all, is_gone);
        n_cut += left < all;
        n += left < all ? (double)left : 0;
    }
    return n_cut > 0 && n_cut == n_readers
               ? n - (double)msc_tensor_n_elements(msc_graph_tensor(g, tensor))
               : n;
}

enum msc_status msc_channels_cost(struct msc_channel_cost *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const bool is_gone[]) {
    int64_t(*dims)[MSC_MAX_DIMS] = msc_alloc_zero((size_t)c->n_tensors, sizeof(dims[0]));
    *out = (struct msc_channel_cost){0};
    MSC_TRY(MSC_ALLOCATED(dims));
    for (int32_t i = 0; i < c->n_tensors; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        double n = 1;
        for (int k = 0; k < t->n_dims; k++) {
            int64_t period = msc_reshape_period(g, t, k);
            bool is_symbol = t->dims[k] < 0 && period == 0;
            dims[i][k] = is_symbol ? 1 : msc_channels_count(c, i, k, period, is_gone);
            n *= (double)dims[i][k];
        }
        bool is_weight = t->producer == MSC_NO_ID && msc_dtype_is_float(t->dtype);
        out->parameters += is_weight ? n + followers_cost(c, g, i, is_gone) : 0;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        out->macs +=
            msc_joint_macs_of(g, msc_graph_joint(g, i), (const int64_t(*)[MSC_MAX_DIMS])dims);
    }
    msc_free(dims);
    return MSC_OK;
}

// ---- Masks ------------------------------------------------------------------------------------

static enum msc_status make_mask(bool *is_needed, struct msc_channel_mask *out,
                                 const struct msc_channels *c, const struct msc_graph *g,
                                 const struct msc_slot *slot, int axis, const bool is_gone[],
                                 struct msc_arena *arena) {
    int64_t n = msc_graph_tensor(g, slot->tensor)->dims[axis];
    *is_needed = msc_channels_count(c, slot->tensor, axis, n, is_gone) < n;
    if (!*is_needed) {
        return MSC_OK;
    }
    bool *is_kept = msc_arena_array(arena, (size_t)n, sizeof(is_kept[0]));
    MSC_TRY(MSC_ALLOCATED(is_kept));
    for (int64_t i = 0; i < n; i++) {
        int32_t unit = msc_channels_unit(c, slot->tensor, axis, i);
        is_kept[i] = unit == MSC_NO_ID || !is_gone[unit];
    }
    *out = (struct msc_channel_mask){.axis = axis, .n = (int32_t)n, .is_kept = is_kept};
    return MSC_OK;
}

static enum msc_status make_masks(struct msc_channel_masks *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const struct msc_sites *sites,
                                  const bool is_gone[]) {
    struct msc_arena *arena = out->storage;
    size_t n = (size_t)c->n_reads;
    int32_t *slots = msc_arena_array(arena, n, sizeof(slots[0]));
    const struct msc_edit **edits =
        msc_arena_array(arena, (size_t)sites->n_slots, sizeof(edits[0]));
    out->masks = msc_arena_array(arena, n, sizeof(out->masks[0]));
    MSC_TRY(MSC_ALLOCATED(slots && edits && out->masks));
    for (size_t i = 0; i < n; i++) {
        struct msc_edit *e = &out->masks[out->n];
        int32_t slot = c->reads[i].slot;
        bool is_needed;
        e->kind = MSC_EDIT_KEEP_CHANNELS;
        MSC_TRY(make_mask(&is_needed, &e->mask, c, g, &sites->slots[slot], c->reads[i].axis,
                          is_gone, arena));
        if (is_needed) {
            msc_edit_seal(e);
            slots[out->n++] = slot;
            edits[slot] = e;
        }
    }
    out->slots = slots;
    out->edits = edits;
    return MSC_OK;
}

enum msc_status msc_channels_mask(struct msc_channel_masks *out, const struct msc_channels *c,
                                  const struct msc_graph *g, const struct msc_sites *sites,
                                  const bool is_gone[]) {
    *out = (struct msc_channel_masks){.storage = msc_alloc_zero(1, sizeof(struct msc_arena))};
    MSC_TRY(MSC_ALLOCATED(out->storage));
    enum msc_status status = make_masks(out, c, g, sites, is_gone);
    if (status != MSC_OK) {
        msc_channel_masks_finish(out);
    }
    return status;
}

void msc_channel_masks_finish(struct msc_channel_masks *masks) {
    if (masks->storage != NULL) {
        msc_arena_finish(masks->storage);
        msc_free(masks->storage);
    }
    *masks = (struct msc_channel_masks){0};
}
