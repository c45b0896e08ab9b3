#include "env/quantize/latency.h"

#include "base/alloc.h"
#include "data/dataset.h"
#include "graph/cost.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_FEATURES = 4 };

static const char *const feature_names[N_FEATURES] = {"position", "log2_elements", "macs_share",
                                                      "is_weight"};

// The choices of a task.
struct choice_list {
    size_t n;
    uint32_t *choices; // [n], the quantizer's choices
    // [n_choices of the quantizer], position of a choice in the list; for a choice that is not
    // listed, the position of the nearest listed one
    uint32_t *index;
    double *bits[2]; // [kind][n], bits of weights and of activations
    const char **labels;
    uint32_t *order; // most expensive first
};

struct builder {
    struct msc_quantize_space *out;
    const struct msc_quantizer *q;
    const struct msc_sites *sites;
    const struct msc_plan *plan;
    double n_samples; // samples that the plan computes at once
    struct msc_arena *arena;
    size_t n_choices;
    // `all` is for tasks with both kinds of sites, `of_kind` for tasks with one kind
    struct choice_list all, of_kind[2];
    struct choice_list *of_task; // [n_tasks] if there are rules, else NULL
    bool *has_kind[2];           // [kind][n_tasks]
    struct msc_task *tasks;      // tasks of the space
};

// ---- Tasks ------------------------------------------------------------------------------------

static int32_t find_root(int32_t parent[], int32_t i) {
    while (parent[i] != i) {
        i = parent[i] = parent[parent[i]];
    }
    return i;
}

static bool is_site_open(const struct builder *b, int32_t site) {
    return msc_quantizer_is_included(b->q, site) &&
           msc_quantizer_fixed_choice(b->q, site) == MSC_NO_ID;
}

// Numbers the tasks. If the parameter `group` is "joint", all searched sites that one joint reads
// share a task. Outputs of the network are read by no joint.
static enum msc_status space_number_tasks(struct builder *b, size_t *n_tasks) {
    int32_t n = b->sites->n_sites;
    int32_t *parent = msc_arena_array(b->arena, (size_t)n + 1, sizeof(parent[0]));
    int32_t *task_of_root = msc_arena_array(b->arena, (size_t)n + 1, sizeof(parent[0]));
    MSC_TRY(MSC_ALLOCATED(parent && task_of_root));
    for (int32_t i = 0; i < n; i++) {
        parent[i] = i;
        task_of_root[i] = MSC_NO_ID;
    }
    for (int32_t s = 1; s < b->sites->n_site_slots && msc_quantizer_group(b->q) == MSC_GROUP_JOINT;
         s++) {
        int32_t here = b->out->site_of_slot[s];
        int32_t before = b->out->site_of_slot[s - 1];
        int32_t joint = b->sites->slots[s].joint;
        if (joint != MSC_NO_ID && joint == b->sites->slots[s - 1].joint && is_site_open(b, here) &&
            is_site_open(b, before)) {
            int32_t x = find_root(parent, here);
            int32_t y = find_root(parent, before);
            parent[x > y ? x : y] = x > y ? y : x;
        }
    }
    *n_tasks = 0;
    for (int32_t i = 0; i < n; i++) {
        b->out->task_of_site[i] = MSC_NO_ID;
        if (is_site_open(b, i)) {
            int32_t root = find_root(parent, i);
            if (task_of_root[root] == MSC_NO_ID) {
                task_of_root[root] = (int32_t)(*n_tasks)++;
            }
            b->out->task_of_site[i] = task_of_root[root];
        }
    }
    return *n_tasks > 0 ? MSC_OK
                        : MSC_FAIL(MSC_E_INVALID, "every site is fixed, so nothing is left to "
                                                  "search; remove patterns from env.fix");
}

