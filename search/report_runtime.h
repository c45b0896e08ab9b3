// What a report says in words of the runtime that a search is for: what it is, and where the winner is
// not worth its name there. The winner is the first of those that were reranked, where some were.
#ifndef MSC_SEARCH_REPORT_RUNTIME_H
#define MSC_SEARCH_REPORT_RUNTIME_H

#include "base/status.h"

#include <stdbool.h>

struct cJSON;
struct msc_str;

// Appends a line on the runtime, and one for each of these, of the winner:
//   its loss there is not what the search has measured, beyond 2 %, three times the noise, and a
//   thousandth of what uniform 8 loses;
//   it is not better than the uniform plan of 8 bits: its file is no smaller, and neither its loss, by
//   more than the noise, nor its latency, by the quartiles of the rounds, is lower;
//   or that alone: its file is no smaller;
//   the float model's outputs there are not those that the search has measured by, beyond the same;
//   it is slower than the float model, by the quartiles of the rounds and 1 % at least.
// Nothing where the report has no `runtime`.
enum msc_status msc_report__write_runtime(struct msc_str *out, const struct cJSON *report);
// How far a loss in a runtime may be from that of the search before it is another loss. NaN: not
// known.
double msc_report__loss_margin(double searched_loss, double noise, double eight_loss);
// A line where the outputs of the float model in the runtime have a loss of more than `least`.
void msc_report__write_float(struct msc_str *out, double loss, double least, const char *runtime);
// Whether the second of these is said.
bool msc_report__is_not_better(const struct cJSON *report);

// The text of a member; "" where it is none. Files beside a record may hold anything. Borrowed.
const char *msc_report__text(const struct cJSON *object, const char *key);
// The row of the plan that is delivered: that with better weights, the first of those that were reranked, else
// the winner, which may be null. Borrowed.
const struct cJSON *msc_report__find_delivered(const struct cJSON *report);
// Whether that is of another trial than the winner.
bool msc_report__is_another(const struct cJSON *report);
// The row of the uniform plan of 8 bits, or NULL. Borrowed.
const struct cJSON *msc_report__find_uniform_8(const struct cJSON *report);

#endif
