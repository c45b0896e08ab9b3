// Takes replacement weights of a network from which channels were removed: the file's network with
// smaller layers, such as the state dict of a pruned and trained module. The nodes of the file
// remain; lengths follow from the weights, and shape inference refuses weights that do not fit
// together.
#include "graph/onnx/onnx_import_internal.h"

#include <string.h>

bool msc_onnx__is_part(const struct msc_array *x, const Onnx__TensorProto *of) {
    bool is_part = (size_t)msc_array_n_dims(x) == of->n_dims;
    for (size_t i = 0; is_part && i < of->n_dims; i++) {
        is_part = msc_array_dim(x, (int)i) <= of->dims[i];
    }
    return is_part;
}

// True if the array has fewer elements than the initialiser, in smaller dimensions.
static bool is_smaller(const struct msc_array *x, const Onnx__TensorProto *of) {
    int64_t n = 1;
    for (size_t i = 0; i < of->n_dims; i++) {
        n *= of->dims[i];
    }
    return msc_onnx__is_part(x, of) && msc_array_n_elements(x) < n;
}

static bool is_weight(const Onnx__TensorProto *t) {
    bool is_single = true;
    for (size_t i = 0; i < t->n_dims; i++) {
        is_single = is_single && t->dims[i] == 1;
    }
    return !is_single && (t->data_type == MSC_ONNX_FLOAT || t->data_type == MSC_ONNX_DOUBLE ||
                          t->data_type == MSC_ONNX_FLOAT16 || t->data_type == MSC_ONNX_BFLOAT16);
}

// A vector of one element would be broadcast instead of being refused.
static enum msc_status check_length(const struct msc_array *x, const char *name) {
    return msc_array_n_dims(x) == 1 && msc_array_n_elements(x) == 1
               ? MSC_FAIL(MSC_E_INVALID,
                          "new weight '%s' has a single element; pruned networks must keep at "
                          "least two channels of each layer",
                          name)
               : MSC_OK;
}

// The first replacement that is smaller than its initialiser, or NULL.
static enum msc_status find_smaller(const Onnx__TensorProto **out, const Onnx__GraphProto *g,
                                    const struct msc_array_list *weights) {
    *out = NULL;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const struct msc_array *x = msc_array_list_find(weights, g->initializer[i]->name);
        if (x && is_weight(g->initializer[i]) && is_smaller(x, g->initializer[i])) {
            MSC_TRY(check_length(x, g->initializer[i]->name));
            *out = *out ? *out : g->initializer[i];
        }
    }
    return MSC_OK;
}

static enum msc_status check_all_given(const Onnx__GraphProto *g,
                                       const struct msc_array_list *weights,
                                       const Onnx__TensorProto *smaller) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (is_weight(t) && !msc_array_list_find(weights, t->name)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "new weight '%s' is smaller than the model's, as in a pruned network, "
                            "but '%s' is missing; give all weights of the pruned network",
                            smaller->name, t->name);
        }
    }
    return MSC_OK;
}

static Onnx__AttributeProto *find_groups(const Onnx__NodeProto *node) {
    bool is_conv = node->op_type && (strcmp(node->op_type, "Conv") == 0 ||
                                     strcmp(node->op_type, "ConvTranspose") == 0);
    for (size_t i = 0; is_conv && node->n_input > 1 && i < node->n_attribute; i++) {
        if (node->attribute[i]->name && strcmp(node->attribute[i]->name, "group") == 0) {
            return node->attribute[i];
        }
    }
    return NULL;
}

// Groups that are left when whole groups were removed: the weight's first length shrinks with their
// number, and its second, the length within a group, remains.
static void fit_groups(Onnx__AttributeProto *groups, const Onnx__TensorProto *old,
                       const struct msc_array *new) {
    bool has_fewer = old->n_dims > 2 && msc_onnx__is_part(new, old) && old->dims[0] > 0 &&
                     msc_array_dim(new, 0) < old->dims[0] && msc_array_dim(new, 1) == old->dims[1];
    int64_t left = has_fewer ? groups->i * msc_array_dim(new, 0) : 0;
    if (has_fewer && groups->i > 1 && left % old->dims[0] == 0) {
        groups->i = left / old->dims[0];
    }
}

static enum msc_status fit_all_groups(const Onnx__GraphProto *g,
                                      const struct msc_array_list *weights) {
    struct msc_graph_names table = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < g->n_initializer; i++) {
        status = msc_graph__names_put(&table, g->initializer[i]->name, (int32_t)i);
    }
    for (size_t i = 0; status == MSC_OK && i < g->n_node; i++) {
        Onnx__AttributeProto *groups = find_groups(g->node[i]);
        const char *name = groups ? g->node[i]->input[1] : "";
        int32_t at = groups ? msc_graph__names_find(&table, name) : MSC_NO_ID;
        const struct msc_array *new = at != MSC_NO_ID ? msc_array_list_find(weights, name) : NULL;
        if (new) {
            fit_groups(groups, g->initializer[at], new);
        }
    }
    msc_graph__names_finish(&table);
    return status;
}

enum msc_status msc_onnx__take_pruned(struct msc_onnx_import *im) {
    const struct msc_array_list *weights = im->options->weights;
    const Onnx__TensorProto *smaller = NULL;
    if (!weights || im->parent) {
        return MSC_OK;
    }
    MSC_TRY(find_smaller(&smaller, im->proto, weights));
    if (!smaller) {
        return MSC_OK;
    }
    MSC_TRY(check_all_given(im->proto, weights, smaller));
    im->is_pruned = true;
    return fit_all_groups(im->proto, weights);
}
