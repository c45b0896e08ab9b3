#include "tools/pruner_internal.h"

#include "base/str.h"
#include "graph/wide.h"
#include "tools/linear_algebra.h"

#include <string.h>

const struct msc_channels *msc_pruner_channels(const struct msc_pruner *p) {
    return &p->channels;
}

const struct msc_sites *msc_pruner_sites(const struct msc_pruner *p) {
    return &p->sites;
}

int32_t msc_pruner_n_parts(const struct msc_pruner *p) {
    return p->n_parts;
}

int32_t msc_pruner_part_tensor(const struct msc_pruner *p, int32_t part) {
    return p->groups[part].tensor;
}

double msc_pruner_element_bytes(const struct msc_pruner *p, int32_t part) {
    return (double)msc_graph_own_bytes(p->g, p->groups[part].tensor);
}

bool msc_pruner_is_included(const struct msc_pruner *p, int32_t part) {
    return p->groups[part].is_included;
}

bool msc_pruner_is_cut(const struct msc_pruner *p, int32_t part) {
    return p->groups[part].is_included || p->groups[part].fixed_cut != p->groups[part].n_cuts;
}

size_t msc_pruner_fixed_cut(const struct msc_pruner *p, int32_t part) {
    return p->groups[part].fixed_cut;
}

static bool has_tensor(const struct msc_channel_group *group, int32_t tensor) {
    int32_t i = 0;
    while (i < group->n_axes && group->axes[i].tensor != tensor) {
        i++;
    }
    return i < group->n_axes;
}

enum msc_status msc_pruner_keep_whole(struct msc_pruner *p, int32_t tensor) {
    bool has_any = p->n_parts > p->channels.n_groups;
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        const struct msc_channel_group *of = &p->channels.groups[g];
        bool is_kept = has_tensor(of, tensor);
        if (is_kept && !p->groups[g].is_included && msc_pruner_is_cut(p, g)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "env.fix: %s is fixed to a part of its channels, but the loss compares "
                            "%s, which needs all of them",
                            of->name, msc_graph_tensor(p->g, tensor)->name);
        }
        p->groups[g].is_included = p->groups[g].is_included && !is_kept;
        has_any = has_any || p->groups[g].is_included;
    }
    return has_any
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "no channel can be pruned: each one belongs to a tensor that the loss "
                          "compares, or is excluded");
}

size_t msc_pruner_n_cuts(const struct msc_pruner *p, int32_t part) {
    return p->groups[part].n_cuts;
}

const struct msc_prune_cut *msc_pruner_cut(const struct msc_pruner *p, int32_t part, size_t cut) {
    return &p->groups[part].cuts[cut];
}

size_t msc_pruner_cut_of(const struct msc_pruner *p, int32_t part, size_t choice) {
    return p->groups[part].cut_of[choice];
}

bool msc_pruner_uses(const struct msc_pruner *p, enum msc_criterion criterion) {
    for (size_t i = 0; i < p->options->n_all; i++) {
        const struct msc_prune_choice *choice = &p->options->choices[i];
        if (!choice->is_sparse && choice->density < 1 && choice->criterion == criterion) {
            return true;
        }
    }
    return false;
}

// ---- Making -----------------------------------------------------------------------------------

enum msc_status msc_pruner_create(struct msc_pruner **out, const struct msc_graph *g,
                                  const struct msc_pruner_options *options, uint64_t memory_bytes) {
    struct msc_pruner *p = msc_alloc_zero(1, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p));
    msc_linear_algebra_begin();
    p->g = g;
    p->options = options;
    p->memory_bytes = memory_bytes;
    enum msc_status status = msc_pruner__list_parts(p);
    if (status != MSC_OK) {
        msc_pruner_destroy(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}

static void forget_made(struct msc_pruner *p) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        for (struct msc_prune_made *m = p->consumers[i].made; m; m = m->next) {
            msc_array_release(m->elements[0]);
            msc_array_release(m->elements[1]);
        }
        p->consumers[i].made = NULL;
    }
    msc_arena_finish(&p->made);
    p->made_bytes = 0;
}

void msc_pruner_destroy(struct msc_pruner *p) {
    if (!p) {
        return;
    }
    forget_made(p);
    for (int32_t i = 0; i < p->n_consumers; i++) {
        msc_moment_finish(&p->consumers[i].moment);
    }
    msc_channels_finish(&p->channels);
    msc_sites_finish(&p->sites);
    msc_arena_finish(&p->arena);
    msc_free(p);
}

// ---- Points -----------------------------------------------------------------------------------

void msc_pruner_mark(const struct msc_pruner *p, const uint32_t cuts[], bool is_gone[]) {
    memset(is_gone, 0, (size_t)p->channels.n_units * sizeof(is_gone[0]));
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        const struct msc_prune_cut *cut = &p->groups[g].cuts[cuts[g]];
        const struct msc_channel_group *group = &p->channels.groups[g];
        enum msc_criterion criterion = p->options->choices[cut->choice].criterion;
        for (int32_t i = 0; i < group->n_units - cut->n_kept; i++) {
            is_gone[group->first_unit + p->groups[g].orders[criterion][i]] = true;
        }
    }
}

