// The metric latency_us: what a run takes in the runtime that the model is for, by a table that is
// measured once, before the first trial, and kept with the record (RECORD.params): a run of one
// sample on one thread.
//
// The network is taken apart into groups (joints that stay together as nothing is quantised between
// them) and sites. With q(s) = 1 where the choice of site s is one of integers of a byte, else 0, and
// the product over no site being 1,
//
//     latency = constant
//             + over groups  float + (integer - float) * P,      P = product of q(s) over the sites
//                                                                that it needs to run over integers
//             + over sites   quantize * q * (1 - M)              M = product of P of what makes it
//                          + dequantize * q * (1 - R)            R = product of P of what reads it
//
// Groups that a target never runs over integers have P = 0. Where a choice quantises otherwise (16
// bits, floats of 16 bits), a site takes quantize + dequantize, and its groups are float. All of
// that are products of tasks' choices, so that it is exact (env/api/space.h).
//
// The table comes of profiles (tools/profile.h) of whole models: the float one, the uniform one of
// bytes, and plans in which every other weight, or what sums, products and concatenations give,
// is float, where conversions show. It is fitted so that the first two are met exactly.
#ifndef MSC_ENV_QUANTIZE_LATENCY_H
#define MSC_ENV_QUANTIZE_LATENCY_H

#include "env/quantize/metrics.h"

struct msc_bias_edits;

// Sites, ascending; `is_never`: whatever they are, it does not happen.
struct msc_site_set {
    bool is_never;
    int32_t n;
    int32_t *sites; // [n]
};

// What of the network takes time together.
struct msc_latency_network {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    int32_t *group_of;           // [n_joints] the first joint of its group
    int32_t *site_of_slot;       // [n_slots] or MSC_NO_ID
    int32_t *site_of_tensor;     // [n_tensors] of activations, or MSC_NO_ID
    struct msc_site_set *needed; // [n_joints] of groups, by their first joint
    struct msc_site_set *made;   // [n_sites] what those that make it need, all together
    struct msc_site_set *read;   // [n_sites] and those that read it
    int32_t *maker;              // [n_sites] group that makes it first, or MSC_NO_ID
    int32_t *reader;             // [n_sites] and that reads it first
};

// Microseconds of one run for one sample.
struct msc_latency_table {
    const char *text; // the table as JSON, as RECORD.params has it
    const char *of;   // "onnxruntime 1.23.0, 1 thread, AMD EPYC 9B45"
    double constant_us;
    double *float_us, *integer_us;       // [n_joints] of groups, by their first joint
    double *quantize_us, *dequantize_us; // [n_sites]
};

struct msc_quantize_latency {
    struct msc_latency_network network;
    struct msc_latency_table table;
};

// What is measured, and how. All is borrowed.
struct msc_latency_job {
    const struct msc_env_host *host;
    const struct msc_quantizer *quantizer;
    const struct msc_target *target; // NULL: none
    // [n_slots] edits of slots that no choice is made for.
    const struct msc_edit *const *fixed;
    struct msc_bias_edits *bias_edits;
    const struct msc_plan *plan; // of the first batch: it has the bound shapes
};

// Everything lives in the arena.
enum msc_status msc_latency_network_find(struct msc_latency_network *out, const struct msc_graph *g,
                                         const struct msc_quantizer *q, struct msc_arena *arena);
// Measures the table in the target's runtime or, where that is not there, with the cpu kernels of
// mscgym, and says so. MSC_E_INVALID: no choice is one of integers of a byte.
enum msc_status msc_latency_table_measure(struct msc_latency_table *out,
                                          const struct msc_latency_network *net,
                                          const struct msc_latency_job *job,
                                          struct msc_arena *arena);
// Of a table's text, which is copied. MSC_E_FORMAT: it is none of this network's.
enum msc_status msc_latency_table_read(struct msc_latency_table *out,
                                       const struct msc_latency_network *net, const char *text,
                                       size_t length, struct msc_arena *arena);

// The exact metric.
enum msc_status msc_quantize_cost_latency(struct msc_metric_cost *out, const void *of);
// A plan that is quicker than every baseline, by this cost, without a run; *out, in the arena, is NULL
// where none is found.
enum msc_status msc_quantize_find_quickest(const uint32_t **out, const struct msc_space *space,
                                           const struct msc_cost *cost, struct msc_arena *arena);

#endif
