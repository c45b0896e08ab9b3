// Removes branches that no sample takes: if a condition has the same value for every sample, the
// graph keeps only the joints of the branch that it selects.
#include "graph/passes/bind.h"
#include "graph/wide.h"
#include "model/model_internal.h"

#include <string.h>

enum msc_status msc_model__set_graph(struct msc_model *m, const struct msc_graph *g,
                                     bool keeps_types) {
    struct msc_graph *graph = NULL;
    MSC_TRY(keeps_types ? MSC_OK : msc_graph_widen(&graph, g));
    msc_graph_destroy(m->graph);
    m->graph = keeps_types ? msc_graph_retain(g) : graph;
    return MSC_OK;
}

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

// Clears *is_same if a sample of the batch has another value for the input.
static enum msc_status branch_compare_batch(bool *is_same, const struct msc_array *array,
                                            const struct msc_dataset *data, size_t batch,
                                            size_t input) {
    bool is_chunked = msc_dataset_form(data, input) == MSC_INPUT_CHUNKS;
    int64_t n = is_chunked ? msc_dataset_batch_samples(data, batch) : 1;
    for (int64_t i = 0; *is_same && i < n; i++) {
        struct msc_array *chunk;
        MSC_TRY(msc_dataset_chunk(&chunk, data, batch, input, i));
        *is_same = is_equal(array, chunk);
        msc_array_release(chunk);
    }
    return MSC_OK;
}

static enum msc_status branch_compare_all(bool *is_same, const struct msc_array *array,
                                          const struct msc_dataset *data, size_t input) {
    for (size_t b = 0; data && *is_same && b < msc_dataset_n_batches(data); b++) {
        MSC_TRY(branch_compare_batch(is_same, array, data, b, input));
    }
    return MSC_OK;
}

// Finds the value of each input that is the same in every sample; NULL for others and for states.
// Only integers are examined, because conditions are computed from integers. The arrays are owned
// by the caller, also on failure.
static enum msc_status find_constants(struct msc_array *arrays[], const struct msc_model *m,
                                      const struct msc_dataset *data,
                                      const struct msc_dataset *more) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        bool is_same = !msc_dtype_is_float(m->specs[i].dtype) && !msc_dataset_state(data, i);
        if (is_same) {
            MSC_TRY(msc_dataset_chunk(&arrays[i], data, 0, i, 0));
            MSC_TRY(branch_compare_all(&is_same, arrays[i], data, i));
            MSC_TRY(branch_compare_all(&is_same, arrays[i], more, i));
        }
        if (!is_same) {
            msc_array_release(arrays[i]);
            arrays[i] = NULL;
        }
    }
    return MSC_OK;
}

static enum msc_status replace_graph(struct msc_model *m, const struct msc_graph *g) {
    MSC_TRY(msc_model__set_graph(m, g, msc_graph_own(m->graph) == m->graph));
    g = m->graph;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
        m->specs[i].name = msc_model__input_name(g, t);
    }
    return MSC_OK;
}

enum msc_status msc_model__take_branches(struct msc_model *m, const struct msc_dataset *data,
                                         const struct msc_dataset *more) {
    struct msc_graph *g = NULL;
    int32_t n_taken = 0;
    if (!has_branches(m->graph)) {
        return MSC_OK;
    }
    struct msc_array **arrays = msc_alloc_zero(m->n_inputs + 1, sizeof arrays[0]);
    MSC_TRY(MSC_ALLOCATED(arrays));
    enum msc_status status = find_constants(arrays, m, data, more);
    if (status == MSC_OK) {
        status = msc_graph_take_branches(&g, &n_taken, msc_graph_own(m->graph),
                                         (const struct msc_array *const *)arrays, m->n_inputs);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        msc_array_release(arrays[i]);
    }
    msc_free(arrays);
    if (status != MSC_OK) {
        return status;
    }
    status = n_taken == 0 ? MSC_OK : replace_graph(m, g);
    msc_graph_destroy(g);
    if (status != MSC_OK || n_taken == 0) {
        return status;
    }
    msc_log(m->log, MSC_LOG_INFO,
            "%s: conditions with the same value for every sample: %d; only the branches that they "
            "select are computed",
            m->path, (int)n_taken);
    return MSC_OK;
}
