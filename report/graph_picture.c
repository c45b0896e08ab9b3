#include "report/graph_picture.h"

#include "base/json.h"
#include "base/str.h"
#include "report/graph_layout.h"
#include "results/plan_layers.h"

#include <math.h>
#include <string.h>

// Graphs with more joints are not drawn, because nobody could read the picture.
#define MOST_JOINTS 5000

static void write_shape(struct msc_str *out, const struct msc_graph *g,
                        const struct msc_tensor *t) {
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] >= 0) {
            msc_str_printf(out, "%s%lld", i > 0 ? " × " : "", (long long)t->dims[i]);
        } else {
            msc_str_printf(out, "%s%s", i > 0 ? " × " : "",
                           t->prims[i] != MSC_NO_ID ? msc_graph_prim(g, t->prims[i])->name : "?");
        }
    }
}

// Writes the weights with their shapes and the attributes: "weight 16 × 1 × 3 × 3, strides 1,1".
static void write_details(struct msc_str *out, const struct msc_graph *g,
                          const struct msc_joint *j) {
    enum { MOST_BYTES = 40 }; // longer values are no help in one line
    const char *before = "";
    for (int32_t i = 0; i < j->n_weights; i++) {
        msc_str_printf(out, "%s%s ", before, j->weights[i].role);
        write_shape(out, g, msc_graph_tensor(g, j->weights[i].tensor));
        before = ", ";
    }
    for (int32_t i = 0; i < j->n_attrs; i++) {
        const struct msc_attr *attr = &j->attrs[i];
        if (attr->value[0] != '\0' && strlen(attr->value) <= MOST_BYTES) {
            msc_str_printf(out, "%s%s %s", before, attr->key, attr->value);
            before = ", ";
        }
    }
}

// Adds the text and clears it.
static enum msc_status add_text(cJSON *object, const char *key, struct msc_str *text) {
    MSC_TRY(msc_str_status(text));
    MSC_TRY(msc_json_add_text(object, key, msc_str_text(text)));
    msc_str_clear(text);
    return MSC_OK;
}

static enum msc_status fill_joint(cJSON *object, const struct msc_graph *g,
                                  const struct msc_joint *j, struct msc_str *text) {
    if (j->n_outputs > 0) {
        write_shape(text, g, msc_graph_tensor(g, j->outputs[0]));
    }
    MSC_TRY(add_text(object, "shape", text));
    write_details(text, g, j);
    return add_text(object, "details", text);
}

static enum msc_status add_joint(cJSON *joints, const struct msc_graph *g, int32_t id,
                                 const struct msc_graph_place *place) {
    const struct msc_joint *j = msc_graph_joint(g, id);
    struct msc_str text = {0};
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(joints, object));
    MSC_TRY(msc_json_add_text(object, "name", j->name));
    MSC_TRY(msc_json_add_text(object, "op", msc_op_info(j->op)->name));
    MSC_TRY(msc_json_add_number(object, "column", round(place->column * 1e3) / 1e3));
    MSC_TRY(msc_json_add_number(object, "layer", place->layer));
    enum msc_status status = fill_joint(object, g, j, &text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status add_edges(cJSON *edges, const struct msc_joint *j) {
    for (int32_t p = 0; p < j->n_parents; p++) {
        cJSON *edge = cJSON_CreateArray();
        MSC_TRY(msc_json_push(edges, edge));
        MSC_TRY(msc_json_push(edge, cJSON_CreateNumber(j->parents[p])));
        MSC_TRY(msc_json_push(edge, cJSON_CreateNumber(j->id)));
    }
    return MSC_OK;
}

static enum msc_status add_task(cJSON *joints, int32_t joint, int task) {
    cJSON *object = cJSON_GetArrayItem(joints, joint);
    cJSON *tasks = msc_json_get(object, "tasks");
    if (!tasks) {
        tasks = cJSON_CreateArray();
        MSC_TRY(msc_json_add(object, "tasks", tasks));
    }
    return msc_json_push(tasks, cJSON_CreateNumber(task));
}

static enum msc_status add_tasks(cJSON *joints, const struct msc_graph *g, const cJSON *plan) {
    const cJSON *layer = NULL;
    int task = 0;
    cJSON_ArrayForEach(layer, plan) {
        int32_t joint = MSC_NO_ID;
        const char *name = msc_json_get(layer, "task")->valuestring;
        int32_t tensor = msc_plan_find_tensor(&joint, g, name);
        const int32_t *readers = &joint;
        int32_t n = joint != MSC_NO_ID;
        if (tensor != MSC_NO_ID && msc_graph_tensor(g, tensor)->producer != MSC_NO_ID) {
            joint = msc_graph_tensor(g, tensor)->producer;
            n = 1;
        } else if (tensor != MSC_NO_ID) {
            n = msc_graph_consumers(g, tensor, &readers);
        }
        for (int32_t i = 0; i < n; i++) {
            MSC_TRY(add_task(joints, readers[i], task));
        }
        task++;
    }
    return MSC_OK;
}

static enum msc_status fill_picture(cJSON *object, const struct msc_graph *g, const cJSON *plan,
                                    const struct msc_graph_layout *layout) {
    cJSON *joints = cJSON_CreateArray(), *edges = cJSON_CreateArray();
    enum msc_status status = msc_json_add(object, "joints", joints);
    if (status != MSC_OK) {
        cJSON_Delete(edges);
        return status;
    }
    MSC_TRY(msc_json_add(object, "edges", edges));
    MSC_TRY(msc_json_add_number(object, "columns", layout->n_columns));
    MSC_TRY(msc_json_add_number(object, "layers", layout->n_layers));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        MSC_TRY(add_joint(joints, g, i, &layout->nodes[i]));
        MSC_TRY(add_edges(edges, msc_graph_joint(g, i)));
    }
    return add_tasks(joints, g, plan);
}

enum msc_status msc_graph_picture(struct cJSON **out, const struct msc_graph *g,
                                  const struct cJSON *plan) {
    struct msc_graph_layout layout = {0};
    cJSON *object = NULL;
    enum msc_status status = MSC_OK;
    if (msc_graph_n_joints(g) > MOST_JOINTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "the network has %d joints, but a picture shows at most %d",
                        (int)msc_graph_n_joints(g), MOST_JOINTS);
    }
    MSC_TRY_OUT(msc_graph_layout_make(&layout, g));
    object = cJSON_CreateObject();
    status =
        object ? fill_picture(object, g, plan, &layout) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
out:
    msc_graph_layout_finish(&layout);
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}
