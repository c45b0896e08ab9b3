// What the loss compares: the tensors that are asked for, or the outputs that have a loss.
#include "env/distill_internal.h"

#include "base/str.h"
#include "graph/discontinuity.h"

#include <math.h>
#include <string.h>

enum { MAX_NAMES = 4 }; // of tensors that a message proposes

// ---- Tensors of the network -------------------------------------------------------------------

static void add_compared(struct msc_distill *d, int32_t tensor, double weight) {
    const struct msc_tensor *t = msc_graph_tensor(d->host->graph, tensor);
    d->compared[d->n_compared++] = (struct msc_distill_tensor){
        .tensor = tensor, .weight = weight, .name = msc_tensor_label(t)};
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
        add_compared(d, tensor, o->weights ? o->weights[i] : 1);
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
static void compare_kind(struct msc_distill *d, bool wants_states) {
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
            add_compared(d, tensor, 1);
        }
    }
}

// The graph as it is run on the first samples.
static const struct msc_graph *graph_as_run(const struct msc_distill *d) {
    return msc_evaluator_plan(d->evaluator, 0)->graph;
}

// What can be compared in place of tensors of `g`: ', such as ["a", "b"]', or nothing.
static enum msc_status name_instead(const char **text, struct msc_distill *d,
                                    const struct msc_graph *g, const int32_t tensors[], size_t n) {
    struct msc_str names = {0};
    struct msc_discontinuity *discontinuity;
    MSC_TRY(msc_discontinuity_create(&discontinuity, d->host->graph, g));
    for (size_t i = 0; i < n; i++) {
        msc_discontinuity_collect(discontinuity, tensors[i]);
    }
    for (size_t i = 0; i < discontinuity->n_found && i < MAX_NAMES; i++) {
        msc_str_printf(&names, "%s\"%s\"", i == 0 ? ", such as [" : ", ",
                       msc_discontinuity_name(discontinuity, discontinuity->found[i]));
    }
    msc_str_append(&names, discontinuity->n_found > 0 ? "]" : "");
    if (discontinuity->n_found > MAX_NAMES) {
        msc_str_printf(&names, " (and %zu more)", discontinuity->n_found - MAX_NAMES);
    }
    *text = msc_str_keep(&names, &d->arena);
    msc_discontinuity_destroy(discontinuity);
    return *text ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
}

static enum msc_status fail_naming(struct msc_distill *d, const struct msc_graph *g,
                                   const int32_t tensors[], size_t n, const char *what) {
    const char *names;
    MSC_TRY(name_instead(&names, d, g, tensors, n));
    return MSC_FAIL(MSC_E_INVALID, "graph %s has no %s: name what to compare in env.loss_tensors%s",
                    msc_graph_name(d->host->graph), what, names);
}

static enum msc_status compare_graph_outputs(struct msc_distill *d) {
    const struct msc_graph *g = d->host->graph;
    int32_t n = msc_graph_n_outputs(g);
    compare_kind(d, false);
    if (d->n_compared == 0) {
        compare_kind(d, true);
    }
    if (d->n_compared > 0) {
        return MSC_OK;
    }
    int32_t *outputs = msc_arena_array(&d->arena, (size_t)n + 1, sizeof(outputs[0]));
    if (!outputs) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    for (int32_t i = 0; i < n; i++) {
        outputs[i] = msc_graph_output(g, i);
    }
    return fail_naming(d, g, outputs, (size_t)n, "float32 output");
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

// ---- Tensors of the plans ---------------------------------------------------------------------

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
    o.host_bytes = d->host->memory_bytes;
    o.cancel = d->host->cancel;
    o.log = d->host->log;
    o.target = d->options.target;
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
static enum msc_status leave_out_of_loss(struct msc_distill *d, size_t *n_left_out) {
    const int32_t *wanted = msc_evaluator_plan(d->evaluator, 0)->wanted_tensors;
    size_t n = d->n_compared, kept = 0;
    for (size_t i = 0; i < n; i++) {
        const char *reason = reason_in_plans(d, i), *names;
        if (!reason) {
            d->compared[kept++] = d->compared[i];
            continue;
        }
        MSC_TRY(name_instead(&names, d, graph_as_run(d), &wanted[i], 1));
        if (d->options.n_tensors > 0) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "env.loss_tensors: %s is %s: it has no loss; name what comes before it%s",
                d->compared[i].name, reason, names);
        }
        msc_log(d->host->log, MSC_LOG_WARNING,
                "output %s is %s: left out of the loss; env.loss_tensors can name what comes "
                "before it%s",
                d->compared[i].name, reason, names);
    }
    d->n_compared = kept;
    *n_left_out = n - kept;
    return kept > 0 ? MSC_OK : fail_naming(d, graph_as_run(d), wanted, n, "output to compare");
}

static enum msc_status warn_of_discontinuity(struct msc_distill *d, const char *output,
                                             const struct msc_joint *j, int32_t tensor) {
    const char *names;
    MSC_TRY(name_instead(&names, d, graph_as_run(d), &tensor, 1));
    msc_log(d->host->log, MSC_LOG_WARNING,
            "output %s lies behind joint %s (%s), where the smallest change can jump: name what "
            "comes before it in env.loss_tensors%s",
            output, j->name, msc_op_info(j->op)->name, names);
    return MSC_OK;
}

static enum msc_status warn_of_discontinuities(struct msc_distill *d) {
    const struct msc_graph *g = graph_as_run(d);
    struct msc_discontinuity *discontinuity;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_discontinuity_create(&discontinuity, d->host->graph, g));
    for (size_t i = 0; status == MSC_OK && i < d->n_compared; i++) {
        int32_t tensor = msc_evaluator_plan(d->evaluator, 0)->wanted_tensors[i];
        int32_t joint = msc_discontinuity_above(discontinuity, tensor);
        if (joint != MSC_NO_ID) {
            status =
                warn_of_discontinuity(d, d->compared[i].name, msc_graph_joint(g, joint), tensor);
        }
    }
    msc_discontinuity_destroy(discontinuity);
    return status;
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
    MSC_TRY(d->options.n_tensors > 0 ? compare_named(d) : compare_graph_outputs(d));
    MSC_TRY(make_evaluator(d));
    MSC_TRY(leave_out_of_loss(d, &n_left_out));
    MSC_TRY(find_class_scores(d));
    if (n_left_out > 0) {
        msc_evaluator_destroy(d->evaluator);
        d->evaluator = NULL;
        MSC_TRY(make_evaluator(d));
    }
    return warn_of_discontinuities(d);
}

enum msc_status msc_distill__compare(struct msc_distill *d, const struct msc_distill *other) {
    size_t room = d->options.n_tensors + (size_t)msc_graph_n_outputs(d->host->graph) + 1;
    d->compared = msc_arena_array(&d->arena, room, sizeof(d->compared[0]));
    if (!d->compared) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory for the loss");
    }
    return other ? compare_as(d, other) : compare_asked(d);
}
