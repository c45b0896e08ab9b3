#include "env/quantize/predict.h"

#include "base/alloc.h"
#include "env/quantize/definition.h"
#include "env/quantize/internal.h"
#include "graph/cost.h"

#include <math.h>
#include <string.h>

// ---- Rates --------------------------------------------------------------------------------------

// Kinds of work of a joint; each kind has its own rates.
enum work {
    WORK_NONE,
    WORK_MOVE,
    WORK_PASS,
    WORK_FUNCTION,
    WORK_CONV,
    WORK_DEPTHWISE,
    WORK_MATRIX,
    WORK_RECURRENT
};

// Nanoseconds for each call, each product, and each element that is read or written. `tap` is the
// time for each window element at each position of the output, if the window is wider than one
// element.
struct rate {
    double call, product, element, tap;
};

static const struct rate of_floats[] = {
    [WORK_MOVE] = {700, 0, 0.05, 0},
    [WORK_PASS] = {700, 0, 0.1, 0},
    [WORK_FUNCTION] = {700, 0, 0.5, 0},
    [WORK_CONV] = {1000, 1 / 65.0, 0.2, 0},
    [WORK_DEPTHWISE] = {1000, 1 / 35.0, 0.12, 0},
    [WORK_MATRIX] = {700, 1 / 60.0, 0.1, 0},
    [WORK_RECURRENT] = {700, 1 / 23.0, 0.1, 0},
};
static const struct rate of_integers[] = {
    [WORK_MOVE] = {600, 0, 0.02, 0},
    [WORK_PASS] = {700, 0, 0.13, 0},
    [WORK_FUNCTION] = {700, 0, 0.15, 0},
    [WORK_CONV] = {650, 1 / 350.0, 0.1, 3},
    [WORK_DEPTHWISE] = {650, 1 / 35.0, 0.08, 0},
    [WORK_MATRIX] = {2000, 1 / 150.0, 0.1, 0},
    [WORK_RECURRENT] = {700, 1 / 23.0, 0.1, 0},
};
static const struct rate of_quantising = {1000, 0, 0.25, 0}, of_dequantising = {1500, 0, 0.3, 0};
// A product that quantises its activation dynamically, and finding the scale of an activation.
static const struct rate of_dynamic = {2000, 1 / 150.0, 0.1, 0}, of_finding = {500, 0, 0.25, 0};

// Float convolutions compute this many channels at once; missing channels are padded.
enum { CHANNELS_AT_ONCE = 16 };

static double cost_us(const struct rate *r, double products, double elements, double taps) {
    return 1e-3 * (r->call + r->product * products + r->element * elements + r->tap * taps);
}

static enum work work_of(const struct msc_joint *j) {
    int64_t groups = 1;
    switch (j->op) {
    case MSC_OP_INPUT:
    case MSC_OP_CONSTANT:
    case MSC_OP_SHAPE_OF:
    case MSC_OP_IDENTITY:
        return WORK_NONE;
    case MSC_OP_RESHAPE:
    case MSC_OP_FLATTEN:
    case MSC_OP_SQUEEZE:
    case MSC_OP_EXPAND_DIMS:
    case MSC_OP_TAKE:
    case MSC_OP_STRIDED_SLICE:
        return WORK_MOVE;
    case MSC_OP_CONV1D:
    case MSC_OP_CONV2D:
    case MSC_OP_CONV3D:
    case MSC_OP_CONV1D_BIAS:
    case MSC_OP_CONV2D_BIAS:
    case MSC_OP_CONV3D_BIAS:
    case MSC_OP_CONV1D_TRANSPOSE:
    case MSC_OP_CONV2D_TRANSPOSE:
    case MSC_OP_CONV3D_TRANSPOSE:
        msc_joint_attr_i64(j, "groups", &groups);
        return groups > 1 ? WORK_DEPTHWISE : WORK_CONV;
    case MSC_OP_LINEAR:
    case MSC_OP_LINEAR_BIAS:
    case MSC_OP_MATMUL:
    case MSC_OP_GEMM:
    case MSC_OP_EINSUM:
    case MSC_OP_ATTENTION:
        return WORK_MATRIX;
    case MSC_OP_RNN:
    case MSC_OP_GRU:
    case MSC_OP_LSTM:
        return WORK_RECURRENT;
    case MSC_OP_SOFTMAX:
    case MSC_OP_LOG_SOFTMAX:
    case MSC_OP_LAYER_NORM:
    case MSC_OP_INSTANCE_NORM:
    case MSC_OP_GROUP_NORM:
    case MSC_OP_SIGMOID:
    case MSC_OP_TANH:
    case MSC_OP_ELU:
    case MSC_OP_GELU:
    case MSC_OP_EXP:
    case MSC_OP_LOG:
    case MSC_OP_ERF:
    case MSC_OP_SELU:
    case MSC_OP_SOFTPLUS:
    case MSC_OP_MISH:
    case MSC_OP_SIN:
    case MSC_OP_COS:
    case MSC_OP_POWER:
        return WORK_FUNCTION;
    default:
        return WORK_PASS;
    }
}