static enum msc_status space_map_slots(struct builder *b) {
    size_t n_slots = (size_t)b->sites->n_slots;
    b->out->site_of_slot = msc_arena_array(b->arena, n_slots + 1, sizeof(int32_t));
    b->out->task_of_site =
        msc_arena_array(b->arena, (size_t)b->sites->n_sites + 1, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(b->out->site_of_slot && b->out->task_of_site));
    for (int32_t s = 0; s < b->sites->n_slots; s++) {
        b->out->site_of_slot[s] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < b->sites->n_sites; i++) {
        for (int32_t k = 0; k < b->sites->sites[i].n_slots; k++) {
            b->out->site_of_slot[b->sites->sites[i].slots[k]] = i;
        }
    }
    return MSC_OK;
}

struct rank {
    double bits, distance;
    uint32_t choice;
};

static int compare_ranks(const void *a, const void *b) {
    const struct rank *x = a;
    const struct rank *y = b;
    if (x->bits != y->bits) {
        return x->bits > y->bits ? -1 : 1;
    }
    if (x->distance != y->distance) {
        return x->distance < y->distance ? -1 : 1;
    }
    return (x->choice > y->choice) - (x->choice < y->choice);
}

static double choice_bits(const struct msc_choice *choice) {
    return choice->is_float ? MSC_QUANTIZE_FLOAT_BITS : choice->bits;
}

double msc_quantize_bits(const struct msc_quantizer *q, size_t choice, bool is_weight) {
    const struct msc_choice *c = msc_quantizer_choice(q, choice);
    const struct msc_target *target = msc_quantizer_sites(q)->scheme.target;
    return c->is_float || c->type != MSC_DTYPE_NONE || !target
               ? choice_bits(c)
               : msc_target_stored_bits(target, is_weight, c->bits);
}

static enum msc_status rank_choices(struct builder *b, struct choice_list *list) {
    struct rank *ranks = msc_arena_array(b->arena, list->n, sizeof(ranks[0]));
    list->labels = msc_arena_array(b->arena, list->n, sizeof(list->labels[0]));
    list->order = msc_arena_array(b->arena, list->n, sizeof(list->order[0]));
    for (int kind = 0; kind < 2; kind++) {
        list->bits[kind] = msc_arena_array(b->arena, list->n, sizeof(list->bits[0][0]));
    }
    MSC_TRY(MSC_ALLOCATED(ranks && list->labels && list->order && list->bits[0] && list->bits[1]));
    for (size_t c = 0; c < list->n; c++) {
        const struct msc_choice *choice = msc_quantizer_choice(b->q, list->choices[c]);
        for (int kind = 0; kind < 2; kind++) {
            list->bits[kind][c] = msc_quantize_bits(b->q, list->choices[c], kind == 0);
        }
        list->labels[c] = choice->label;
        const struct msc_gguf_block_type *blocks = choice->blocks;
        double scale_bits = blocks ? 8.0 * blocks->n_bytes / blocks->n - choice->bits
                            : choice->group_size > 0 ? 32.0 / choice->group_size
                                                     : 0;
        ranks[c] = (struct rank){choice_bits(choice) + scale_bits, fabs(choice->range_scale - 1),
                                 (uint32_t)c};
    }
    qsort(ranks, list->n, sizeof(ranks[0]), compare_ranks);
    for (size_t c = 0; c < list->n; c++) {
        list->order[c] = ranks[c].choice;
    }
    return MSC_OK;
}

static size_t first_same(const struct builder *b, int kind, size_t c) {
    return kind == MSC_SITE_KINDS ? c
                                  : msc_quantizer_first_choice(b->q, (enum msc_site_kind)kind, c);
}

// The choice of the list with the nearest number of bits; of two equally near choices, the one with
// more bits.
static uint32_t nearest_choice(const struct builder *b, const struct choice_list *list, size_t c) {
    double wanted = choice_bits(msc_quantizer_choice(b->q, c));
    uint32_t best = 0;
    double least = INFINITY, bits_of_best = 0;
    for (size_t i = 0; i < list->n; i++) {
        double bits = choice_bits(msc_quantizer_choice(b->q, list->choices[i]));
        double off = fabs(bits - wanted);
        if (off < least || (off == least && bits > bits_of_best)) {
            least = off;
            bits_of_best = bits;
            best = (uint32_t)i;
        }
    }
    return best;
}

