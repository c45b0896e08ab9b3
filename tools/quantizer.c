#include "tools/quantizer_internal.h"

#include "base/str.h"
#include "tools/bias_edits.h"
#include "tools/linear_algebra.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

static bool matches_any(const char *const patterns[], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (msc_glob_match(patterns[i], name)) {
            return true;
        }
    }
    return false;
}

static int32_t find_label(const struct msc_quantizer *q, const char *label) {
    for (size_t i = 0; i < q->n_choices; i++) {
        if (strcmp(q->choices[i].label, label) == 0) {
            return (int32_t)i;
        }
    }
    return MSC_NO_ID;
}

static bool site_matches(const struct msc_quantizer *q, int32_t site, const char *const patterns[],
                         size_t n) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    return matches_any(patterns, n, s->name) || (t->alias[0] && matches_any(patterns, n, t->alias));
}

// False if the type is not float32, the tensor is empty or its scheme stays float.
static bool can_be_quantised(const struct msc_quantizer *q, int32_t site) {
    const struct msc_tensor *t = msc_graph_tensor(q->graph, q->sites.sites[site].tensor);
    bool is_weight = q->sites.sites[site].kind == MSC_SITE_WEIGHT;
    bool is_left = is_weight ? q->weights.is_float : q->activations.is_float;
    return t->dtype == MSC_DTYPE_F32 && msc_tensor_n_elements(t) != 0 && !is_left;
}

// A choice is passed over by sites that do not support it: a dynamic choice by some activations,
// blocks by weights with other lengths of rows.
static bool is_fixed_by(const struct msc_quantizer *q, int32_t site,
                        const struct msc_fixed_site *fixed) {
    int32_t choice = find_label(q, fixed->label);
    bool is_passed = choice != MSC_NO_ID && !q->sites.sites[site].takes_dynamic &&
                     msc_quantizer__is_dynamic(q, site, (size_t)choice);
    is_passed =
        is_passed || (choice != MSC_NO_ID && !msc_quantizer__takes_blocks(q, site, (size_t)choice));
    return !is_passed && site_matches(q, site, &fixed->pattern, 1);
}

static void find_included(struct msc_quantizer *q, const struct msc_quantizer_options *o) {
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        q->included[i] = can_be_quantised(q, i) &&
                         (o->n_include == 0 || site_matches(q, i, o->include, o->n_include)) &&
                         !site_matches(q, i, o->exclude, o->n_exclude);
        q->fixed[i] = MSC_NO_ID;
        for (size_t f = 0; f < o->n_fixed; f++) {
            if (is_fixed_by(q, i, &o->fixed[f])) {
                int32_t choice = find_label(q, o->fixed[f].label);
                q->fixed[i] = choice == MSC_NO_ID ? MSC_FIXED_FLOAT : choice;
            }
        }
    }
}

static enum msc_status fail_no_site(const struct msc_quantizer *q) {
    const struct msc_tensor *first = msc_graph_tensor(q->graph, q->sites.sites[0].tensor);
    int32_t n_float32 = 0;
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        n_float32 += msc_graph_tensor(q->graph, q->sites.sites[i].tensor)->dtype == MSC_DTYPE_F32;
    }
    return n_float32 == 0 ? MSC_FAIL(MSC_E_UNSUPPORTED,
                                     "none of the %d sites is float32 (the first is %s), and only "
                                     "float32 can be quantised; export the model in float32",
                                     q->sites.n_sites, msc_dtype_name(first->dtype))
                          : MSC_FAIL(MSC_E_INVALID,
                                     "no site is left to quantise: the graph has %d, but include, "
                                     "exclude and outputs drop all of them",
                                     q->sites.n_sites);
}

