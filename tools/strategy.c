#include "tools/strategy_internal.h"

#include "base/alloc.h"

#include <string.h>

#define HASH_BEGIN "mscgym.strategy.1"

enum msc_status msc_strategy_create(struct msc_strategy **out,
                                    const struct msc_site_scheme *scheme) {
    *out = msc_alloc_zero(1, sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    (*out)->target = scheme ? scheme->target : NULL;
    return MSC_OK;
}

struct msc_site_scheme msc_strategy_scheme(const struct msc_strategy *s) {
    return (struct msc_site_scheme){.target = s->target};
}

void msc_strategy_destroy(struct msc_strategy *s) {
    if (s) {
        for (size_t i = 0; i < s->n_arrays; i++) {
            msc_array_release(s->arrays[i]);
        }
        msc_free(s->arrays);
        msc_free(s->edits);
        msc_free(s->groups);
        msc_free(s->replaced);
        msc_arena_finish(&s->arena);
        msc_free(s);
    }
}

size_t msc_strategy_n_edits(const struct msc_strategy *s) {
    return s->n;
}

// ---- Adding -----------------------------------------------------------------------------------

enum msc_status msc_strategy__keep_array(struct msc_strategy *s, const struct msc_array *array) {
    if (array) {
        MSC_TRY(msc_grow(&s->arrays, &s->arrays_capacity, s->n_arrays + 1, sizeof(s->arrays[0])));
        s->arrays[s->n_arrays++] = msc_array_retain(array);
    }
    return MSC_OK;
}

enum msc_status msc_strategy__copy_quant(struct msc_strategy *s, struct msc_edit *out,
                                         const struct msc_quant *in) {
    float *scales = msc_arena_array(&s->arena, (size_t)in->n, sizeof(scales[0]));
    int32_t *zeros = msc_arena_array(&s->arena, (size_t)in->n, sizeof(zeros[0]));
    MSC_TRY(MSC_ALLOCATED(scales && zeros));
    memcpy(scales, in->scales, (size_t)in->n * sizeof(scales[0]));
    memcpy(zeros, in->zero_points, (size_t)in->n * sizeof(zeros[0]));
    struct msc_quant quant = *in;
    quant.scales = scales;
    quant.zero_points = zeros;
    MSC_TRY(msc_strategy__keep_array(s, in->integers));
    MSC_TRY(msc_strategy__keep_array(s, in->shifts));
    *out = msc_edit_quantize(quant);
    return MSC_OK;
}

static bool names_joint(const struct msc_strategy_edit *e, const char *joint) {
    for (size_t i = 0; i < e->n_joints; i++) {
        if (strcmp(e->joints[i], joint) == 0) {
            return true;
        }
    }
    return e->n_joints == 0;
}

// Removes from earlier edits what `e` covers: its joints, or the whole tensor. An earlier edit of
// the whole tensor remains if `e` is for some joints, and applies to the others.
static void give_way(struct msc_strategy *s, const struct msc_strategy_edit *e) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct msc_strategy_edit *x = &s->edits[i];
        bool is_same = strcmp(x->tensor, e->tensor) == 0;
        size_t n = 0;
        for (size_t k = 0; is_same && k < x->n_joints; k++) {
            if (!names_joint(e, x->joints[k])) {
                x->joints[n++] = x->joints[k];
            }
        }
        bool stays = !is_same || n > 0 || (x->n_joints == 0 && e->n_joints > 0);
        x->n_joints = is_same ? n : x->n_joints;
        if (stays) {
            s->edits[kept++] = *x;
        }
    }
    s->n = kept;
}

// Copies an edit whose strings and arrays the caller owns.
enum msc_status msc_strategy__add(struct msc_strategy *s, const struct msc_strategy_edit *model) {
    struct msc_strategy_edit e = {
        .n_joints = model->n_joints, .has_origin = model->has_origin, .origin = model->origin};
    e.site = msc_arena_strdup(&s->arena, model->site);
    e.tensor = msc_arena_strdup(&s->arena, model->tensor);
    e.label = msc_arena_strdup(&s->arena, model->label);
    e.joints = msc_arena_array(&s->arena, model->n_joints + 1, sizeof(e.joints[0]));
    bool is_whole = e.site && e.tensor && e.label && e.joints;
    for (size_t i = 0; is_whole && i < model->n_joints; i++) {
        e.joints[i] = msc_arena_strdup(&s->arena, model->joints[i]);
        is_whole = e.joints[i] != NULL;
    }
    MSC_TRY(MSC_ALLOCATED(is_whole));
    MSC_TRY(msc_strategy__copy_quant(s, &e.edit, &model->edit.quant));
    MSC_TRY(msc_grow(&s->edits, &s->capacity, s->n + 1, sizeof(s->edits[0])));
    give_way(s, &e);
    s->edits[s->n++] = e;
    return MSC_OK;
}

