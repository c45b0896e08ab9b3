// Merges, hashes and applies strategies, with their edits of tensors (strategy.c) and their pruning
// (strategy_prune.c).
#include "base/alloc.h"
#include "graph/passes/prune.h"
#include "tools/strategy_internal.h"

#include <string.h>

#define HASH_BEGIN "mscgym.strategy.1"

static const char *sites_text(const struct msc_target *target) {
    return target ? target->name : "inputs of joints only";
}

// Fails if the sites have another target, because the same edits would quantise the inputs of other
// joints.
static enum msc_status check_target(const struct msc_strategy *s, const struct msc_target *target) {
    return s->target == target || s->n == 0 ? MSC_OK
                                            : MSC_FAIL(MSC_E_STATE,
                                                       "%s is for other sites: %s, not "
                                                       "%s; give both the same target and sites",
                                                       s->name ? s->name : "the strategy",
                                                       sites_text(s->target), sites_text(target));
}

enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later) {
    // A strategy without edits, which at most prunes, applies to any sites.
    bool has_sites = later->n > 0 || !s->target;
    s->target = s->n == 0 && has_sites ? later->target : s->target;
    MSC_TRY(check_target(later, s->target));
    MSC_TRY(msc_strategy__merge_prunes(s, later));
    for (size_t i = 0; i < later->n; i++) {
        MSC_TRY(msc_strategy__add(s, &later->edits[i]));
    }
    return MSC_OK;
}

bool msc_strategy_is_plain(struct msc_hash *out, const struct msc_strategy *s) {
    *out = s->plain;
    return s->has_plain;
}

struct msc_hash msc_strategy_plain_hash(const struct msc_strategy *s, struct msc_hash record) {
    return msc_hash_combine(record, msc_strategy_hash(s));
}

struct msc_hash msc_strategy_hash(const struct msc_strategy *s) {
    struct msc_hash h = msc_hash_bytes(HASH_BEGIN, sizeof(HASH_BEGIN) - 1);
    h = s->target ? msc_hash_add_text(h, s->target->name) : h;
    for (size_t i = 0; i < s->n; i++) {
        h = msc_hash_add_text(h, s->edits[i].site);
        for (size_t k = 0; k < s->edits[i].n_joints; k++) {
            h = msc_hash_add_text(h, s->edits[i].joints[k]);
        }
        h = msc_hash_combine(h, s->edits[i].edit.hash);
    }
    return msc_strategy__hash_prunes(h, s);
}

// ---- Edits of tensors -------------------------------------------------------------------------

// Fails if scales or integers do not fit the tensor's shape.
static enum msc_status check_shape(const struct msc_strategy_edit *e, const struct msc_tensor *t) {
    struct msc_quant_split split;
    if (e->edit.quant.blocks) {
        return msc_strategy__check_blocks(e, t);
    }
    if (e->edit.quant.axis >= 0 && !msc_quant_split(&split, &e->edit.quant, t->n_dims, t->dims)) {
        return MSC_FAIL(
            MSC_E_STATE,
            "the strategy has %d scales for axis %d of tensor %s, which do not fit its shape",
            e->edit.quant.n, e->edit.quant.axis, e->tensor);
    }
    const struct msc_array *integers = e->edit.quant.integers;
    if (integers && msc_array_n_elements(integers) != msc_tensor_n_elements(t)) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has %lld integers for tensor %s of %lld elements",
                        (long long)msc_array_n_elements(integers), e->tensor,
                        (long long)msc_tensor_n_elements(t));
    }
    return MSC_OK;
}

