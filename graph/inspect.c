#include "graph/graph_internal.h"

#include "base/json.h"

#include <string.h>

static enum msc_status add_shape(cJSON *object, const struct msc_graph *g,
                                 const struct msc_tensor *t) {
    cJSON *shape = cJSON_AddArrayToObject(object, "shape");
    MSC_TRY(MSC_ALLOCATED(shape));
    for (int i = 0; i < t->n_dims; i++) {
        cJSON *dim = t->prims[i] == MSC_NO_ID ? cJSON_CreateNumber((double)t->dims[i])
                                              : cJSON_CreateString(g->prims[t->prims[i]]->name);
        MSC_TRY(msc_json_push(shape, dim));
    }
    return MSC_OK;
}

static enum msc_status add_tensors(cJSON *root, const char *key, const struct msc_graph *g,
                                   const int32_t tensors[], int32_t n) {
    cJSON *list = cJSON_AddArrayToObject(root, key);
    MSC_TRY(MSC_ALLOCATED(list));
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, tensors[i]);
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_text(object, "name", msc_tensor_label(t)));
        MSC_TRY(add_shape(object, g, t));
        MSC_TRY(msc_json_add_text(object, "dtype", msc_dtype_name(t->dtype)));
        MSC_TRY(msc_json_add_text(object, "layout", t->layout));
    }
    return MSC_OK;
}

// Increments the count of `key`; new keys are appended, in order of first appearance.
static enum msc_status inspect_count(cJSON *counts, const char *key) {
    cJSON *number = msc_json_get(counts, key);
    if (number == NULL) {
        return msc_json_add_number(counts, key, 1);
    }
    cJSON_SetNumberValue(number, number->valuedouble + 1);
    return MSC_OK;
}

static enum msc_status inspect_all(cJSON *root, const struct msc_graph *g) {
    MSC_TRY(add_tensors(root, "inputs", g, g->inputs, g->n_inputs));
    MSC_TRY(add_tensors(root, "outputs", g, g->outputs, g->n_outputs));
    cJSON *nodes = cJSON_AddObjectToObject(root, "nodes");
    MSC_TRY(MSC_ALLOCATED(nodes));
    MSC_TRY(msc_json_add_number(nodes, "total", g->n_joints));
    for (int32_t i = 0; i < g->n_joints; i++) {
        MSC_TRY(inspect_count(nodes, msc_op_info(g->joints[i]->joint.op)->name));
    }
    if (g->n_prims == 0) {
        return MSC_OK;
    }
    cJSON *prims = cJSON_AddObjectToObject(root, "prims");
    MSC_TRY(MSC_ALLOCATED(prims));
    MSC_TRY(msc_json_add_number(prims, "total", g->n_prims));
    for (int32_t i = 0; i < g->n_prims; i++) {
        MSC_TRY(inspect_count(prims, g->prims[i]->optype));
    }
    return MSC_OK;
}

enum msc_status msc_graph_inspect(const struct msc_graph *g, struct cJSON **out) {
    cJSON *root = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(root));
    enum msc_status status = inspect_all(root, g);
    if (status != MSC_OK) {
        cJSON_Delete(root);
        return status;
    }
    *out = root;
    return MSC_OK;
}
