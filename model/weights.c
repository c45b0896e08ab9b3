// Replaces the weights of an open model. The model's file is read again with the new weights, so
// that they are folded and transposed in the same way; then their data is copied.
#include "model/model_internal.h"

#include "data/array_file.h"
#include "data/npy.h"

static enum msc_status fail_other(const struct msc_model *m, const char *path,
                                  const struct msc_tensor *t) {
    return MSC_FAIL(
        MSC_E_INVALID,
        "%s: weight %s of %s is missing or has another type or shape; only the values of "
        "weights may change",
        path, t->name, m->path);
}

static bool is_weight(const struct msc_tensor *t) {
    return t->producer == MSC_NO_ID && t->data;
}

// The weight of `from` with the name, type and shape of `t`; NULL: none.
static const struct msc_tensor *find_weight(const struct msc_graph *from,
                                            const struct msc_tensor *t) {
    int32_t id = msc_graph_find_tensor(from, t->name);
    const struct msc_tensor *found = id == MSC_NO_ID ? NULL : msc_graph_tensor(from, id);
    if (!found || !is_weight(found) || found->dtype != t->dtype || found->n_dims != t->n_dims) {
        return NULL;
    }
    for (int k = 0; k < t->n_dims; k++) {
        if (found->dims[k] != t->dims[k]) {
            return NULL;
        }
    }
    return found;
}

// Takes all weights or, on failure, none.
static enum msc_status take_weights(struct msc_model *m, const struct msc_graph *from,
                                    const char *path) {
    for (int32_t i = 0; i < msc_graph_n_tensors(m->graph); i++) {
        const struct msc_tensor *t = msc_graph_tensor(m->graph, i);
        if (is_weight(t) && !find_weight(from, t)) {
            return fail_other(m, path, t);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_tensors(m->graph); i++) {
        const struct msc_tensor *t = msc_graph_tensor(m->graph, i);
        if (is_weight(t)) {
            MSC_TRY(msc_graph_set_weight_data(m->graph, i, find_weight(from, t)->data));
        }
    }
    return MSC_OK;
}

enum msc_status msc_model_update_weights(struct msc_model *m, const char *path) {
    enum msc_array_file_kind kind = msc_array_file_kind_of(path);
    struct msc_array_list weights = {0};
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_model *other = NULL;
    enum msc_status status = MSC_OK;
    if (kind != MSC_ARRAY_FILE_NONE) {
        MSC_TRY_OUT(msc_array_file_load(&weights, path));
        o.weights = &weights;
    }
    o.device = "cpu"; // the model is only read
    o.n_threads = 1;
    o.bindings = m->bindings;
    o.n_bindings = m->n_bindings;
    o.rules = m->rules;
    o.n_rules = m->n_rules;
    o.operators = m->operators;
    MSC_TRY_OUT(msc_model_open(&other, kind == MSC_ARRAY_FILE_NONE ? path : m->path, &o));
    if (m->dataset) {
        MSC_TRY_OUT(msc_model__take_branches(other, m->dataset, m->validation));
    }
    status = take_weights(m, other->graph, path);
out:
    msc_model_close(other);
    msc_array_list_finish(&weights);
    return status;
}
