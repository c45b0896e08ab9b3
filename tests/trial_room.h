// A trial with its own memory, for tests that fill in a trial by hand.
#ifndef MSC_TESTS_TRIAL_ROOM_H
#define MSC_TESTS_TRIAL_ROOM_H

#include "env/api/trial.h"

#include <math.h>
#include <string.h>

struct trial_room {
    struct msc_trial trial;
    uint32_t choices[256];
    double metrics[MSC_MAX_METRICS];
    char reason[MSC_REASON_BYTES];
};

// Makes a trial with these choices (at most 256), without a parent or bound and with nothing
// measured. The trial is stored in `room`.
static inline struct msc_trial *trial_make(struct trial_room *room, int64_t id,
                                           const uint32_t choices[], size_t n_tasks) {
    memset(room, 0, sizeof *room);
    if (n_tasks > 0) {
        memcpy(room->choices, choices, n_tasks * sizeof *choices);
    }
    for (size_t i = 0; i < MSC_MAX_METRICS; i++) {
        room->metrics[i] = NAN;
    }
    room->trial = (struct msc_trial){
        .id = id,
        .proposal = {.choices = room->choices, .parent = -1, .bound = INFINITY},
        .outcome = {.metrics = room->metrics, .reason = room->reason},
    };
    return &room->trial;
}

#endif
