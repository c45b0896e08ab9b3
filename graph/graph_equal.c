// Equality and content hashes of graphs. Both cover names, types, shapes, attributes and
// connections. Ids depend only on the structure, so they are compared directly.
#include "graph/graph_internal.h"
#include "graph/operators_internal.h"

#include <string.h>

static bool attrs_equal(int32_t n_a, const struct msc_attr a[], int32_t n_b,
                        const struct msc_attr b[]) {
    if (n_a != n_b) {
        return false;
    }
    for (int32_t i = 0; i < n_a; i++) {
        if (strcmp(a[i].key, b[i].key) != 0 || strcmp(a[i].value, b[i].value) != 0) {
            return false;
        }
    }
    return true;
}

static bool ids_equal(int32_t n_a, const int32_t a[], int32_t n_b, const int32_t b[]) {
    return n_a == n_b && (n_a == 0 || memcmp(a, b, (size_t)n_a * sizeof(a[0])) == 0);
}

bool msc_tensor_equal(const struct msc_graph *g, const struct msc_tensor *a,
                      const struct msc_graph *h, const struct msc_tensor *b) {
    if (a->dtype != b->dtype || a->n_dims != b->n_dims) {
        return false;
    }
    for (int i = 0; i < a->n_dims; i++) {
        bool is_symbolic = a->prims[i] != MSC_NO_ID;
        if (a->dims[i] != b->dims[i] || is_symbolic != (b->prims[i] != MSC_NO_ID)) {
            return false;
        }
        if (is_symbolic && strcmp(g->prims[a->prims[i]]->name, h->prims[b->prims[i]]->name) != 0) {
            return false;
        }
    }
    return true;
}

static bool prim_equal(const struct msc_prim *a, const struct msc_prim *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->optype, b->optype) == 0 &&
           ids_equal(a->n_parents, a->parents, b->n_parents, b->parents) &&
           attrs_equal(a->n_attrs, a->attrs, b->n_attrs, b->attrs);
}

static bool bodies_equal(const struct msc_joint *a, const struct msc_joint *b) {
    bool is_equal = a->n_graphs == b->n_graphs;
    for (int32_t i = 0; is_equal && i < a->n_graphs; i++) {
        is_equal =
            a->graphs[i] == b->graphs[i] || msc_graph_equal(a->graphs[i], b->graphs[i], true);
    }
    return is_equal;
}

static bool joint_equal(const struct msc_joint *a, const struct msc_joint *b) {
    if (a->op != b->op || strcmp(a->name, b->name) != 0 || strcmp(a->scope, b->scope) != 0) {
        return false;
    }
    return ids_equal(a->n_operands, a->operands, b->n_operands, b->operands) &&
           ids_equal(a->n_outputs, a->outputs, b->n_outputs, b->outputs) &&
           attrs_equal(a->n_attrs, a->attrs, b->n_attrs, b->attrs) && bodies_equal(a, b);
}

static bool data_equal(const struct msc_array *a, const struct msc_array *b) {
    if (a == b || a == NULL || b == NULL) {
        return a == b;
    }
    size_t n_bytes = msc_array_n_bytes(a);
    return n_bytes == msc_array_n_bytes(b) &&
           memcmp(msc_array_data(a), msc_array_data(b), n_bytes) == 0;
}

static bool tensors_equal(const struct msc_graph *a, const struct msc_graph *b, bool with_data) {
    for (int32_t i = 0; i < a->n_tensors; i++) {
        const struct msc_tensor *x = &a->tensors[i]->tensor;
        const struct msc_tensor *y = &b->tensors[i]->tensor;
        if (!msc_tensor_equal(a, x, b, y) || strcmp(x->name, y->name) != 0 ||
            strcmp(x->alias, y->alias) != 0 || strcmp(x->layout, y->layout) != 0 ||
            (with_data && !data_equal(x->data, y->data))) {
            return false;
        }
    }
    return true;
}

bool msc_graph_equal(const struct msc_graph *a, const struct msc_graph *b, bool with_data) {
    if (strcmp(a->name, b->name) != 0 || a->n_joints != b->n_joints ||
        a->n_tensors != b->n_tensors || a->n_prims != b->n_prims) {
        return false;
    }
    for (int32_t i = 0; i < a->n_prims; i++) {
        if (!prim_equal(a->prims[i], b->prims[i])) {
            return false;
        }
    }
    for (int32_t i = 0; i < a->n_joints; i++) {
        if (!joint_equal(&a->joints[i]->joint, &b->joints[i]->joint)) {
            return false;
        }
    }
    return ids_equal(a->n_inputs, a->inputs, b->n_inputs, b->inputs) &&
           ids_equal(a->n_outputs, a->outputs, b->n_outputs, b->outputs) &&
           tensors_equal(a, b, with_data);
}