// Lists the choices whose bit is set in `allowed`. A choice is left out if it quantises sites of
// this kind (MSC_SITE_KINDS: of both kinds) exactly as an earlier choice does.
static enum msc_status list_choices(struct builder *b, struct choice_list *list, int kind,
                                    uint64_t allowed) {
    uint64_t listed = 0;
    list->choices = msc_arena_array(b->arena, b->n_choices, sizeof(list->choices[0]));
    list->index = msc_arena_array(b->arena, b->n_choices, sizeof(list->index[0]));
    MSC_TRY(MSC_ALLOCATED(list->choices && list->index));
    for (size_t c = 0; c < b->n_choices; c++) {
        listed |= (allowed >> c & 1) << first_same(b, kind, c);
    }
    for (size_t c = 0; c < b->n_choices; c++) {
        if (listed >> c & 1) {
            list->index[c] = (uint32_t)list->n;
            list->choices[list->n++] = (uint32_t)c;
        }
    }
    for (size_t c = 0; c < b->n_choices; c++) {
        size_t same = first_same(b, kind, c);
        bool is_listed = listed >> same & 1;
        list->index[c] = is_listed ? list->index[same] : nearest_choice(b, list, c);
    }
    return rank_choices(b, list);
}

// The kind of a task's sites; MSC_SITE_KINDS: both.
static int kind_of_task(const struct builder *b, int32_t task) {
    bool has_weight = b->has_kind[MSC_SITE_WEIGHT][task];
    return has_weight && b->has_kind[MSC_SITE_ACTIVATION][task] ? MSC_SITE_KINDS
           : has_weight                                         ? MSC_SITE_WEIGHT
                                                                : MSC_SITE_ACTIVATION;
}

static const struct choice_list *choices_of(const struct builder *b, int32_t task) {
    int kind = kind_of_task(b, task);
    return b->of_task ? &b->of_task[task] : kind == MSC_SITE_KINDS ? &b->all : &b->of_kind[kind];
}

// If there are rules, lists for each task the choices that they allow for all of its sites.
static enum msc_status list_by_rules(struct builder *b) {
    size_t n = b->out->space.n_tasks;
    uint64_t *allowed = msc_arena_array(b->arena, n, sizeof(allowed[0]));
    bool has_rules = false;
    MSC_TRY(MSC_ALLOCATED(allowed));
    memset(allowed, 0xff, n * sizeof(allowed[0]));
    for (int32_t i = 0; i < b->sites->n_sites; i++) {
        int32_t task = b->out->task_of_site[i];
        if (task != MSC_NO_ID) {
            allowed[task] &= msc_quantizer_allowed(b->q, i);
            has_rules = has_rules || msc_quantizer_allowed(b->q, i) != UINT64_MAX;
        }
        if (task != MSC_NO_ID && allowed[task] == 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "env.rules leave no choice for %s and the tensors that share its "
                            "decision",
                            b->sites->sites[i].name);
        }
    }
    b->of_task = has_rules ? msc_arena_array(b->arena, n, sizeof(b->of_task[0])) : NULL;
    MSC_TRY(MSC_ALLOCATED(!has_rules || b->of_task));
    for (size_t t = 0; t < n && has_rules; t++) {
        MSC_TRY(list_choices(b, &b->of_task[t], kind_of_task(b, (int32_t)t), allowed[t]));
    }
    return MSC_OK;
}