static enum msc_status strategy_check_fit(const struct msc_strategy_edit *e,
                                          const struct msc_graph *g, const struct msc_sites *sites,
                                          int32_t tensor, bool is_any_shape) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (!t->data && e->edit.quant.axis >= 0 && sites->scheme.target) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has scales for axis %d of tensor %s, but an activation of "
                        "this target has one scale",
                        e->edit.quant.axis, e->tensor);
    }
    MSC_TRY(is_any_shape ? MSC_OK : check_shape(e, t));
    if (e->edit.quant.shifts && !t->data) {
        return MSC_FAIL(MSC_E_STATE, "the strategy has shifts for tensor %s, which is not a weight",
                        e->tensor);
    }
    if (t->dtype != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_STATE, "the strategy quantises tensor %s, which is %s, not float32",
                        e->tensor, msc_dtype_name(t->dtype));
    }
    for (size_t i = 0; i < e->n_joints; i++) {
        if (msc_graph_find_joint(g, e->joints[i]) == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_STATE,
                            "the strategy names joint %s, which the model does not have",
                            e->joints[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status fail_dynamic(const struct msc_strategy_edit *e) {
    return MSC_FAIL(MSC_E_STATE,
                    "the strategy quantises tensor %s dynamically, which only inputs of linear "
                    "layers with a constant matrix support",
                    e->tensor);
}

// An activation may have scales per channel only if the joint does not sum over channels.
static enum msc_status check_axis(const struct msc_strategy_edit *e, const struct msc_graph *g,
                                  const struct msc_slot *slot) {
    int32_t axis = e->edit.quant.axis;
    return slot->kind == MSC_SITE_WEIGHT || axis < 0 || axis == slot->channel_axis
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "the strategy has scales for axis %d of tensor %s, but joint %s supports "
                          "only one",
                          axis, e->tensor, msc_graph_joint(g, slot->joint)->name);
}

// Applies the edit to all slots of the site of the tensor.
static enum msc_status apply_to_site(bool *found, const struct msc_strategy_edit *e,
                                     const struct msc_sites *sites, int32_t tensor,
                                     const struct msc_edit *edits[]) {
    for (int32_t i = 0; i < sites->n_sites && !*found; i++) {
        const struct msc_site *site = &sites->sites[i];
        *found = site->tensor == tensor;
        if (*found && e->edit.quant.is_dynamic && !site->takes_dynamic) {
            return fail_dynamic(e);
        }
        for (int32_t k = 0; *found && k < site->n_slots; k++) {
            int32_t slot = site->slots[k];
            edits[slot] = msc_edit_at_slot(&e->edit, &sites->slots[slot]);
        }
    }
    return MSC_OK;
}

static enum msc_status apply_edit(const struct msc_strategy_edit *e, const struct msc_graph *g,
                                  const struct msc_sites *sites, const struct msc_edit *edits[],
                                  bool is_any_shape) {
    int32_t tensor = msc_graph_find_tensor(g, e->tensor);
    bool found = false;
    if (tensor == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_STATE, "the strategy names tensor %s, which the model does not have",
                        e->tensor);
    }
    MSC_TRY(strategy_check_fit(e, g, sites, tensor, is_any_shape));
    if (sites->scheme.target) {
        MSC_TRY(apply_to_site(&found, e, sites, tensor, edits));
    }
    for (int32_t i = 0; !sites->scheme.target && i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == tensor &&
            msc_strategy__names_joint(e, msc_graph_joint(g, slot->joint)->name)) {
            MSC_TRY(check_axis(e, g, slot));
            edits[i] = msc_edit_at_slot(&e->edit, slot);
            MSC_TRY(edits[i] ? MSC_OK : fail_dynamic(e));
            found = true;
        }
    }
    return found ? MSC_OK
                 : MSC_FAIL(MSC_E_STATE,
                            "the strategy quantises tensor %s, but the model has no matching use "
                            "of this tensor",
                            e->tensor);
}

// Scales are valid only for the weights that they were found with.
enum msc_status msc_strategy_check_weights(const struct msc_strategy *s,
                                           const struct msc_graph *g) {
    if (!s->has_weights || msc_hash_equal(s->weights, msc_graph_weights_hash(g))) {
        return MSC_OK;
    }
    const char *name = s->name ? s->name : "the strategy";
    if (msc_strategy_prunes(s)) {
        return MSC_FAIL(
            MSC_E_STATE,
            "%s was found with other weights than this model's, and its pruned channels "
            "depend on them; search again",
            name);
    }
    return MSC_FAIL(
        MSC_E_STATE,
        "%s was found with other weights than this model's; mscgym export --model MODEL "
        "--strategy %s --recalibrate --dataset INPUTS -o FILE keeps its choices and "
        "recomputes the scales",
        name, name);
}

enum msc_status msc_strategy__fail_fit(const struct msc_strategy *s, enum msc_status status) {
    return msc_status_prefix(status, "%s does not fit this model",
                             s->name ? s->name : "the strategy");
}

static enum msc_status apply_all(const struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, const struct msc_edit *edits[],
                                 bool is_any_shape) {
    MSC_TRY(check_target(s, sites->scheme.target));
    for (size_t i = 0; i < s->n; i++) {
        enum msc_status status = apply_edit(&s->edits[i], g, sites, edits, is_any_shape);
        if (status != MSC_OK) {
            return msc_strategy__fail_fit(s, status);
        }
    }
    return MSC_OK;
}

enum msc_status msc_strategy_apply(const struct msc_strategy *s, const struct msc_graph *g,
                                   const struct msc_sites *sites, const struct msc_edit *edits[]) {
    if (msc_strategy_prunes(s)) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s prunes channels, which is not supported here; export the model with "
                        "this strategy and use the exported model",
                        s->name ? s->name : "the strategy");
    }
    MSC_TRY(apply_all(s, g, sites, edits, false));
    return msc_strategy_check_weights(s, g);
}

