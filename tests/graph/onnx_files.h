// Loads the small models of tests/graph/files. make_models.py in that folder writes them.
#ifndef MSC_TESTS_ONNX_FILES_H
#define MSC_TESTS_ONNX_FILES_H

#include "graph/onnx/onnx.h"

#include "tests/graph/graph_samples.h"

#include <stdio.h>

#define MSC_TESTS_MODEL(name) MSC_TESTS_FOLDER "/graph/files/" name ".onnx"
#define MSC_TESTS_MORE(name) MSC_TESTS_FOLDER "/conformance/more/" name "/model.onnx"

static inline struct msc_graph *load_file(const char *path) {
    struct msc_graph *g = NULL;
    assert_ok(msc_onnx_load(&g, path, NULL));
    return g;
}

// MSC's name of the joint's operator. Fails if the joint does not exist.
static inline const char *op_of(const struct msc_graph *g, const char *joint) {
    int32_t id = msc_graph_find_joint(g, joint);
    if (id == MSC_NO_ID) {
        print_error("there is no joint '%s'\n", joint);
        fail();
    }
    return msc_op_info(msc_graph_joint(g, id)->op)->name;
}

// The number of joints with this operator.
static inline int count_of(const struct msc_graph *g, enum msc_op op) {
    int n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        n += msc_graph_joint(g, i)->op == op;
    }
    return n;
}

static inline const char *attr_of(const struct msc_graph *g, const char *joint, const char *key) {
    const char *value = msc_joint_attr(msc_graph_joint(g, msc_graph_find_joint(g, joint)), key);
    return value == NULL ? "(absent)" : value;
}

static inline const struct msc_tensor *weight_of(const struct msc_graph *g, const char *joint,
                                                 const char *role) {
    int32_t id = msc_joint_weight(msc_graph_joint(g, msc_graph_find_joint(g, joint)), role);
    assert_int_not_equal(id, MSC_NO_ID);
    return msc_graph_tensor(g, id);
}

static inline const struct msc_tensor *output_of(const struct msc_graph *g, const char *joint) {
    int32_t id = msc_graph_find_joint(g, joint);
    assert_int_not_equal(id, MSC_NO_ID);
    return msc_graph_tensor(g, msc_graph_joint(g, id)->outputs[0]);
}

static inline void check_dims(const struct msc_tensor *t, const char *expected) {
    char text[MSC_DIMS_TEXT_BYTES];
    assert_string_equal(msc_dims_format(text, t->n_dims, t->dims), expected);
}

static inline void check_floats(const struct msc_tensor *t, int64_t n, const float expected[]) {
    const float *x = msc_array_data(t->data);
    assert_int_equal(msc_array_n_elements(t->data), n);
    for (int64_t i = 0; i < n; i++) {
        assert_float_equal(x[i], expected[i], 1e-6);
    }
}

#endif
