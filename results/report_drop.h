// Bounds of a report that are drops from the float model (env/api/drop.h): their names, the drops
// of plans, and the lines about them. Reports keep a bound as the record's header has it.
//
//     struct msc_report_drop drop;
//     if (msc_report__read_drop(&drop, bound)) { ... msc_report__drop_of(&drop, metrics) ... }
#ifndef MSC_RESULTS_REPORT_DROP_H
#define MSC_RESULTS_REPORT_DROP_H

#include <stdbool.h>

struct cJSON;
struct msc_str;

struct msc_report_drop {
    const char *metric; // borrowed from the bound
    bool is_maximised, is_relative;
    double most;      // the greatest drop allowed
    double reference; // the float model's value
    double limit;     // the limit of the metric
    char name[80];    // "accuracy_drop" or "accuracy_drop_ratio"
};

// False if the bound is not a drop.
bool msc_report__read_drop(struct msc_report_drop *out, const struct cJSON *bound);
// The bound whose drop has this name. False if there is none.
bool msc_report__find_drop(struct msc_report_drop *out, const struct cJSON *report,
                           const char *name);
// The drop of a plan with these metrics; NaN: the metric is not known.
double msc_report__drop_of(const struct msc_report_drop *drop, const struct cJSON *metrics);
// Whether a drop is more than the bound allows.
bool msc_report__is_over(const struct msc_report_drop *drop, double value);
// Whether trials are left out because they break a bound by drop on the validation samples.
bool msc_report__has_held_out(const struct cJSON *report);
// For each bound by drop, writes a line: by how much the delivered plan's metric drops on the
// samples of the search and on the validation samples, with standard errors, or the least drop if
// no trial meets the bounds.
void msc_report__write_drops(struct msc_str *out, const struct cJSON *report);
// Writes what the line says of the validation samples, such as "0.0019 (standard error 0.0032) on
// 540 validation samples, which is more than the bound". False if the drop was not measured on
// them.
bool msc_report__write_held_out(struct msc_str *out, const struct msc_report_drop *drop,
                                const struct cJSON *row);

#endif