static enum msc_status select_sites(struct msc_quantizer *q,
                                    const struct msc_quantizer_options *o) {
    size_t n_used = 0;
    find_included(q, o);
    if (o->n_outputs > 0) {
        MSC_TRY(msc_quantizer_keep_part(q, o->outputs, o->n_outputs));
    }
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        n_used += q->included[i];
    }
    return n_used > 0 ? MSC_OK : fail_no_site(q);
}

// A pattern that matches nothing is probably misspelt.
static enum msc_status check_patterns(const struct msc_quantizer *q, const char *const patterns[],
                                      size_t n, const char *key) {
    for (size_t p = 0; p < n; p++) {
        bool found = false;
        for (int32_t i = 0; i < q->sites.n_sites && !found; i++) {
            found = site_matches(q, i, &patterns[p], 1);
        }
        if (!found) {
            char listing[MSC_QUANTIZER_LISTING_BYTES];
            return MSC_FAIL(MSC_E_INVALID, "env.%s: \"%s\" matches no site; `%s` lists them", key,
                            patterns[p], msc_quantizer__listing(listing, q));
        }
    }
    return MSC_OK;
}

// Fails if the choice fits no tensor that matches.
static enum msc_status check_fixed(const struct msc_quantizer *q,
                                   const struct msc_fixed_site *fixed) {
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        if (is_fixed_by(q, i, fixed)) {
            return MSC_OK;
        }
    }
    bool is_dynamic = q->choices[find_label(q, fixed->label)].is_dynamic;
    return MSC_FAIL(
        MSC_E_INVALID,
        is_dynamic ? "env.fix: \"%s\" matches no tensor that can be quantised dynamically: only "
                     "inputs of linear layers with a constant matrix can"
                   : "env.fix: \"%s\" matches no weight whose rows fill the blocks of %s",
        fixed->pattern, fixed->label);
}

// Float types and dynamic quantisations need no observation.
static void set_without_scales(struct msc_quantizer *q) {
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        for (size_t c = 0; c < q->n_choices && msc_quantizer__is_used(q, i); c++) {
            struct msc_edit *edit = &q->edits[(size_t)i * q->n_choices + c];
            if (q->choices[c].type != MSC_DTYPE_NONE) {
                *edit = msc_edit_quantize(msc_quant_of_float(q->choices[c].type));
            } else if (msc_quantizer__is_dynamic(q, i, c) && q->sites.sites[i].takes_dynamic) {
                *edit = msc_edit_quantize(msc_quant_dynamic());
            }
        }
    }
}

static enum msc_status quantizer_init(struct msc_quantizer *q,
                                      const struct msc_quantizer_options *o) {
    const struct msc_target *target = o->all_sites ? o->target : NULL;
    const struct msc_site_scheme scheme = {.by_use = o->group != MSC_GROUP_TENSOR && !target,
                                           .target = target};
    MSC_TRY(msc_sites_find(&q->sites, q->graph, &scheme));
    size_t n_sites = (size_t)q->sites.n_sites;
    q->n_choices = o->n_choices;
    q->moment_rows = o->moment_rows;
    q->moment_columns = o->moment_columns;
    q->least_rows = o->least_rows;
    q->choices = msc_arena_array(&q->arena, o->n_choices + 1, sizeof(q->choices[0]));
    q->included = msc_arena_array(&q->arena, n_sites + 1, sizeof(bool));
    q->left = msc_arena_array(&q->arena, n_sites + 1, sizeof(bool));
    q->fixed = msc_arena_array(&q->arena, n_sites + 1, sizeof(int32_t));
    q->edits = msc_arena_array(&q->arena, n_sites * o->n_choices + 1, sizeof(q->edits[0]));
    q->held = msc_arena_array(&q->arena, n_sites * o->n_choices + 1, sizeof(q->held[0]));
    MSC_TRY(MSC_ALLOCATED(q->choices && q->included && q->left && q->fixed && q->edits));
    memcpy(q->choices, o->choices, o->n_choices * sizeof(q->choices[0]));
    q->group = o->group;
    q->weights = o->weights;
    q->activations = o->activations;
    q->has_lowest = !o->target || !o->target->narrow_weights;
    if (n_sites == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "graph %s has nothing to quantise: no convolution, linear layer, matrix "
                        "product, recurrent layer or embedding; bodies of If, Loop and Scan stay "
                        "float",
                        msc_graph_name(q->graph));
    }
    MSC_TRY(check_patterns(q, o->include, o->n_include, "include"));
    MSC_TRY(check_patterns(q, o->exclude, o->n_exclude, "exclude"));
    for (size_t i = 0; i < o->n_fixed; i++) {
        MSC_TRY(check_patterns(q, &o->fixed[i].pattern, 1, "fix"));
        MSC_TRY(check_fixed(q, &o->fixed[i]));
    }
    MSC_TRY(select_sites(q, o));
    MSC_TRY(msc_quantizer__read_importance(q, o));
    MSC_TRY(msc_quantizer__apply_rules(q, o));
    set_without_scales(q);
    return MSC_OK;
}

