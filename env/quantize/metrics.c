// The metrics that the `quantize` environment computes from choices: first the functions of
// metrics, then the list of metrics.
#include "env/quantize/metrics.h"

#include "base/alloc.h"
#include "env/metric_command.h"
#include "env/quantize/internal.h"
#include "env/quantize/latency.h"
#include "env/whole.h"
#include "graph/cost.h"
#include "graph/onnx/onnx.h"
#include "graph/packing.h"
#include "graph/wide.h"
#include "kernels/engine/planner.h"

#include <math.h>

// ---- size_bytes: packed integers, scales, zero points, and float weights ----------------------

static enum msc_status add_weight_size(struct msc_metric_cost *out,
                                       const struct msc_quantize_inputs *in,
                                       const struct msc_quantize_space *s, int32_t site,
                                       int32_t weight, double float_bytes) {
    const struct msc_target *target = msc_quantizer_sites(in->quantizer)->scheme.target;
    uint32_t task = (uint32_t)s->task_of_site[site];
    uint32_t n_choices = s->space.tasks[task].n_choices;
    double *bytes = msc_arena_array(out->arena, n_choices, sizeof(bytes[0]));
    MSC_TRY(MSC_ALLOCATED(bytes));
    for (uint32_t c = 0; c < n_choices; c++) {
        int32_t choice = (int32_t)s->choices_of_task[task][c];
        const struct msc_quant *quant = msc_quantizer_quant(in->quantizer, site, choice);
        bytes[c] =
            quant ? msc_packed_weight_bytes(in->host->graph, weight, quant, target) : float_bytes;
    }
    const double *by_choice = bytes;
    return msc_metric_add_term(out, 1, 1, &task, &by_choice);
}

// Adds the size of each weight that a site quantises, once even if several slots read the weight.
static enum msc_status add_site_sizes(struct msc_metric_cost *out,
                                      const struct msc_quantize_inputs *in,
                                      const struct msc_quantize_space *s, bool counted[]) {
    const struct msc_sites *sites = msc_quantizer_sites(in->quantizer);
    for (int32_t slot = 0; slot < sites->n_site_slots; slot++) {
        int32_t tensor = sites->slots[slot].tensor;
        if (sites->slots[slot].kind != MSC_SITE_WEIGHT || counted[tensor]) {
            continue;
        }
        int64_t n = msc_tensor_n_elements(msc_graph_tensor(in->host->graph, tensor));
        double float_bytes = (double)n * (double)msc_graph_own_bytes(in->host->graph, tensor);
        int32_t site = s->site_of_slot[slot];
        counted[tensor] = true;
        out->reference += float_bytes;
        if (s->task_of_site[site] != MSC_NO_ID) {
            MSC_TRY(add_weight_size(out, in, s, site, tensor, float_bytes));
        } else {
            const struct msc_quant *quant = msc_edit_quant(in->fixed[slot]);
            out->constant += quant ? msc_packed_weight_bytes(in->host->graph, tensor, quant,
                                                             sites->scheme.target)
                                   : float_bytes;
        }
    }
    return MSC_OK;
}

// True if no plan quantises this operand of the joint.
static bool stays_float(const struct msc_quantize_inputs *in, const struct msc_quantize_space *s,
                        int32_t joint, int32_t operand) {
    const struct msc_sites *sites = msc_quantizer_sites(in->quantizer);
    int32_t slot = msc_sites_find_slot(sites, joint, operand);
    return slot == MSC_NO_ID ||
           (msc_quantize_task_of_slot(s, slot) == MSC_NO_ID && !msc_edit_quant(in->fixed[slot]));
}

// Bytes of the scales of rounded biases, one for each output channel. A bias is not rounded if the
// joint's input or weight stays float.
static double bias_steps_size(const struct msc_quantize_inputs *in,
                              const struct msc_quantize_space *s) {
    const struct msc_sites *sites = msc_quantizer_sites(in->quantizer);
    const struct msc_graph *g = in->host->graph;
    double n_bytes = 0;
    bool rounds = sites->scheme.target && sites->scheme.target->rounds_biases;
    for (int32_t i = sites->n_site_slots; rounds && i < sites->n_slots; i++) {
        const struct msc_joint *j = msc_graph_joint(g, sites->slots[i].joint);
        bool is_rounded = !stays_float(in, s, j->id, 0) && !stays_float(in, s, j->id, 1);
        if (is_rounded && msc_target_is_integer(msc_target_role(sites->scheme.target, g, j))) {
            n_bytes +=
                4.0 * (double)msc_tensor_n_elements(msc_graph_tensor(g, sites->slots[i].tensor));
        }
    }
    return n_bytes;
}

// Size of the model as written to a file. Tensors that are constant only for given values of
// symbolic dimensions are not counted.
static enum msc_status cost_size(struct msc_metric_cost *out, const void *of) {
    const struct msc_quantize_costing *c = of;
    const struct msc_graph *g = c->in->host->graph;
    bool *counted = msc_arena_array(out->arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(counted));
    MSC_TRY(add_site_sizes(out, c->in, c->s, counted));
    out->constant += bias_steps_size(c->in, c->s);
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        if (t->data && !counted[i] && msc_tensor_is_stored(t)) {
            double bytes =
                (double)msc_array_n_elements(t->data) * (double)msc_graph_own_bytes(g, i);
            out->reference += bytes;
            out->constant += bytes;
        }
    }
    out->reference = c->in->whole ? c->in->whole->n_bytes : out->reference;
    return MSC_OK;
}

// ---- bit_ops: over joints, MACs * bits of the activation * bits of the weight, for one sample --

