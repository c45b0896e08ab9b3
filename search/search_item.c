// The lines of a round: which of them need an evaluation and which are repeats.
#include "search/search_internal.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

enum msc_status msc_search__reserve(struct msc_search *s) {
    return msc_grow(&s->items, &s->items_capacity, s->n_items + 1, sizeof *s->items);
}

// An earlier trial that may answer a proposal for the same point.
struct answer {
    bool is_pruned;
    bool is_pending; // of the same round: only what was asked counts, not what came out
    bool is_probed;  // measured even where costs break a bound
    double bound;
};

static struct answer answer_of(const struct msc_search *s, int64_t id) {
    if (id >= s->round_first) {
        const struct msc_search_item *item = &s->items[id - s->round_first];
        return (struct answer){
            .is_pending = true,
            .is_probed = item->trial.probe,
            .bound = item->trial.bound,
        };
    }
    const struct msc_record_trial *trial = msc_record_trial(s->record, (size_t)id);
    return (struct answer){
        .is_pruned = trial->state == MSC_TRIAL_PRUNED,
        .is_probed = trial->probe || trial->baseline >= 0,
        .bound = trial->bound,
    };
}

// A result that was cut short answers only the same or a tighter bound. Within a round the bounds
// alone decide, so that a round that was interrupted goes on as it would have.
static bool does_answer(const struct msc_search *s, int64_t id, const struct msc_trial *trial) {
    struct answer answer = answer_of(s, id);
    if ((answer.is_pruned || answer.is_pending) && trial->bound > answer.bound) {
        return false;
    }
    return !trial->probe || answer.is_probed ||
           msc_goal_exact_violation(s->goal, s->space, trial->choices) <= 0.0;
}

static enum msc_status push(struct msc_search *s, const struct msc_search_item *item,
                            struct msc_hash hash) {
    MSC_TRY(msc_search__reserve(s));
    s->items[s->n_items++] = *item;
    s->next_id++;
    return item->repeat_of < 0 ? msc_points_set(&s->points, hash, item->trial.id) : MSC_OK;
}

enum msc_status msc_search__add_recorded(struct msc_search *s) {
    const struct msc_record_trial *line = msc_record_trial(s->record, (size_t)s->next_id);
    struct msc_search_item item = {
        .trial = msc_record_as_trial(line),
        .repeat_of = line->repeat_of,
        .retry_of = line->retry_of,
        .baseline = line->baseline,
        .is_done = true,
        .is_recorded = true,
    };
    msc_record_as_outcome(&item.outcome, s->record, line);
    return push(s, &item, msc_point_hash(line->choices, s->space->n_tasks));
}

enum msc_status msc_search__add_new(struct msc_search *s, const struct msc_search_item *item) {
    struct msc_search_item copy = *item;
    assert(copy.trial.id == s->next_id);
    struct msc_hash hash = msc_point_hash(copy.trial.choices, s->space->n_tasks);
    copy.repeat_of = -1;
    if (copy.retry_of < 0) {
        int64_t earlier = msc_points_find(&s->points, hash);
        copy.repeat_of = earlier >= 0 && does_answer(s, earlier, &copy.trial) ? earlier : -1;
    }
    return push(s, &copy, hash);
}
