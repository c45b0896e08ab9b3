// Chooses the tensors that the loss compares: the named ones, or the outputs that can have a loss.
#include "env/distill_internal.h"

#include "base/str.h"
#include "graph/discontinuity.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_NAMES = 4 }; // greatest number of tensors that a message suggests

// ---- Tensors of the network -------------------------------------------------------------------

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
            return MSC_FAIL(MSC_E_INVALID,
                            "env.loss_tensors: %s is not float32; name a float32 tensor",
                            o->tensors[i]);
        }
        msc_distill__add_compared(d, tensor, o->weights ? o->weights[i] : 1);
    }
    return MSC_OK;
}

// Adds either the outputs that are states or all other outputs to the compared tensors.
static void compare_kind(struct msc_distill *d, bool wants_states) {
    const struct msc_graph *g = d->host->graph;
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        int32_t tensor = msc_graph_output(g, i);
        const char *reason = msc_distill__reason_to_leave_out(g, tensor);
        if (msc_distill__is_state(d, tensor) != wants_states) {
            continue;
        }
        if (reason) {
            msc_log(d->host->log, MSC_LOG_WARNING, "output %s is %s: left out of the loss",
                    msc_graph_tensor(g, tensor)->name, reason);
        } else {
            msc_distill__add_compared(d, tensor, 1);
        }
    }
}

// The graph of the plan for the first batch, with bound shapes.
static const struct msc_graph *graph_as_run(const struct msc_distill *d) {
    return msc_evaluator_plan(d->evaluator, 0)->graph;
}

// Lists tensors that can be compared instead of the given tensors of `g`: ', such as ["a", "b"]',
// or "".
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
    return MSC_ALLOCATED(*text);
}

static enum msc_status fail_naming(struct msc_distill *d, const struct msc_graph *g,
                                   const int32_t tensors[], size_t n, const char *what) {
    const char *names;
    MSC_TRY(name_instead(&names, d, g, tensors, n));
    return MSC_FAIL(MSC_E_INVALID,
                    "graph %s has no %s: name tensors to compare in env.loss_tensors%s",
                    msc_graph_name(d->host->graph), what, names);
}

static enum msc_status compare_graph_outputs(struct msc_distill *d) {
    const struct msc_graph *g = d->host->graph;
    int32_t n = msc_graph_n_outputs(g);
    if (d->options.takes_before) {
        MSC_TRY(msc_distill__compare_before(d));
    } else {
        compare_kind(d, false);
    }
    if (d->n_compared == 0) {
        compare_kind(d, true);
    }
    if (d->n_compared > 0) {
        return MSC_OK;
    }
    int32_t *outputs = msc_arena_array(&d->arena, (size_t)n + 1, sizeof(outputs[0]));
    MSC_TRY(MSC_ALLOCATED(outputs));
    for (int32_t i = 0; i < n; i++) {
        outputs[i] = msc_graph_output(g, i);
    }
    return fail_naming(d, g, outputs, (size_t)n, "float32 output");
}

static enum msc_status find_class_scores(struct msc_distill *d) {
    d->class_scores = SIZE_MAX;
    if (!msc_dataset_has_labels(d->dataset) && !msc_dataset_has_next(d->dataset)) {
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

enum msc_status msc_distill__create_evaluator(struct msc_evaluator **out,
                                              const struct msc_distill *d,
                                              const struct msc_graph *g, const int32_t wanted[]) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    o.backend = d->host->backend;
    o.n_threads = d->host->n_threads;
    o.memory_bytes = d->host->memory_bytes;
    o.host_bytes = d->host->memory_bytes;
    o.cancel = d->host->cancel;
    o.log = d->host->log;
    o.target = d->options.target;
    return msc_evaluator_create(out, g, d->dataset, wanted, d->n_compared, &o);
}

static enum msc_status make_evaluator(struct msc_distill *d) {
    int32_t *wanted = msc_arena_array(&d->arena, d->n_compared, sizeof(wanted[0]));
    MSC_TRY(MSC_ALLOCATED(wanted));
    for (size_t i = 0; i < d->n_compared; i++) {
        wanted[i] = d->compared[i].tensor;
    }
    return msc_distill__create_evaluator(&d->evaluator, d, d->host->graph, wanted);
}

static const char as_long_as_data_say[] = "of a length that depends on the data";
static const char without_samples[] = "without an axis for the samples of a batch";
static const char one_by_one[] = "a batch of 1 (dataset.batch, --batch of quantize)";

static bool is_constant(const struct msc_distill *d, size_t index) {
    bool is_constant = false;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        is_constant = is_constant ||
                      msc_graph_weight_of(plan->graph, plan->wanted_tensors[index]) != MSC_NO_ID;
    }
    return is_constant;
}