// ---- One joint ----------------------------------------------------------------------------------

// A network and the plan of its first batch. The plan has bound lengths.
struct msc_quantize_predictor {
    struct msc_arena arena;
    const struct msc_quantize *z;
    const struct msc_plan *plan;
    const struct msc_target *target;
    double n_samples; // samples that a joint of the plan's graph computes together
    struct msc_latency_network net;
    struct msc_latency_table table;
};

static double elements_of(const struct msc_quantize_predictor *p, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->plan->graph, tensor);
    return t->data ? 0 : fmax((double)msc_tensor_n_elements(t), 0) / p->n_samples;
}

// Whether the joint is fused with the float convolution whose output it reads.
static bool is_fused(const struct msc_quantize_predictor *p, const struct msc_joint *j) {
    static const enum msc_op fused[] = {MSC_OP_RELU,         MSC_OP_CLIP,       MSC_OP_LEAKY_RELU,
                                        MSC_OP_SIGMOID,      MSC_OP_TANH,       MSC_OP_HARD_SWISH,
                                        MSC_OP_HARD_SIGMOID, MSC_OP_BATCH_NORM, MSC_OP_ADD};
    bool is_found = false;
    for (size_t i = 0; i < sizeof fused / sizeof fused[0]; i++) {
        is_found = is_found || j->op == fused[i];
    }
    int32_t maker =
        is_found && j->n_inputs > 0 ? msc_graph_producer(p->plan->graph, j->inputs[0]) : MSC_NO_ID;
    enum work work =
        maker == MSC_NO_ID ? WORK_NONE : work_of(msc_graph_joint(p->plan->graph, maker));
    return work == WORK_CONV || work == WORK_DEPTHWISE;
}

static int32_t weight_of(const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID && msc_graph_tensor(g, j->operands[i])->data &&
            msc_graph_tensor(g, j->operands[i])->n_dims > 2) {
            return j->operands[i];
        }
    }
    return MSC_NO_ID;
}

// Positions of a convolution's output times elements of its window; 0 for a window of one element.
// *fill is the factor by which padding increases the channels.
static double taps_of(const struct msc_quantize_predictor *p, const struct msc_joint *j,
                      double *fill) {
    const struct msc_graph *g = p->plan->graph;
    int32_t weight = weight_of(g, j);
    const struct msc_tensor *y = msc_graph_tensor(g, j->outputs[0]);
    if (weight == MSC_NO_ID || y->n_dims < 3) {
        return 0;
    }
    const struct msc_tensor *w = msc_graph_tensor(g, weight);
    double channels = (double)(w->dims[0] > 0 ? w->dims[0] : 1);
    double window = (double)msc_dims_product(w->n_dims - 2, w->dims + 2);
    *fill = ceil(channels / CHANNELS_AT_ONCE) * CHANNELS_AT_ONCE / channels;
    return window > 1 ? window * elements_of(p, j->outputs[0]) / channels : 0;
}

