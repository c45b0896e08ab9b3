// Finds and defines values of the ONNX graph by name, and makes the names of joints.
#include "graph/onnx/onnx_import_internal.h"

struct msc_onnx_value *msc_onnx__find_value(struct msc_onnx_import *im, const char *name) {
    int32_t i = msc_graph__names_find(&im->value_names, name);
    return i == MSC_NO_ID ? NULL : &im->values[i];
}

enum msc_status msc_onnx__define(struct msc_onnx_import *im, const char *name,
                                 struct msc_onnx_value value) {
    if (name == NULL || name[0] == '\0') {
        return MSC_OK; // "": an output without consumers
    }
    if (msc_onnx__find_value(im, name) != NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "two nodes produce the value '%s'", name);
    }
    MSC_TRY(msc_grow(&im->values, &im->values_capacity, im->n_values + 1, sizeof(im->values[0])));
    MSC_TRY(msc_graph__names_put(&im->value_names, name, (int32_t)im->n_values));
    im->values[im->n_values++] = value;
    return MSC_OK;
}

enum msc_status msc_onnx__hide(struct msc_onnx_import *im, const char *name) {
    return name == NULL || name[0] == '\0'
               ? MSC_OK
               : msc_graph__names_put(&im->value_names, name, MSC_NO_ID);
}

bool msc_onnx__is_initializer(struct msc_onnx_import *im, const char *name) {
    const struct msc_onnx_value *v = name == NULL ? NULL : msc_onnx__find_value(im, name);
    return v != NULL && v->source != NULL;
}

const char *msc_onnx__full_name(struct msc_onnx_import *im, const Onnx__NodeProto *node) {
    const char *module = im->proto->node[im->node] == node ? im->modules[im->node].joint : NULL;
    const char *name = module != NULL ? module : node->name == NULL ? "" : node->name;
    return im->prefix == NULL || name[0] == '\0'
               ? name
               : msc_arena_printf(&im->builder.arena, "%s%s", im->prefix, name);
}

const char *msc_onnx__alias(struct msc_onnx_import *im, const char *value) {
    return im->call == NULL || value[0] == '\0'
               ? value
               : msc_arena_printf(&im->builder.arena, "%s%s", im->prefix, value);
}
