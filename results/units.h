// Names of metrics for people, and their values with units.
#ifndef MSC_RESULTS_UNITS_H
#define MSC_RESULTS_UNITS_H

#include "base/str.h"

struct cJSON;

// Appends the name of a column of a report: "Accuracy (held-back samples)" for
// "validation.accuracy". A metric that has no such name keeps its own.
void msc_unit_name(struct msc_str *out, const char *column);
// Appends the name as it stands in a sentence: "size of the weights" for "size_bytes". A metric
// that has no such name keeps its own, made safe to show (base/shown.h).
void msc_unit_phrase(struct msc_str *out, const char *column);
// Appends a value with its unit: "19.3 %", "11.8 KB", "13.8 µs"; a dash for NaN.
void msc_unit_value(struct msc_str *out, const char *column, double value);
// The same with a number of significant digits, for limits that people have set.
void msc_unit_digits(struct msc_str *out, const char *column, double value, int digits);
// False: values of the metric are plain numbers.
bool msc_unit_has(const char *column);
// Adds two objects by metric: `names` of all metrics that have one, and the `units` of those that
// have one ("share", "bytes", "us", "count").
enum msc_status msc_unit_describe(struct cJSON *object);
// The metric of a column: "accuracy" of "runtime.validation.accuracy". Borrowed from `column`.
const char *msc_unit_metric(const char *column);

#endif
