// Internal to tools/: shared by the sources that talk to mscgym-runtime.
#ifndef MSC_TOOLS_RUNTIME_INTERNAL_H
#define MSC_TOOLS_RUNTIME_INTERNAL_H

#include "base/json.h"
#include "tools/runtime.h"

// Adds the method to `request` (takes ownership), sends it and receives the answer; *answer is
// owned by the caller.
enum msc_status msc_runtime__exchange(struct msc_runtime *r, cJSON *request, const char *method,
                                      cJSON **answer);
// An error that the program itself reports leaves it usable. After any other error the program is
// ended.
enum msc_status msc_runtime__fail(struct msc_runtime *r, enum msc_status status,
                                  const char *method);
// Adds an object of numbers by name.
enum msc_status msc_runtime__add_numbers(cJSON *request, const char *key,
                                         const struct msc_binding numbers[], size_t n);
// Reads `runs` and `us` of one measured model or chain.
enum msc_status msc_runtime__read_rounds(struct msc_latency *l, size_t model, const cJSON *item);

#endif