static bool reads_site(const struct msc_plan *plan, const struct msc_site *site) {
    for (int32_t k = 0; k < site->n_slots; k++) {
        if (plan->bound_slots[site->slots[k]] == MSC_NO_ID) {
            return false;
        }
    }
    return true;
}

// Every plan must read all slots of a site, because the exported model quantises all of them. The
// outline must read these slots as well, because it knows more constants than the plans of large
// batches.
static bool is_reached(const struct msc_evaluator *ev, const struct msc_plan *outline,
                       const struct msc_site *site) {
    size_t n_batches = msc_dataset_n_batches(msc_evaluator_dataset(ev));
    const struct msc_plan *before = outline;
    bool is_read = reads_site(outline, site);
    for (size_t b = 0; is_read && b < n_batches; b++) {
        const struct msc_plan *plan = msc_evaluator_plan(ev, b);
        is_read = plan == before || reads_site(plan, site);
        before = plan;
    }
    return is_read;
}

enum msc_status msc_quantizer_leave_constants(struct msc_quantizer *q, struct msc_evaluator *ev,
                                              int32_t *n_left) {
    struct msc_outline outline;
    int32_t n_used = 0;
    MSC_TRY(msc_evaluator_outline(&outline, ev));
    *n_left = 0;
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        bool is_left = q->included[i] && !is_reached(ev, outline.plan, &q->sites.sites[i]);
        q->included[i] = q->included[i] && !is_left;
        *n_left += is_left;
        n_used += q->included[i];
    }
    return n_used > 0 ? MSC_OK
                      : MSC_FAIL(MSC_E_INVALID,
                                 "no site is left to quantise: all of them are constant once "
                                 "the input lengths are known");
}

enum msc_status msc_quantizer_create(struct msc_quantizer **out, const struct msc_graph *graph,
                                     const struct msc_quantizer_options *options) {
    struct msc_quantizer *q = msc_alloc_zero(1, sizeof(*q));
    MSC_TRY(MSC_ALLOCATED(q));
    msc_linear_algebra_begin();
    q->graph = graph;
    enum msc_status status = quantizer_init(q, options);
    if (status != MSC_OK) {
        msc_quantizer_destroy(q);
        return status;
    }
    *out = q;
    return MSC_OK;
}

static void release_arrays(struct msc_edit *edit) {
    msc_array_release((struct msc_array *)edit->quant.integers);
    msc_array_release((struct msc_array *)edit->quant.shifts);
}

void msc_quantizer_destroy(struct msc_quantizer *q) {
    if (q) {
        for (size_t i = 0; q->edits && i < (size_t)q->sites.n_sites * q->n_choices; i++) {
            release_arrays(&q->edits[i]);
        }
        msc_array_list_finish(&q->importance);
        msc_sites_finish(&q->sites);
        msc_arena_finish(&q->arena);
        msc_free(q);
    }
}

