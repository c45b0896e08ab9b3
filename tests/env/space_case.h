// The space of the environment `quantize` on the small network of tests/tools/quantize_case.h.
#ifndef TESTS_ENV_SPACE_CASE_H
#define TESTS_ENV_SPACE_CASE_H

#include "env/combined/internal.h"
#include "tests/tools/quantize_case.h"

#define THREE "\"choices\":[{\"bits\":8},{\"bits\":4},{\"bits\":3,\"observer\":\"mse\"}]"

struct bench {
    struct quantize_case c;
    struct msc_quantizer *q;
    struct msc_arena arena;
    struct msc_quantize_space space;
    const struct msc_edit *fixed[16];
};

void open_bench(struct bench *b, const char *config, int64_t batch);
void close_bench(struct bench *b);
enum msc_status build(struct bench *b);
// Builds the space with the metrics that an environment on this dataset would have.
enum msc_status build_on(struct bench *b, const struct msc_dataset *data);

#endif
