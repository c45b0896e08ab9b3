// One case of ONNX's backend tests: a folder with model.onnx and test_data_set_N/input_<i>.pb and
// output_<i>.pb, each a serialised TensorProto.
//
//     struct conformance_case c;
//     MSC_TRY(conformance_case_load(&c, "node/test_abs"));
//     if (c.why_out == NULL) { ... c.sets[0].inputs, c.sets[0].outputs ... }
//     conformance_case_finish(&c);
#ifndef MSC_TESTS_CONFORMANCE_CASE_H
#define MSC_TESTS_CONFORMANCE_CASE_H

#include "graph/onnx/onnx_file_internal.h"

enum {
    CONFORMANCE_MAX_TENSORS = 32,
    CONFORMANCE_MAX_SETS = 8,
    CONFORMANCE_PATH_BYTES = 1024,
};

struct conformance_set {
    int n_inputs, n_outputs;
    struct msc_array *inputs[CONFORMANCE_MAX_TENSORS];
    struct msc_array *outputs[CONFORMANCE_MAX_TENSORS]; // expected values
};

struct conformance_case {
    char folder[CONFORMANCE_PATH_BYTES], model_path[CONFORMANCE_PATH_BYTES];
    Onnx__ModelProto *model;
    // the operator that the case tests, from the case's name or else the first node
    char op[64];
    const char *why_out; // why the case is out of scope; NULL: in scope
    bool has_any_values; // the outputs are random: only types and shapes are compared
    int n_sets;
    struct conformance_set sets[CONFORMANCE_MAX_SETS];
};

// Loads the case in a folder. Arrays are loaded only for cases in scope. Returns MSC_E_FORMAT or
// MSC_E_IO if the folder does not contain such a case.
enum msc_status conformance_case_load(struct conformance_case *c, const char *folder);
void conformance_case_finish(struct conformance_case *c);

#endif