const struct msc_sites *msc_quantizer_sites(const struct msc_quantizer *q) {
    return &q->sites;
}

size_t msc_quantizer_n_choices(const struct msc_quantizer *q) {
    return q->n_choices;
}

const struct msc_choice *msc_quantizer_choice(const struct msc_quantizer *q, size_t choice) {
    return &q->choices[choice];
}

size_t msc_quantizer_first_choice(const struct msc_quantizer *q, enum msc_site_kind kind,
                                  size_t choice) {
    const struct msc_choice *c = &q->choices[choice];
    for (size_t i = 0; i < choice; i++) {
        const struct msc_choice *other = &q->choices[i];
        bool is_percentile = c->observers[kind] == MSC_OBSERVER_PERCENTILE;
        bool is_dynamic = kind == MSC_SITE_ACTIVATION && c->is_dynamic;
        bool is_other_dynamic = kind == MSC_SITE_ACTIVATION && other->is_dynamic;
        if (is_dynamic && is_other_dynamic) {
            return i;
        }
        if (other->is_float == c->is_float && other->type == c->type && other->bits == c->bits &&
            other->blocks == c->blocks && is_dynamic == is_other_dynamic &&
            (kind != MSC_SITE_WEIGHT ||
             (other->group_size == c->group_size && other->rounding == c->rounding &&
              other->correction == c->correction)) &&
            other->observers[kind] == c->observers[kind] && other->range_scale == c->range_scale &&
            (!is_percentile || other->percentile == c->percentile)) {
            return i;
        }
    }
    return choice;
}

enum msc_site_group msc_quantizer_group(const struct msc_quantizer *q) {
    return q->group;
}

bool msc_quantizer_is_included(const struct msc_quantizer *q, int32_t site) {
    return q->included[site];
}

int32_t msc_quantizer_fixed_choice(const struct msc_quantizer *q, int32_t site) {
    return q->fixed[site];
}

bool msc_quantizer__is_dynamic(const struct msc_quantizer *q, int32_t site, size_t choice) {
    return q->choices[choice].is_dynamic && q->sites.sites[site].kind == MSC_SITE_ACTIVATION;
}

bool msc_quantizer__has_scales(const struct msc_quantizer *q, int32_t site, size_t choice) {
    const struct msc_choice *c = &q->choices[choice];
    return !c->is_float && c->type == MSC_DTYPE_NONE &&
           !msc_quantizer__is_dynamic(q, site, choice) &&
           msc_quantizer__takes_blocks(q, site, choice);
}

struct msc_observation msc_quantizer__observation(const struct msc_quantizer *q, int32_t site,
                                                  int32_t choice) {
    bool is_weight = q->sites.sites[site].kind == MSC_SITE_WEIGHT;
    const struct msc_operand_scheme *scheme = is_weight ? &q->weights : &q->activations;
    const struct msc_choice *c = &q->choices[choice];
    enum msc_observer observer = c->observers[q->sites.sites[site].kind];
    bool is_hessian = observer == MSC_OBSERVER_HESSIAN;
    // The scales until the second moments are known, or of a weight without moments.
    enum msc_observer first = c->group_size > 0
                                  ? MSC_OBSERVER_MSE
                                  : msc_quantizer__auto_observer(MSC_SITE_WEIGHT, c->bits);
    return (struct msc_observation){.observer = is_hessian ? first : observer,
                                    .percentile = c->percentile,
                                    .scheme = {.bits = c->bits,
                                               .is_symmetric = scheme->is_symmetric,
                                               .is_weight = is_weight,
                                               .has_lowest = is_hessian && q->has_lowest,
                                               .cut = msc_quantizer__cut(q, site)}};
}

