#include "env/quantize_space.h"

#include "base/alloc.h"
#include "graph/cost.h"
#include "kernels/engine/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_BITS = 32, N_FEATURES = 4, N_COSTS = 5 };

static const char *const feature_names[N_FEATURES] = {"position", "log2_elements", "macs_share",
                                                      "is_weight"};

// What tasks of one kind choose among.
struct choice_list {
    size_t n;
    uint32_t *choices; // [n] the quantizer's
    uint32_t *index;   // [all choices] which of the list each is, or is the same as
    double *bits;      // [n]
    const char **labels;
    uint32_t *order; // dearest first
};

struct builder {
    struct msc_quantize_space *out;
    const struct msc_quantizer *q;
    const struct msc_sites *sites;
    const struct msc_plan *plan;
    const struct msc_quant *const *fixed;
    int64_t n_batch;
    struct msc_arena *arena;
    size_t n_choices;
    struct choice_list all, of_activations;
    bool *has_weight; // [n_tasks]
};

static enum msc_status no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the search space");
}

// ---- Tasks ------------------------------------------------------------------------------------

static int32_t find_root(int32_t parent[], int32_t i) {
    while (parent[i] != i) {
        i = parent[i] = parent[parent[i]];
    }
    return i;
}

static bool is_open(const struct builder *b, int32_t site) {
    return msc_quantizer_is_included(b->q, site) &&
           msc_quantizer_fixed_choice(b->q, site) == MSC_NO_ID;
}

// Sites that must agree share a task: with the group `joint` all that one joint reads, but for what
// is left out or fixed.
static enum msc_status number_tasks(struct builder *b, size_t *n_tasks) {
    int32_t n = b->sites->n_sites;
    int32_t *parent = msc_arena_array(b->arena, (size_t)n + 1, sizeof(parent[0]));
    int32_t *task_of_root = msc_arena_array(b->arena, (size_t)n + 1, sizeof(parent[0]));
    if (!parent || !task_of_root) {
        return no_memory();
    }
    for (int32_t i = 0; i < n; i++) {
        parent[i] = i;
        task_of_root[i] = MSC_NO_ID;
    }
    for (int32_t s = 1; s < b->sites->n_slots && msc_quantizer_group(b->q) == MSC_GROUP_JOINT;
         s++) {
        int32_t here = b->out->site_of_slot[s];
        int32_t before = b->out->site_of_slot[s - 1];
        if (b->sites->slots[s].joint == b->sites->slots[s - 1].joint && is_open(b, here) &&
            is_open(b, before)) {
            int32_t x = find_root(parent, here);
            int32_t y = find_root(parent, before);
            parent[x > y ? x : y] = x > y ? y : x;
        }
    }
    *n_tasks = 0;
    for (int32_t i = 0; i < n; i++) {
        b->out->task_of_site[i] = MSC_NO_ID;
        if (is_open(b, i)) {
            int32_t root = find_root(parent, i);
            if (task_of_root[root] == MSC_NO_ID) {
                task_of_root[root] = (int32_t)(*n_tasks)++;
            }
            b->out->task_of_site[i] = task_of_root[root];
        }
    }
    return *n_tasks > 0 ? MSC_OK
                        : MSC_FAIL(MSC_E_INVALID, "every site is fixed: nothing is left to search");
}

