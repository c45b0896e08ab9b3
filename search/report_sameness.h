// What a report's `sameness` means: that samples, or the outputs on them, are all the same, or those for
// validation the same as those for calibration. pipeline/sameness.h finds it, records keep it in their headers.
#ifndef MSC_SEARCH_REPORT_SAMENESS_H
#define MSC_SEARCH_REPORT_SAMENESS_H

#include "base/str.h"

#include <stdbool.h>

struct cJSON;

// Do the losses say nothing, whatever they are?
bool msc_report__is_blind(const struct cJSON *report);
// Appends sentences, each a line, that begin small and have no stop.
void msc_report__write_sameness(struct msc_str *out, const struct cJSON *report);

#endif
