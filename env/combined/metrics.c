// The metrics of the combined environment. An exact cost is a sum of products. Their factors are
// numbers of kept units and numbers of bits. The size of a packed weight is not such a product if
// its last byte is not full, or if the target's file stores few elements in a wider type
// (graph/packing.h). Each pair of cuts at which the size differs from the product gets its own
// term, so that costs are exact. A weight with channels of more than two groups does not get such
// terms; its size is approximated in proportion to its elements.
#include "base/alloc.h"
#include "env/combined/internal.h"
#include "graph/cost.h"
#include "graph/packing.h"
#include "graph/wide.h"
#include "kernels/engine/planner.h"

#include <math.h>

#include <string.h>

// A product under construction: `scale` times n factors. Each factor depends on the choice of a
// task that chooses bits. add_product multiplies the product by a number of kept units.
struct product {
    struct msc_metric_cost *out;
    const struct msc_combined_costing *c;
    double scale;
    size_t n; // number of factors of bits
    uint32_t tasks[2];
    const double *by_choice[2];
};

// ---- Products ---------------------------------------------------------------------------------

static enum msc_status add_monomial(void *payload, const struct msc_prune_monomial *m) {
    const struct product *p = payload;
    uint32_t tasks[4];
    const double *by_choice[4];
    double scale = p->scale * m->scale;
    size_t n = msc_prune_env__factors_of(&scale, tasks, by_choice, &p->c->factors, m);
    for (size_t i = 0; i < p->n; i++) {
        tasks[n] = (uint32_t)p->c->j->n_channel_tasks + p->tasks[i];
        by_choice[n++] = p->by_choice[i];
    }
    p->out->constant += n == 0 ? scale : 0;
    return n > 0 && scale != 0 ? msc_metric_add_term(p->out, scale, n, tasks, by_choice) : MSC_OK;
}

// Adds the product times the count `of` (NULL: 1).
static enum msc_status add_product(const struct product *p, const struct msc_prune_counted *of) {
    const struct msc_prune_monomial one = {.scale = 1};
    return of ? msc_prune_env__each_monomial(p->c->counter, of, add_monomial, (void *)p)
              : add_monomial((void *)p, &one);
}

// ---- size_bytes -------------------------------------------------------------------------------

// Bytes of a weight under one choice, per element and per scale.
struct rate {
    double element, scale;
};

static struct rate rate_of(const struct msc_quantize_inputs *in, const struct msc_quant *quant,
                           int64_t n_elements, size_t float_bytes) {
    const struct msc_target *target = msc_quantizer_sites(in->quantizer)->scheme.target;
    if (!quant) {
        return (struct rate){(double)float_bytes, 0};
    }
    if (quant->type != MSC_DTYPE_NONE) {
        return (struct rate){(double)msc_dtype_bytes(quant->type), 0};
    }
    if (!target) {
        return (struct rate){quant->bits / 8.0, quant->low < 0 ? 4 : 8};
    }
    return (struct rate){(double)msc_packed_bytes(n_elements, quant->bits) / (double)n_elements,
                         quant->bits <= 8 ? 5 : 6};
}

// Bytes of a weight by choice; a fixed weight has one choice.
struct rates {
    uint32_t n;
    int64_t n_elements;              // of the whole weight
    double *element, *scale;         // [n] bytes
    const struct msc_quant **quants; // [n]
    int axis;                        // of the scales; -1: a single scale
};

static enum msc_status list_rates(struct rates *out, const struct msc_combined_costing *c,
                                  int32_t site, int32_t slot, struct msc_arena *arena) {
    const struct msc_quantize_space *s = &c->j->bits.space;
    int32_t task = s->task_of_site[site];
    int32_t tensor = msc_quantizer_sites(c->in->quantizer)->slots[slot].tensor;
    size_t float_bytes = msc_graph_own_bytes(c->in->host->graph, tensor);
    out->n = task == MSC_NO_ID ? 1 : s->space.tasks[task].n_choices;
    out->element = msc_arena_array(arena, out->n, sizeof(out->element[0]));
    out->scale = msc_arena_array(arena, out->n, sizeof(out->scale[0]));
    out->quants = msc_arena_array(arena, out->n, sizeof(out->quants[0]));
    out->axis = -1;
    MSC_TRY(MSC_ALLOCATED(out->element && out->scale && out->quants));
    for (uint32_t i = 0; i < out->n; i++) {
        const struct msc_quant *quant =
            task == MSC_NO_ID
                ? msc_edit_quant(c->in->fixed[slot])
                : msc_quantizer_quant(c->in->quantizer, site, (int32_t)s->choices_of_task[task][i]);
        struct rate rate = rate_of(c->in, quant, out->n_elements, float_bytes);
        out->quants[i] = quant;
        out->element[i] = rate.element;
        out->scale[i] = rate.scale;
        out->axis = quant && quant->axis >= 0 ? quant->axis : out->axis;
    }
    return MSC_OK;
}

