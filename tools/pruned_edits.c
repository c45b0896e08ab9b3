#include "tools/pruned_edits.h"

#include "graph/passes/prune.h"
#include "tools/pruner_internal.h"

#include <string.h>

// A pruned weight quantised to integers.
struct variant {
    const struct msc_prune_made *made;
    int32_t choice;
    struct msc_quant quant; // owned by the variant; n 0: not made yet
    struct msc_edit quantise, first;
    struct variant *next;
};

// The edits that remove channels of a tensor, followed by the edit `then`.
struct chain {
    const struct msc_prune_made *made;
    const struct msc_edit *then;
    struct msc_edit behind, first;
    struct chain *next;
};

struct of_consumer {
    int32_t site; // MSC_NO_ID: its slots belong to no site
    struct variant *variants;
    struct chain *chains;
};

struct msc_pruned_edits {
    struct msc_pruner *p;
    const struct msc_quantizer *q;
    struct msc_arena arena, made;  // `made`: freed by msc_pruned_edits_forget
    struct of_consumer *consumers; // [p->n_consumers]
    uint64_t made_bytes;
};

// ---- Making -----------------------------------------------------------------------------------

static int32_t site_of_slot(const struct msc_sites *sites, int32_t slot) {
    for (int32_t i = 0; i < sites->n_sites; i++) {
        for (int32_t k = 0; k < sites->sites[i].n_slots; k++) {
            if (sites->sites[i].slots[k] == slot) {
                return i;
            }
        }
    }
    return MSC_NO_ID;
}

