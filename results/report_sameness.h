// Explains a report's `sameness`: all samples are the same, all outputs are the same, or the
// validation samples equal the calibration samples. model/sameness.h finds these facts, and a
// record's header stores them.
#ifndef MSC_RESULTS_REPORT_SAMENESS_H
#define MSC_RESULTS_REPORT_SAMENESS_H

#include "base/str.h"

#include <stdbool.h>

struct cJSON;

// True if every loss is meaningless.
bool msc_report__is_blind(const struct cJSON *report);
// Appends sentences, one per line, in lower case and without a full stop.
void msc_report__write_sameness(struct msc_str *out, const struct cJSON *report);

#endif
