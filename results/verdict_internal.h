// Shared by the files that write a verdict.
#ifndef MSC_RESULTS_VERDICT_INTERNAL_H
#define MSC_RESULTS_VERDICT_INTERNAL_H

#include "base/json.h"
#include "base/str.h"
#include "env/api/trial.h"

struct msc_verdict__state {
    const cJSON *report, *config; // config: NULL in records that lack it
    const cJSON *env;             // of the record's header
    const cJSON *plan;            // the row of the delivered plan, or null
    const cJSON *plan_of_search;  // row of the plan without improved weights
    const cJSON *reference;
    const cJSON *eight;    // the uniform plan of 8 bits, or NULL
    const char *objective; // metric of the first objective
    bool is_maximised;
    int n_objectives;
    double n_front;   // number of plans on the front
    bool is_relative; // true: distill_loss is relative to the mean square of the outputs
    cJSON *reasons;
    struct msc_str text; // the sentence being written
};

// ---- Words (verdict_words.c) ------------------------------------------------------------------

const cJSON *msc_verdict__get(const cJSON *object, const char *key);
double msc_verdict__number(const cJSON *object, const char *key); // NaN: not available
double msc_verdict__metric(const cJSON *row, const char *metric); // NaN: not available
bool msc_verdict__is_in_state(const cJSON *row, enum msc_trial_state state);

// Writes a plan's name: "trial 17", "uniform 8".
void msc_verdict__write_plan(struct msc_str *out, const cJSON *row);
// Writes the bounds: "relative size at most 20 %, drop of accuracy at most 1 %".
void msc_verdict__write_bounds(struct msc_str *out, const cJSON *report);
bool msc_verdict__is_broken(const cJSON *report, const cJSON *row); // true if a bound is broken
// Lists each broken bound: "the relative size is 24 %, but must be at most 20 %".
void msc_verdict__write_broken(struct msc_str *out, const cJSON *report, const cJSON *row);
// Adds the sentence in `text` to the reasons.
enum msc_status msc_verdict__end_reason(struct msc_verdict__state *v);

// ---- Reasons (verdict_reasons.c) --------------------------------------------------------------

// True if the plan's outputs hardly resemble the model's.
bool msc_verdict__is_far(const struct msc_verdict__state *v);
// Adds the reasons for or against a plan that meets the bounds.
enum msc_status msc_verdict__add_reasons(struct msc_verdict__state *v);

#endif
