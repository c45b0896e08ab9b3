// One case of ONNX's backend tests: a folder with model.onnx and test_data_set_0/input_<i>.pb and
// output_<i>.pb, each a serialised TensorProto.
//
// The files are parsed here, without the importer under test, so that the expected values do not
// depend on it.
#ifndef MSC_TESTS_GRAPH_ONNX_CASE_H
#define MSC_TESTS_GRAPH_ONNX_CASE_H

#include "data/array.h"

#define ONNX_CASE_MAX_TENSORS 16
#define ONNX_CASE_MAX_NODES 192

struct onnx_case {
    char *model;
    size_t model_bytes;
    int n_ops;
    char ops[ONNX_CASE_MAX_NODES][32]; // operator of each node
    // whether a node's operator is outside the standard operator set
    bool has_domain;
    int n_inputs, n_outputs;
    struct onnx_tensor {
        char *file; // the serialised TensorProto
        size_t file_bytes;
        struct msc_array *array; // NULL: not a tensor of a supported type
    } inputs[ONNX_CASE_MAX_TENSORS], outputs[ONNX_CASE_MAX_TENSORS];
    char input_names[ONNX_CASE_MAX_TENSORS][64]; // names of the graph's inputs, in order
    int n_graph_inputs;
};

// Loads the case in a folder. Returns false if the folder does not contain a case or its case
// exceeds the limits above.
bool onnx_case_load(struct onnx_case *c, const char *folder);
void onnx_case_finish(struct onnx_case *c);

// Writes the model to `path`, with input number `first` and all later inputs as initialisers.
enum msc_status onnx_case_write(const struct onnx_case *c, const char *path, int first);

#endif
