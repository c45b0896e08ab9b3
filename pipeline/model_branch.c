// Conditions that are the same for every sample: the graph without the branches they choose
// between.
#include "pipeline/model_internal.h"

#include <string.h>

static bool has_branches(const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        if (msc_graph_joint(g, i)->op == MSC_OP_IF) {
            return true;
        }
    }
    return false;
}

static bool is_equal(const struct msc_array *a, const struct msc_array *b) {
    return msc_array_dtype(a) == msc_array_dtype(b) && msc_array_n_dims(a) == msc_array_n_dims(b) &&
           memcmp(msc_array_dims(a), msc_array_dims(b),
                  (size_t)msc_array_n_dims(a) * sizeof(int64_t)) == 0 &&
           memcmp(msc_array_data(a), msc_array_data(b), msc_array_n_bytes(a)) == 0;
}

// Do all samples hold this for the input?
static bool is_always(const struct msc_array *array, const struct msc_dataset *data, size_t input) {
    for (size_t b = 0; data && b < msc_dataset_n_batches(data); b++) {
        if (!is_equal(array, msc_dataset_batch(data, b, input))) {
            return false;
        }
    }
    return true;
}

// What each input holds in every sample; NULL where they differ. Conditions come from whole
// numbers.
static const struct msc_array **find_constant(const struct msc_model *m,
                                              const struct msc_dataset *data,
                                              const struct msc_dataset *more) {
    const struct msc_array **arrays = msc_alloc_zero(m->n_inputs + 1, sizeof arrays[0]);
    for (size_t i = 0; arrays && i < m->n_inputs; i++) {
        const struct msc_array *first = msc_dataset_batch(data, 0, i);
        if (!msc_dtype_is_float(msc_array_dtype(first)) && is_always(first, data, i) &&
            is_always(first, more, i)) {
            arrays[i] = first;
        }
    }
    return arrays;
}

static void replace_graph(struct msc_model *m, struct msc_graph *g) {
    msc_graph_destroy(m->graph);
    m->graph = g;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
        m->specs[i].name = msc_model__input_name(g, t);
    }
}

enum msc_status msc_model__take_branches(struct msc_model *m, const struct msc_dataset *data,
                                         const struct msc_dataset *more) {
    struct msc_graph *g = NULL;
    int32_t n_taken = 0;
    if (!has_branches(m->graph)) {
        return MSC_OK;
    }
    const struct msc_array **arrays = find_constant(m, data, more);
    if (!arrays) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", m->path);
    }
    enum msc_status status = msc_graph_take_branches(&g, &n_taken, m->graph, arrays, m->n_inputs);
    msc_free((void *)arrays);
    if (status != MSC_OK) {
        return status;
    }
    if (n_taken == 0) {
        msc_graph_destroy(g);
        return MSC_OK;
    }
    replace_graph(m, g);
    msc_log(m->log, MSC_LOG_INFO,
            "%s: conditions that are the same for every sample: %d; only the branches taken there "
            "are computed",
            m->path, (int)n_taken);
    return MSC_OK;
}