struct msc_prune_made *msc_pruner__find_made(const struct msc_consumer *c, const uint32_t cuts[]) {
    for (struct msc_prune_made *m = c->made; m; m = m->next) {
        bool is_it = true;
        for (int32_t i = 0; i < c->n_groups; i++) {
            is_it = is_it && m->cuts[i] == cuts[c->groups[i]];
        }
        if (is_it) {
            return m;
        }
    }
    return NULL;
}

static enum msc_status add_made(struct msc_prune_made **out, struct msc_pruner *p,
                                struct msc_consumer *c, const uint32_t cuts[]) {
    const struct msc_tensor *t = msc_graph_tensor(p->g, c->tensor);
    struct msc_prune_made *m = msc_arena_alloc(&p->made, sizeof(*m));
    uint32_t *own = msc_arena_array(&p->made, (size_t)c->n_groups + 1, sizeof(own[0]));
    int64_t n = t->dims[c->axis];
    MSC_TRY(MSC_ALLOCATED(m && own));
    m->is_kept = msc_arena_array(&p->made, (size_t)n + 1, sizeof(m->is_kept[0]));
    MSC_TRY(MSC_ALLOCATED(m->is_kept));
    for (int32_t i = 0; i < c->n_groups; i++) {
        own[i] = cuts[c->groups[i]];
    }
    m->cuts = own;
    m->next = c->made;
    c->made = m;
    p->made_bytes += (uint64_t)n + (t->data ? msc_array_n_bytes(t->data) : 0);
    *out = m;
    return MSC_OK;
}

// A consumer's edits to make.
struct making {
    struct msc_prune_made *made;
    const struct msc_consumer *consumer;
    const bool *is_gone; // [n_units]
    struct msc_arena arena;
};

// Messages are local to the thread that failed, so the message is set again here.
static enum msc_status make_all(struct msc_pruner *p, struct making works[], size_t n,
                                int n_threads) {
    int worst = MSC_OK;
#pragma omp parallel for num_threads(n_threads) schedule(dynamic) reduction(min : worst)
    for (size_t i = 0; i < n; i++) {
        struct making *w = &works[i];
        int status = msc_pruner__repair(w->made, p, w->consumer, w->is_gone, &w->arena);
        msc_arena_finish(&w->arena);
        worst = status < worst ? status : worst;
    }
    return worst == MSC_OK ? MSC_OK
           : worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID,
                          "weights cannot be fitted, because the second moments of their inputs "
                          "are not finite or not positive definite; check the dataset")
               : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static enum msc_status list_works(struct msc_pruner *p, struct making works[], size_t *n_works,
                                  const uint32_t cuts[], const bool is_gone[]) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        struct msc_consumer *c = &p->consumers[i];
        if (!msc_pruner__find_made(c, cuts)) {
            struct making *w = &works[*n_works];
            *w = (struct making){.consumer = c, .is_gone = is_gone};
            MSC_TRY(add_made(&w->made, p, c, cuts));
            (*n_works)++;
        }
    }
    return MSC_OK;
}

enum msc_status msc_pruner_make(struct msc_pruner *p, const uint32_t *const points[], size_t n,
                                int n_threads) {
    struct msc_arena arena = {0};
    size_t n_units = (size_t)p->channels.n_units, n_works = 0;
    bool *is_gone = msc_arena_array(&arena, n * n_units + 1, sizeof(is_gone[0]));
    struct making *works =
        msc_arena_array(&arena, n * (size_t)p->n_consumers + 1, sizeof(works[0]));
    enum msc_status status = MSC_ALLOCATED(is_gone && works);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        msc_pruner_mark(p, points[i], is_gone + i * n_units);
        status = list_works(p, works, &n_works, points[i], is_gone + i * n_units);
    }
    if (status == MSC_OK) {
        status = make_all(p, works, n_works, n_threads);
    }
    if (status != MSC_OK) {
        forget_made(p); // some edits are incomplete
    }
    msc_arena_finish(&arena);
    return status;
}

void msc_pruner_fill(const struct msc_pruner *p, const uint32_t cuts[],
                     const struct msc_edit *edits[]) {
    memset(edits, 0, (size_t)p->sites.n_slots * sizeof(edits[0]));
    for (int32_t i = 0; i < p->n_consumers; i++) {
        const struct msc_consumer *c = &p->consumers[i];
        const struct msc_prune_made *m = msc_pruner__find_made(c, cuts);
        for (int32_t k = 0; k < c->n_slots; k++) {
            edits[c->slots[k]] = m->has_edit ? &m->edit : NULL;
        }
        if (m->has_bias) {
            edits[c->bias_slot] = &m->bias;
        }
    }
}

bool msc_pruner_is_full(const struct msc_pruner *p) {
    return p->made_bytes > p->memory_bytes;
}

void msc_pruner_forget(struct msc_pruner *p) {
    forget_made(p);
}

enum msc_status msc_pruner_each_replaced(const struct msc_pruner *p, const uint32_t cuts[],
                                         enum msc_status (*take)(void *payload, int32_t tensor,
                                                                 const struct msc_array *elements),
                                         void *payload) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        const struct msc_consumer *c = &p->consumers[i];
        const struct msc_prune_made *m = msc_pruner__find_made(c, cuts);
        if (m->elements[0]) {
            MSC_TRY(take(payload, c->tensor, m->elements[0]));
        }
        if (m->elements[1]) {
            MSC_TRY(take(payload, p->sites.slots[c->bias_slot].tensor, m->elements[1]));
        }
    }
    return MSC_OK;
}
