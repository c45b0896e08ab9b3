#include "kernels/engine/remainder.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/engine/joint_runner.h"

#include <string.h>

// True if the sink wants the value that the remainder reads through one of `plan->sites`.
static bool wants_value_of(const struct msc_plan *plan, const struct msc_sink *sink, int32_t slot) {
    return sink->slot && plan->is_remainder_slot[slot] &&
           (!sink->wants_slot || sink->wants_slot(sink->payload, plan->slot_ids[slot]));
}

bool msc_remainder_is_asked(const struct msc_plan *plan, const struct msc_sink *sink) {
    bool is_asked = plan->wants_remainder && sink->batch;
    for (int32_t i = 0; !is_asked && plan->has_remainder_slots && i < plan->sites.n_slots; i++) {
        is_asked = wants_value_of(plan, sink, i);
    }
    return is_asked;
}

// The state of one run of a remainder.
struct remainder_run {
    const struct msc_remainder *remainder;
    const struct msc_plan *plan;
    const struct msc_array **arrays; // [n_given] elements of the given tensors
    int32_t *given;                  // [n_given] tensor ids: inputs, then live-out values
    size_t n_given;
    struct msc_array **made; // [n_missing] computed tensors, owned
    int32_t *missing;        // [n_missing] tensor ids: wanted tensors, then tensors that slots read
    size_t n_missing;
    struct msc_array **live_out; // [n_live_out] views of live-out values, owned
    struct msc_joint_runner runner;
};

static enum msc_status remainder_run_init(struct remainder_run *r) {
    size_t n_inputs = (size_t)msc_graph_n_inputs(r->plan->graph);
    size_t n_given = n_inputs + (size_t)r->plan->n_live_out + 1;
    size_t n_missing = (size_t)r->plan->n_wanted + (size_t)r->plan->sites.n_slots + 1;
    r->arrays = msc_alloc_zero(n_given, sizeof(r->arrays[0]));
    r->given = msc_alloc_zero(n_given, sizeof(r->given[0]));
    r->live_out = msc_alloc_zero((size_t)r->plan->n_live_out + 1, sizeof(r->live_out[0]));
    r->made = msc_alloc_zero(n_missing, sizeof(r->made[0]));
    r->missing = msc_alloc_zero(n_missing, sizeof(r->missing[0]));
    return MSC_ALLOCATED(r->arrays && r->given && r->live_out && r->made && r->missing);
}

static void remainder_run_finish(struct remainder_run *r) {
    for (size_t i = 0; r->made && i < r->n_missing; i++) {
        msc_array_release(r->made[i]);
    }
    for (int32_t i = 0; r->live_out && i < r->plan->n_live_out; i++) {
        msc_array_release(r->live_out[i]);
    }
    msc_free((void *)r->arrays);
    msc_free(r->given);
    msc_free(r->live_out);
    msc_free(r->made);
    msc_free(r->missing);
    msc_joint_runner_finish(&r->runner);
}

// Gathers the inputs of the remainder: the batch and the live-out values.
static enum msc_status gather_given(struct remainder_run *r, const struct msc_view live_out[]) {
    const struct msc_plan *plan = r->plan;
    for (int32_t i = 0; i < msc_graph_n_inputs(plan->graph); i++) {
        r->given[r->n_given] = msc_graph_input(plan->graph, i);
        r->arrays[r->n_given++] =
            msc_dataset_batch(r->remainder->dataset, r->remainder->batch, (size_t)i);
    }
    for (int32_t i = 0; i < plan->n_live_out; i++) {
        const struct msc_view *v = &live_out[i];
        if (plan->live_out[i] == MSC_NO_ID || !v->data) {
            continue;
        }
        MSC_TRY(msc_array_create_over(&r->live_out[i], v->dtype, v->n_dims, v->dims, v->data));
        r->given[r->n_given] = plan->values[plan->live_out[i]].tensor;
        r->arrays[r->n_given++] = r->live_out[i];
    }
    return MSC_OK;
}

// Lists the tensors that the run must compute: wanted tensors without a live-out value, and the
// tensors that the remainder's slots read.
static void list_missing(struct remainder_run *r) {
    const struct msc_plan *plan = r->plan;
    for (int32_t i = 0; i < plan->n_wanted; i++) {
        if (plan->live_out[i] == MSC_NO_ID) {
            r->missing[r->n_missing++] = plan->wanted_tensors[i];
        }
    }
    for (int32_t i = 0; i < plan->sites.n_slots; i++) {
        if (wants_value_of(plan, r->remainder->sink, i)) {
            r->missing[r->n_missing++] = plan->sites.slots[i].tensor;
        }
    }
}

// ---- Edits ------------------------------------------------------------------------------------

// Multiplies each element of the input by 1 + 2^-22 or 1 - 2^-22, at random. The noise depends on
// the slot and the batch, but not on what else is evaluated.
static enum msc_status perturb_input(struct msc_array **out, const struct remainder_run *r,
                                     uint64_t slot, const struct msc_array *array) {
    const float step = 1.0f / (1 << 22);
    struct msc_rng rng;
    MSC_TRY(msc_array_create_from(out, msc_array_dtype(array), msc_array_n_dims(array),
                                  msc_array_dims(array), msc_array_data(array)));
    msc_rng_seed(&rng, r->remainder->noise_seed, (uint64_t)r->remainder->batch << 32 ^ slot);
    float *x = msc_array_data(*out);
    for (int64_t i = 0; i < msc_array_n_elements(*out); i++) {
        x[i] *= msc_rng_u64(&rng) & 1 ? 1.0f + step : 1.0f - step;
    }
    return MSC_OK;
}

