// Writes TensorFlow Lite files (.tflite) for LiteRT and TensorFlow Lite.
//
// The file computes what the graph and its edits compute. Inputs and outputs have the names, types
// and shapes of the graph's; a symbolic length is written as -1 in the shape signature, and as 1 in
// the shape. Inside, images are NHWC: a TRANSPOSE follows an image input and precedes an image
// output, and weights are stored in TensorFlow Lite's layouts.
//
// Quantised tensors (edits of the target `tflite`) are int8: an unsigned range is moved by 128. A
// joint is written as TensorFlow Lite's integer kernel if all its activations and its result are
// quantised, else with DEQUANTIZE before it and QUANTIZE after it. TensorFlow Lite fixes some
// scales: the results of SOFTMAX, LOGISTIC and TANH have a scale of their own, and kernels that
// move or select elements keep the scale of their input. If the edits say otherwise, a QUANTIZE
// between two int8 tensors follows.
#ifndef MSC_GRAPH_TFLITE_TFLITE_H
#define MSC_GRAPH_TFLITE_TFLITE_H

#include "graph/onnx/onnx.h"

// The ending of a file's name.
#define MSC_TFLITE_SUFFIX ".tflite"
// Bytes 4 to 7 of a file.
#define MSC_TFLITE_IDENTIFIER "TFL3"

// Takes the options of msc_onnx_save. The file is either complete or does not exist. Errors name
// the file; MSC_E_UNSUPPORTED names the first joint that cannot be written, and the reason. So does
// it if tensors are quantised for another target than `tflite`.
enum msc_status msc_tflite_save(const struct msc_graph *g, const char *path,
                                const struct msc_onnx_export_options *options);
// Fails as msc_tflite_save does without options, and writes nothing.
enum msc_status msc_tflite_check(const struct msc_graph *g, const char *path);

#endif