static enum msc_status find_kinds(struct builder *b) {
    for (int kind = 0; kind < 2; kind++) {
        b->has_kind[kind] = msc_arena_array(b->arena, b->out->space.n_tasks, sizeof(bool));
        MSC_TRY(MSC_ALLOCATED(b->has_kind[kind]));
    }
    for (int32_t i = 0; i < b->sites->n_sites; i++) {
        int32_t task = b->out->task_of_site[i];
        if (task != MSC_NO_ID) {
            b->has_kind[b->sites->sites[i].kind][task] = true;
        }
    }
    return MSC_OK;
}

const struct msc_slot *msc_quantize_bound_slot(const struct msc_plan *plan, int32_t slot) {
    assert(plan->bound_slots[slot] != MSC_NO_ID);
    return &plan->sites.slots[plan->bound_slots[slot]];
}

static void fill_features(const struct builder *b, int32_t site, double f[N_FEATURES]) {
    const struct msc_site *s = &b->sites->sites[site];
    const struct msc_slot *slot = msc_quantize_bound_slot(b->plan, s->slots[0]);
    const struct msc_graph *g = b->plan->graph;
    const struct msc_tensor *t = msc_graph_tensor(g, slot->tensor);
    // A joint of the plan's graph computes this many samples together; each chunk of a sequence has
    // its own joints.
    double n_samples = b->n_samples / b->plan->n_parts;
    double macs = 0;
    for (int32_t i = 0; i < s->n_slots; i++) {
        int32_t joint = msc_quantize_bound_slot(b->plan, s->slots[i])->joint;
        macs += joint == MSC_NO_ID ? 0 : msc_joint_macs(g, msc_graph_joint(g, joint)) / n_samples;
    }
    bool is_weight = s->kind == MSC_SITE_WEIGHT;
    double n = (double)msc_tensor_n_elements(t) / (is_weight ? 1 : n_samples);
    int32_t n_joints = msc_graph_n_joints(g);
    int32_t place = slot->joint == MSC_NO_ID ? n_joints : slot->joint;
    f[0] = (double)place * b->plan->n_parts / (double)n_joints;
    f[1] = n > 0 ? log2(n) : 0;
    f[2] = b->out->macs > 0 ? macs / b->out->macs : 0;
    f[3] = is_weight;
}

static enum msc_status space_build_tasks(struct builder *b) {
    struct msc_space *space = &b->out->space;
    MSC_TRY(space_number_tasks(b, &space->n_tasks));
    MSC_TRY(find_kinds(b));
    MSC_TRY(list_choices(b, &b->all, MSC_SITE_KINDS, UINT64_MAX));
    for (int kind = 0; kind < 2; kind++) {
        MSC_TRY(list_choices(b, &b->of_kind[kind], kind, UINT64_MAX));
    }
    MSC_TRY(list_by_rules(b));
    struct msc_task *tasks = msc_arena_array(b->arena, space->n_tasks, sizeof(tasks[0]));
    double(*features)[N_FEATURES] = msc_arena_array(b->arena, space->n_tasks, sizeof(features[0]));
    b->out->choices_of_task =
        msc_arena_array(b->arena, space->n_tasks, sizeof(b->out->choices_of_task[0]));
    b->out->bits_of_task =
        msc_arena_array(b->arena, space->n_tasks, sizeof(b->out->bits_of_task[0]));
    MSC_TRY(MSC_ALLOCATED(tasks && features && b->out->choices_of_task && b->out->bits_of_task));
    for (int32_t i = b->sites->n_sites - 1; i >= 0; i--) {
        int32_t task = b->out->task_of_site[i];
        if (task == MSC_NO_ID) {
            continue;
        }
        const struct msc_site *s = &b->sites->sites[i];
        int32_t joint = msc_quantize_bound_slot(b->plan, s->slots[0])->joint;
        bool is_joint = msc_quantizer_group(b->q) == MSC_GROUP_JOINT && joint != MSC_NO_ID;
        const struct choice_list *list = choices_of(b, task);
        fill_features(b, i, features[task]);
        b->out->choices_of_task[task] = list->choices;
        b->out->bits_of_task[task][0] = list->bits[0];
        b->out->bits_of_task[task][1] = list->bits[1];
        tasks[task] = (struct msc_task){
            .name = is_joint ? msc_graph_joint(b->plan->graph, joint)->name : s->name,
            .n_choices = (uint32_t)list->n,
            .labels = list->labels,
            .most_expensive_first = list->order,
            .features = features[task]};
    }
    b->tasks = tasks;
    space->tasks = tasks;
    space->n_features = N_FEATURES;
    space->feature_names = feature_names;
    return MSC_OK;
}

