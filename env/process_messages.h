// JSON messages for environments that are programs: writes requests and reads answers
// (docs/environments.md).
#ifndef MSC_ENV_PROCESS_MESSAGES_H
#define MSC_ENV_PROCESS_MESSAGES_H

#include "base/alloc.h"
#include "env/api/env.h"

struct cJSON;
struct msc_str;

// The answer to init.
struct msc_process_env {
    int64_t version; // changes when the program's results change; 0 by default
    struct msc_space space;
    double reference[MSC_MAX_METRICS]; // NaN: unknown
};

// Everything is allocated in the arena. MSC_E_FORMAT, MSC_E_INVALID: the message names the place,
// such as "tasks[1].choices".
enum msc_status msc_process_read_space(struct msc_process_env *out, const struct cJSON *answer,
                                       struct msc_arena *arena);

// Appends the request that evaluates `n` trials: those of `e` at `places`.
void msc_process_write_evaluate(struct msc_str *out, const struct msc_space *space,
                                const struct msc_evaluation *e, const size_t places[], size_t n);

// Reads one line of the answer and fills the outcome of the trial e->trials[places[*index]]. It is
// an error if is_done [n] already marks that trial.
enum msc_status msc_process_read_outcome(size_t *index, const struct cJSON *answer,
                                         const struct msc_space *space,
                                         const struct msc_evaluation *e, const size_t places[],
                                         const bool is_done[], size_t n);

#endif
