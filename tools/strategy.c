#include "tools/strategy_internal.h"

#include "base/alloc.h"

#include <string.h>

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
        msc_free(s->multiplied);
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

bool msc_strategy__names_joint(const struct msc_strategy_edit *e, const char *joint) {
    for (size_t i = 0; i < e->n_joints; i++) {
        if (strcmp(e->joints[i], joint) == 0) {
            return true;
        }
    }
    return e->n_joints == 0;
}

// Removes from earlier edits the joints that `e` covers, or the whole tensor. If `e` is for some
// joints only, an earlier edit of the whole tensor remains for the other joints.
static void give_way(struct msc_strategy *s, const struct msc_strategy_edit *e) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct msc_strategy_edit *x = &s->edits[i];
        bool is_same = strcmp(x->tensor, e->tensor) == 0;
        size_t n = 0;
        for (size_t k = 0; is_same && k < x->n_joints; k++) {
            if (!msc_strategy__names_joint(e, x->joints[k])) {
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
            bool is_new = x->n_joints == 0 || !msc_strategy__names_joint(x, joint);
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
