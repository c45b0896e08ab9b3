// Predicts the latency of plans without measuring: times of joints and conversions follow from
// fixed rates and are combined like measured latencies (env/quantize/latency.h).
//
// The rates were fitted to latency tables of small networks in ONNX Runtime 1.32 on one thread of a
// processor with VNNI. They show whether integers save time in spite of the conversions between
// integers and floats. They do not predict the time of a run on this machine.
#ifndef MSC_ENV_QUANTIZE_PREDICT_H
#define MSC_ENV_QUANTIZE_PREDICT_H

#include "env/env.h"

struct msc_quantize_predictor;

// *out is owned by the caller and must be destroyed before the environment. *out is NULL, because
// nothing can be predicted, if the environment is not `quantize` or its target does not keep
// tensors as integers.
enum msc_status msc_quantize_predictor_create(struct msc_quantize_predictor **out,
                                              struct msc_env *env);
void msc_quantize_predictor_destroy(struct msc_quantize_predictor *p); // accepts NULL
// Microseconds of one sample for a point [n_tasks]; NULL: for the float model.
double msc_quantize_predict_us(const struct msc_quantize_predictor *p, const uint32_t point[]);

#endif
