#include "records/record_front.h"

#include "base/alloc.h"

#include <string.h>

// At least this many outcomes are collected before the front is recomputed.
#define LEAST_GATHERED 1024

enum msc_status msc_record_front_offer(struct msc_record_front *front,
                                       const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    if (line->repeat_of >= 0 || line->is_left_out || outcome->state != MSC_TRIAL_COMPLETE) {
        return MSC_OK;
    }
    if (front->n_objectives == 1 && front->n > 0) {
        if (outcome->objectives[0] >= front->outcomes[0].objectives[0]) {
            return MSC_OK;
        }
        front->n = 0;
    }
    if (front->n >= LEAST_GATHERED && front->n >= 2 * front->n_settled) {
        MSC_TRY(msc_record_front_settle(front));
    }
    if (front->n == front->capacity) {
        size_t ids_capacity = front->capacity;
        MSC_TRY(msc_grow(&front->ids, &ids_capacity, front->n + 1, sizeof *front->ids));
        MSC_TRY(
            msc_grow(&front->outcomes, &front->capacity, ids_capacity, sizeof *front->outcomes));
    }
    front->ids[front->n] = line->trial.id;
    front->outcomes[front->n] = *outcome;
    front->outcomes[front->n].metrics = NULL;
    front->outcomes[front->n++].reason = NULL;
    return MSC_OK;
}

enum msc_status msc_record_front_settle(struct msc_record_front *front) {
    const size_t n = front->n;
    if (n == front->n_settled) {
        return MSC_OK; // nothing was added since the last call
    }
    struct msc_arena arena = {0};
    const struct msc_outcome **outcomes = msc_arena_array(&arena, n + 1, sizeof *outcomes);
    size_t *kept = msc_arena_array(&arena, n + 1, sizeof *kept);
    int64_t *ids = msc_arena_array(&arena, n + 1, sizeof *ids);
    struct msc_outcome *copies = msc_arena_array(&arena, n + 1, sizeof *copies);
    if (!outcomes || !kept || !ids || !copies) {
        msc_arena_finish(&arena);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = &front->outcomes[i];
    }
    front->n = msc_pareto_front(kept, outcomes, n, front->n_objectives);
    for (size_t i = 0; i < front->n; i++) {
        ids[i] = front->ids[kept[i]];
        copies[i] = front->outcomes[kept[i]];
    }
    if (front->n > 0) {
        memcpy(front->ids, ids, front->n * sizeof *ids);
        memcpy(front->outcomes, copies, front->n * sizeof *copies);
    }
    front->n_settled = front->n;
    msc_arena_finish(&arena);
    return MSC_OK;
}

void msc_record_front_finish(struct msc_record_front *front) {
    msc_free(front->ids);
    msc_free(front->outcomes);
    *front = (struct msc_record_front){.n_objectives = front->n_objectives};
}
