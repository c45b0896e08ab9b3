// What the parts of a verdict share.
#ifndef MSC_REPORT_VERDICT_INTERNAL_H
#define MSC_REPORT_VERDICT_INTERNAL_H

#include "base/json.h"
#include "base/str.h"
#include "env/api/trial.h"

struct msc_verdict__state {
    const cJSON *report, *config; // config: NULL in records that lack it
    const cJSON *plan;            // the row of what is delivered, or null
    const cJSON
        *plan_of_search; // as the search found it; the same row, unless its weights are better now
    const cJSON *reference;
    const cJSON *eight;    // the uniform plan of 8 bits, or NULL
    const char *objective; // the first one's metric
    bool is_maximised;
    int n_objectives;
    double n_front;   // plans of the front
    bool is_relative; // distill_loss is a mean square over that of the outputs
    cJSON *reasons;
    struct msc_str text; // the sentence being written
};

// ---- Words (verdict_words.c) ------------------------------------------------------------------

const cJSON *msc_verdict__get(const cJSON *object, const char *key);
double msc_verdict__number(const cJSON *object, const char *key); // NaN: there is none
double msc_verdict__metric(const cJSON *row, const char *metric); // likewise
bool msc_verdict__is_in_state(const cJSON *row, enum msc_trial_state state);

// "trial 17", "uniform 8".
void msc_verdict__write_plan(struct msc_str *out, const cJSON *row);
// To four digits, whole numbers whole.
void msc_verdict__write_number(struct msc_str *out, double value);
// "size_ratio at most 0.2, macs_ratio at most 0.4"
void msc_verdict__write_bounds(struct msc_str *out, const cJSON *report);
bool msc_verdict__is_broken(const cJSON *report, const cJSON *row); // is any of them?
// "size_ratio is 0.24, allowed is at most 0.2" of each that is broken.
void msc_verdict__write_broken(struct msc_str *out, const cJSON *report, const cJSON *row);
// The sentence becomes a reason.
enum msc_status msc_verdict__end_reason(struct msc_verdict__state *v);

// ---- Reasons (verdict_reasons.c) --------------------------------------------------------------

// Have its outputs little to do with the model's?
bool msc_verdict__is_far(const struct msc_verdict__state *v);
// Why a plan that meets the bounds is what it is.
enum msc_status msc_verdict__add_reasons(struct msc_verdict__state *v);

#endif