static struct msc_hash add_ids(struct msc_hash h, int32_t n, const int32_t ids[]) {
    h = msc_hash_add_u64(h, (uint64_t)n);
    for (int32_t i = 0; i < n; i++) {
        h = msc_hash_add_u64(h, (uint64_t)ids[i]);
    }
    return h;
}

// The attribute whose key is the next one after `key`; the first one if `key` is NULL.
static const struct msc_attr *next_attr(int32_t n, const struct msc_attr attrs[], const char *key) {
    const struct msc_attr *next = NULL;
    for (int32_t i = 0; i < n; i++) {
        bool is_after = key == NULL || strcmp(attrs[i].key, key) > 0;
        if (is_after && (next == NULL || strcmp(attrs[i].key, next->key) < 0)) {
            next = &attrs[i];
        }
    }
    return next;
}

// Adds attributes in the order of their keys.
static struct msc_hash add_attrs(struct msc_hash h, int32_t n, const struct msc_attr attrs[]) {
    h = msc_hash_add_u64(h, (uint64_t)n);
    const struct msc_attr *attr = next_attr(n, attrs, NULL);
    for (; attr != NULL; attr = next_attr(n, attrs, attr->key)) {
        h = msc_hash_add_text(h, attr->key);
        h = msc_hash_add_text(h, attr->value);
    }
    return h;
}

static struct msc_hash add_tensor(struct msc_hash h, const struct msc_tensor *t) {
    h = msc_hash_add_text(h, t->name);
    h = msc_hash_add_text(h, t->alias);
    h = msc_hash_add_text(h, t->layout);
    h = msc_hash_add_text(h, msc_dtype_name(t->dtype));
    h = msc_hash_add_u64(h, (uint64_t)t->n_dims);
    for (int i = 0; i < t->n_dims; i++) {
        h = msc_hash_add_u64(h, (uint64_t)t->dims[i]);
        h = msc_hash_add_u64(h, (uint64_t)t->prims[i]);
    }
    return h;
}

struct msc_hash msc_graph_hash(const struct msc_graph *g) {
    struct msc_hash h = msc_hash_bytes("graph", 5);
    h = msc_hash_add_text(h, g->name);
    for (int32_t i = 0; i < g->n_prims; i++) {
        const struct msc_prim *p = g->prims[i];
        h = msc_hash_add_text(h, p->name);
        h = msc_hash_add_text(h, p->optype);
        h = add_ids(h, p->n_parents, p->parents);
        h = add_attrs(h, p->n_attrs, p->attrs);
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        h = msc_hash_add_text(h, j->name);
        h = msc_hash_add_text(h, msc_op_info(j->op)->name);
        h = msc_hash_add_text(h, j->scope);
        h = add_ids(h, j->n_operands, j->operands);
        h = add_ids(h, j->n_outputs, j->outputs);
        h = add_attrs(h, j->n_attrs, j->attrs);
        for (int32_t k = 0; k < j->n_graphs; k++) {
            h = msc_hash_combine(h, msc_graph_hash(j->graphs[k]));
        }
    }
    for (int32_t i = 0; i < g->n_tensors; i++) {
        h = add_tensor(h, &g->tensors[i]->tensor);
    }
    h = add_ids(h, g->n_inputs, g->inputs);
    h = add_ids(h, g->n_outputs, g->outputs);
    struct msc_hash plugins = msc_operators__identity(g);
    return msc_hash_equal(plugins, (struct msc_hash){0}) ? h : msc_hash_combine(h, plugins);
}

struct msc_hash msc_graph_weights_hash(const struct msc_graph *g) {
    struct msc_hash h = msc_hash_bytes("weights", 7);
    for (int32_t i = 0; i < g->n_tensors; i++) {
        const struct msc_tensor *t = &g->tensors[i]->tensor;
        if (t->data != NULL) {
            h = msc_hash_add_text(h, t->name);
            h = msc_hash_combine(h, msc_array_hash(t->data));
        }
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_graphs; k++) {
            h = msc_hash_combine(h, msc_graph_weights_hash(j->graphs[k]));
        }
    }
    return h;
}
