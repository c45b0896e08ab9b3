// The efforts of msc_quick_quantize: what each of them tries and measures.
#include "pipeline/quick/quick_internal.h"

#include <stdint.h>
#include <string.h>

// Plain weights, weights rounded by their effect on the outputs, and two other ranges of
// activations. If a choice names no observer, activations get the range of least squared error.
// At 8 bits the range of the values suits every method for weights, and takes no time.
#define CHOICES                                                                                    \
    "[{\"bits\": 8}, {\"bits\": 8, \"observer\": \"minmax\", \"rounding\": \"descent\","           \
    " \"correct\": \"affine\"}, {\"bits\": 8, \"observer\": \"minmax\"},"                          \
    " {\"bits\": 8, \"observer\": \"percentile\"},"                                                \
    " {\"bits\": 8, \"observer\": \"minmax\", \"correct\": \"bias\"}, {\"float\": true}]"

// What `default` and `best` have in common.
#define ALL_STEPS                                                                                  \
    .choices = CHOICES, .of_float = 5, .plain_weights = 0, .plain_activations = 2,                 \
    .activations = {0, 2, 3}, .n_activations = 3, .weights = {0, 1, 4}, .n_weights = 3,            \
    .n_gain_samples = 4, .leaves_float = true, .tries_dynamic = true, .improves = true,            \
    .improved_ridge = 0.2, .improved_rows = 4096, .improved_of_column = 64

static const struct msc_quick_effort efforts[] = {
    {.name = "fast",
     .choices =
         "[{\"bits\": 8, \"observer\": \"minmax\", \"correct\": \"bias\"}, {\"float\": true}]",
     .of_float = 1,
     .plain_weights = MSC_QUICK_NO_CHOICE,
     .plain_activations = MSC_QUICK_NO_CHOICE,
     .n_activations = 1,
     .n_weights = 1,
     .n_gain_samples = 4},
    {.name = "default",
     ALL_STEPS,
     .moments = "{\"rows\": 4096, \"columns\": 1024, \"least\": 0.5}",
     .improved_columns = 512},
    {.name = "best",
     ALL_STEPS,
     .moments = "{\"rows\": 4096, \"columns\": 1536, \"least\": 0.5}",
     .improved_columns = 2304},
};

enum msc_status msc_quick__find_effort(const struct msc_quick_effort **out, const char *name) {
    for (size_t i = 0; i < sizeof efforts / sizeof efforts[0]; i++) {
        if (strcmp(efforts[i].name, name ? name : "default") == 0) {
            *out = &efforts[i];
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "quantize: --effort: unknown effort \"%s\": expected fast, default or best",
                    name);
}