int32_t msc_quantize_operand_task(double *bits, const struct msc_quantize_inputs *in,
                                  const struct msc_quantize_space *s, int32_t slot) {
    *bits = MSC_QUANTIZE_FLOAT_BITS;
    if (slot == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    int32_t task = msc_quantize_task_of_slot(s, slot);
    const struct msc_quant *fixed = msc_edit_quant(in->fixed[slot]);
    if (task == MSC_NO_ID && fixed) {
        *bits = fixed->bits;
    }
    return task;
}

// Adds a term for a task that decides both operands.
static enum msc_status add_square(struct msc_metric_cost *out, const struct msc_quantize_space *s,
                                  double scale, uint32_t task, const double *const bits[2]) {
    uint32_t n_choices = s->space.tasks[task].n_choices;
    double *squares = msc_arena_array(out->arena, n_choices, sizeof(squares[0]));
    MSC_TRY(MSC_ALLOCATED(squares));
    for (uint32_t c = 0; c < n_choices; c++) {
        squares[c] = bits[0][c] * bits[1][c];
    }
    const double *by_choice = squares;
    return msc_metric_add_term(out, scale, 1, &task, &by_choice);
}

static enum msc_status add_product(struct msc_metric_cost *out,
                                   const struct msc_quantize_inputs *in,
                                   const struct msc_quantize_space *s, int32_t joint,
                                   const struct msc_product *product) {
    double bits[2];
    uint32_t tasks[2];
    const double *by_choice[2];
    size_t n = 0;
    double scale = product->macs * in->plan->n_parts / in->n_samples;
    for (int i = 0; i < 2; i++) {
        int32_t slot = msc_plan_find_slot(in->plan, joint, product->operands[i]);
        int32_t task = msc_quantize_operand_task(&bits[i], in, s, slot);
        if (task == MSC_NO_ID) {
            scale *= bits[i];
        } else {
            by_choice[n] =
                s->bits_of_task[task][msc_quantizer_sites(in->quantizer)->slots[slot].kind];
            tasks[n++] = (uint32_t)task;
        }
    }
    if (n == 0) {
        out->constant += scale;
        return MSC_OK;
    }
    return n == 2 && tasks[0] == tasks[1] ? add_square(out, s, scale, tasks[0], by_choice)
                                          : msc_metric_add_term(out, scale, n, tasks, by_choice);
}

static double whole_macs(const struct msc_quantize_costing *c) {
    return c->in->whole ? c->in->whole->macs : c->s->macs;
}

static enum msc_status cost_bit_ops(struct msc_metric_cost *out, const void *of) {
    const struct msc_quantize_costing *c = of;
    const struct msc_graph *g = c->in->plan->graph;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        struct msc_product products[2];
        if (c->in->plan->parts[i] > 0) {
            continue; // the first chunk of a sequence is counted for all
        }
        int n = msc_joint_products(products, g, msc_graph_joint(g, i));
        for (int k = 0; k < n; k++) {
            if (products[k].macs > 0) {
                MSC_TRY(add_product(out, c->in, c->s, i, &products[k]));
            }
        }
    }
    out->reference = whole_macs(c) * MSC_QUANTIZE_FLOAT_BITS * MSC_QUANTIZE_FLOAT_BITS;
    return MSC_OK;
}

// ---- The others -------------------------------------------------------------------------------

// Quantising does not change multiply-accumulates.
static enum msc_status cost_macs(struct msc_metric_cost *out, const void *of) {
    const struct msc_quantize_costing *c = of;
    out->constant = c->s->macs;
    out->reference = whole_macs(c);
    return MSC_OK;
}

static enum msc_status measure_file(double *out, const struct msc_env *env,
                                    const uint32_t choices[],
                                    const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_onnx_export_options o = {.sites = msc_quantizer_sites(z->quantizer),
                                              .slot_edits = edits};
    uint64_t n_bytes;
    (void)choices;
    MSC_TRY(msc_onnx_measure(&n_bytes, msc_env_host(env)->graph, &o));
    *out = (double)n_bytes;
    return MSC_OK;
}

struct model {
    const struct msc_env *env;
    const struct msc_edit *const *edits;
};

static enum msc_status save_model(const char *path, void *payload) {
    const struct model *m = payload;
    const struct msc_quantize *z = msc_env_state(m->env);
    const struct msc_onnx_export_options o = {.sites = msc_quantizer_sites(z->quantizer),
                                              .slot_edits = m->edits};
    return msc_onnx_save(msc_env_host(m->env)->graph, path, &o);
}

static enum msc_status measure_command(double *out, const struct msc_env *env,
                                       const uint32_t choices[],
                                       const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    struct model model = {env, edits};
    const struct msc_metric_command c = {.command = &z->command,
                                         .distill = z->runs.distill,
                                         .edits = edits,
                                         .save = save_model,
                                         .payload = &model};
    (void)choices;
    return msc_metric_command_run(out, &c, msc_env_host(env));
}

// ---- The list ---------------------------------------------------------------------------------

const struct msc_env_metric msc_quantize_metrics[] = {
    {.name = "size_bytes", .cost = cost_size},
    {.name = "size_ratio"},
    {.name = "bit_ops", .cost = cost_bit_ops},
    {.name = "bit_ops_ratio"},
    {.name = "macs", .cost = cost_macs},
    {.name = MSC_METRIC_LATENCY, .cost = msc_quantize_cost_latency},
    {.name = "latency_ratio"},
    {.name = "file_bytes", .measure = measure_file},
    {.name = "command", .measure = measure_command},
    {.name = NULL},
};

const struct msc_metric *msc_quantize_metric(size_t index) {
    return msc_metric_at(msc_quantize_metrics, index);
}
