// If the budget ends before an agent has observed all trials that its final plan needs, the agent
// assembles the plan early from what it has observed, and the plan is the last trial of the budget.
// This trial does not affect the sequence of proposals: it is marked, the agent never observes it,
// it answers no proposal, and it does not count if a longer budget continues the search.
#include "search/search_internal.h"

#include <math.h>

// The number of trials that the budget still allows.
static int64_t trials_left(const struct msc_search *s) {
    int64_t limit = s->options->budget.trials;
    return limit < 0 ? INT64_MAX : limit - (int64_t)s->n_budgeted;
}

int64_t msc_search__trials_allowed(const struct msc_search *s, size_t n_open) {
    int64_t n = trials_left(s);
    if (n == INT64_MAX || !msc_agent_can_assemble(s->agent)) {
        return n;
    }
    bool is_late = msc_agent_left(s->agent).n_plan + (double)n_open > (double)n;
    return is_late ? n - 1 : n;
}

// True if the record ends with an early plan, unless the plan is to be retried.
static bool is_assembled(const struct msc_search *s) {
    if (!s->ends_assembled) {
        return false;
    }
    size_t last = msc_record_n_trials(s->record) - 1;
    const struct msc_record_line line = msc_record_trial(s->record, last);
    return !s->options->retry_failed || !msc_search__may_succeed_later(&line.trial.outcome);
}

// Lets the agent make its plan, and evaluates the plan. Before that, the agent observes the
// evaluated part of an incomplete round. This is safe, because the agent will not be asked again.
static enum msc_status evaluate_plan(struct msc_search *s) {
    struct msc_proposal plan = {.choices = s->choices};
    MSC_TRY(msc_search__tell(s, s->n_written));
    if (!msc_agent_can_assemble(s->agent)) {
        return MSC_OK; // with these observations, the agent could complete its plan
    }
    s->n_items = s->n_extra = s->n_written = s->n_told = 0;
    s->next_id = s->round_first = (int64_t)msc_record_n_trials(s->record);
    msc_arena_reset(&s->arena);
    MSC_TRY(msc_agent_assemble(s->agent, &plan));
    MSC_TRY(msc_search__add_assembled(s, &plan));
    msc_log(s->options->log, MSC_LOG_INFO,
            "%s: the budget ends before %s has observed enough for its plan; trial %lld is a plan "
            "from its observations so far",
            s->options->record_path, msc_agent_definition(s->agent)->name,
            (long long)s->round_first);
    return msc_search__evaluate(s, NULL);
}

enum msc_status msc_search__assemble(struct msc_search *s, enum msc_search_end end) {
    bool is_short = end == MSC_SEARCH_END_TRIALS || end == MSC_SEARCH_END_TIME;
    return is_short && trials_left(s) > 0 && msc_agent_can_assemble(s->agent) && !is_assembled(s)
               ? evaluate_plan(s)
               : MSC_OK;
}