static enum msc_status edit_activation(struct msc_array **out, const struct remainder_run *r,
                                       uint64_t slot, const struct msc_array *array,
                                       const struct msc_edit *edit) {
    const struct msc_quant *quant = msc_edit_quant(edit);
    struct msc_array *masked, *perturbed = NULL;
    MSC_TRY(msc_edit_elements(&masked, array, edit));
    if (!quant) {
        *out = masked;
        return MSC_OK;
    }
    enum msc_status status = MSC_OK;
    if (r->remainder->noise_seed != 0) {
        status = perturb_input(&perturbed, r, slot, masked);
    }
    if (status == MSC_OK) {
        status = msc_fake_quantize_array(out, perturbed ? perturbed : masked, quant);
    }
    msc_array_release(masked);
    msc_array_release(perturbed);
    return status;
}

static enum msc_status read_operand(void *payload, struct msc_array **out,
                                    const struct msc_joint *joint, int32_t operand,
                                    const struct msc_array *array) {
    const struct remainder_run *r = payload;
    const struct msc_edit *const *edits = r->remainder->edits;
    int32_t bound = msc_sites_find_slot(&r->plan->sites, joint->id, operand);
    int32_t slot = bound == MSC_NO_ID ? MSC_NO_ID : r->plan->slot_ids[bound];
    const struct msc_edit *edit = slot == MSC_NO_ID || !edits ? NULL : edits[slot];
    if (!edit || msc_array_n_elements(array) == 0) {
        *out = msc_array_retain(array);
        return MSC_OK;
    }
    if (r->plan->sites.slots[bound].kind != MSC_SITE_ACTIVATION) {
        return msc_remainder_store_get(out, r->remainder->store, array, edit);
    }
    // Each chunk of a sequence has its own noise.
    uint64_t place = (uint64_t)r->plan->parts[joint->id] << 48 | (uint32_t)slot;
    return edit_activation(out, r, place, array, edit);
}

static enum msc_status compute_joint(void *payload, struct msc_array **out,
                                     const struct msc_joint *joint,
                                     const struct msc_array *const operands[]) {
    struct remainder_run *r = payload;
    return msc_joint_runner_run(&r->runner, out, r->plan->graph, joint->id, operands,
                                r->remainder->limits);
}

// ---- The sink ---------------------------------------------------------------------------------

static enum msc_status feed_slots(const struct remainder_run *r) {
    const struct msc_sink *sink = r->remainder->sink;
    size_t at = 0;
    for (int32_t i = 0; i < r->plan->n_wanted; i++) {
        at += r->plan->live_out[i] == MSC_NO_ID;
    }
    for (int32_t i = 0; i < r->plan->sites.n_slots; i++) {
        if (wants_value_of(r->plan, sink, i)) {
            struct msc_view view = msc_view_of_array(r->made[at++]);
            if (msc_view_n_elements(&view) > 0) {
                int32_t part = r->plan->parts[r->plan->sites.slots[i].joint];
                MSC_TRY(sink->slot(sink->payload, r->remainder->trial, r->remainder->batch, part,
                                   r->plan->slot_ids[i], &view));
            }
        }
    }
    return MSC_OK;
}

static enum msc_status feed_batch(const struct remainder_run *r, const struct msc_view live_out[]) {
    const struct msc_sink *sink = r->remainder->sink;
    struct msc_view *all;
    size_t at = 0;
    if (!sink->batch) {
        return MSC_OK;
    }
    all = msc_alloc_zero((size_t)r->plan->n_wanted + 1, sizeof(all[0]));
    MSC_TRY(MSC_ALLOCATED(all));
    for (int32_t i = 0; i < r->plan->n_wanted; i++) {
        all[i] = r->plan->live_out[i] != MSC_NO_ID ? live_out[i] : msc_view_of_array(r->made[at++]);
    }
    enum msc_status status =
        sink->batch(sink->payload, r->remainder->trial, r->remainder->batch, all);
    msc_free(all);
    return status;
}

// Runs the remainder and measures its memory. Memory use peaks here: the values that sinks get
// later are already allocated.
static enum msc_status run_measured(struct remainder_run *r, const struct msc_reference_run *run) {
    struct msc_array_meter meter = {.limit_bytes = run->limits->memory_bytes};
    struct msc_array_meter *before = msc_array_measure(&meter);
    enum msc_status status = msc_reference_run_part(r->made, run);
    msc_array_measure(before);
    msc_remainder_store_measured(r->remainder->store,
                                 (uint64_t)meter.peak_bytes + r->runner.packed_bytes);
    return status;
}

static enum msc_status compute_missing(struct remainder_run *r, const struct msc_view live_out[]) {
    MSC_TRY(remainder_run_init(r));
    MSC_TRY(gather_given(r, live_out));
    list_missing(r);
    const struct msc_reference_run run = {.graph = r->plan->graph,
                                          .n_given = r->n_given,
                                          .given = r->given,
                                          .arrays = r->arrays,
                                          .n_wanted = r->n_missing,
                                          .wanted = r->missing,
                                          .read = read_operand,
                                          .compute = compute_joint,
                                          .payload = r,
                                          .limits = r->remainder->limits};
    return run_measured(r, &run);
}

enum msc_status msc_remainder_run(const struct msc_remainder *remainder,
                                  const struct msc_view live_out[]) {
    struct remainder_run r = {.remainder = remainder, .plan = remainder->plan};
    enum msc_status status = compute_missing(&r, live_out);
    if (status == MSC_OK) {
        status = feed_slots(&r);
    }
    if (status == MSC_OK) {
        status = feed_batch(&r, live_out);
    }
    remainder_run_finish(&r);
    return status;
}
