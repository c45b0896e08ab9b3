#include "results/report_drop.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "env/api/drop.h"
#include "results/report_rows.h"
#include "results/report_table.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool msc_report__read_drop(struct msc_report_drop *out, const struct cJSON *bound) {
    bool is_drop = cJSON_IsNumber(msc_json_get(bound, "drop"));
    double min = msc_json_number_of(bound, "min");
    *out = (struct msc_report_drop){
        .metric = msc_report__text(bound, "metric"),
        .is_maximised = !isnan(min),
        .is_relative = cJSON_IsTrue(msc_json_get(bound, "relative")),
        .most = msc_json_number_of(bound, "drop"),
        .reference = msc_json_number_of(bound, "float"),
        .limit = isnan(min) ? msc_json_number_of(bound, "max") : min,
    };
    snprintf(out->name, sizeof out->name, "%.60s%s", out->metric,
             out->is_relative ? MSC_DROP_RATIO_SUFFIX : MSC_DROP_SUFFIX);
    return is_drop;
}

bool msc_report__find_drop(struct msc_report_drop *out, const struct cJSON *report,
                           const char *name) {
    const cJSON *bound = NULL;
    cJSON_ArrayForEach(bound, msc_json_get(report, "bounds")) {
        if (msc_report__read_drop(out, bound) && strcmp(out->name, name) == 0) {
            return true;
        }
    }
    return false;
}

double msc_report__drop_of(const struct msc_report_drop *drop, const struct cJSON *metrics) {
    return msc_drop_of(msc_json_number_of(metrics, drop->metric), drop->reference,
                       drop->is_maximised, drop->is_relative);
}

bool msc_report__is_over(const struct msc_report_drop *drop, double value) {
    return value > drop->most + fabs(drop->limit) * 1e-11;
}

// Writes a drop and, if `of` has it, its standard error. `whole` is the float model's value on the
// same samples.
static void write_value(struct msc_str *out, const struct msc_report_drop *drop, double value,
                        const cJSON *of, double whole) {
    char name[sizeof drop->name + 8];
    snprintf(name, sizeof name, "%.60s%s", drop->metric, MSC_DROP_ERROR_SUFFIX);
    double error = msc_json_number_of(of, name);
    msc_unit_value(out, drop->name, fabs(value) < 1e-12 ? 0.0 : value);
    if (!isnan(error)) {
        msc_str_append(out, " (standard error ");
        msc_unit_digits(out, drop->name, drop->is_relative ? error / fabs(whole) : error, 2);
        msc_str_char(out, ')');
    }
}

bool msc_report__write_held_out(struct msc_str *out, const struct msc_report_drop *drop,
                                const struct cJSON *row) {
    const cJSON *of = msc_json_get(msc_json_get(row, "examined"), "validation");
    char name[sizeof drop->name + 8];
    snprintf(name, sizeof name, "float_%.60s", drop->metric);
    double whole = msc_json_number_of(of, name);
    double value = msc_drop_of(msc_json_number_of(of, drop->metric), whole, drop->is_maximised,
                               drop->is_relative);
    if (isnan(value)) {
        return false;
    }
    write_value(out, drop, value, of, whole);
    msc_str_printf(out, " on %.0f validation samples%s", msc_json_number_of(of, "samples"),
                   msc_report__is_over(drop, value) ? ", which is more than the bound" : "");
    return true;
}

// The trials that are left out because their drop on the validation samples is more than the bound.
struct left_out {
    int n;
    double least; // least drop of them
    double id;    // trial of the least drop
};

static struct left_out find_left_out(const cJSON *report, const struct msc_report_drop *drop) {
    struct left_out found = {.least = INFINITY};
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, msc_json_get(report, "left_out")) {
        double value = msc_json_number_of(row, "drop");
        if (strcmp(msc_report__text(row, "metric"), drop->name) == 0 && !isnan(value)) {
            found.n++;
            found.id = value < found.least ? msc_json_number_of(row, "id") : found.id;
            found.least = fmin(found.least, value);
        }
    }
    return found;
}

bool msc_report__has_held_out(const struct cJSON *report) {
    const cJSON *row = NULL;
    bool has = false;
    cJSON_ArrayForEach(row, msc_json_get(report, "left_out")) {
        has = has || msc_json_get(row, "held_out");
    }
    return has;
}

static void write_least(struct msc_str *out, const struct msc_report_drop *drop, double value,
                        const struct left_out *held_out, const cJSON *row) {
    if (held_out->n > 0) {
        msc_str_printf(out,
                       " is allowed; %d %s it on the samples of the search but not on the "
                       "validation samples, where the least is ",
                       held_out->n, held_out->n == 1 ? "trial keeps" : "trials keep");
        msc_unit_value(out, drop->name, held_out->least);
        msc_str_printf(out, ", by trial %.0f", held_out->id);
    } else {
        char name[MSC_REPORT_CELL_BYTES];
        msc_report_name_row(name, row);
        msc_str_append(out, " is allowed, the least reached is ");
        msc_unit_value(out, drop->name, value);
        msc_str_printf(out, ", by %.*s", (int)strcspn(name, ","), name);
    }
}

static void write_most(struct msc_str *out, const struct msc_report_drop *drop) {
    enum { DIGITS = 6 }; // as people give them
    msc_str_append(out, "at most ");
    msc_unit_digits(out, drop->name, drop->most, DIGITS);
}

static void write_drop(struct msc_str *out, const struct msc_report_drop *drop, const cJSON *report,
                       const cJSON *row) {
    const cJSON *metrics = msc_json_get(row, "metrics");
    double value = msc_report__drop_of(drop, metrics);
    const struct left_out held_out = find_left_out(report, drop);
    if (isnan(value) && held_out.n == 0) {
        return;
    }
    msc_shown_append(out, drop->name);
    msc_str_append(out, ": ");
    write_most(out, drop);
    if (strcmp(msc_report__text(row, "state"), "complete") != 0) {
        write_least(out, drop, value, &held_out, row);
    } else {
        bool is_own = !msc_json_get(report, "delivered");
        msc_str_append(out, " is allowed; it is ");
        write_value(out, drop, value, is_own ? msc_json_get(row, "examined") : NULL,
                    drop->reference);
        msc_str_append(out, " on the samples of the search");
        struct msc_str there = {0};
        if (msc_report__write_held_out(&there, drop, row)) {
            msc_str_printf(out, ", %s", msc_str_text(&there));
        }
        out->failed |= there.failed;
        msc_str_finish(&there);
        if (held_out.n > 0) {
            msc_str_printf(out, "; %d better %s left out, as the drop there is more", held_out.n,
                           held_out.n == 1 ? "trial is" : "trials are");
        }
    }
    msc_str_char(out, '\n');
}

void msc_report__write_drops(struct msc_str *out, const struct cJSON *report) {
    const cJSON *row = msc_report__find_delivered(report);
    const cJSON *bound = NULL;
    cJSON_ArrayForEach(bound, msc_json_get(report, "bounds")) {
        struct msc_report_drop drop;
        if (msc_report__read_drop(&drop, bound)) {
            write_drop(out, &drop, report, row);
        }
    }
}