// Makes the product's factor the bytes for each choice of a task. Without a task, the bytes become
// its scale.
static void take_bytes(struct product *p, const double bytes[], int32_t task) {
    p->n = task == MSC_NO_ID ? 0 : 1;
    p->scale = task == MSC_NO_ID ? bytes[0] : 1;
    p->tasks[0] = (uint32_t)task;
    p->by_choice[0] = bytes;
}

// ---- Packing ----------------------------------------------------------------------------------

enum { MOST_MONOMIALS = 8 };

// The number of remaining elements as a sum of monomials in at most two groups.
struct elements {
    int n, n_groups;
    struct msc_prune_monomial monomials[MOST_MONOMIALS];
    int32_t groups[2];
    bool is_more; // more groups or monomials are needed; other members are invalid
};

static enum msc_status collect(void *payload, const struct msc_prune_monomial *m) {
    struct elements *e = payload;
    for (int i = 0; i < m->n; i++) {
        bool is_listed = false;
        for (int k = 0; k < e->n_groups; k++) {
            is_listed = is_listed || e->groups[k] == m->groups[i];
        }
        e->is_more = e->is_more || (!is_listed && e->n_groups == 2);
        if (!is_listed && e->n_groups < 2) {
            e->groups[e->n_groups++] = m->groups[i];
        }
    }
    e->is_more = e->is_more || e->n == MOST_MONOMIALS;
    if (!e->is_more) {
        e->monomials[e->n++] = *m;
    }
    return MSC_OK;
}

// The remaining elements if the groups keep `n_kept` units.
static double count_left(const struct elements *e, const double n_kept[2]) {
    double sum = 0;
    for (int i = 0; i < e->n; i++) {
        double product = e->monomials[i].scale;
        for (int k = 0; k < e->monomials[i].n; k++) {
            product *= n_kept[e->monomials[i].groups[k] != e->groups[0]];
        }
        sum += product;
    }
    return sum;
}

static double packed_bytes(const struct msc_quantize_inputs *in, const struct msc_quant *quant,
                           double n) {
    return msc_quantizer_sites(in->quantizer)->scheme.target
               ? (double)msc_packed_bytes((int64_t)n, quant->bits)
               : ceil(n * quant->bits / 8);
}

// Adds a term for a pair of cuts: the packed bytes minus the bytes that are proportional to the
// elements.
static enum msc_status add_cut(struct product *p, const struct elements *e, const struct rates *r,
                               const uint32_t cuts[2]) {
    const struct msc_prune_factors *f = &p->c->factors;
    double kept[2] = {0, 0};
    bool differs = false;
    uint32_t tasks[3];
    const double *by_choice[3];
    size_t n = 0;
    for (int i = 0; i < e->n_groups; i++) {
        int32_t group = e->groups[i], task = f->task_of_group[group];
        kept[i] = task == MSC_NO_ID ? f->fixed[group] : f->n_kept[group][cuts[i]];
        if (task != MSC_NO_ID) {
            double *is_it = msc_arena_array(p->out->arena, msc_pruner_n_cuts(f->pruner, group),
                                            sizeof(is_it[0]));
            MSC_TRY(MSC_ALLOCATED(is_it));
            is_it[cuts[i]] = 1;
            tasks[n] = (uint32_t)task;
            by_choice[n++] = is_it;
        }
    }
    double left = count_left(e, kept);
    double *more = msc_arena_array(p->out->arena, r->n, sizeof(more[0]));
    MSC_TRY(MSC_ALLOCATED(more));
    for (uint32_t i = 0; i < r->n; i++) {
        bool is_packed = r->quants[i] && r->quants[i]->type == MSC_DTYPE_NONE;
        double share = r->element[i] * left;
        more[i] = is_packed ? packed_bytes(p->c->in, r->quants[i], left) - share : 0;
        more[i] = fabs(more[i]) > 1e-6 ? more[i] : 0; // treat differences from rounding as 0
        differs = differs || more[i] != 0;
    }
    if (!differs) {
        return MSC_OK;
    }
    if (p->n > 0) {
        tasks[n] = (uint32_t)p->c->j->n_channel_tasks + p->tasks[0];
        by_choice[n++] = more;
    }
    p->out->constant += n == 0 ? more[0] : 0;
    return n > 0 ? msc_metric_add_term(p->out, p->n > 0 ? 1 : more[0], n, tasks, by_choice)
                 : MSC_OK;
}

