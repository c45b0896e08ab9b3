#include "env/distill.h"

#include "base/alloc.h"
#include "base/str.h"
#include "env/distill_internal.h"

#include <math.h>
#include <string.h>

// ---- What is compared -------------------------------------------------------------------------

static bool is_discontinuous(enum msc_op op) {
    return op == MSC_OP_EQUAL || op == MSC_OP_GREATER || op == MSC_OP_LESS || op == MSC_OP_ARGMAX ||
           op == MSC_OP_ROUND || op == MSC_OP_FLOOR || op == MSC_OP_CEIL || op == MSC_OP_NONZERO ||
           op == MSC_OP_NON_MAX_SUPPRESSION || op == MSC_OP_TOPK;
}

// The greatest values change as little as what they are taken from; only their places jump.
static bool is_sorted_values(const struct msc_joint *j, int32_t tensor) {
    return j->op == MSC_OP_TOPK && j->outputs[0] == tensor;
}

// Whole numbers do not change a little: only what jumps on floats counts.
static bool reads_floats(const struct msc_graph *g, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_inputs; i++) {
        if (msc_dtype_is_float(msc_graph_tensor(g, j->inputs[i])->dtype)) {
            return true;
        }
    }
    return false;
}

// The nearest joint above a tensor whose result jumps; MSC_NO_ID when there is none.
static int32_t jump_above(const struct msc_graph *g, int32_t tensor, bool seen[]) {
    int32_t joint = msc_graph_tensor(g, tensor)->producer;
    if (joint == MSC_NO_ID) {
        return MSC_NO_ID;
    }
    const struct msc_joint *j = msc_graph_joint(g, joint);
    if (is_discontinuous(j->op) && reads_floats(g, j) && !is_sorted_values(j, tensor)) {
        return joint;
    }
    if (seen[joint]) {
        return MSC_NO_ID;
    }
    seen[joint] = true;
    for (int32_t i = 0; i < j->n_inputs; i++) {
        int32_t found = jump_above(g, j->inputs[i], seen);
        if (found != MSC_NO_ID) {
            return found;
        }
    }
    return MSC_NO_ID;
}

static enum msc_status warn_of_jump(struct msc_distill *d, const struct msc_distill_tensor *c) {
    const struct msc_graph *g = d->host->graph;
    bool *seen = msc_alloc_zero((size_t)msc_graph_n_joints(g) + 1, sizeof(bool));
    if (!seen) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    int32_t jump = jump_above(g, c->tensor, seen);
    msc_free(seen);
    if (jump != MSC_NO_ID) {
        const struct msc_joint *j = msc_graph_joint(g, jump);
        msc_log(d->host->log, MSC_LOG_WARNING,
                "output %s lies behind joint %s (%s), where the smallest change can jump: name a "
                "tensor before it in env.loss_tensors, such as %s",
                c->name, j->name, msc_op_info(j->op)->name,
                msc_graph_tensor(g, j->inputs[0])->name);
    }
    return MSC_OK;
}

static enum msc_status add_compared(struct msc_distill *d, int32_t tensor, double weight) {
    const struct msc_tensor *t = msc_graph_tensor(d->host->graph, tensor);
    struct msc_distill_tensor *c = &d->compared[d->n_compared++];
    *c = (struct msc_distill_tensor){.tensor = tensor, .weight = weight};
    c->name = t->alias[0] ? t->alias : t->name;
    return warn_of_jump(d, c);
}

static enum msc_status compare_named(struct msc_distill *d) {
    const struct msc_distill_options *o = &d->options;
    for (size_t i = 0; i < o->n_tensors; i++) {
        int32_t tensor = msc_graph_find_tensor(d->host->graph, o->tensors[i]);
        if (tensor == MSC_NO_ID) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "env.loss_tensors: the model has no tensor \"%s\"; `mscgym graph MODEL` "
                "lists them",
                o->tensors[i]);
        }
        if (msc_graph_tensor(d->host->graph, tensor)->dtype != MSC_DTYPE_F32) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: %s is not float32", o->tensors[i]);
        }
        MSC_TRY(add_compared(d, tensor, o->weights ? o->weights[i] : 1));
    }
    return MSC_OK;
}

// Why an output has no part in the loss, or NULL.
static const char *reason_to_leave_out(const struct msc_graph *g, int32_t tensor) {
    enum msc_dtype dtype = msc_graph_tensor(g, tensor)->dtype;
    if (dtype != MSC_DTYPE_F32) {
        return msc_dtype_name(dtype);
    }
    return msc_graph_weight_of(g, tensor) != MSC_NO_ID ? "constant" : NULL;
}