static enum msc_status map_slots(struct builder *b) {
    size_t n_slots = (size_t)b->sites->n_slots;
    b->out->site_of_slot = msc_arena_array(b->arena, n_slots + 1, sizeof(int32_t));
    b->out->task_of_site =
        msc_arena_array(b->arena, (size_t)b->sites->n_sites + 1, sizeof(int32_t));
    if (!b->out->site_of_slot || !b->out->task_of_site) {
        return no_memory();
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

static enum msc_status rank_choices(struct builder *b, struct choice_list *list) {
    struct rank *ranks = msc_arena_array(b->arena, list->n, sizeof(ranks[0]));
    list->labels = msc_arena_array(b->arena, list->n, sizeof(list->labels[0]));
    list->order = msc_arena_array(b->arena, list->n, sizeof(list->order[0]));
    list->bits = msc_arena_array(b->arena, list->n, sizeof(list->bits[0]));
    if (!ranks || !list->labels || !list->order || !list->bits) {
        return no_memory();
    }
    for (size_t c = 0; c < list->n; c++) {
        const struct msc_choice *choice = msc_quantizer_choice(b->q, list->choices[c]);
        list->bits[c] = choice->is_float ? FLOAT_BITS : choice->bits;
        list->labels[c] = choice->label;
        double scale_bits = choice->group_size > 0 ? 32.0 / choice->group_size : 0;
        ranks[c] =
            (struct rank){list->bits[c] + scale_bits, fabs(choice->range_scale - 1), (uint32_t)c};
    }
    qsort(ranks, list->n, sizeof(ranks[0]), compare_ranks);
    for (size_t c = 0; c < list->n; c++) {
        list->order[c] = ranks[c].choice;
    }
    return MSC_OK;
}

// A choice that is the same as an earlier one is left out.
static enum msc_status list_choices(struct builder *b, struct choice_list *list,
                                    bool are_activations) {
    list->choices = msc_arena_array(b->arena, b->n_choices, sizeof(list->choices[0]));
    list->index = msc_arena_array(b->arena, b->n_choices, sizeof(list->index[0]));
    if (!list->choices || !list->index) {
        return no_memory();
    }
    for (size_t c = 0; c < b->n_choices; c++) {
        size_t same = are_activations ? msc_quantizer_activation_choice(b->q, c) : c;
        if (same == c) {
            list->index[c] = (uint32_t)list->n;
            list->choices[list->n++] = (uint32_t)c;
        } else {
            list->index[c] = list->index[same];
        }
    }
    return rank_choices(b, list);
}

static const struct choice_list *choices_of(const struct builder *b, int32_t task) {
    return b->has_weight[task] ? &b->all : &b->of_activations;
}

static enum msc_status find_weights(struct builder *b) {
    b->has_weight = msc_arena_array(b->arena, b->out->space.n_tasks, sizeof(b->has_weight[0]));
    if (!b->has_weight) {
        return no_memory();
    }
    for (int32_t i = 0; i < b->sites->n_sites; i++) {
        int32_t task = b->out->task_of_site[i];
        if (task != MSC_NO_ID && b->sites->sites[i].kind == MSC_SITE_WEIGHT) {
            b->has_weight[task] = true;
        }
    }
    return MSC_OK;
}

// Where a slot of a site that is included is in the plan's graph.
static const struct msc_slot *bound_slot(const struct builder *b, int32_t slot) {
    return &b->plan->sites.slots[b->plan->bound_slots[slot]];
}

static void fill_features(const struct builder *b, int32_t site, double f[N_FEATURES]) {
    const struct msc_site *s = &b->sites->sites[site];
    const struct msc_slot *slot = bound_slot(b, s->slots[0]);
    const struct msc_graph *g = b->plan->graph;
    const struct msc_tensor *t = msc_graph_tensor(g, slot->tensor);
    // A joint of the plan's graph computes them together; of a sequence each has joints of its own.
    double n_samples = (double)b->n_batch / b->plan->n_parts;
    double macs = 0;
    for (int32_t i = 0; i < s->n_slots; i++) {
        int32_t joint = bound_slot(b, s->slots[i])->joint;
        macs += msc_joint_macs(g, msc_graph_joint(g, joint)) / n_samples;
    }
    bool is_weight = s->kind == MSC_SITE_WEIGHT;
    double n = (double)msc_tensor_n_elements(t) / (is_weight ? 1 : n_samples);
    f[0] = (double)slot->joint * b->plan->n_parts / (double)msc_graph_n_joints(g);
    f[1] = n > 0 ? log2(n) : 0;
    f[2] = b->out->macs > 0 ? macs / b->out->macs : 0;
    f[3] = is_weight;
}

static enum msc_status build_tasks(struct builder *b) {
    struct msc_space *space = &b->out->space;
    MSC_TRY(number_tasks(b, &space->n_tasks));
    MSC_TRY(find_weights(b));
    MSC_TRY(list_choices(b, &b->all, false));
    MSC_TRY(list_choices(b, &b->of_activations, true));
    struct msc_task *tasks = msc_arena_array(b->arena, space->n_tasks, sizeof(tasks[0]));
    double(*features)[N_FEATURES] = msc_arena_array(b->arena, space->n_tasks, sizeof(features[0]));
    b->out->choices_of_task =
        msc_arena_array(b->arena, space->n_tasks, sizeof(b->out->choices_of_task[0]));
    if (!tasks || !features || !b->out->choices_of_task) {
        return no_memory();
    }
    for (int32_t i = b->sites->n_sites - 1; i >= 0; i--) {
        int32_t task = b->out->task_of_site[i];
        if (task == MSC_NO_ID) {
            continue;
        }
        const struct msc_site *s = &b->sites->sites[i];
        bool is_joint = msc_quantizer_group(b->q) == MSC_GROUP_JOINT;
        int32_t joint = bound_slot(b, s->slots[0])->joint;
        const struct choice_list *list = choices_of(b, task);
        fill_features(b, i, features[task]);
        b->out->choices_of_task[task] = list->choices;
        tasks[task] = (struct msc_task){
            .name = is_joint ? msc_graph_joint(b->plan->graph, joint)->name : s->name,
            .n_choices = (uint32_t)list->n,
            .labels = list->labels,
            .dearest_first = list->order,
            .features = features[task]};
    }
    space->tasks = tasks;
    space->n_features = N_FEATURES;
    space->feature_names = feature_names;
    return MSC_OK;
}

// ---- Costs ------------------------------------------------------------------------------------

// A cost under construction: its terms in an array large enough.
struct cost_list {
    struct msc_cost_term *terms;
    size_t n;
    double constant;
};

static enum msc_status add_term(struct builder *b, struct cost_list *list, double scale,
                                size_t n_factors, const uint32_t tasks[],
                                const double *const by_choice[]) {
    struct msc_cost_factor *factors = msc_arena_array(b->arena, n_factors, sizeof(factors[0]));
    if (!factors) {
        return no_memory();
    }
    for (size_t i = 0; i < n_factors; i++) {
        factors[i] = (struct msc_cost_factor){tasks[i], by_choice[i]};
    }
    list->terms[list->n++] = (struct msc_cost_term){scale, (uint32_t)n_factors, factors};
    return MSC_OK;
}

static double packed_bytes(double elements, int32_t bits, double n_scales, bool is_symmetric) {
    return ceil(elements * bits / 8) + n_scales * (is_symmetric ? 4 : 8);
}

static double quant_bytes(double elements, const struct msc_quant *quant) {
    if (quant->type != MSC_DTYPE_NONE) {
        return elements * (double)msc_dtype_bytes(quant->type);
    }
    return packed_bytes(elements, quant->bits, quant->n, quant->low < 0);
}

static enum msc_status weight_term(struct builder *b, struct cost_list *size, int32_t site) {
    const struct msc_slot *slot = bound_slot(b, b->sites->sites[site].slots[0]);
    const struct msc_tensor *t = msc_graph_tensor(b->plan->graph, slot->tensor);
    double n = (double)msc_tensor_n_elements(t);
    uint32_t task = (uint32_t)b->out->task_of_site[site];
    double *bytes = msc_arena_array(b->arena, b->n_choices, sizeof(bytes[0]));
    if (!bytes) {
        return no_memory();
    }
    for (size_t c = 0; c < b->n_choices; c++) {
        const struct msc_quant *quant = msc_quantizer_quant(b->q, site, (int32_t)c);
        bytes[c] = quant ? quant_bytes(n, quant) : 4 * n;
    }
    const double *by_choice = bytes;
    return add_term(b, size, 1, 1, &task, &by_choice);
}

static enum msc_status build_size(struct builder *b, struct cost_list *size) {
    const struct msc_graph *g = b->plan->graph;
    const struct msc_sites *bound = &b->plan->sites;
    bool *counted = msc_arena_array(b->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    if (!counted) {
        return no_memory();
    }
    for (int32_t i = 0; i < bound->n_slots; i++) {
        const struct msc_slot *slot = &bound->slots[i];
        int32_t s = b->plan->slot_ids[i];
        // What was an activation before binding is no weight of the model.
        if (s == MSC_NO_ID || b->sites->slots[s].kind != MSC_SITE_WEIGHT || counted[slot->tensor]) {
            continue;
        }
        double n = (double)msc_tensor_n_elements(msc_graph_tensor(g, slot->tensor));
        int32_t site = b->out->site_of_slot[s];
        counted[slot->tensor] = true;
        b->out->float_size_bytes += 4 * n;
        if (b->out->task_of_site[site] != MSC_NO_ID) {
            MSC_TRY(weight_term(b, size, site));
        } else {
            size->constant += b->fixed[s] ? quant_bytes(n, b->fixed[s]) : 4 * n;
        }
    }
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        if (t->data && !counted[i]) {
            double bytes = (double)msc_array_n_bytes(t->data);
            b->out->float_size_bytes += bytes;
            size->constant += bytes;
        }
    }
    return MSC_OK;
}

// Bits of what an operand reads: a task's, or a fixed number.
static int32_t operand_task(const struct builder *b, int32_t slot, double *bits) {
    *bits = FLOAT_BITS;
    if (slot == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    int32_t task = b->out->task_of_site[b->out->site_of_slot[slot]];
    if (task == MSC_NO_ID && b->fixed[slot]) {
        *bits = b->fixed[slot]->bits;
    }
    return task;
}

static enum msc_status product_term(struct builder *b, struct cost_list *ops, int32_t joint,
                                    const struct msc_product *product) {
    double bits[2];
    uint32_t tasks[2];
    const double *by_choice[2];
    size_t n = 0;
    double scale = product->macs * b->plan->n_parts / (double)b->n_batch;
    for (int i = 0; i < 2; i++) {
        int32_t slot = msc_plan_find_slot(b->plan, joint, product->operands[i]);
        int32_t task = operand_task(b, slot, &bits[i]);
        if (task == MSC_NO_ID) {
            scale *= bits[i];
        } else {
            by_choice[n] = choices_of(b, task)->bits;
            tasks[n++] = (uint32_t)task;
        }
    }
    if (n == 0) {
        ops->constant += scale;
        return MSC_OK;
    }
    if (n == 2 && tasks[0] == tasks[1]) {
        size_t n_choices = choices_of(b, (int32_t)tasks[0])->n;
        double *squares = msc_arena_array(b->arena, n_choices, sizeof(squares[0]));
        if (!squares) {
            return no_memory();
        }
        for (size_t c = 0; c < n_choices; c++) {
            squares[c] = by_choice[0][c] * by_choice[0][c];
        }
        by_choice[0] = squares;
        n = 1;
    }
    return add_term(b, ops, scale, n, tasks, by_choice);
}

// Chunks of a sequence are alike: the first counts for all.
static double sample_macs(const struct builder *b, int32_t joint) {
    const struct msc_graph *g = b->plan->graph;
    double macs = b->plan->parts[joint] > 0 ? 0 : msc_joint_macs(g, msc_graph_joint(g, joint));
    return macs * b->plan->n_parts / (double)b->n_batch;
}

static enum msc_status build_bit_ops(struct builder *b, struct cost_list *ops) {
    for (int32_t i = 0; i < msc_graph_n_joints(b->plan->graph); i++) {
        struct msc_product products[2];
        const struct msc_graph *g = b->plan->graph;
        if (b->plan->parts[i] > 0) {
            continue; // counted with the first chunk
        }
        int n = msc_joint_products(products, g, msc_graph_joint(g, i));
        for (int k = 0; k < n; k++) {
            if (products[k].macs > 0) {
                MSC_TRY(product_term(b, ops, i, &products[k]));
            }
        }
    }
    return MSC_OK;
}

// The same cost against a reference: every scale and the constant divided by it.
static enum msc_status add_cost(struct builder *b, struct msc_cost costs[], const char *metric,
                                const struct cost_list *list, double divisor) {
    struct msc_cost_term *terms = msc_arena_array(b->arena, list->n + 1, sizeof(terms[0]));
    if (!terms) {
        return no_memory();
    }
    for (size_t i = 0; i < list->n; i++) {
        terms[i] = list->terms[i];
        terms[i].scale /= divisor;
    }
    costs[b->out->space.n_costs++] =
        (struct msc_cost){metric, list->constant / divisor, list->n, terms};
    return MSC_OK;
}

static enum msc_status build_costs(struct builder *b) {
    struct cost_list size = {0};
    struct cost_list ops = {0};
    struct cost_list macs = {.constant = b->out->macs};
    size_t room = (size_t)msc_graph_n_joints(b->plan->graph) + (size_t)b->sites->n_slots + 1;
    struct msc_cost *costs = msc_arena_array(b->arena, N_COSTS, sizeof(costs[0]));
    size.terms = msc_arena_array(b->arena, room, sizeof(size.terms[0]));
    ops.terms = msc_arena_array(b->arena, room, sizeof(ops.terms[0]));
    if (!costs || !size.terms || !ops.terms) {
        return no_memory();
    }
    MSC_TRY(build_size(b, &size));
    MSC_TRY(build_bit_ops(b, &ops));
    b->out->float_bit_ops = b->out->macs * FLOAT_BITS * FLOAT_BITS;
    b->out->space.costs = costs;
    MSC_TRY(add_cost(b, costs, "size_bytes", &size, 1));
    MSC_TRY(add_cost(b, costs, "size_ratio", &size, b->out->float_size_bytes));
    MSC_TRY(add_cost(b, costs, "bit_ops", &ops, 1));
    MSC_TRY(add_cost(b, costs, "bit_ops_ratio", &ops,
                     b->out->float_bit_ops > 0 ? b->out->float_bit_ops : 1));
    return add_cost(b, costs, "macs", &macs, 1);
}

// ---- Metrics and baselines --------------------------------------------------------------------

static const struct msc_metric all_metrics[] = {
    {.name = "distill_loss", .unit = ""},
    {.name = "accuracy", .unit = "", .is_maximised = true},
    {.name = "size_bytes", .unit = "bytes", .is_exact = true},
    {.name = "size_ratio", .unit = "", .is_exact = true},
    {.name = "bit_ops", .unit = "", .is_exact = true},
    {.name = "bit_ops_ratio", .unit = "", .is_exact = true},
    {.name = "macs", .unit = "", .is_exact = true},
    {.name = "file_bytes", .unit = "bytes"},
};

static enum msc_status build_metrics(struct builder *b, unsigned measured) {
    const size_t n = sizeof(all_metrics) / sizeof(all_metrics[0]);
    struct msc_metric *metrics = msc_arena_array(b->arena, n, sizeof(metrics[0]));
    if (!metrics) {
        return no_memory();
    }
    for (size_t i = 0; i < n; i++) {
        unsigned needs = i == MSC_QUANTIZE_ACCURACY ? MSC_QUANTIZE_MEASURES_ACCURACY
                         : i == n - 1               ? MSC_QUANTIZE_MEASURES_FILE
                                                    : 0;
        if ((needs & ~measured) == 0) {
            metrics[b->out->space.n_metrics++] = all_metrics[i];
        }
    }
    b->out->space.metrics = metrics;
    return MSC_OK;
}

static enum msc_status build_baselines(struct builder *b) {
    struct msc_space *space = &b->out->space;
    struct msc_baseline *baselines = msc_arena_array(b->arena, b->n_choices, sizeof(baselines[0]));
    uint32_t *points = msc_arena_array(b->arena, b->n_choices * space->n_tasks, sizeof(points[0]));
    if (!baselines || !points) {
        return no_memory();
    }
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

enum msc_status msc_quantize_space_build(struct msc_quantize_space *out,
                                         const struct msc_quantizer *q, const struct msc_plan *plan,
                                         const struct msc_quant *const fixed[], int64_t n_batch,
                                         unsigned measured, struct msc_arena *arena) {
    struct builder b = {.out = out,
                        .q = q,
                        .sites = msc_quantizer_sites(q),
                        .plan = plan,
                        .fixed = fixed,
                        .n_batch = n_batch,
                        .arena = arena,
                        .n_choices = msc_quantizer_n_choices(q)};
    *out = (struct msc_quantize_space){0};
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        out->macs += sample_macs(&b, i);
    }
    MSC_TRY(map_slots(&b));
    MSC_TRY(build_tasks(&b));
    MSC_TRY(build_costs(&b));
    MSC_TRY(build_metrics(&b, measured));
    return build_baselines(&b);
}