enum msc_status msc_pruned_edits_create(struct msc_pruned_edits **out, struct msc_pruner *p,
                                        const struct msc_quantizer *q) {
    struct msc_pruned_edits *j = msc_alloc_zero(1, sizeof(*j));
    MSC_TRY(MSC_ALLOCATED(j));
    j->p = p;
    j->q = q;
    j->consumers = msc_arena_array(&j->arena, (size_t)p->n_consumers + 1, sizeof(j->consumers[0]));
    if (!j->consumers) {
        msc_pruned_edits_destroy(j);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (int32_t i = 0; i < p->n_consumers; i++) {
        j->consumers[i].site = site_of_slot(msc_quantizer_sites(q), p->consumers[i].slots[0]);
    }
    *out = j;
    return MSC_OK;
}

static void forget_variants(struct msc_pruned_edits *j) {
    for (int32_t i = 0; j->consumers && i < j->p->n_consumers; i++) {
        for (struct variant *v = j->consumers[i].variants; v; v = v->next) {
            msc_quant_finish(&v->quant);
        }
        j->consumers[i].variants = NULL;
        j->consumers[i].chains = NULL;
    }
    msc_arena_finish(&j->made);
    j->made_bytes = 0;
}

void msc_pruned_edits_forget(struct msc_pruned_edits *j) {
    forget_variants(j);
    msc_pruner_forget(j->p);
}

bool msc_pruned_edits_are_full(const struct msc_pruned_edits *j) {
    return msc_pruner_is_full(j->p) || j->made_bytes > j->p->memory_bytes;
}

void msc_pruned_edits_destroy(struct msc_pruned_edits *j) {
    if (j) {
        forget_variants(j);
        msc_arena_finish(&j->arena);
        msc_free(j);
    }
}

// ---- Weights ----------------------------------------------------------------------------------

// The quantizer's choice for a pruned weight at a point. MSC_NO_ID: the choice does not quantise to
// integers, or the consumer is not a pruned weight.
static int32_t choice_of(const struct msc_pruned_edits *j, int32_t consumer,
                         const struct msc_prune_made *made, const struct msc_pruned_point *point) {
    int32_t site = j->consumers[consumer].site;
    if (!j->p->consumers[consumer].is_weight || !made->has_edit || site == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    const struct msc_quant *quant = msc_quantizer_quant(j->q, site, point->choices[site]);
    return quant && quant->type == MSC_DTYPE_NONE ? point->choices[site] : MSC_NO_ID;
}

static struct variant *find_variant(const struct msc_pruned_edits *j, int32_t consumer,
                                    const struct msc_prune_made *made, int32_t choice) {
    struct variant *v = j->consumers[consumer].variants;
    while (v && (v->made != made || v->choice != choice)) {
        v = v->next;
    }
    return v;
}

// A variant to make.
struct work {
    struct variant *variant;
    int32_t consumer;
};

static enum msc_status list_point(struct msc_pruned_edits *j, struct work works[], size_t *n,
                                  const struct msc_pruned_point *point) {
    for (int32_t i = 0; i < j->p->n_consumers; i++) {
        const struct msc_prune_made *made = msc_pruner__find_made(&j->p->consumers[i], point->cuts);
        int32_t choice = choice_of(j, i, made, point);
        if (choice == MSC_NO_ID || find_variant(j, i, made, choice)) {
            continue;
        }
        struct variant *v = msc_arena_alloc(&j->made, sizeof(*v));
        MSC_TRY(MSC_ALLOCATED(v));
        *v = (struct variant){.made = made, .choice = choice, .next = j->consumers[i].variants};
        j->consumers[i].variants = v;
        works[(*n)++] = (struct work){v, i};
    }
    return MSC_OK;
}

// Second moments restricted to the remaining columns: rounding cannot compensate through removed
// columns.
static enum msc_status keep_moment(struct msc_moment *out, const struct msc_pruned_edits *j,
                                   const struct msc_consumer *c, const struct msc_prune_made *made,
                                   struct msc_arena *arena) {
    const struct msc_tensor *t = msc_graph_tensor(j->p->g, c->tensor);
    int64_t n = c->moment.n_columns, all = c->moment.n_groups * n;
    int64_t inner = msc_dims_product(t->n_dims - c->axis - 1, t->dims + c->axis + 1);
    struct msc_weight_rows rows;
    *out = c->moment;
    out->h = msc_arena_array(arena, (size_t)(all * n) + 1, sizeof(out->h[0]));
    out->means = msc_arena_array(arena, (size_t)all + 1, sizeof(out->means[0]));
    bool *stays = msc_arena_array(arena, (size_t)n + 1, sizeof(stays[0]));
    MSC_TRY(MSC_ALLOCATED(out->h && out->means && stays));
    MSC_TRY(msc_weight_rows_init(&rows, t, &j->p->sites.slots[c->slots[0]], &c->moment, arena));
    for (int64_t k = 0; k < n; k++) {
        stays[k] = made->is_kept[msc_weight_rows_element(&rows, 0, k) / inner % t->dims[c->axis]];
    }
    for (int64_t i = 0; i < all; i++) {
        out->means[i] = stays[i % n] ? c->moment.means[i] : 0;
        for (int64_t k = 0; k < n; k++) {
            bool both_stay = stays[i % n] && stays[k];
            out->h[i * n + k] = both_stay ? c->moment.h[i * n + k] : 0;
        }
    }
    return MSC_OK;
}

static enum msc_status make_variant(const struct msc_pruned_edits *j, const struct work *w,
                                    struct msc_arena *arena) {
    const struct msc_consumer *c = &j->p->consumers[w->consumer];
    struct variant *v = w->variant;
    struct msc_array *elements = NULL;
    struct msc_moment moment;
    bool has_moment = c->moment.n_groups > 0 && msc_quantizer_has_rounding(j->q);
    MSC_TRY(has_moment ? keep_moment(&moment, j, c, v->made, arena) : MSC_OK);
    MSC_TRY(
        msc_edit_elements(&elements, msc_graph_tensor(j->p->g, c->tensor)->data, &v->made->edit));
    const struct msc_quantizer_other of = {
        .elements = elements, .moment = has_moment ? &moment : NULL, .bias = v->made->elements[1]};
    enum msc_status status =
        msc_quantizer_fit(&v->quant, j->q, j->consumers[w->consumer].site, v->choice, &of);
    msc_array_release(elements);
    MSC_TRY(status);
    v->quantise = msc_edit_quantize(v->quant);
    if (v->quant.integers) { // the integers replace all elements
        v->first = v->quantise;
        return MSC_OK;
    }
    v->first = v->made->edit;
    v->first.next = &v->quantise;
    msc_edit_seal(&v->first);
    return MSC_OK;
}

// Messages are local to the thread that failed, so the message is set again here.
static enum msc_status make_all(const struct msc_pruned_edits *j, const struct work works[],
                                size_t n, int n_threads) {
    int worst = MSC_OK;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) reduction(min : worst)
    for (size_t i = 0; i < n; i++) {
        struct msc_arena arena = {0};
        int status = make_variant(j, &works[i], &arena);
        msc_arena_finish(&arena);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK
           : worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID,
                          "a pruned weight cannot be rounded with the second moments of its "
                          "inputs; use \"rounding\": \"nearest\"")
               : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static uint64_t bytes_of(const struct variant *v) {
    return (uint64_t)v->quant.n * 8 +
           (v->quant.integers ? msc_array_n_bytes(v->quant.integers) : 0);
}

static enum msc_status make_points(struct msc_pruned_edits *j,
                                   const struct msc_pruned_point points[], size_t n,
                                   int n_threads) {
    struct msc_arena arena = {0};
    size_t n_works = 0;
    struct work *works =
        msc_arena_array(&arena, n * (size_t)j->p->n_consumers + 1, sizeof(works[0]));
    const uint32_t **cuts = msc_arena_array(&arena, n + 1, sizeof(cuts[0]));
    enum msc_status status = MSC_ALLOCATED(works && cuts);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        cuts[i] = points[i].cuts;
    }
    if (status == MSC_OK) {
        status = msc_pruner_make(j->p, cuts, n, n_threads);
    }
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = list_point(j, works, &n_works, &points[i]);
    }
    if (status == MSC_OK) {
        status = make_all(j, works, n_works, n_threads);
    }
    for (size_t i = 0; status == MSC_OK && i < n_works; i++) {
        j->made_bytes += bytes_of(works[i].variant);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_pruned_edits_make(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point points[], size_t n,
                                      int n_threads) {
    enum msc_status status = make_points(j, points, n, n_threads);
    if (status != MSC_OK) {
        msc_pruned_edits_forget(j); // some edits are incomplete
    }
    return status;
}

// ---- Edits ------------------------------------------------------------------------------------

// The edit that first removes channels of a tensor, then applies `then` to the rest.
static enum msc_status get_chain(const struct msc_edit **out, struct msc_pruned_edits *j,
                                 int32_t consumer, const struct msc_prune_made *made,
                                 const struct msc_edit *then) {
    struct chain *c = j->consumers[consumer].chains;
    while (c && (c->made != made || c->then != then)) {
        c = c->next;
    }
    if (!c) {
        c = msc_arena_alloc(&j->made, sizeof(*c));
        MSC_TRY(MSC_ALLOCATED(c));
        *c = (struct chain){.made = made,
                            .then = then,
                            .behind = *then,
                            .first = made->edit,
                            .next = j->consumers[consumer].chains};
        c->first.next = &c->behind;
        msc_edit_seal(&c->first);
        j->consumers[consumer].chains = c;
    }
    *out = &c->first;
    return MSC_OK;
}

static enum msc_status fill_consumer(struct msc_pruned_edits *j, int32_t consumer,
                                     const struct msc_pruned_point *point,
                                     const struct msc_edit *edits[]) {
    const struct msc_consumer *c = &j->p->consumers[consumer];
    const struct msc_prune_made *made = msc_pruner__find_made(c, point->cuts);
    int32_t choice = choice_of(j, consumer, made, point);
    for (int32_t k = 0; made->has_edit && k < c->n_slots; k++) {
        const struct msc_edit **edit = &edits[c->slots[k]];
        if (!*edit) {
            *edit = &made->edit;
        } else if (choice != MSC_NO_ID) {
            *edit = &find_variant(j, consumer, made, choice)->first;
        } else {
            MSC_TRY(get_chain(edit, j, consumer, made, *edit));
        }
    }
    if (made->has_bias) {
        edits[c->bias_slot] = &made->bias;
    }
    return MSC_OK;
}

enum msc_status msc_pruned_edits_fill(struct msc_pruned_edits *j,
                                      const struct msc_pruned_point *point,
                                      const struct msc_edit *edits[]) {
    for (int32_t i = 0; i < j->p->n_consumers; i++) {
        MSC_TRY(fill_consumer(j, i, point, edits));
    }
    return MSC_OK;
}

const struct msc_quant *msc_pruned_edits_quant(const struct msc_pruned_edits *j,
                                               const struct msc_pruned_point *point, int32_t site) {
    for (int32_t i = 0; i < j->p->n_consumers; i++) {
        const struct msc_prune_made *made = msc_pruner__find_made(&j->p->consumers[i], point->cuts);
        int32_t choice = choice_of(j, i, made, point);
        if (j->consumers[i].site == site && choice != MSC_NO_ID) {
            return &find_variant(j, i, made, choice)->quant;
        }
    }
    return msc_quantizer_quant(j->q, site, point->choices[site]);
}

// ---- Remaining channels -----------------------------------------------------------------------

static bool stays_at(const struct msc_channels *channels, const struct msc_site *site, int axis,
                     int64_t index, const bool is_gone[]) {
    int32_t unit = msc_channels_unit(channels, site->tensor, axis, index);
    return unit == MSC_NO_ID || !is_gone[unit];
}

static enum msc_status cut_scales(struct msc_quant *out, const struct msc_quant *quant,
                                  const struct msc_channels *channels, const struct msc_site *site,
                                  const bool is_gone[], struct msc_arena *arena) {
    float *scales = msc_arena_array(arena, (size_t)quant->n, sizeof(scales[0]));
    int32_t *zeros = msc_arena_array(arena, (size_t)quant->n, sizeof(zeros[0]));
    MSC_TRY(MSC_ALLOCATED(scales && zeros));
    out->n = 0;
    for (int32_t i = 0; i < quant->n; i++) {
        if (stays_at(channels, site, quant->axis, i, is_gone)) {
            scales[out->n] = quant->scales[i];
            zeros[out->n++] = quant->zero_points[i];
        }
    }
    out->scales = scales;
    out->zero_points = zeros;
    return MSC_OK;
}

static enum msc_status cut_shifts(struct msc_quant *out, const struct msc_quant *quant,
                                  const struct msc_channels *channels, const struct msc_site *site,
                                  const bool is_gone[], struct msc_arena *arena) {
    const float *shifts = msc_array_data(quant->shifts);
    int64_t n = msc_array_n_elements(quant->shifts), n_left = 0;
    float *left = msc_arena_array(arena, (size_t)n + 1, sizeof(left[0]));
    struct msc_array *array;
    MSC_TRY(MSC_ALLOCATED(left));
    for (int64_t i = 0; i < n; i++) {
        if (stays_at(channels, site, site->channel_axis, i, is_gone)) {
            left[n_left++] = shifts[i];
        }
    }
    MSC_TRY(msc_array_create_from(&array, MSC_DTYPE_F32, 1, &n_left, left));
    out->shifts = array;
    return MSC_OK;
}

enum msc_status msc_pruned_quant(struct msc_quant *out, const struct msc_quant *quant,
                                 const struct msc_channels *channels, const struct msc_site *site,
                                 const bool is_gone[], struct msc_arena *arena) {
    struct msc_array *integers = NULL;
    *out = *quant;
    out->integers = out->shifts = NULL;
    if (quant->n > 1 && quant->axis >= 0) {
        MSC_TRY(cut_scales(out, quant, channels, site, is_gone, arena));
    }
    if (quant->shifts) {
        MSC_TRY(cut_shifts(out, quant, channels, site, is_gone, arena));
    }
    if (quant->integers) {
        enum msc_status status =
            msc_graph_prune_array(&integers, quant->integers, channels, site->tensor, is_gone);
        if (status != MSC_OK) {
            msc_array_release((struct msc_array *)out->shifts);
            return status;
        }
        out->integers = integers;
    }
    msc_quant_seal(out);
    return MSC_OK;
}
