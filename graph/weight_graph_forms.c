// Writes a weight graph as text, JSON and prototxt.
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "graph/graph_internal.h"
#include "graph/weight_graph.h"

#include <stdio.h>

static const char *node_name(const struct msc_weight_graph *w, const struct msc_graph *g,
                             int32_t node) {
    return msc_graph_tensor(g, w->nodes[node].tensor)->name;
}

static bool is_parent(const struct msc_weight_node *child, int32_t node) {
    for (int32_t i = 0; i < child->n_parents; i++) {
        if (child->parents[i] == node) {
            return true;
        }
    }
    return false;
}

// ---- Text -------------------------------------------------------------------------------------

static void print_names(const struct msc_weight_graph *w, const struct msc_graph *g,
                        const int32_t nodes[], int32_t n, struct msc_str *out) {
    for (int32_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_shown_append(out, node_name(w, g, nodes[i]));
    }
}

static void print_node(const struct msc_weight_graph *w, const struct msc_graph *g, int32_t index,
                       struct msc_str *out) {
    const struct msc_weight_node *node = &w->nodes[index];
    bool is_first = true;
    msc_str_printf(out, "W_%d ", (int)index);
    msc_shown_append(out, node_name(w, g, index));
    msc_str_append(out, " <PARENTS: ");
    print_names(w, g, node->parents, node->n_parents, out);
    msc_str_append(out, "| CHILDERN: ");
    for (int32_t i = index + 1; i < w->n; i++) {
        if (is_parent(&w->nodes[i], index)) {
            msc_str_append(out, is_first ? "" : ",");
            msc_shown_append(out, node_name(w, g, i));
            is_first = false;
        }
    }
    msc_str_append(out, ">\n");
    if (node->n_friends > 0) {
        msc_str_append(out, "  FRIENDS: ");
        print_names(w, g, node->friends, node->n_friends, out);
        msc_str_char(out, '\n');
    }
    msc_str_append(out, "  WEIGHT_TYPE: ");
    msc_shown_append(out, node->type);
    msc_str_append(out, "\n  WEIGHT: ");
    msc_tensor_print(g, node->tensor, out);
    msc_str_append(out, "\n  ATTRS: ");
    if (node->producer) {
        msc_str_printf(out, "producer_type=%s ", node->producer);
    }
    msc_str_printf(out, "weight_strategy=%s \n", node->strategy);
}

void msc_weight_graph_print(const struct msc_weight_graph *w, const struct msc_graph *g,
                            struct msc_str *out) {
    msc_shown_append(out, g->name);
    msc_str_append(out, "_weights\n");
    for (int32_t i = 0; i < w->n; i++) {
        print_node(w, g, i, out);
        msc_str_char(out, '\n');
    }
}

// ---- Prototxt ---------------------------------------------------------------------------------

static void write_friends(const struct msc_weight_graph *w, const struct msc_graph *g,
                          const struct msc_weight_node *node, struct msc_str *out) {
    for (int32_t i = 0; i < node->n_friends; i++) {
        struct msc_str text = {0};
        char key[32];
        snprintf(key, sizeof key, "friend_%d", (int)i);
        print_node(w, g, node->friends[i], &text);
        msc_graph__prototxt_line(out, "    ", key, msc_str_text(&text));
        out->failed |= text.failed;
        msc_str_finish(&text);
    }
}

static void write_node(const struct msc_weight_graph *w, const struct msc_graph *g, int32_t index,
                       struct msc_str *out) {
    const struct msc_weight_node *node = &w->nodes[index];
    struct msc_str tensor = {0};
    msc_tensor_print(g, node->tensor, &tensor);
    msc_str_append(out, "\nlayer {\n");
    msc_graph__prototxt_line(out, "  ", "name", node_name(w, g, index));
    msc_graph__prototxt_line(out, "  ", "type", node->type);
    msc_graph__prototxt_line(out, "  ", "top", node_name(w, g, index));
    for (int32_t i = 0; i < node->n_parents; i++) {
        msc_graph__prototxt_line(out, "  ", "bottom", node_name(w, g, node->parents[i]));
    }
    msc_str_append(out, "  layer_param {\n");
    write_friends(w, g, node, out);
    msc_str_printf(out, "    idx: %d\n", (int)index);
    if (node->producer) {
        msc_graph__prototxt_line(out, "    ", "producer_type", node->producer);
    }
    msc_graph__prototxt_line(out, "    ", "weight", msc_str_text(&tensor));
    msc_graph__prototxt_line(out, "    ", "weight_strategy", node->strategy);
    msc_str_append(out, "  }\n}");
    out->failed |= tensor.failed;
    msc_str_finish(&tensor);
}

