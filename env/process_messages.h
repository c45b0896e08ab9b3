// The JSON of environments that are programs: what they answer (docs/environments.md).
#ifndef MSC_ENV_PROCESS_MESSAGES_H
#define MSC_ENV_PROCESS_MESSAGES_H

#include "base/alloc.h"
#include "env/api/env.h"

struct cJSON;
struct msc_str;

// What the answer to init says.
struct msc_process_env {
    int64_t version; // of what it measures, 0 where it does not say
    struct msc_space space;
    double reference[MSC_MAX_METRICS]; // NaN: not known
};

// Everything lies in the arena. MSC_E_FORMAT and MSC_E_INVALID name the place: "tasks[1].choices".
enum msc_status msc_process_read_space(struct msc_process_env *out, const struct cJSON *answer,
                                       struct msc_arena *arena);

// Appends the request that evaluates `n` trials: those of `e` at `places`.
void msc_process_write_evaluate(struct msc_str *out, const struct msc_space *space,
                                const struct msc_evaluation *e, const size_t places[], size_t n);

// Reads one line of what answers it. *index, below `n`: which of the trials it is of, whose outcome is
// filled; one that `is_done` [n] has already is an error.
enum msc_status msc_process_read_outcome(size_t *index, const struct cJSON *answer,
                                         const struct msc_space *space,
                                         const struct msc_evaluation *e, const size_t places[],
                                         const bool is_done[], size_t n);

#endif