static uint32_t count_cuts(const struct product *p, const struct elements *e, int index) {
    bool has_cuts =
        index < e->n_groups && p->c->factors.task_of_group[e->groups[index]] != MSC_NO_ID;
    return has_cuts ? (uint32_t)msc_pruner_n_cuts(p->c->factors.pruner, e->groups[index]) : 1;
}

static enum msc_status add_packing(struct product *p, const struct msc_prune_counted *of,
                                   const struct rates *r) {
    struct elements e = {.n = 0};
    MSC_TRY(msc_prune_env__each_monomial(p->c->counter, of, collect, &e));
    uint32_t n[2] = {count_cuts(p, &e, 0), count_cuts(p, &e, 1)};
    for (uint32_t i = 0; !e.is_more && i < n[0] * n[1]; i++) {
        MSC_TRY(add_cut(p, &e, r, (const uint32_t[2]){i / n[1], i % n[1]}));
    }
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

static enum msc_status add_weight(struct msc_metric_cost *out, const struct msc_combined_costing *c,
                                  int32_t site, int32_t slot, int32_t tensor) {
    const struct msc_graph *g = c->in->host->graph;
    struct msc_prune_counted of = {.tensor = tensor};
    struct product p = {.out = out, .c = c};
    struct rates rates = {.n_elements = msc_tensor_n_elements(msc_graph_tensor(g, tensor))};
    int32_t task = c->j->bits.space.task_of_site[site];
    MSC_TRY(list_rates(&rates, c, site, slot, out->arena));
    take_bytes(&p, rates.element, task);
    MSC_TRY(add_product(&p, &of));
    MSC_TRY(add_packing(&p, &of, &rates));
    take_bytes(&p, rates.scale, task);
    of.has_axis = true;
    of.axis = rates.axis;
    return add_product(&p, rates.axis >= 0 ? &of : NULL);
}

// Adds the size of each weight that a site quantises, once even if several slots read the weight.
static enum msc_status add_weights(struct msc_metric_cost *out,
                                   const struct msc_combined_costing *c, bool counted[]) {
    const struct msc_graph *g = c->in->host->graph;
    const struct msc_sites *sites = msc_quantizer_sites(c->in->quantizer);
    for (int32_t slot = 0; slot < sites->n_site_slots; slot++) {
        int32_t tensor = sites->slots[slot].tensor;
        if (sites->slots[slot].kind != MSC_SITE_WEIGHT || counted[tensor]) {
            continue;
        }
        counted[tensor] = true;
        out->reference += (double)msc_tensor_n_elements(msc_graph_tensor(g, tensor)) *
                          (double)msc_graph_own_bytes(g, tensor);
        MSC_TRY(add_weight(out, c, c->j->bits.space.site_of_slot[slot], slot, tensor));
    }
    return MSC_OK;
}

// Adds `n_bytes` for each element of a tensor.
static enum msc_status add_tensor(struct msc_metric_cost *out, const struct msc_combined_costing *c,
                                  int32_t tensor, double n_bytes) {
    struct msc_prune_counted of = {.tensor = tensor};
    struct product p = {.out = out, .c = c, .scale = n_bytes};
    return add_product(&p, &of);
}

// Adds the scales of rounded biases: one for each output channel.
static enum msc_status add_bias_steps(struct msc_metric_cost *out,
                                      const struct msc_combined_costing *c) {
    const struct msc_sites *sites = msc_quantizer_sites(c->in->quantizer);
    const struct msc_graph *g = c->in->host->graph;
    bool rounds = sites->scheme.target && sites->scheme.target->rounds_biases;
    for (int32_t i = sites->n_site_slots; rounds && i < sites->n_slots; i++) {
        const struct msc_joint *j = msc_graph_joint(g, sites->slots[i].joint);
        if (msc_target_is_integer(msc_target_role(sites->scheme.target, g, j))) {
            MSC_TRY(add_tensor(out, c, sites->slots[i].tensor, 4));
        }
    }
    return MSC_OK;
}

// Size of the model as written to a file. Tensors that are constant only for given values of
// symbolic dimensions are not counted.
static enum msc_status cost_size(struct msc_metric_cost *out, const void *of) {
    const struct msc_combined_costing *c = of;
    const struct msc_graph *g = c->in->host->graph;
    bool *counted = msc_arena_array(out->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(counted));
    MSC_TRY(add_weights(out, c, counted));
    MSC_TRY(add_bias_steps(out, c));
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        if (t->data && !counted[i]) {
            double bytes = (double)msc_graph_own_bytes(g, i);
            out->reference += bytes * (double)msc_array_n_elements(t->data);
            MSC_TRY(add_tensor(out, c, i, bytes));
        }
    }
    out->reference = c->in->whole ? c->in->whole->n_bytes : out->reference;
    return MSC_OK;
}