// Lists all joints in edits of a whole tensor, so that one joint can be removed from them.
static enum msc_status spell_out(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t tensor) {
    for (size_t i = 0; i < s->n; i++) {
        struct msc_strategy_edit *x = &s->edits[i];
        if (x->n_joints > 0 || strcmp(x->tensor, msc_graph_tensor(g, tensor)->name) != 0) {
            continue;
        }
        x->joints = msc_arena_array(&s->arena, (size_t)sites->n_site_slots, sizeof(x->joints[0]));
        MSC_TRY(MSC_ALLOCATED(x->joints));
        for (int32_t k = 0; k < sites->n_site_slots; k++) {
            const char *joint = msc_graph_joint(g, sites->slots[k].joint)->name;
            bool is_new = x->n_joints == 0 || !names_joint(x, joint);
            if (sites->slots[k].tensor == tensor && is_new) {
                x->joints[x->n_joints++] = joint;
            }
        }
        for (size_t k = 0; k < x->n_joints; k++) {
            x->joints[k] = msc_arena_strdup(&s->arena, x->joints[k]);
            MSC_TRY(MSC_ALLOCATED(x->joints[k]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_strategy_set(struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, int32_t site,
                                 const struct msc_strategy_choice *choice) {
    const struct msc_site *at = &sites->sites[site];
    const char *tensor = msc_graph_tensor(g, at->tensor)->name;
    struct msc_strategy_edit e = {.site = at->name, .tensor = tensor, .label = choice->label};
    const char *joint = NULL;
    if (strcmp(at->name, tensor) != 0) {
        joint = msc_graph_joint(g, sites->slots[at->slots[0]].joint)->name;
        e.joints = &joint;
        e.n_joints = 1;
    }
    if (choice->quant) {
        e.edit.quant = *choice->quant;
        e.has_origin = choice->origin != NULL;
        if (choice->origin) {
            e.origin = *choice->origin;
        }
        return msc_strategy__add(s, &e);
    }
    if (e.n_joints > 0) {
        MSC_TRY(spell_out(s, g, sites, at->tensor));
    }
    give_way(s, &e);
    return MSC_OK;
}

static const char *sites_text(const struct msc_target *target) {
    return target ? target->name : "inputs of joints only";
}

// The same edits mean something different if other joints read the tensor as integers.
static enum msc_status check_target(const struct msc_strategy *s, const struct msc_target *target) {
    return s->target == target || s->n == 0 ? MSC_OK
                                            : MSC_FAIL(MSC_E_STATE,
                                                       "%s is for other sites: %s, not "
                                                       "%s; give both the same target and sites",
                                                       s->name ? s->name : "the strategy",
                                                       sites_text(s->target), sites_text(target));
}

enum msc_status msc_strategy_merge(struct msc_strategy *s, const struct msc_strategy *later) {
    // A strategy that only prunes applies to any sites.
    bool has_sites = later->n > 0 || !msc_strategy_prunes(later);
    s->target = s->n == 0 && has_sites ? later->target : s->target;
    MSC_TRY(check_target(later, s->target));
    MSC_TRY(msc_strategy__merge_prunes(s, later));
    for (size_t i = 0; i < later->n; i++) {
        MSC_TRY(msc_strategy__add(s, &later->edits[i]));
    }
    return MSC_OK;
}

// ---- Applying ---------------------------------------------------------------------------------

static enum msc_status strategy_check_fit(const struct msc_strategy_edit *e,
                                          const struct msc_graph *g, const struct msc_sites *sites,
                                          int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (!t->data && e->edit.quant.axis >= 0 && sites->scheme.target) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has scales for axis %d of tensor %s, but activations have "
                        "one scale each if they are requantised",
                        e->edit.quant.axis, e->tensor);
    }
    struct msc_quant_split split;
    if (e->edit.quant.axis >= 0 && !msc_quant_split(&split, &e->edit.quant, t->n_dims, t->dims)) {
        return MSC_FAIL(MSC_E_STATE, "the strategy has %d scales for axis %d of tensor %s",
                        e->edit.quant.n, e->edit.quant.axis, e->tensor);
    }
    const struct msc_array *integers = e->edit.quant.integers;
    if (integers && msc_array_n_elements(integers) != msc_tensor_n_elements(t)) {
        return MSC_FAIL(MSC_E_STATE,
                        "the strategy has %lld integers for tensor %s of %lld elements",
                        (long long)msc_array_n_elements(integers), e->tensor,
                        (long long)msc_tensor_n_elements(t));
    }
    if (e->edit.quant.shifts && !t->data) {
        return MSC_FAIL(MSC_E_STATE, "the strategy has shifts for tensor %s, which is not a weight",
                        e->tensor);
    }
    if (t->dtype != MSC_DTYPE_F32) {
        return MSC_FAIL(MSC_E_STATE, "the strategy quantises tensor %s, which is %s", e->tensor,
                        msc_dtype_name(t->dtype));
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

// Activations may have a scale per channel only for joints that keep channels apart.
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
static bool apply_to_site(const struct msc_strategy_edit *e, const struct msc_sites *sites,
                          int32_t tensor, const struct msc_edit *edits[]) {
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_site *site = &sites->sites[i];
        for (int32_t k = 0; site->tensor == tensor && k < site->n_slots; k++) {
            edits[site->slots[k]] = &e->edit;
        }
        if (site->tensor == tensor) {
            return true;
        }
    }
    return false;
}

static enum msc_status apply_edit(const struct msc_strategy_edit *e, const struct msc_graph *g,
                                  const struct msc_sites *sites, const struct msc_edit *edits[]) {
    int32_t tensor = msc_graph_find_tensor(g, e->tensor);
    bool found = false;
    if (tensor == MSC_NO_ID) {
        return MSC_FAIL(MSC_E_STATE, "the strategy names tensor %s, which the model does not have",
                        e->tensor);
    }
    MSC_TRY(strategy_check_fit(e, g, sites, tensor));
    if (sites->scheme.target) {
        found = apply_to_site(e, sites, tensor, edits);
    }
    for (int32_t i = 0; !sites->scheme.target && i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == tensor && names_joint(e, msc_graph_joint(g, slot->joint)->name)) {
            MSC_TRY(check_axis(e, g, slot));
            edits[i] = &e->edit;
            found = true;
        }
    }
    return found ? MSC_OK
                 : MSC_FAIL(MSC_E_STATE,
                            "the strategy quantises tensor %s, which no joint of the model reads "
                            "as such",
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
        return MSC_FAIL(MSC_E_STATE,
                        "%s: found with other weights than this model has, and its pruned channels "
                        "depend on them; search again",
                        name);
    }
    return MSC_FAIL(MSC_E_STATE,
                    "%s: found with other weights than this model has; mscgym export --model MODEL "
                    "--strategy %s --recalibrate --dataset INPUTS -o FILE keeps its choices and "
                    "recomputes the scales",
                    name, name);
}

enum msc_status msc_strategy__fail_fit(const struct msc_strategy *s, enum msc_status status) {
    return msc_status_prefix(status, "%s does not fit this model",
                             s->name ? s->name : "the strategy");
}

static enum msc_status apply_all(const struct msc_strategy *s, const struct msc_graph *g,
                                 const struct msc_sites *sites, const struct msc_edit *edits[]) {
    MSC_TRY(check_target(s, sites->scheme.target));
    for (size_t i = 0; i < s->n; i++) {
        enum msc_status status = apply_edit(&s->edits[i], g, sites, edits);
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
                        "it and use that",
                        s->name ? s->name : "the strategy");
    }
    MSC_TRY(apply_all(s, g, sites, edits));
    return msc_strategy_check_weights(s, g);
}

enum msc_status msc_strategy_apply_to_any(const struct msc_strategy *s, const struct msc_graph *g,
                                          const struct msc_sites *sites,
                                          const struct msc_edit *edits[]) {
    return apply_all(s, g, sites, edits);
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
