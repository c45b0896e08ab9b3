// What plans take in their runtime where it cannot be asked: times of joints and conversions by rates,
// put together as measured latencies are (env/quantize/latency.h).
//
// The rates are those of ONNX Runtime 1.32 on one thread of a processor with VNNI, fitted to the tables
// that it gave for small networks. They tell whether integers and the conversions at the ends of float
// stretches pay, not how long a run takes on the machine at hand.
#ifndef MSC_ENV_QUANTIZE_PREDICT_H
#define MSC_ENV_QUANTIZE_PREDICT_H

#include "env/env.h"

struct msc_quantize_predictor;

// *out is owned by the caller, and goes before the environment; NULL where the environment is another
// one or its target passes nothing on as integers: then nothing can be said.
enum msc_status msc_quantize_predictor_create(struct msc_quantize_predictor **out,
                                              struct msc_env *env);
void msc_quantize_predictor_destroy(struct msc_quantize_predictor *p); // accepts NULL
// Microseconds of one sample, of a point [n_tasks] or, NULL, of the float model.
double msc_quantize_predict_us(const struct msc_quantize_predictor *p, const uint32_t point[]);

#endif
