// Runs a round as a race: its trials are evaluated together up to the next rung. There, trials that
// cannot become the best of all, or are not among the best of the round, are eliminated
// (records/race.h). Elimination depends only on losses at rungs, which the lines of this and
// earlier rounds store. An interrupted round therefore continues identically, however much of it is
// recorded.
//
// A trial whose exact costs break a bound (a probe) cannot win and must not displace a trial that
// can. Probes are therefore compared only with each other.
#include "search/search_internal.h"

#include "base/alloc.h"
#include "records/race.h"

enum msc_status msc_search__open_race(struct msc_search *s) {
    const struct msc_search_options *o = s->options;
    if (!o->race || o->race->n_rungs == 0) {
        return MSC_OK;
    }
    size_t n_batches = msc_env_n_batches(o->env);
    if (o->race->rungs[o->race->n_rungs - 1] >= n_batches ||
        !msc_goal_takes_bound(o->goal, s->space)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "a race needs batches after its last rung, and distill_loss as "
                        "the only objective");
    }
    s->race = *o->race;
    s->n_terms = msc_env_n_terms(o->env);
    s->batch_terms = msc_alloc_zero(MSC_ATTEMPT_MAX_TRIALS, sizeof *s->batch_terms);
    s->places = msc_alloc_zero(o->parallel, sizeof *s->places);
    s->sums = msc_alloc_zero(o->parallel, sizeof *s->sums);
    s->part = (struct msc_env_part){.end = n_batches, .terms = s->batch_terms};
    return MSC_ALLOCATED(s->batch_terms && s->places && s->sums);
}

// ---- Rungs ------------------------------------------------------------------------------------

// True if the item takes part in the race. Retries are measured in full, and repeats not at all.
static bool is_runner(const struct msc_search_item *item) {
    return item->line.repeat_of < 0 && item->line.retry_of < 0;
}

static bool can_win(const struct msc_search *s, const struct msc_search_item *item) {
    return msc_goal_exact_violation(s->goal, s->space, item->line.trial.proposal.choices) <= 0.0;
}

// True if `a` has a smaller loss than `b` at the rung. The first item wins a tie.
static bool is_ahead(const struct msc_search *s, size_t a, size_t b, size_t rung) {
    double x = s->items[a].line.rungs[rung], y = s->items[b].line.rungs[rung];
    return x < y || (x == y && a < b);
}

// Inserts the index of an item into the sorted list `places` [n].
static void insert_place(struct msc_search *s, size_t n, size_t place, size_t rung) {
    while (n > 0 && is_ahead(s, place, s->places[n - 1], rung)) {
        s->places[n] = s->places[n - 1];
        n--;
    }
    s->places[n] = place;
}

// Eliminates trials at a rung, either among those that can win or among the probes.
static void compare_at(struct msc_search *s, size_t rung, bool winners) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_items; i++) {
        const struct msc_search_item *item = &s->items[i];
        if (is_runner(item) && item->line.n_rungs > rung && can_win(s, item) == winners) {
            insert_place(s, n++, i, rung);
        }
    }
    for (size_t i = 0; i < n; i++) {
        s->sums[i] = s->items[s->places[i]].line.rungs[rung];
    }
    size_t n_going = msc_race_going(&s->race, &s->known_before, rung, s->sums, n, winners);
    for (size_t i = n_going; i < n; i++) {
        s->items[s->places[i]].is_racing = false;
    }
}

// Ends the race for items that did not reach the rung or are eliminated there.
static void leave_rung(struct msc_search *s, size_t rung) {
    for (size_t i = 0; i < s->n_items; i++) {
        struct msc_search_item *item = &s->items[i];
        item->is_racing = item->is_racing && item->line.n_rungs > rung;
    }
    compare_at(s, rung, true);
    compare_at(s, rung, false);
}

static void open_racing(struct msc_search *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        s->items[i].is_done = s->items[i].is_done && !s->items[i].is_racing;
    }
}

enum msc_status msc_search__run_race(struct msc_search *s, bool *is_over) {
    size_t n_batches = msc_env_n_batches(s->options->env);
    for (size_t i = 0; i < s->n_items; i++) {
        s->items[i].is_racing = is_runner(&s->items[i]) && !s->items[i].is_done;
    }
    for (size_t rung = 0; rung < s->race.n_rungs && !*is_over; rung++) {
        s->part.first = rung > 0 ? s->race.rungs[rung - 1] : 0;
        s->part.end = s->race.rungs[rung];
        open_racing(s, s->n_items);
        MSC_TRY(msc_search__evaluate(s, is_over));
        if (!*is_over) {
            leave_rung(s, rung);
        }
    }
    s->part.first = s->race.rungs[s->race.n_rungs - 1];
    s->part.end = n_batches;
    open_racing(s, s->n_items - s->n_extra);
    for (size_t i = 0; i < s->n_items && !*is_over; i++) {
        s->items[i].is_racing = false;
    }
    enum msc_status status = *is_over ? MSC_OK : msc_search__evaluate(s, is_over);
    s->part.first = 0;
    return status;
}
