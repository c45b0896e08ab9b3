// Names of metrics for people, and their values with units, for pages.
#ifndef MSC_REPORT_UNITS_H
#define MSC_REPORT_UNITS_H

#include "base/str.h"

struct cJSON;

// Appends the name of a column of a report: "Accuracy (held-back samples)" for
// "validation.accuracy". A metric that has no such name keeps its own.
void msc_unit_name(struct msc_str *out, const char *column);
// Appends a value with its unit: "19.3 %", "11.8 KB", "13.8 µs"; a dash for NaN.
void msc_unit_value(struct msc_str *out, const char *column, double value);
// Adds the names of all metrics that have one, by metric.
enum msc_status msc_unit_names(struct cJSON *object);
// The metric of a column: "accuracy" of "runtime.validation.accuracy". Borrowed from `column`.
const char *msc_unit_metric(const char *column);

#endif