// A joint's time in floats, in integers if the target supports that, and with a dynamic activation.
struct joint_times {
    double float_us, integer_us, dynamic_us;
};

static struct joint_times predict_joint(const struct msc_quantize_predictor *p,
                                        const struct msc_joint *j) {
    enum work work = work_of(j);
    enum msc_target_role role = msc_target_role(p->target, p->plan->graph, j);
    double products = msc_joint_macs(p->plan->graph, j) / p->n_samples, elements = 0, fill = 1;
    double taps = work == WORK_CONV ? taps_of(p, j, &fill) : 0;
    for (int32_t i = 0; i < j->n_inputs; i++) {
        elements += work == WORK_MOVE ? 0 : elements_of(p, j->inputs[i]);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        elements += elements_of(p, j->outputs[i]);
    }
    bool is_free = work == WORK_NONE || is_fused(p, j);
    struct joint_times t = {0};
    t.float_us = is_free ? 0 : cost_us(&of_floats[work], products * fill, elements, 0);
    t.integer_us = role == MSC_TARGET_FLOAT ? t.float_us
                   : role == MSC_TARGET_SATURATES || work == WORK_NONE
                       ? 0
                       : cost_us(&of_integers[work], products, elements, taps);
    t.dynamic_us = work == WORK_MATRIX ? cost_us(&of_dynamic, products, elements, 0) : t.float_us;
    return t;
}

// ---- The table ----------------------------------------------------------------------------------

static enum msc_status fill_table(struct msc_quantize_predictor *p) {
    struct msc_arena *arena = &p->arena;
    const struct msc_graph *g = p->net.graph;
    size_t n_joints = (size_t)msc_graph_n_joints(g) + 1,
           n_sites = (size_t)p->net.sites->n_sites + 1;
    struct msc_latency_table *t = &p->table;
    t->float_us = msc_arena_array(arena, n_joints, sizeof(double));
    t->integer_us = msc_arena_array(arena, n_joints, sizeof(double));
    t->quantize_us = msc_arena_array(arena, n_sites, sizeof(double));
    t->dequantize_us = msc_arena_array(arena, n_sites, sizeof(double));
    t->dynamic_us = msc_arena_array(arena, n_joints, sizeof(double));
    t->find_us = msc_arena_array(arena, n_sites, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(t->float_us && t->integer_us && t->quantize_us && t->dequantize_us &&
                          t->dynamic_us && t->find_us));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        // The plan's graph has the same joints with bound lengths, found by name.
        int32_t bound = msc_graph_find_joint(p->plan->graph, msc_graph_joint(g, i)->name);
        if (bound != MSC_NO_ID) {
            struct joint_times one = predict_joint(p, msc_graph_joint(p->plan->graph, bound));
            t->float_us[p->net.group_of[i]] += one.float_us;
            t->integer_us[p->net.group_of[i]] += one.integer_us;
            t->dynamic_us[p->net.group_of[i]] += one.dynamic_us;
        }
    }
    for (int32_t i = 0; i < p->net.sites->n_sites; i++) {
        const struct msc_site *s = &p->net.sites->sites[i];
        if (s->kind == MSC_SITE_ACTIVATION && p->plan->bound_slots[s->slots[0]] != MSC_NO_ID) {
            double n = elements_of(p, msc_quantize_bound_slot(p->plan, s->slots[0])->tensor);
            t->quantize_us[i] = cost_us(&of_quantising, 0, n, 0);
            t->dequantize_us[i] = cost_us(&of_dequantising, 0, n, 0);
            t->find_us[i] = cost_us(&of_finding, 0, n, 0);
        }
    }
    return MSC_OK;
}

// ---- Points -------------------------------------------------------------------------------------