// ---- bit_ops ----------------------------------------------------------------------------------

// Sets the product's factors to the bits of a joint's operands.
static enum msc_status take_bits(struct product *p, const struct msc_combined_costing *c,
                                 int32_t joint, const struct msc_product *product) {
    const struct msc_quantize_space *s = &c->j->bits.space;
    for (int i = 0; i < 2; i++) {
        double bits;
        int32_t slot = msc_plan_find_slot(c->in->plan, joint, product->operands[i]);
        int32_t task = msc_quantize_operand_task(&bits, c->in, s, slot);
        if (task == MSC_NO_ID) {
            p->scale *= bits;
            continue;
        }
        p->by_choice[p->n] =
            s->bits_of_task[task][msc_quantizer_sites(c->in->quantizer)->slots[slot].kind];
        p->tasks[p->n++] = (uint32_t)task;
    }
    if (p->n < 2 || p->tasks[0] != p->tasks[1]) {
        return MSC_OK;
    }
    // One task decides both operands.
    uint32_t n_choices = s->space.tasks[p->tasks[0]].n_choices;
    double *squares = msc_arena_array(p->out->arena, n_choices, sizeof(squares[0]));
    MSC_TRY(MSC_ALLOCATED(squares));
    for (uint32_t i = 0; i < n_choices; i++) {
        squares[i] = p->by_choice[0][i] * p->by_choice[1][i];
    }
    p->by_choice[0] = squares;
    p->n = 1;
    return MSC_OK;
}

static enum msc_status add_joint_product(struct msc_metric_cost *out,
                                         const struct msc_combined_costing *c, int32_t joint,
                                         const struct msc_product *product, int index) {
    const struct msc_graph *g = c->in->host->graph;
    double macs = product->macs * c->in->plan->n_parts / c->in->n_samples;
    int32_t own = msc_graph_find_joint(g, msc_graph_joint(c->in->plan->graph, joint)->name);
    struct msc_prune_counted of = {.product = index};
    double full = 0;
    if (own != MSC_NO_ID) {
        of.joint = msc_graph_joint(g, own);
        full = msc_prune_env__whole_value(c->counter, &of);
    }
    struct product p = {.out = out, .c = c, .scale = full > 0 ? macs / full : macs};
    MSC_TRY(take_bits(&p, c, joint, product));
    return add_product(&p, full > 0 ? &of : NULL);
}

static enum msc_status cost_bit_ops(struct msc_metric_cost *out, const void *of) {
    const struct msc_combined_costing *c = of;
    const struct msc_graph *g = c->in->plan->graph;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        struct msc_product products[2];
        int n = msc_joint_products(products, g, msc_graph_joint(g, i));
        // The chunks of a sequence are equal, so the first one is counted for all of them.
        for (int k = 0; k < n && c->in->plan->parts[i] == 0; k++) {
            if (products[k].macs > 0) {
                MSC_TRY(add_joint_product(out, c, i, &products[k], k));
            }
        }
    }
    double macs = c->in->whole ? c->in->whole->macs : c->j->bits.space.macs;
    out->reference = macs * MSC_QUANTIZE_FLOAT_BITS * MSC_QUANTIZE_FLOAT_BITS;
    return MSC_OK;
}

// ---- The others -------------------------------------------------------------------------------

static enum msc_status cost_macs(struct msc_metric_cost *out, const void *of) {
    const struct msc_combined_costing *c = of;
    const struct msc_prune_env *channels = &c->j->channels;
    const struct msc_prune_costing costing = {.pruner = channels->pruner,
                                              .space = &channels->space};
    MSC_TRY(msc_prune_env__add_amount(out, &costing, &channels->space.macs));
    out->reference = c->in->whole ? c->in->whole->macs : out->reference;
    return MSC_OK;
}

const struct msc_env_metric msc_combined_metrics[] = {
    {.name = "size_bytes", .cost = cost_size},
    {.name = "size_ratio"},
    {.name = "bit_ops", .cost = cost_bit_ops},
    {.name = "bit_ops_ratio"},
    {.name = "macs", .cost = cost_macs},
    {.name = "macs_ratio"},
    {.name = NULL},
};

const struct msc_metric *msc_combined__metric(size_t index) {
    return msc_metric_at(msc_combined_metrics, index);
}
