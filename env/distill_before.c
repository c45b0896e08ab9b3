// Chooses the compared tensors for loss_tensors "auto". Some outputs follow a discontinuous joint
// or have a length that depends on the data (boxes after NMS). Tensors before such joints are
// compared instead (graph/discontinuity.h).
//
// An output whose length depends on the data is always replaced. An output after a discontinuous
// joint is replaced only if no product of the network (convolution, linear layer) is between the
// earlier tensors and the output. Otherwise the loss would no longer measure that product. For an
// integer output (for example a class), the tensors before it are compared if the loss would
// otherwise leave a product unmeasured.
#include "env/distill_internal.h"

#include "base/str.h"
#include "graph/cost.h"
#include "graph/discontinuity.h"
#include "graph/passes/bind.h"
#include "kernels/engine/sequence.h"

struct before {
    struct msc_distill *d;
    struct msc_graph *bound; // the model bound to the first samples
    // [n_joints] of `bound`: whether a compared tensor depends on the joint
    bool *measured;
    bool *needed;   // [n_joints], scratch
    int32_t *found; // [n_found] tensors of `bound` before the current output, borrowed
    size_t n_found;
};

static enum msc_status bind_first(struct msc_graph **out, const struct msc_distill *d) {
    size_t n = msc_dataset_n_inputs(d->dataset);
    struct msc_array **arrays = msc_alloc_zero(n + 1, sizeof(arrays[0]));
    enum msc_status status =
        arrays ? msc_sequence_first(arrays, d->dataset, 0) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = msc_graph_bind_known(out, NULL, d->host->graph,
                                      (const struct msc_array *const *)arrays, n);
    }
    for (size_t i = 0; arrays && i < n; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
    return status;
}

// ---- Dependences --------------------------------------------------------------------------------

// Sets the marks of the joints that the tensors depend on; keeps other marks.
static void mark_sources(bool marks[], const struct msc_graph *g, const int32_t tensors[],
                         size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t producer = msc_graph_tensor(g, tensors[i])->producer;
        if (producer != MSC_NO_ID) {
            marks[producer] = true;
        }
    }
    for (int32_t i = msc_graph_n_joints(g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; marks[i] && k < j->n_parents; k++) {
            marks[j->parents[k]] = true;
        }
    }
}

// Whether `tensor` depends on a joint with a product that is not marked.
static bool has_other_products(struct before *b, int32_t tensor, const bool marks[]) {
    struct msc_product products[2];
    int32_t n = msc_graph_n_joints(b->bound);
    memset(b->needed, 0, (size_t)n * sizeof(b->needed[0]));
    mark_sources(b->needed, b->bound, &tensor, 1);
    for (int32_t i = 0; i < n; i++) {
        if (b->needed[i] && !marks[i] &&
            msc_joint_products(products, b->bound, msc_graph_joint(b->bound, i)) > 0) {
            return true;
        }
    }
    return false;
}

// ---- One output -------------------------------------------------------------------------------

static void compare_tensor(struct before *b, const char *name) {
    struct msc_distill *d = b->d;
    int32_t tensor = msc_graph_find_tensor(d->host->graph, name);
    for (size_t i = 0; i < d->n_compared; i++) {
        if (d->compared[i].tensor == tensor) {
            return;
        }
    }
    msc_distill__add_compared(d, tensor, 1);
}

// Compares the tensors found before an output.
static enum msc_status compare_found(struct before *b, const struct msc_discontinuity *s,
                                     const char *output, const char *why) {
    struct msc_str names = {0};
    for (size_t i = 0; i < b->n_found; i++) {
        const char *name = msc_discontinuity_name(s, b->found[i]);
        compare_tensor(b, name);
        msc_str_item(&names, name);
    }
    enum msc_status status = msc_str_status(&names);
    if (status == MSC_OK) {
        msc_log(b->d->host->log, MSC_LOG_WARNING,
                "output %s %s; comparing the tensors before it: %s", output, why,
                msc_str_text(&names));
    }
    msc_str_finish(&names);
    mark_sources(b->measured, b->bound, b->found, b->n_found);
    b->d->is_part = true;
    return status;
}

static enum msc_status find_before(struct before *b, struct msc_discontinuity **out,
                                   int32_t tensor) {
    MSC_TRY(msc_discontinuity_create(out, b->d->host->graph, b->bound));
    msc_discontinuity_collect(*out, tensor);
    b->found = (*out)->found;
    b->n_found = (*out)->n_found;
    return MSC_OK;
}

