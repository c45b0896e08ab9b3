#include "tools/pruner_internal.h"

#include "base/str.h"

#include <string.h>

enum msc_status msc_pruner__no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for pruning");
}

const struct msc_channels *msc_pruner_channels(const struct msc_pruner *p) {
    return &p->channels;
}

const struct msc_sites *msc_pruner_sites(const struct msc_pruner *p) {
    return &p->sites;
}

bool msc_pruner_is_included(const struct msc_pruner *p, int32_t group) {
    return p->groups[group].is_included;
}

enum msc_status msc_pruner_keep_whole(struct msc_pruner *p, int32_t tensor) {
    bool has_any = false;
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        const struct msc_channel_group *of = &p->channels.groups[g];
        for (int32_t i = 0; i < of->n_axes; i++) {
            p->groups[g].is_included = p->groups[g].is_included && of->axes[i].tensor != tensor;
        }
        has_any = has_any || p->groups[g].is_included;
    }
    return has_any ? MSC_OK
                   : MSC_FAIL(MSC_E_INVALID,
                              "every channel that could go is one of a tensor that is compared, or "
                              "left out");
}

size_t msc_pruner_n_cuts(const struct msc_pruner *p, int32_t group) {
    return p->groups[group].n_cuts;
}

const struct msc_prune_cut *msc_pruner_cut(const struct msc_pruner *p, int32_t group, size_t cut) {
    return &p->groups[group].cuts[cut];
}

size_t msc_pruner_cut_of(const struct msc_pruner *p, int32_t group, size_t choice) {
    return p->groups[group].cut_of[choice];
}

bool msc_pruner_uses(const struct msc_pruner *p, enum msc_criterion criterion) {
    for (size_t i = 0; i < p->options->n_choices; i++) {
        if (p->options->choices[i].density < 1 && p->options->choices[i].criterion == criterion) {
            return true;
        }
    }
    return false;
}

// ---- Cuts -------------------------------------------------------------------------------------

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Units that are a multiple of `round_to` channels wherever weights make them; 1 where there are not
// two of them.
static int64_t step_of(const struct msc_pruner *p, const struct msc_channel_group *group) {
    int64_t step = 1;
    for (int32_t i = 0; i < group->n_axes; i++) {
        int64_t to = p->options->round_to;
        int64_t n = to / common_divisor(to, group->axes[i].n);
        if (group->axes[i].roles & MSC_CHANNEL_MAKES) {
            step = step / common_divisor(step, n) * n;
        }
    }
    return group->n_units < 2 * step ? 1 : step;
}

static int32_t count_kept(const struct msc_pruner *p, const struct msc_channel_group *group,
                          double density) {
    int64_t step = step_of(p, group);
    int64_t n = (int64_t)(density * (double)group->n_units / (double)step + 0.5) * step;
    n = density >= 1 || n > group->n_units ? group->n_units : n;
    return (int32_t)(n < step ? step : n);
}

static bool is_same_cut(const struct msc_pruner *p, const struct msc_prune_cut *cut, size_t choice,
                        int32_t n_kept, int32_t n_units) {
    const struct msc_prune_choice *choices = p->options->choices;
    return cut->n_kept == n_kept &&
           (n_kept == n_units || choices[cut->choice].criterion == choices[choice].criterion);
}

static bool matches_any(const char *const patterns[], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (msc_glob_match(patterns[i], name)) {
            return true;
        }
    }
    return false;
}

