// Expands sparse tensors, initialisers and constants, to dense ones in the unpacked model, so that
// the import and the passes meet only dense tensors.
#include "base/alloc.h"
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

// The elements of a sparse tensor and their places: `at` has the n offsets, [n], or their
// coordinates, [n, n_dims].
struct elements {
    struct msc_array *values, *at;
    int64_t n, n_all; // stored; with the zeros
    int n_dims;
    const int64_t *dims;
};

// The offset of element i; -1 if it lies outside of the tensor.
static int64_t offset_of(const struct elements *e, int64_t i) {
    const int64_t *at = msc_array_data(e->at);
    int64_t offset = 0;
    if (msc_array_n_dims(e->at) == 1) {
        return at[i] < e->n_all ? at[i] : -1;
    }
    for (int d = 0; d < e->n_dims; d++) {
        int64_t place = at[i * e->n_dims + d];
        if (place < 0 || place >= e->dims[d]) {
            return -1;
        }
        offset = offset * e->dims[d] + place;
    }
    return offset;
}

static enum msc_status check_elements(const struct elements *e) {
    int n_dims = msc_array_n_dims(e->at);
    bool has_shape = n_dims == 1 || (n_dims == 2 && msc_array_dim(e->at, 1) == e->n_dims);
    if (e->n_all < 0 || e->n_all > INT64_MAX / 16) {
        return MSC_FAIL(MSC_E_FORMAT, "its dimensions are negative or too large");
    }
    if (msc_array_n_dims(e->values) != 1 || msc_array_dtype(e->at) != MSC_DTYPE_I64 || !has_shape ||
        msc_array_dim(e->at, 0) != e->n) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "its indices, expected int64[%lld] or int64[%lld,%d], do not "
                        "belong to its values",
                        (long long)e->n, (long long)e->n, e->n_dims);
    }
    for (int64_t i = 0; i < e->n; i++) {
        if (offset_of(e, i) < 0) {
            return MSC_FAIL(MSC_E_FORMAT, "its index %lld is outside of its dimensions",
                            (long long)i);
        }
    }
    return MSC_OK;
}

static enum msc_status fill(uint8_t **out, size_t *n_bytes, const struct elements *e) {
    size_t width = msc_dtype_bytes(msc_array_dtype(e->values));
    const uint8_t *from = msc_array_data(e->values);
    MSC_TRY(check_elements(e));
    *n_bytes = (size_t)e->n_all * width;
    *out = msc_alloc_zero((size_t)e->n_all + 1, width);
    MSC_TRY(MSC_ALLOCATED(*out));
    for (int64_t i = 0; i < e->n; i++) {
        memcpy(*out + (size_t)offset_of(e, i) * width, from + (size_t)i * width, width);
    }
    return MSC_OK;
}

// Takes the tensor of the values out of `s`, and makes it the dense tensor.
static enum msc_status expand(Onnx__TensorProto **out, Onnx__SparseTensorProto *s,
                              const char *folder) {
    struct elements e = {.n_dims = (int)s->n_dims, .dims = s->dims};
    Onnx__TensorProto *t = s->values;
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    const char *format;
    enum msc_status status = MSC_OK;
    if (t == NULL || s->indices == NULL || s->n_dims < 1 || s->n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_FORMAT, "it needs values, indices and 1 to %d dimensions",
                        MSC_MAX_DIMS);
    }
    msc_onnx_storage(t->data_type, &format);
    if (format[0] != '\0') {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "its elements are %s: store it as a dense tensor",
                        format);
    }
    MSC_TRY_OUT(msc_onnx_array(&e.values, t, folder));
    MSC_TRY_OUT(msc_onnx_array(&e.at, s->indices, folder));
    e.n = msc_array_n_elements(e.values);
    e.n_all = msc_dims_product(e.n_dims, e.dims);
    MSC_TRY_OUT(fill(&bytes, &n_bytes, &e));
    msc_free(t->dims);
    msc_free(t->raw_data.data);
    t->dims = s->dims;
    t->n_dims = s->n_dims;
    t->raw_data = (ProtobufCBinaryData){.len = n_bytes, .data = bytes};
    t->has_raw_data = true;
    t->has_data_location = false;
    s->dims = NULL;
    s->n_dims = 0;
    s->values = NULL;
    *out = t;
out:
    msc_array_release(e.values);
    msc_array_release(e.at);
    return status;
}

static enum msc_status expand_initializers(Onnx__GraphProto *g, const char *folder) {
    size_t n = g->n_sparse_initializer;
    if (n == 0) {
        return MSC_OK;
    }
    Onnx__TensorProto **all = msc_alloc_zero(g->n_initializer + n, sizeof all[0]);
    MSC_TRY(MSC_ALLOCATED(all));
    for (size_t i = 0; i < g->n_initializer; i++) {
        all[i] = g->initializer[i];
    }
    msc_free(g->initializer);
    g->initializer = all;
    for (size_t i = 0; i < n; i++) {
        Onnx__SparseTensorProto *s = g->sparse_initializer[i];
        const char *name = s->values && s->values->name ? s->values->name : "";
        enum msc_status status = expand(&all[g->n_initializer], s, folder);
        if (status != MSC_OK) {
            return msc_status_prefix(status, "sparse initialiser '%s'", name);
        }
        g->n_initializer++;
    }
    return MSC_OK;
}

// The attribute sparse_value of a Constant becomes the attribute `value`.
static enum msc_status expand_constant(Onnx__AttributeProto *a, const char *folder) {
    if (a->name == NULL || strcmp(a->name, "sparse_value") != 0 || a->sparse_tensor == NULL ||
        a->t != NULL) {
        return MSC_OK;
    }
    MSC_TRY(expand(&a->t, a->sparse_tensor, folder));
    memcpy(a->name, "value", sizeof "value");
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    return MSC_OK;
}

static enum msc_status expand_graph(Onnx__GraphProto *g, const char *folder);

static enum msc_status expand_nodes(Onnx__NodeProto *const nodes[], size_t n, const char *folder) {
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *p = nodes[i];
        for (size_t k = 0; k < p->n_attribute; k++) {
            enum msc_status status = expand_constant(p->attribute[k], folder);
            if (status != MSC_OK) {
                return msc_status_prefix(status, "node '%s' (Constant): its sparse tensor",
                                         p->name ? p->name : "");
            }
            MSC_TRY(p->attribute[k]->g ? expand_graph(p->attribute[k]->g, folder) : MSC_OK);
        }
    }
    return MSC_OK;
}

static enum msc_status expand_graph(Onnx__GraphProto *g, const char *folder) {
    MSC_TRY(expand_initializers(g, folder));
    return expand_nodes(g->node, g->n_node, folder);
}

enum msc_status msc_onnx__expand_sparse(Onnx__ModelProto *m, const char *folder) {
    MSC_TRY(expand_graph(m->graph, folder));
    for (size_t i = 0; i < m->n_functions; i++) {
        MSC_TRY(expand_nodes(m->functions[i]->node, m->functions[i]->n_node, folder));
    }
    return MSC_OK;
}
