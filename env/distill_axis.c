// Finds the axis of a batch's samples in each compared tensor. The axis has the same symbolic
// length as the inputs' axis of samples. It need not be the first axis: h_n of an LSTM is [layers,
// samples, hidden].
#include "env/distill_internal.h"

#include "graph/passes/bind.h"

// The first axis whose length is the model's symbol for the number of samples.
static int axis_of_symbol(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    int32_t symbol = msc_graph_sample_symbol(g);
    for (int i = 0; symbol != MSC_NO_ID && i < t->n_dims; i++) {
        if (t->dims[i] < 0 && t->prims[i] == symbol) {
            return i;
        }
    }
    return MSC_DISTILL_NO_AXIS;
}

// ---- Without symbols ----------------------------------------------------------------------------

// Binds the network to one sample less than the first batch has. *out is NULL if that is
// impossible.
static enum msc_status bind_fewer(struct msc_graph **out, const struct msc_distill *d) {
    int64_t n = msc_dataset_batch_samples(d->dataset, 0) - 1;
    size_t n_inputs = msc_dataset_n_inputs(d->dataset);
    const struct msc_array **arrays = msc_alloc_zero(n_inputs + 1, sizeof(arrays[0]));
    struct msc_dataset *fewer = NULL;
    *out = NULL;
    enum msc_status status = arrays ? msc_dataset_create_part(&fewer, d->dataset, 0, n)
                                    : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    for (size_t i = 0; status == MSC_OK && i < n_inputs; i++) {
        arrays[i] = msc_dataset_batch(fewer, 0, i);
    }
    if (status == MSC_OK) {
        status = msc_graph_bind_known(out, NULL, d->host->graph, arrays, n_inputs);
    }
    msc_dataset_destroy(fewer);
    msc_free(arrays);
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

// The axis whose length is one less in `fewer` while all other lengths are equal.
static int axis_of_lengths(const struct msc_distill *d, size_t index,
                           const struct msc_graph *fewer) {
    const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, 0);
    const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
    int32_t id = msc_graph_find_tensor(
        fewer, msc_graph_tensor(d->host->graph, d->compared[index].tensor)->name);
    const struct msc_tensor *s = id == MSC_NO_ID ? NULL : msc_graph_tensor(fewer, id);
    int64_t n = msc_dataset_batch_samples(d->dataset, 0);
    int axis = MSC_DISTILL_NO_AXIS;
    for (int i = 0; s && s->n_dims == t->n_dims && i < t->n_dims; i++) {
        bool has_samples = t->dims[i] == n && s->dims[i] == n - 1;
        if (t->dims[i] != s->dims[i] && !has_samples) {
            return MSC_DISTILL_NO_AXIS;
        }
        axis = has_samples && axis == MSC_DISTILL_NO_AXIS ? i : axis;
    }
    return axis;
}

static enum msc_status find_by_lengths(struct msc_distill *d) {
    struct msc_graph *fewer = NULL;
    for (size_t i = 0; i < d->n_compared; i++) {
        struct msc_distill_tensor *c = &d->compared[i];
        if (c->axis == MSC_DISTILL_NO_AXIS) {
            MSC_TRY(fewer ? MSC_OK : bind_fewer(&fewer, d));
            c->axis = fewer ? axis_of_lengths(d, i, fewer) : 0;
        }
    }
    msc_graph_destroy(fewer);
    return MSC_OK;
}

// ---- All of them ------------------------------------------------------------------------------

bool msc_distill__lacks_samples(const struct msc_distill *d, size_t index) {
    int axis = d->compared[index].axis;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
        int64_t n = msc_dataset_batch_samples(d->dataset, b);
        if (n > 1 && (axis < 0 || axis >= t->n_dims || t->dims[axis] != n)) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_distill__find_axes(struct msc_distill *d) {
    bool has_several = msc_dataset_batch_samples(d->dataset, 0) > 1;
    // In a sequence, each compared tensor has one row for each chunk.
    bool is_sequence = msc_dataset_is_sequence(d->dataset);
    for (size_t i = 0; i < d->n_compared; i++) {
        struct msc_distill_tensor *c = &d->compared[i];
        c->axis = is_sequence ? 0 : axis_of_symbol(d->host->graph, c->tensor);
    }
    if (has_several) {
        return find_by_lengths(d);
    }
    for (size_t i = 0; i < d->n_compared; i++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, 0);
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[i]);
        struct msc_distill_tensor *c = &d->compared[i];
        // If a model takes one sample at a time, the first axis is the axis of samples, unless the
        // tensor is a scalar.
        c->axis = c->axis < 0 && t->n_dims > 0 ? 0 : c->axis;
    }
    return MSC_OK;
}