static enum msc_status list_cuts(struct msc_pruner *p, int32_t index) {
    const struct msc_pruner_options *o = p->options;
    const struct msc_channel_group *of = &p->channels.groups[index];
    struct msc_pruner_group *group = &p->groups[index];
    group->cuts = msc_arena_array(&p->arena, o->n_choices + 1, sizeof(group->cuts[0]));
    group->cut_of = msc_arena_array(&p->arena, o->n_choices + 1, sizeof(group->cut_of[0]));
    if (!group->cuts || !group->cut_of) {
        return msc_pruner__no_memory();
    }
    group->is_included = (o->n_include == 0 || matches_any(o->include, o->n_include, of->name)) &&
                         !matches_any(o->exclude, o->n_exclude, of->name);
    for (size_t i = 0; i < o->n_choices; i++) {
        int32_t n = count_kept(p, of, o->choices[i].density);
        size_t cut = 0;
        while (cut < group->n_cuts && !is_same_cut(p, &group->cuts[cut], i, n, of->n_units)) {
            cut++;
        }
        if (cut == group->n_cuts) {
            group->cuts[group->n_cuts++] = (struct msc_prune_cut){i, n};
        }
        group->cut_of[i] = (uint32_t)cut;
    }
    group->cuts[group->n_cuts] = (struct msc_prune_cut){0, of->n_units};
    return MSC_OK;
}

static enum msc_status list_groups(struct msc_pruner *p) {
    bool has_any = false;
    p->groups = msc_arena_array(&p->arena, (size_t)p->channels.n_groups + 1, sizeof(p->groups[0]));
    if (!p->groups) {
        return msc_pruner__no_memory();
    }
    for (int32_t i = 0; i < p->channels.n_groups; i++) {
        MSC_TRY(list_cuts(p, i));
        has_any = has_any || p->groups[i].is_included;
    }
    return has_any ? MSC_OK
                   : MSC_FAIL(MSC_E_INVALID, p->channels.n_groups == 0
                                                 ? "no channel of the network can go"
                                                 : "env.include and env.exclude leave no group of "
                                                   "channels; mscgym graph --channels lists them");
}

// ---- Consumers --------------------------------------------------------------------------------

// How many operands are the tensor, or what a `constant` joint makes of it.
static int32_t count_uses(const struct msc_graph *g, int32_t tensor) {
    int32_t n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; j->op != MSC_OP_CONSTANT && k < j->n_operands; k++) {
            n += j->operands[k] != MSC_NO_ID && msc_graph_weight_of(g, j->operands[k]) == tensor;
        }
    }
    return n;
}

// The bias of a weight's joint, where nothing else reads it.
static int32_t find_bias(const struct msc_pruner *p, const struct msc_slot *weight) {
    const struct msc_sites *sites = &p->sites;
    for (int32_t i = sites->n_site_slots; i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->joint == weight->joint) {
            const struct msc_tensor *t = msc_graph_tensor(p->g, slot->tensor);
            bool is_own =
                t->data && t->dtype == MSC_DTYPE_F32 && count_uses(p->g, slot->tensor) == 1;
            return is_own ? i : MSC_NO_ID;
        }
    }
    return MSC_NO_ID;
}

static int32_t group_of_unit(const struct msc_pruner *p, int32_t unit) {
    int32_t g = 0;
    while (unit >= p->channels.groups[g].first_unit + p->channels.groups[g].n_units) {
        g++;
    }
    return g;
}

// The groups along the axis, once each, in the order of their first index.
static enum msc_status list_read_groups(struct msc_pruner *p, struct msc_consumer *c) {
    int64_t n = msc_graph_tensor(p->g, c->tensor)->dims[c->axis];
    bool *is_listed = msc_arena_array(&p->arena, (size_t)p->channels.n_groups, sizeof(bool));
    c->groups = msc_arena_array(&p->arena, (size_t)p->channels.n_groups, sizeof(c->groups[0]));
    if (!is_listed || !c->groups) {
        return msc_pruner__no_memory();
    }
    for (int64_t i = 0; i < n; i++) {
        int32_t unit = msc_channels_unit(&p->channels, c->tensor, c->axis, i);
        int32_t group = unit == MSC_NO_ID ? MSC_NO_ID : group_of_unit(p, unit);
        if (group != MSC_NO_ID && !is_listed[group]) {
            is_listed[group] = true;
            c->groups[c->n_groups++] = group;
        }
    }
    return MSC_OK;
}

static struct msc_consumer *find_consumer(const struct msc_pruner *p, const struct msc_slot *slot,
                                          int axis) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        struct msc_consumer *c = &p->consumers[i];
        if (c->is_weight && slot->kind == MSC_SITE_WEIGHT && c->tensor == slot->tensor &&
            c->axis == axis) {
            return c;
        }
    }
    return NULL;
}

