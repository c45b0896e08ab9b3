// The lines of a report about the search's runtime: its name, and warnings if the winner is not an
// improvement in that runtime. If plans were reranked, "the winner" here means the first of them.
#ifndef MSC_RESULTS_REPORT_RUNTIME_H
#define MSC_RESULTS_REPORT_RUNTIME_H

#include "base/status.h"

#include <stdbool.h>

struct cJSON;
struct msc_str;

// Appends a line on the runtime, and a warning for each of these that holds for the winner:
//  - its loss in the runtime differs from the search's by more than 2 %, by more than three times
//    the noise, and by more than a thousandth of the loss of uniform 8;
//  - it is not better than the uniform plan of 8 bits: its file is no smaller, its loss is not
//    lower by more than the noise, and the quartiles of the rounds do not show a lower latency;
//  - it is better than that plan, but its file is not smaller;
//  - the float model's outputs in the runtime differ from those in the search by more than the same
//    margins;
//  - it is slower than the float model by at least 1 %, and the quartiles of the rounds confirm it.
// Appends nothing if the report has no `runtime`.
enum msc_status msc_report__write_runtime(struct msc_str *out, const struct cJSON *report);
// The least difference at which a loss in a runtime counts as different from the search's. NaN:
// unknown.
double msc_report__loss_margin(double searched_loss, double noise, double eight_loss);
// Appends a line if the float model's outputs in the runtime have a loss above `least`.
void msc_report__write_float(struct msc_str *out, double loss, double least, const char *runtime);
// True if the warning is given that the winner is not better than the uniform plan of 8 bits.
bool msc_report__is_not_better(const struct cJSON *report);

#endif