// Does the tensor feed an input in the next chunk? What it loses shows in what comes later.
static bool is_state(const struct msc_distill *d, int32_t tensor) {
    for (size_t i = 0; i < msc_dataset_n_inputs(d->dataset); i++) {
        const char *state = msc_dataset_state(d->dataset, i);
        if (state && msc_graph_find_tensor(d->host->graph, state) == tensor) {
            return true;
        }
    }
    return false;
}

// Compares the outputs that are states, or those that are none.
static enum msc_status compare_kind(struct msc_distill *d, bool wants_states) {
    const struct msc_graph *g = d->host->graph;
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        int32_t tensor = msc_graph_output(g, i);
        const char *reason = reason_to_leave_out(g, tensor);
        if (is_state(d, tensor) != wants_states) {
            continue;
        }
        if (reason) {
            msc_log(d->host->log, MSC_LOG_WARNING, "output %s is %s: left out of the loss",
                    msc_graph_tensor(g, tensor)->name, reason);
        } else {
            MSC_TRY(add_compared(d, tensor, 1));
        }
    }
    return MSC_OK;
}

static enum msc_status compare_outputs(struct msc_distill *d) {
    const struct msc_graph *g = d->host->graph;
    MSC_TRY(compare_kind(d, false));
    if (d->n_compared == 0) {
        MSC_TRY(compare_kind(d, true));
    }
    return d->n_compared > 0 ? MSC_OK
                             : MSC_FAIL(MSC_E_INVALID,
                                        "graph %s has no float32 output: name what to compare in "
                                        "env.loss_tensors",
                                        msc_graph_name(g));
}

static enum msc_status find_class_scores(struct msc_distill *d) {
    d->class_scores = SIZE_MAX;
    if (!msc_dataset_has_labels(d->dataset)) {
        return MSC_OK;
    }
    d->class_scores = 0;
    for (size_t i = 0; d->options.class_scores && i < d->n_compared; i++) {
        const char *own = msc_graph_tensor(d->host->graph, d->compared[i].tensor)->name;
        if (strcmp(d->compared[i].name, d->options.class_scores) == 0 ||
            strcmp(own, d->options.class_scores) == 0) {
            d->class_scores = i;
            return MSC_OK;
        }
    }
    if (d->options.class_scores) {
        return MSC_FAIL(MSC_E_INVALID, "env.class_scores: %s is not among the compared tensors",
                        d->options.class_scores);
    }
    return MSC_OK;
}

// Splits one sample of a compared tensor at the axis that kl runs along.
static enum msc_status shape_sample(const struct msc_distill *d, const struct msc_distill_tensor *c,
                                    size_t batch, const struct msc_tensor *v,
                                    struct msc_distill_part *out) {
    int64_t in_batch = msc_dataset_batch_samples(d->dataset, batch);
    bool has_batch_axis = v->n_dims > 0 && v->dims[0] == in_batch;
    int first = has_batch_axis ? 1 : 0;
    int axis = d->options.kl_axis < 0 ? d->options.kl_axis + v->n_dims : d->options.kl_axis;
    if (!has_batch_axis && in_batch != 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "tensor %s has %lld entries on its first axis for a batch of %lld samples: "
                        "its loss has no samples; set dataset.batch to 1",
                        c->name, v->n_dims > 0 ? (long long)v->dims[0] : 1, (long long)in_batch);
    }
    if (d->options.kind == MSC_LOSS_KL && (axis < first || axis >= v->n_dims)) {
        return MSC_FAIL(MSC_E_INVALID, "env.kl_axis: %d is no axis of a sample of %s",
                        d->options.kl_axis, c->name);
    }
    out->shape = (struct msc_loss_shape){1, 1, 1};
    for (int i = first; i < v->n_dims; i++) {
        *(i < axis   ? &out->shape.outer
          : i > axis ? &out->shape.inner
                     : &out->shape.axis) *= v->dims[i];
    }
    out->n = out->shape.outer * out->shape.axis * out->shape.inner;
    return MSC_OK;
}

// Where each batch of a compared tensor is in its reference, and how its samples are shaped.
static enum msc_status shape_samples(struct msc_distill *d, size_t index) {
    struct msc_distill_tensor *c = &d->compared[index];
    size_t n_batches = msc_dataset_n_batches(d->dataset);
    c->parts = msc_arena_array(&d->arena, n_batches, sizeof(c->parts[0]));
    if (!c->parts) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    for (size_t b = 0; b < n_batches; b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
        MSC_TRY(shape_sample(d, c, b, t, &c->parts[b]));
        c->parts[b].first = c->n_elements;
        c->n_elements += c->parts[b].n * msc_dataset_batch_samples(d->dataset, b);
    }
    return MSC_OK;
}

// ---- Creation ---------------------------------------------------------------------------------