static bool is_long_as_data_say(const struct msc_distill *d, size_t index) {
    bool is_open = false;
    for (size_t b = 0; b < msc_dataset_n_batches(d->dataset); b++) {
        const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, b);
        const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
        is_open = is_open || msc_tensor_n_elements(t) < 0;
    }
    return is_open;
}

// Why a tensor cannot be compared sample by sample, or NULL. `first` was created for the plan of
// the first batch.
static const char *reason_in_plans(const struct msc_distill *d, size_t index,
                                   const struct msc_discontinuity *first) {
    int32_t tensor = msc_evaluator_plan(d->evaluator, 0)->wanted_tensors[index];
    if (!first->varies[tensor] || is_constant(d, index)) {
        return "constant on this dataset";
    }
    if (is_long_as_data_say(d, index)) {
        return as_long_as_data_say;
    }
    return msc_distill__lacks_samples(d, index) ? without_samples : NULL;
}

// The advice that ends a message about a tensor that cannot be compared.
static enum msc_status advise(const char **text, struct msc_distill *d, const char *reason,
                              int32_t tensor) {
    const char *names;
    if (reason == without_samples) {
        *text = msc_arena_printf(&d->arena, "set %s to compare it", one_by_one);
    } else {
        MSC_TRY(name_instead(&names, d, graph_as_run(d), &tensor, 1));
        *text = msc_arena_printf(&d->arena,
                                 d->options.n_tensors > 0
                                     ? "name tensors before it%s"
                                     : "env.loss_tensors can name tensors before it%s",
                                 names);
    }
    return MSC_ALLOCATED(*text);
}

// Explains why no axis has the samples of a batch: " (a batch has 4 samples, it is [3,5])".
static const char *lengths_of(struct msc_distill *d, size_t index) {
    const struct msc_plan *plan = msc_evaluator_plan(d->evaluator, 0);
    const struct msc_tensor *t = msc_graph_tensor(plan->graph, plan->wanted_tensors[index]);
    struct msc_str text = {0};
    msc_str_printf(&text, " (a batch has %" PRId64 " samples, it is [",
                   msc_dataset_batch_samples(d->dataset, 0));
    for (int i = 0; i < t->n_dims; i++) {
        msc_str_printf(&text, "%s%" PRId64, i > 0 ? "," : "", t->dims[i]);
    }
    msc_str_append(&text, "])");
    return msc_str_keep(&text, &d->arena);
}

static enum msc_status leave_out_tensors(struct msc_distill *d,
                                         const struct msc_discontinuity *first) {
    const int32_t *wanted = msc_evaluator_plan(d->evaluator, 0)->wanted_tensors;
    size_t n = d->n_compared, kept = 0;
    bool lacks_samples = true;
    for (size_t i = 0; i < n; i++) {
        const char *reason = reason_in_plans(d, i, first), *advice, *lengths = "";
        if (!reason) {
            d->compared[kept++] = d->compared[i];
            continue;
        }
        MSC_TRY(advise(&advice, d, reason, wanted[i]));
        if (reason == without_samples) {
            lengths = lengths_of(d, i);
        }
        MSC_TRY(MSC_ALLOCATED(lengths));
        if (d->options.n_tensors > 0) {
            return MSC_FAIL(MSC_E_INVALID, "env.loss_tensors: %s is %s%s, so it has no loss; %s",
                            d->compared[i].name, reason, lengths, advice);
        }
        msc_log(d->host->log, MSC_LOG_WARNING, "output %s is %s%s: left out of the loss; %s",
                d->compared[i].name, reason, lengths, advice);
        lacks_samples = lacks_samples && reason == without_samples;
    }
    d->n_compared = kept;
    if (kept == 0 && lacks_samples) {
        return MSC_FAIL(MSC_E_INVALID,
                        "graph %s has no output with an axis for the samples of a "
                        "batch: set %s",
                        msc_graph_name(d->host->graph), one_by_one);
    }
    return kept > 0 ? MSC_OK : fail_naming(d, graph_as_run(d), wanted, n, "output to compare");
}