void msc_weight_graph_write_prototxt(const struct msc_weight_graph *w, const struct msc_graph *g,
                                     struct msc_str *out) {
    struct msc_str name = {0};
    msc_str_printf(&name, "%s_weights", g->name);
    msc_str_append(out, "name: ");
    msc_graph__prototxt_text(out, msc_str_text(&name));
    for (int32_t i = 0; i < w->n; i++) {
        write_node(w, g, i, out);
    }
    out->failed |= name.failed;
    msc_str_finish(&name);
}

// ---- JSON -------------------------------------------------------------------------------------

static enum msc_status add_names(cJSON *object, const char *key, const struct msc_weight_graph *w,
                                 const struct msc_graph *g, const int32_t nodes[], int32_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (int32_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(node_name(w, g, nodes[i]))));
    }
    return MSC_OK;
}

static enum msc_status add_tensor(cJSON *object, const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    cJSON *of = cJSON_CreateObject(), *shape = NULL, *prims = NULL;
    bool is_symbolic = false;
    MSC_TRY(msc_json_add(object, "weight", of));
    MSC_TRY(msc_json_add_text(of, "name", t->name));
    MSC_TRY(msc_json_add_text(of, "alias", t->alias));
    MSC_TRY(msc_json_add_text(of, "dtype", msc_dtype_name(t->dtype)));
    MSC_TRY(msc_json_add_text(of, "layout", t->layout));
    shape = cJSON_CreateArray();
    MSC_TRY(msc_json_add(of, "shape", shape));
    prims = cJSON_CreateArray();
    MSC_TRY(msc_json_add(of, "prims", prims));
    for (int i = 0; i < t->n_dims; i++) {
        MSC_TRY(msc_json_push(shape, cJSON_CreateNumber((double)t->dims[i])));
        is_symbolic = is_symbolic || t->prims[i] != MSC_NO_ID;
    }
    for (int i = 0; is_symbolic && i < t->n_dims; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)t->dims[i]);
        const char *text = t->prims[i] == MSC_NO_ID ? number : g->prims[t->prims[i]]->name;
        MSC_TRY(msc_json_push(prims, cJSON_CreateString(text)));
    }
    return MSC_OK;
}

static enum msc_status add_node(cJSON *list, const struct msc_weight_graph *w,
                                const struct msc_graph *g, int32_t index) {
    const struct msc_weight_node *node = &w->nodes[index];
    cJSON *object = cJSON_CreateObject(), *attrs = NULL;
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_number(object, "index", index));
    MSC_TRY(msc_json_add_text(object, "name", node_name(w, g, index)));
    MSC_TRY(msc_json_add_text(object, "shared_ref", ""));
    MSC_TRY(msc_json_add_text(object, "weight_type", node->type));
    MSC_TRY(add_tensor(object, g, node->tensor));
    MSC_TRY(add_names(object, "parents", w, g, node->parents, node->n_parents));
    MSC_TRY(add_names(object, "friends", w, g, node->friends, node->n_friends));
    attrs = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "attrs", attrs));
    if (node->producer) {
        MSC_TRY(msc_json_add_text(attrs, "producer_type", node->producer));
    }
    return msc_json_add_text(attrs, "weight_strategy", node->strategy);
}

static enum msc_status fill_json(cJSON *root, const struct msc_weight_graph *w,
                                 const struct msc_graph *g) {
    struct msc_str name = {0};
    cJSON *nodes = cJSON_CreateArray();
    MSC_TRY(msc_json_add(root, "nodes", nodes));
    msc_str_printf(&name, "%s_weights", g->name);
    enum msc_status status = msc_str_status(&name);
    if (status == MSC_OK) {
        status = msc_json_add_text(root, "name", msc_str_text(&name));
    }
    msc_str_finish(&name);
    for (int32_t i = 0; status == MSC_OK && i < w->n; i++) {
        status = add_node(nodes, w, g, i);
    }
    return status;
}

enum msc_status msc_weight_graph_to_json(struct cJSON **out, const struct msc_weight_graph *w,
                                         const struct msc_graph *g) {
    cJSON *root = cJSON_CreateObject();
    enum msc_status status =
        root ? fill_json(root, w, g)
             : MSC_FAIL(MSC_E_NOMEM, "out of memory while writing a weight graph");
    if (status != MSC_OK) {
        cJSON_Delete(root);
        return status;
    }
    *out = root;
    return MSC_OK;
}