// Handles a float output; *is_replaced is set if the tensors before it are compared instead.
static enum msc_status replace_output(struct before *b, bool *is_replaced, int32_t tensor,
                                      const char *name) {
    struct msc_discontinuity *s = NULL;
    bool is_open = msc_tensor_n_elements(msc_graph_tensor(b->bound, tensor)) < 0;
    enum msc_status status = find_before(b, &s, tensor);
    *is_replaced = false;
    if (status == MSC_OK && b->n_found > 0 &&
        (is_open || msc_discontinuity_above(s, tensor) != MSC_NO_ID)) {
        bool *marks = msc_alloc_zero((size_t)msc_graph_n_joints(b->bound) + 1, sizeof(bool));
        status = MSC_ALLOCATED(marks);
        if (status == MSC_OK) {
            mark_sources(marks, b->bound, b->found, b->n_found);
            *is_replaced = is_open || !has_other_products(b, tensor, marks);
        }
        msc_free(marks);
    }
    if (status == MSC_OK && *is_replaced) {
        status = compare_found(b, s, name,
                               is_open ? "has a length that depends on the data"
                                       : "follows a joint that can jump at the smallest change");
    }
    msc_discontinuity_destroy(s);
    return status;
}

// Handles an output that is not float.
static enum msc_status measure_output(struct before *b, bool *is_replaced, int32_t tensor,
                                      const char *name) {
    struct msc_discontinuity *s = NULL;
    enum msc_status status = MSC_OK;
    if (has_other_products(b, tensor, b->measured)) {
        status = find_before(b, &s, tensor);
        *is_replaced = status == MSC_OK && b->n_found > 0;
        if (*is_replaced) {
            status = compare_found(b, s, name, "has no loss");
        }
    }
    msc_discontinuity_destroy(s);
    return status;
}

// ---- All of them ------------------------------------------------------------------------------

// The output's tensor in the bound graph.
static int32_t bound_output(const struct before *b, int32_t i) {
    const struct msc_graph *g = b->d->host->graph;
    int32_t tensor =
        msc_graph_find_tensor(b->bound, msc_graph_tensor(g, msc_graph_output(g, i))->name);
    return tensor != MSC_NO_ID ? tensor : msc_graph_output(b->bound, i);
}

static enum msc_status choose_outputs(struct before *b, bool of_floats) {
    const struct msc_graph *g = b->d->host->graph;
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        int32_t output = msc_graph_output(g, i), tensor = bound_output(b, i);
        const char *reason = msc_distill__reason_to_leave_out(g, output);
        const char *name = msc_tensor_label(msc_graph_tensor(g, output));
        bool is_float = msc_graph_tensor(g, output)->dtype == MSC_DTYPE_F32, is_replaced = false;
        if (msc_distill__is_state(b->d, output) || is_float != of_floats) {
            continue;
        }
        if (reason) {
            MSC_TRY(is_float ? MSC_OK : measure_output(b, &is_replaced, tensor, name));
            if (!is_replaced) {
                msc_log(b->d->host->log, MSC_LOG_WARNING, "output %s is %s: left out of the loss",
                        name, reason);
            }
            continue;
        }
        MSC_TRY(replace_output(b, &is_replaced, tensor, name));
        if (!is_replaced) {
            compare_tensor(b, name);
            mark_sources(b->measured, b->bound, &tensor, 1);
        }
    }
    return MSC_OK;
}

enum msc_status msc_distill__compare_before(struct msc_distill *d) {
    struct before b = {.d = d};
    MSC_TRY(bind_first(&b.bound, d));
    size_t n = (size_t)msc_graph_n_joints(b.bound) + 1;
    b.measured = msc_alloc_zero(n, sizeof(b.measured[0]));
    b.needed = msc_alloc_zero(n, sizeof(b.needed[0]));
    enum msc_status status = MSC_ALLOCATED(b.measured && b.needed);
    if (status == MSC_OK) {
        status = choose_outputs(&b, true);
    }
    if (status == MSC_OK) {
        status = choose_outputs(&b, false);
    }
    msc_graph_destroy(b.bound);
    msc_free(b.measured);
    msc_free(b.needed);
    return status;
}
