// Members of a report, and the rows of its plans.
#ifndef MSC_RESULTS_REPORT_ROWS_H
#define MSC_RESULTS_REPORT_ROWS_H

#include <stdbool.h>

struct cJSON;

// A string member, or "" if it is missing or not a string: files next to a record may hold
// anything. Borrowed.
const char *msc_report__text(const struct cJSON *object, const char *key);
// The row of the delivered plan: the plan with improved weights, else the first reranked plan, else
// the winner, which may be null. Borrowed.
const struct cJSON *msc_report__find_delivered(const struct cJSON *report);
// True if the delivered plan belongs to another trial than the winner.
bool msc_report__is_another(const struct cJSON *report);
// The row of the uniform plan of 8 bits, or NULL. Borrowed.
const struct cJSON *msc_report__find_uniform_8(const struct cJSON *report);

#endif