static enum msc_status add_read(struct msc_pruner *p, const struct msc_channel_read *read) {
    const struct msc_slot *slot = &p->sites.slots[read->slot];
    struct msc_consumer *c = find_consumer(p, slot, read->axis);
    if (!c) {
        c = &p->consumers[p->n_consumers++];
        *c = (struct msc_consumer){.tensor = slot->tensor,
                                   .axis = read->axis,
                                   .is_weight = slot->kind == MSC_SITE_WEIGHT,
                                   .bias_slot = MSC_NO_ID};
        c->slots = msc_arena_array(&p->arena, (size_t)p->channels.n_reads + 1, sizeof(c->slots[0]));
        if (!c->slots) {
            return msc_pruner__no_memory();
        }
        MSC_TRY(list_read_groups(p, c));
    }
    c->slots[c->n_slots++] = read->slot;
    c->bias_slot = c->is_weight && c->n_slots == 1 ? find_bias(p, slot) : MSC_NO_ID;
    return MSC_OK;
}

static enum msc_status list_consumers(struct msc_pruner *p) {
    size_t n = (size_t)p->channels.n_reads;
    p->consumers = msc_arena_array(&p->arena, n + 1, sizeof(p->consumers[0]));
    if (!p->consumers) {
        return msc_pruner__no_memory();
    }
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(add_read(p, &p->channels.reads[i]));
    }
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        struct msc_pruner_group *group = &p->groups[g];
        group->consumers = msc_arena_array(&p->arena, n + 1, sizeof(group->consumers[0]));
        if (!group->consumers) {
            return msc_pruner__no_memory();
        }
        for (int32_t i = 0; i < p->n_consumers; i++) {
            for (int32_t k = 0; k < p->consumers[i].n_groups; k++) {
                if (p->consumers[i].groups[k] == g) {
                    group->consumers[group->n_consumers++] = i;
                }
            }
        }
    }
    return MSC_OK;
}

// ---- Making -----------------------------------------------------------------------------------

static enum msc_status pruner_init(struct msc_pruner *p) {
    MSC_TRY(msc_sites_find(&p->sites, p->g, p->options->scheme));
    MSC_TRY(msc_channels_find(&p->channels, p->g, &p->sites));
    MSC_TRY(list_groups(p));
    return list_consumers(p);
}

enum msc_status msc_pruner_create(struct msc_pruner **out, const struct msc_graph *g,
                                  const struct msc_pruner_options *options, uint64_t memory_bytes) {
    struct msc_pruner *p = msc_alloc_zero(1, sizeof(*p));
    if (!p) {
        return msc_pruner__no_memory();
    }
    p->g = g;
    p->options = options;
    p->memory_bytes = memory_bytes;
    enum msc_status status = pruner_init(p);
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
    if (!m || !own) {
        return msc_pruner__no_memory();
    }
    m->is_kept = msc_arena_array(&p->made, (size_t)n + 1, sizeof(m->is_kept[0]));
    if (!m->is_kept) {
        return msc_pruner__no_memory();
    }
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

// What there is to make.
struct making {
    struct msc_prune_made *made;
    const struct msc_consumer *consumer;
    const bool *is_gone; // [n_units]
    struct msc_arena arena;
};

// The text of what failed stays with the thread that it failed on.
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
               ? MSC_FAIL(MSC_E_INVALID, "no weights fit the second moments of their inputs")
               : msc_pruner__no_memory();
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
    enum msc_status status = is_gone && works ? MSC_OK : msc_pruner__no_memory();
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        msc_pruner_mark(p, points[i], is_gone + i * n_units);
        status = list_works(p, works, &n_works, points[i], is_gone + i * n_units);
    }
    if (status == MSC_OK) {
        status = make_all(p, works, n_works, n_threads);
    }
    if (status != MSC_OK) {
        forget_made(p); // some are not whole
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