// Removes compared tensors that cannot have a loss with the given inputs.
static enum msc_status leave_out_of_loss(struct msc_distill *d) {
    struct msc_discontinuity *first;
    MSC_TRY(msc_discontinuity_create(&first, d->host->graph, graph_as_run(d)));
    enum msc_status status = leave_out_tensors(d, first);
    msc_discontinuity_destroy(first);
    return status;
}

static enum msc_status warn_of_discontinuity(struct msc_distill *d, const char *output,
                                             const struct msc_joint *j, int32_t tensor) {
    const char *names = "";
    // If takes_before is set, the output is compared on purpose, because it covers more products.
    if (!d->options.takes_before) {
        MSC_TRY(name_instead(&names, d, graph_as_run(d), &tensor, 1));
    }
    msc_log(d->host->log, MSC_LOG_WARNING,
            "output %s follows joint %s (%s), which can jump at the smallest change%s%s", output,
            j->name, msc_op_info(j->op)->name,
            d->options.takes_before ? "" : ": name tensors before it in env.loss_tensors", names);
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

// Compares the tensors of another loss, even those that are constant on this dataset: losses are
// comparable only if they compare the same tensors.
static enum msc_status compare_as(struct msc_distill *d, const struct msc_distill *other) {
    for (size_t i = 0; i < other->n_compared; i++) {
        const struct msc_distill_tensor *c = &other->compared[i];
        d->compared[d->n_compared++] =
            (struct msc_distill_tensor){.tensor = c->tensor, .name = c->name, .weight = c->weight};
    }
    MSC_TRY(make_evaluator(d));
    MSC_TRY(msc_distill__find_axes(d));
    for (size_t i = 0; i < d->n_compared; i++) {
        const char *reason = is_long_as_data_say(d, i)          ? as_long_as_data_say
                             : msc_distill__lacks_samples(d, i) ? without_samples
                                                                : NULL;
        if (reason) {
            return MSC_FAIL(MSC_E_INVALID,
                            "on these samples tensor %s, which the loss compares, is %s",
                            d->compared[i].name, reason);
        }
    }
    return find_class_scores(d);
}

static enum msc_status compare_asked(struct msc_distill *d) {
    MSC_TRY(d->options.n_tensors > 0 ? compare_named(d) : compare_graph_outputs(d));
    size_t n = d->n_compared;
    MSC_TRY(make_evaluator(d));
    MSC_TRY(msc_distill__find_axes(d));
    MSC_TRY(leave_out_of_loss(d));
    MSC_TRY(find_class_scores(d));
    if (d->n_compared < n) {
        msc_evaluator_destroy(d->evaluator);
        d->evaluator = NULL;
        MSC_TRY(make_evaluator(d));
    }
    return warn_of_discontinuities(d);
}

enum msc_status msc_distill__compare(struct msc_distill *d, const struct msc_distill *other) {
    const struct msc_graph *g = d->host->graph;
    size_t room = d->options.n_tensors + (size_t)msc_graph_n_outputs(g) + 1;
    room += d->options.takes_before ? (size_t)msc_graph_n_tensors(g) : 0;
    d->compared = msc_arena_array(&d->arena, room, sizeof(d->compared[0]));
    MSC_TRY(MSC_ALLOCATED(d->compared));
    return other ? compare_as(d, other) : compare_asked(d);
}