// The quantisation of a site at a point; NULL: float.
static const struct msc_quant *quant_of(const struct msc_quantize_predictor *p,
                                        const uint32_t point[], int32_t site) {
    const struct msc_quantize_space *s = &p->z->space;
    int32_t task = s->task_of_site[site];
    if (task == MSC_NO_ID) {
        return msc_latency_fixed_quant(&p->net.sites->sites[site], p->z->fixed);
    }
    return msc_quantizer_quant(p->z->quantizer, site,
                               (int32_t)s->choices_of_task[task][point[task]]);
}

// Whether all sites of the condition are bytes. Without a point, nothing is quantised.
static bool predict_holds(const struct msc_quantize_predictor *p, const struct msc_site_set *set,
                          const uint32_t point[]) {
    bool all = point && !set->is_never;
    for (int32_t i = 0; all && i < set->n; i++) {
        all = msc_latency_is_bytes(quant_of(p, point, set->sites[i]));
    }
    return all;
}

// Whether a group computes with a dynamic activation.
static bool is_dynamic(const struct msc_quantize_predictor *p, int32_t group,
                       const uint32_t point[]) {
    const struct msc_site_set *set = &p->net.needed[group];
    bool all = point && p->net.takes_dynamic[group] && !set->is_never;
    for (int32_t i = 0; all && i < set->n; i++) {
        const struct msc_quant *q = quant_of(p, point, set->sites[i]);
        bool is_weight = p->net.sites->sites[set->sites[i]].kind == MSC_SITE_WEIGHT;
        all = is_weight ? msc_latency_is_bytes(q) : q && q->is_dynamic;
    }
    return all;
}

double msc_quantize_predict_us(const struct msc_quantize_predictor *p, const uint32_t point[]) {
    const struct msc_latency_table *t = &p->table;
    double sum = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(p->net.graph); i++) {
        if (p->net.group_of[i] == i) {
            bool is_integer = predict_holds(p, &p->net.needed[i], point);
            sum += is_integer                ? t->integer_us[i]
                   : is_dynamic(p, i, point) ? t->dynamic_us[i]
                                             : t->float_us[i];
        }
    }
    for (int32_t i = 0; point && i < p->net.sites->n_sites; i++) {
        const struct msc_quant *q =
            p->net.sites->sites[i].kind == MSC_SITE_ACTIVATION ? quant_of(p, point, i) : NULL;
        if (q && q->is_dynamic) {
            sum += t->find_us[i];
        } else if (q) {
            bool is_byte = msc_latency_is_bytes(q);
            sum += is_byte && predict_holds(p, &p->net.made[i], point) ? 0 : t->quantize_us[i];
            sum += is_byte && predict_holds(p, &p->net.read[i], point) ? 0 : t->dequantize_us[i];
        }
    }
    return sum;
}

// ---- All of it ----------------------------------------------------------------------------------

enum msc_status msc_quantize_predictor_create(struct msc_quantize_predictor **out,
                                              struct msc_env *env) {
    *out = NULL;
    if (msc_env_definition(env) != &msc_env_quantize) {
        return MSC_OK;
    }
    struct msc_quantize *z = msc_env_state(env);
    const struct msc_target *target = z->quantizer_options.target;
    if (!target || !target->requantises) {
        return MSC_OK;
    }
    struct msc_quantize_predictor *p = msc_alloc_zero(1, sizeof *p);
    MSC_TRY(MSC_ALLOCATED(p));
    p->z = z;
    p->plan = msc_evaluator_plan(msc_distill_evaluator(z->runs.distill), 0);
    p->target = target;
    p->n_samples =
        (double)msc_dataset_batch_samples(msc_env_host(env)->dataset, 0) / p->plan->n_parts;
    enum msc_status status =
        msc_latency_network_find(&p->net, msc_env_host(env)->graph, z->quantizer, &p->arena);
    status = status == MSC_OK ? fill_table(p) : status;
    if (status != MSC_OK) {
        msc_quantize_predictor_destroy(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}

void msc_quantize_predictor_destroy(struct msc_quantize_predictor *p) {
    if (p) {
        msc_arena_finish(&p->arena);
        msc_free(p);
    }
}
