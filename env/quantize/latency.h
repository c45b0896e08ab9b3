// The metric latency_us: the time of a run of one sample on one thread in the target's runtime. It
// follows from a table that is measured once, before the first trial, and stored with the record
// (RECORD.params).
//
// The network is divided into groups (joints without a quantised tensor between them) and sites.
// Let q(s) = 1 if the choice of site s is integers of at most 8 bits, else 0. Then
//
//     latency = constant
//             + sum over groups g:  float(g) + (integer(g) - float(g)) * P(g)
//             + sum over sites s:   quantize(s) * q(s) * (1 - M(s))
//                                   + dequantize(s) * q(s) * (1 - R(s))
//
//     P(g)  product of q(s) over the sites s that group g needs to run in integers
//     M(s)  product of P(g) over the groups g that write site s
//     R(s)  product of P(g) over the groups g that read site s
//
// An empty product is 1. Groups that a target never runs in integers have P = 0. With other
// quantisations (16 bits, 16-bit floats) a site takes quantize + dequantize and its groups run in
// floats.
//
// A site that is quantised dynamically has q(s) = 0. If a choice is dynamic, let d(s) = 1 for such
// sites; then the latency also has
//
//             + sum over groups g:  (dynamic(g) - float(g)) * D(g)
//             + sum over sites s:   find(s) * d(s)
//
//     D(g)  product, over the sites that g needs, of d(s) for activations and q(s) for weights; 0
//           if g does not begin with a product that takes dynamic quantisations
//
// All terms are products of tasks' choices, so the metric is exact (env/api/space.h).
//
// The table is fitted to profiles (tools/profile.h) of whole models: the float model, the uniform
// plan of bytes, and three mixed plans that contain conversions. In two mixed plans, half of the
// weights are float; in the third, the outputs of sums, products and concatenations are float. If a
// choice is dynamic, there is a plan in which all activations that can be are dynamic, and all
// others float. The table reproduces the times of the float model, of the uniform plan and of the
// dynamic plan exactly.
#ifndef MSC_ENV_QUANTIZE_LATENCY_H
#define MSC_ENV_QUANTIZE_LATENCY_H

#include "env/quantize/metrics.h"

struct msc_bias_edits;

// A condition: all sites of an ascending list are bytes; never true if `is_never`.
struct msc_site_set {
    bool is_never;
    int32_t n;
    int32_t *sites; // [n]
};

// The network divided into groups and sites.
struct msc_latency_network {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    int32_t *group_of;       // [n_joints], the first joint of the joint's group
    int32_t *site_of_slot;   // [n_slots], or MSC_NO_ID
    int32_t *site_of_tensor; // [n_tensors], site of an activation, or MSC_NO_ID
    // [n_joints], by a group's first joint: the group runs in integers (P)
    struct msc_site_set *needed;
    struct msc_site_set *made; // [n_sites], all groups that write the site run in integers (M)
    struct msc_site_set *read; // [n_sites], all groups that read the site run in integers (R)
    // [n_joints], by a group's first joint: the group begins with a product that can be computed
    // with a dynamic activation; the sites are those of `needed`
    bool *takes_dynamic;
    int32_t *maker;  // [n_sites], the first group that writes the site, or MSC_NO_ID
    int32_t *reader; // [n_sites], the first group that reads the site, or MSC_NO_ID
};

// Microseconds of one run for one sample.
struct msc_latency_table {
    const char *text; // the table as JSON, as stored in RECORD.params
    const char *of;   // what was measured: "onnxruntime 1.23.0, 1 thread, AMD EPYC 9B45"
    double constant_us;
    double *float_us, *integer_us;       // [n_joints], by a group's first joint
    double *quantize_us, *dequantize_us; // [n_sites]
    double *dynamic_us;                  // [n_joints], by a group's first joint
    double *find_us;                     // [n_sites], to quantise dynamically
};

struct msc_quantize_latency {
    struct msc_latency_network network;
    struct msc_latency_table table;
};

// Inputs of a measurement; all borrowed.
struct msc_latency_job {
    const struct msc_env_host *host;
    const struct msc_quantizer *quantizer;
    const struct msc_target *target; // may be NULL
    // [n_slots], edits of slots without a task.
    const struct msc_edit *const *fixed;
    struct msc_bias_edits *bias_edits;
    const struct msc_plan *plan; // of the first batch, with bound shapes
};

// True for integers of at most 8 bits, without groups, whose scale is known before the run (q(s)).
static inline bool msc_latency_is_bytes(const struct msc_quant *q) {
    return q && q->type == MSC_DTYPE_NONE && q->bits <= 8 && q->group_size == 0 && !q->is_dynamic;
}
// The quantisation of a site to which a search gives no choice, by the edits of slots; NULL: float.
const struct msc_quant *msc_latency_fixed_quant(const struct msc_site *site,
                                                const struct msc_edit *const fixed[]);

// Divides a network into groups and sites. Everything is allocated in the arena.
enum msc_status msc_latency_network_find(struct msc_latency_network *out, const struct msc_graph *g,
                                         const struct msc_quantizer *q, struct msc_arena *arena);
// Measures the table in the target's runtime. If the runtime is not installed, uses mscgym's cpu
// kernels and logs a warning. MSC_E_INVALID: no choice has integers of at most 8 bits.
enum msc_status msc_latency_table_measure(struct msc_latency_table *out,
                                          const struct msc_latency_network *net,
                                          const struct msc_latency_job *job,
                                          struct msc_arena *arena);
// Reads a table from its text, which is copied. MSC_E_FORMAT: the table does not belong to this
// network.
enum msc_status msc_latency_table_read(struct msc_latency_table *out,
                                       const struct msc_latency_network *net, const char *text,
                                       size_t length, struct msc_arena *arena);

// The `cost` function of latency_us.
enum msc_status msc_quantize_cost_latency(struct msc_metric_cost *out, const void *of);
// Searches, without runs, for a plan for which `cost` (the latency) is lower than for every
// baseline. *out is in the arena; NULL if none is found.
enum msc_status msc_quantize_find_quickest(const uint32_t **out, const struct msc_space *space,
                                           const struct msc_cost *cost, struct msc_arena *arena);

#endif