// ---- Baselines ---------------------------------------------------------------------------------

static enum msc_status space_build_baselines(struct builder *b) {
    struct msc_space *space = &b->out->space;
    struct msc_baseline *baselines = msc_arena_array(b->arena, b->n_choices, sizeof(baselines[0]));
    uint32_t *points = msc_arena_array(b->arena, b->n_choices * space->n_tasks, sizeof(points[0]));
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (size_t c = 0; c < b->n_choices; c++) {
        uint32_t *point = points + c * space->n_tasks;
        for (size_t t = 0; t < space->n_tasks; t++) {
            point[t] = choices_of(b, (int32_t)t)->index[c];
        }
        baselines[c] = (struct msc_baseline){msc_quantizer_choice(b->q, c)->label, point};
    }
    space->baselines = baselines;
    space->n_baselines = b->n_choices;
    return MSC_OK;
}

// If latency is measured, adds the plan of least latency as a baseline.
static enum msc_status space_add_quickest(struct builder *b) {
    struct msc_space *space = &b->out->space;
    const struct msc_cost *cost = msc_space_find_cost(space, MSC_METRIC_LATENCY);
    const uint32_t *quickest = NULL;
    if (cost) {
        MSC_TRY(msc_quantize_find_quickest(&quickest, space, cost, b->arena));
    }
    if (!quickest) {
        return MSC_OK;
    }
    struct msc_baseline *baselines =
        msc_arena_array(b->arena, space->n_baselines + 1, sizeof(baselines[0]));
    MSC_TRY(MSC_ALLOCATED(baselines));
    memcpy(baselines, space->baselines, space->n_baselines * sizeof(baselines[0]));
    baselines[space->n_baselines] = (struct msc_baseline){"the quickest", quickest};
    space->baselines = baselines;
    space->n_baselines++;
    return MSC_OK;
}

// The chunks of a sequence are equal, so the first one is counted for all of them.
static double sample_macs(const struct builder *b, int32_t joint) {
    const struct msc_graph *g = b->plan->graph;
    double macs = b->plan->parts[joint] > 0 ? 0 : msc_joint_macs(g, msc_graph_joint(g, joint));
    return macs * b->plan->n_parts / b->n_samples;
}

enum msc_status msc_quantize_space_build(struct msc_quantize_space *out,
                                         const struct msc_quantize_inputs *in,
                                         struct msc_arena *arena) {
    struct builder b = {.out = out,
                        .q = in->quantizer,
                        .sites = msc_quantizer_sites(in->quantizer),
                        .plan = in->plan,
                        .n_samples = in->n_samples,
                        .arena = arena,
                        .n_choices = msc_quantizer_n_choices(in->quantizer)};
    *out = (struct msc_quantize_space){0};
    for (int32_t i = 0; i < msc_graph_n_joints(in->plan->graph); i++) {
        out->macs += sample_macs(&b, i);
    }
    MSC_TRY(space_map_slots(&b));
    MSC_TRY(space_build_tasks(&b));
    MSC_TRY(space_build_baselines(&b));
    const struct msc_quantize_costing costing = {in, out};
    MSC_TRY(msc_metrics_build(&out->space, out->references, in->metrics, &costing, arena));
    MSC_TRY(msc_quantize_add_choice_features(out, b.tasks, in, arena));
    MSC_TRY(msc_quantize_add_neighbours(out, in, arena));
    return space_add_quickest(&b);
}