enum msc_status msc_strategy_apply_to_any(const struct msc_strategy *s, const struct msc_graph *g,
                                          const struct msc_sites *sites,
                                          const struct msc_edit *edits[]) {
    return apply_all(s, g, sites, edits, false);
}

enum msc_status msc_strategy__check_sites(const struct msc_strategy *s, const struct msc_graph *g) {
    struct msc_sites sites = {0};
    const struct msc_site_scheme scheme = msc_strategy_scheme(s);
    MSC_TRY(msc_sites_find(&sites, g, &scheme));
    const struct msc_edit **edits = msc_alloc_zero((size_t)sites.n_slots + 1, sizeof(edits[0]));
    enum msc_status status =
        edits ? apply_all(s, g, &sites, edits, true) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_free(edits);
    msc_sites_finish(&sites);
    return status;
}

// ---- Pruning ----------------------------------------------------------------------------------

static enum msc_status mark_group(bool is_gone[], const struct msc_strategy_group *of,
                                  const struct msc_channels *channels) {
    int32_t k = 0;
    for (int32_t g = 0; g < channels->n_groups; g++) {
        const struct msc_channel_group *group = &channels->groups[g];
        if (strcmp(group->name, of->name) != 0 || group->n_units != of->n_units) {
            continue;
        }
        for (int32_t i = 0; i < group->n_units; i++) {
            bool is_kept = k < of->n_kept && of->kept[k] == i;
            k += is_kept;
            is_gone[group->first_unit + i] = !is_kept;
        }
        return MSC_OK;
    }
    return MSC_FAIL(
        MSC_E_STATE,
        "the strategy prunes channels of %s (%d of %d), but the model has no such group "
        "(`mscgym graph MODEL --channels` lists its groups)",
        of->name, (int)(of->n_units - of->n_kept), (int)of->n_units);
}

enum msc_status msc_strategy_mark(bool is_gone[], const struct msc_strategy *s,
                                  const struct msc_channels *channels) {
    memset(is_gone, 0, (size_t)channels->n_units * sizeof(is_gone[0]));
    for (size_t i = 0; i < s->n_groups; i++) {
        enum msc_status status = mark_group(is_gone, &s->groups[i], channels);
        if (status != MSC_OK) {
            return msc_strategy__fail_fit(s, status);
        }
    }
    return MSC_OK;
}

static enum msc_status find_elements(const struct msc_array *elements[],
                                     const struct msc_strategy *s, const struct msc_graph *g) {
    for (size_t i = 0; i < s->n_replaced; i++) {
        int32_t tensor = msc_graph_find_tensor(g, s->replaced[i].tensor);
        if (tensor == MSC_NO_ID || !msc_graph_tensor(g, tensor)->data) {
            return MSC_FAIL(MSC_E_STATE,
                            "the strategy replaces weight %s, which the model does not have",
                            s->replaced[i].tensor);
        }
        elements[tensor] = s->replaced[i].elements;
    }
    return MSC_OK;
}

enum msc_status msc_strategy_prune(struct msc_graph **out, const struct msc_strategy *s,
                                   const struct msc_graph *g) {
    struct msc_sites sites = {0};
    struct msc_channels channels = {0};
    bool *is_gone = NULL;
    const struct msc_array **elements = NULL;
    struct msc_graph *multiplied;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_strategy_check_weights(s, g));
    MSC_TRY(msc_strategy__multiply_graph(&multiplied, s, g));
    g = multiplied;
    MSC_TRY_OUT(msc_sites_find(&sites, g, NULL));
    MSC_TRY_OUT(msc_channels_find(&channels, g, &sites));
    is_gone = msc_alloc_zero((size_t)channels.n_units + 1, sizeof(is_gone[0]));
    elements = msc_alloc_zero((size_t)msc_graph_n_tensors(g) + 1, sizeof(elements[0]));
    MSC_TRY_OUT(MSC_ALLOCATED(is_gone && elements));
    MSC_TRY_OUT(msc_strategy_mark(is_gone, s, &channels));
    MSC_TRY_OUT(find_elements(elements, s, g));
    status = msc_graph_prune(out, g, &channels, is_gone, elements);
out:
    msc_free(elements);
    msc_free(is_gone);
    msc_channels_finish(&channels);
    msc_sites_finish(&sites);
    msc_graph_destroy(multiplied);
    return status == MSC_E_INVALID ? MSC_FAIL(MSC_E_STATE, "%s", msc_status_message()) : status;
}