static enum msc_status make_evaluator(struct msc_distill *d) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    int32_t *wanted = msc_arena_array(&d->arena, d->n_compared, sizeof(wanted[0]));
    if (!wanted) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    for (size_t i = 0; i < d->n_compared; i++) {
        wanted[i] = d->compared[i].tensor;
    }
    o.backend = d->host->backend;
    o.n_threads = d->host->n_threads;
    o.memory_bytes = d->host->memory_bytes;
    o.cancel = d->host->cancel;
    o.log = d->host->log;
    return msc_evaluator_create(&d->evaluator, d->host->graph, d->dataset, wanted, d->n_compared,
                                &o);
}

static const char as_long_as_data_say[] = "as long as the data say";

// Why a tensor that plans were made for cannot be compared sample by sample, or NULL.
static const char *reason_in_plans(const struct msc_distill *d, size_t index) {
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        int32_t tensor = plan->wanted_tensors[index];
        if (msc_graph_weight_of(plan->graph, tensor) != MSC_NO_ID) {
            return "constant on this dataset";
        }
        if (msc_tensor_n_elements(msc_graph_tensor(plan->graph, tensor)) < 0) {
            return as_long_as_data_say;
        }
    }
    return NULL;
}

// Leaves out what has no loss once the inputs are known. *n_left_out tensors are gone.
static enum msc_status leave_out(struct msc_distill *d, size_t *n_left_out) {
    size_t kept = 0;
    for (size_t i = 0; i < d->n_compared; i++) {
        const char *reason = reason_in_plans(d, i);
        if (reason && d->options.n_tensors > 0) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: %s is %s: it has no loss",
                            d->compared[i].name, reason);
        }
        if (reason) {
            msc_log(d->host->log, MSC_LOG_WARNING, "output %s is %s: left out of the loss",
                    d->compared[i].name, reason);
        } else {
            d->compared[kept++] = d->compared[i];
        }
    }
    *n_left_out = d->n_compared - kept;
    d->n_compared = kept;
    return kept > 0 ? MSC_OK
                    : MSC_FAIL(MSC_E_INVALID,
                               "graph %s has no output to compare: name a tensor before those in "
                               "env.loss_tensors",
                               msc_graph_name(d->host->graph));
}

// What another loss compares, be it constant here or not: losses are of the same kind only if they
// are of the same tensors.
static enum msc_status compare_as(struct msc_distill *d, const struct msc_distill *other) {
    for (size_t i = 0; i < other->n_compared; i++) {
        const struct msc_distill_tensor *c = &other->compared[i];
        d->compared[d->n_compared++] =
            (struct msc_distill_tensor){.tensor = c->tensor, .name = c->name, .weight = c->weight};
    }
    MSC_TRY(make_evaluator(d));
    for (size_t i = 0; i < d->n_compared; i++) {
        const char *reason = reason_in_plans(d, i);
        if (reason == as_long_as_data_say) {
            return MSC_FAIL(MSC_E_INVALID, "tensor %s, which the loss compares, is %s here",
                            d->compared[i].name, reason);
        }
    }
    return find_class_scores(d);
}

static enum msc_status compare_asked(struct msc_distill *d) {
    size_t n_left_out = 0;
    MSC_TRY(d->options.n_tensors > 0 ? compare_named(d) : compare_outputs(d));
    MSC_TRY(make_evaluator(d));
    MSC_TRY(leave_out(d, &n_left_out));
    MSC_TRY(find_class_scores(d));
    if (n_left_out > 0) {
        msc_evaluator_destroy(d->evaluator);
        d->evaluator = NULL;
        MSC_TRY(make_evaluator(d));
    }
    return MSC_OK;
}

static enum msc_status init(struct msc_distill *d, const struct msc_distill *other) {
    size_t room = d->options.n_tensors + (size_t)msc_graph_n_outputs(d->host->graph) + 1;
    d->compared = msc_arena_array(&d->arena, room, sizeof(d->compared[0]));
    if (!d->compared) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    d->n_samples = msc_dataset_n_samples(d->dataset);
    MSC_TRY(other ? compare_as(d, other) : compare_asked(d));
    for (size_t i = 0; i < d->n_compared; i++) {
        MSC_TRY(shape_samples(d, i));
    }
    return MSC_OK;
}

static enum msc_status create(struct msc_distill **out, const struct msc_env_host *host,
                              const struct msc_dataset *dataset,
                              const struct msc_distill_options *options,
                              const struct msc_distill *other) {
    struct msc_distill *d = msc_alloc_zero(1, sizeof(*d));
    if (!d) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    d->host = host;
    d->dataset = dataset;
    d->options = *options;
    enum msc_status status = init(d, other);
    if (status != MSC_OK) {
        msc_distill_destroy(d);
        return status;
    }
    *out = d;
    return MSC_OK;
}

enum msc_status msc_distill_create(struct msc_distill **out, const struct msc_env_host *host,
                                   const struct msc_dataset *dataset,
                                   const struct msc_distill_options *options) {
    return create(out, host, dataset, options, NULL);
}