struct msc_quant msc_quantizer__form(const struct msc_quantizer *q, int32_t site, int32_t choice) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    bool is_weight = s->kind == MSC_SITE_WEIGHT;
    const struct msc_operand_scheme *scheme = is_weight ? &q->weights : &q->activations;
    struct msc_observation o = msc_quantizer__observation(q, site, choice);
    struct msc_quant form = {.bits = o.scheme.bits, .axis = -1, .n = 1};
    if (q->choices[choice].blocks) {
        return msc_quant_of_blocks(q->choices[choice].blocks, s->group_axis, NULL);
    }
    msc_scheme_limits(&o.scheme, &form.low, &form.high);
    if (is_weight && q->choices[choice].group_size > 0) {
        form.axis = s->group_axis;
        form.group_axes = s->group_axes;
        form.group_size = q->choices[choice].group_size;
        int64_t length = msc_dims_product(form.group_axes, t->dims + form.axis);
        int64_t blocks = (length + form.group_size - 1) / form.group_size;
        form.n = (int32_t)(msc_tensor_n_elements(t) / length * blocks);
    } else if (scheme->is_per_channel && s->channel_axis >= 0) {
        form.axis = s->channel_axis;
        form.n = (int32_t)t->dims[s->channel_axis];
    }
    return form;
}

enum msc_status msc_quantizer__set(struct msc_quantizer *q, int32_t site, int32_t choice,
                                   const struct msc_quant *from) {
    struct msc_edit *edit = &q->edits[(size_t)site * q->n_choices + (size_t)choice];
    struct msc_quant form = msc_quantizer__form(q, site, choice);
    size_t n = (size_t)form.n;
    float *s = msc_arena_array(&q->arena, n, sizeof(s[0]));
    int32_t *z = msc_arena_array(&q->arena, n, sizeof(z[0]));
    MSC_TRY(MSC_ALLOCATED(s && z));
    memcpy(s, from->scales, n * sizeof(s[0]));
    memcpy(z, from->zero_points, n * sizeof(z[0]));
    msc_quantizer__fix_scale(s, z, q, site, &form);
    form.scales = s;
    form.zero_points = z;
    form.integers = from->integers ? msc_array_retain(from->integers) : NULL;
    form.shifts = from->shifts ? msc_array_retain(from->shifts) : NULL;
    release_arrays(edit);
    *edit = msc_edit_quantize(form);
    return MSC_OK;
}

const struct msc_edit *msc_quantizer_edit(const struct msc_quantizer *q, int32_t site,
                                          int32_t choice) {
    if (choice < 0) {
        return NULL;
    }
    const struct msc_edit *edit = &q->edits[(size_t)site * q->n_choices + (size_t)choice];
    return edit->quant.bits > 0 ? edit : NULL;
}

const struct msc_quant *msc_quantizer_quant(const struct msc_quantizer *q, int32_t site,
                                            int32_t choice) {
    return msc_edit_quant(msc_quantizer_edit(q, site, choice));
}

struct msc_quantizer_held msc_quantizer_held(const struct msc_quantizer *q, int32_t site,
                                             int32_t choice) {
    return q->held[(size_t)site * q->n_choices + (size_t)choice];
}

bool msc_quantizer_origin(struct msc_strategy_origin *out, const struct msc_quantizer *q,
                          int32_t site, int32_t choice) {
    if (choice < 0 || !msc_quantizer__has_scales(q, site, (size_t)choice)) {
        return false;
    }
    struct msc_observation o = msc_quantizer__observation(q, site, choice);
    bool is_weight = q->sites.sites[site].kind == MSC_SITE_WEIGHT;
    *out = (struct msc_strategy_origin){
        .observer = is_weight ? q->choices[choice].observers[MSC_SITE_WEIGHT] : o.observer,
        .percentile = o.percentile,
        .range_scale = q->choices[choice].range_scale,
        .rounding = is_weight ? q->choices[choice].rounding : MSC_ROUNDING_NEAREST,
        .correction = is_weight ? q->choices[choice].correction : MSC_CORRECTION_NONE,
        .is_symmetric = o.scheme.is_symmetric};
    return true;
}