enum msc_status msc_distill_create_as(struct msc_distill **out, const struct msc_distill *other,
                                      const struct msc_dataset *dataset) {
    return create(out, other->host, dataset, &other->options, other);
}

void msc_distill_destroy(struct msc_distill *d) {
    if (!d) {
        return;
    }
    for (size_t i = 0; i < d->n_compared; i++) {
        msc_array_release(d->compared[i].reference);
    }
    msc_evaluator_destroy(d->evaluator);
    msc_free(d->trials);
    msc_free(d->losses);
    msc_free(d->correct);
    msc_free(d->is_compared);
    msc_free(d->sums);
    msc_arena_finish(&d->arena);
    msc_free(d);
}

struct msc_evaluator *msc_distill_evaluator(struct msc_distill *d) {
    return d->evaluator;
}

// ---- Reference --------------------------------------------------------------------------------

static enum msc_status keep_reference(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    struct msc_distill *d = payload;
    (void)trial;
    int64_t n = msc_dataset_batch_samples(d->dataset, batch);
    for (size_t i = 0; i < d->n_compared; i++) {
        const struct msc_distill_tensor *c = &d->compared[i];
        memcpy(msc_distill__reference(c, batch, 0), values[i].data,
               (size_t)(n * c->parts[batch].n) * sizeof(float));
    }
    return MSC_OK;
}

static enum msc_status create_reference(struct msc_distill_tensor *c) {
    msc_array_release(c->reference);
    c->reference = NULL;
    return msc_array_create(&c->reference, MSC_DTYPE_F32, 1, &c->n_elements);
}

// Sums of squares, sample by sample.
static double sum_squares(const struct msc_distill *d, const struct msc_distill_tensor *c) {
    double sum = 0;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        for (int64_t row = 0; row < msc_dataset_batch_samples(d->dataset, b); row++) {
            sum += msc_loss_sum_squares(msc_distill__reference(c, b, row), c->parts[b].n);
        }
    }
    return sum;
}

// What normalises the loss; and a float model that gives NaN is no reference.
static enum msc_status finish_reference(struct msc_distill *d) {
    for (size_t i = 0; i < d->n_compared; i++) {
        struct msc_distill_tensor *c = &d->compared[i];
        if (c->n_elements == 0) {
            return MSC_FAIL(MSC_E_INVALID, "tensor %s has no elements: nothing to compare",
                            c->name);
        }
        c->mean_square = sum_squares(d, c) / (double)c->n_elements;
        if (!isfinite(c->mean_square)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "the float model's output %s holds NaN or infinity on this dataset",
                            c->name);
        }
    }
    d->has_reference = true;
    return MSC_OK;
}

enum msc_status msc_distill_compute_reference(struct msc_distill *d) {
    struct msc_sink sink = {.batch = keep_reference, .payload = d};
    struct msc_eval_trial trial = {.edits = NULL};
    for (size_t i = 0; i < d->n_compared; i++) {
        MSC_TRY(create_reference(&d->compared[i]));
    }
    MSC_TRY(msc_evaluator_run(d->evaluator, &trial, 1, &sink, 0));
    if (trial.status != MSC_OK) {
        return msc_status_restore(trial.status, trial.message);
    }
    return finish_reference(d);
}

static enum msc_status set_reference_name(struct msc_str *name,
                                          const struct msc_distill_tensor *compared) {
    msc_str_clear(name);
    msc_str_printf(name, "reference/%s", compared->name);
    return msc_str_status(name);
}

enum msc_status msc_distill_save_reference(const struct msc_distill *d,
                                           struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        status = set_reference_name(&name, &d->compared[i]);
        if (status == MSC_OK) {
            status = msc_array_list_add(list, msc_str_text(&name), d->compared[i].reference);
        }
    }
    msc_str_finish(&name);
    return status;
}

static enum msc_status load_one(struct msc_distill_tensor *c, const struct msc_array *array) {
    if (!array || msc_array_dtype(array) != MSC_DTYPE_F32 ||
        msc_array_n_elements(array) != c->n_elements) {
        return MSC_FAIL(MSC_E_STATE, "no reference output of %s with %lld elements", c->name,
                        (long long)c->n_elements);
    }
    msc_array_release(c->reference);
    c->reference = msc_array_retain(array);
    return MSC_OK;
}

enum msc_status msc_distill_load_reference(struct msc_distill *d,
                                           const struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        status = set_reference_name(&name, &d->compared[i]);
        if (status == MSC_OK) {
            status = load_one(&d->compared[i], msc_array_list_find(list, msc_str_text(&name)));
        }
    }
    msc_str_finish(&name);
    return status == MSC_OK ? finish_reference(d) : status;
}
