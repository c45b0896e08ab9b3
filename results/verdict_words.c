// Writes plans, numbers and bounds for a verdict.
#include "results/verdict_internal.h"

#include "base/shown.h"
#include "env/api/space.h"
#include "results/report_drop.h"
#include "results/units.h"

#include <math.h>
#include <string.h>

const cJSON *msc_verdict__get(const cJSON *object, const char *key) {
    return msc_json_get(object, key);
}

double msc_verdict__number(const cJSON *object, const char *key) {
    const cJSON *item = msc_verdict__get(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

double msc_verdict__metric(const cJSON *row, const char *metric) {
    return msc_verdict__number(msc_verdict__get(row, "metrics"), metric);
}

bool msc_verdict__is_in_state(const cJSON *row, enum msc_trial_state state) {
    const cJSON *text = msc_verdict__get(row, "state");
    return cJSON_IsString(text) && strcmp(text->valuestring, msc_trial_state_name(state)) == 0;
}

void msc_verdict__write_plan(struct msc_str *out, const cJSON *row) {
    const cJSON *label = msc_verdict__get(row, "label");
    if (cJSON_IsString(label)) {
        msc_str_append(out, msc_baseline_kind(label->valuestring));
        msc_shown_append(out, label->valuestring);
    } else {
        msc_str_printf(out, "trial %.0f", msc_verdict__number(row, "id"));
    }
    if (msc_verdict__get(row, "distilled")) {
        msc_str_append(out, " with better weights");
    }
}

enum msc_status msc_verdict__end_reason(struct msc_verdict__state *v) {
    MSC_TRY(msc_str_status(&v->text));
    MSC_TRY(msc_json_push(v->reasons, cJSON_CreateString(msc_str_text(&v->text))));
    msc_str_clear(&v->text);
    return MSC_OK;
}

// ---- Bounds -----------------------------------------------------------------------------------

// The name of the number that the bound limits: a metric or its drop.
static const char *bounded_name(struct msc_report_drop *drop, const cJSON *bound) {
    bool is_drop = msc_report__read_drop(drop, bound);
    return is_drop ? drop->name : drop->metric;
}

// Limits have as many digits as people give them.
static void write_limit(struct msc_str *out, const cJSON *bound) {
    enum { DIGITS = 6 };
    struct msc_report_drop drop;
    const char *name = bounded_name(&drop, bound);
    const cJSON *min = msc_verdict__get(bound, "min"), *max = msc_verdict__get(bound, "max");
    if (!isnan(drop.most)) {
        msc_str_append(out, "at most ");
        msc_unit_digits(out, name, drop.most, DIGITS);
        return;
    }
    if (max) {
        msc_str_append(out, "at most ");
        msc_unit_digits(out, name, max->valuedouble, DIGITS);
    }
    if (min) {
        msc_str_append(out, max ? " and at least " : "at least ");
        msc_unit_digits(out, name, min->valuedouble, DIGITS);
    }
}

void msc_verdict__write_bounds(struct msc_str *out, const cJSON *report) {
    const cJSON *bound = NULL;
    const char *before = "";
    cJSON_ArrayForEach(bound, msc_verdict__get(report, "bounds")) {
        struct msc_report_drop drop;
        msc_str_append(out, before);
        msc_unit_phrase(out, bounded_name(&drop, bound));
        msc_str_char(out, ' ');
        write_limit(out, bound);
        before = ", ";
    }
}

static bool breaks(double value, const cJSON *bound) {
    return value > msc_verdict__number(bound, "max") || value < msc_verdict__number(bound, "min");
}

// The row's value of the bounded metric.
static double bounded_of(const cJSON *row, const cJSON *bound) {
    return msc_verdict__metric(row, msc_verdict__get(bound, "metric")->valuestring);
}

bool msc_verdict__is_broken(const cJSON *report, const cJSON *row) {
    const cJSON *bound = NULL;
    cJSON_ArrayForEach(bound, msc_verdict__get(report, "bounds")) {
        if (breaks(bounded_of(row, bound), bound)) {
            return true;
        }
    }
    return false;
}

// Writes enough digits to show that the value breaks the bound: its text differs from the limit's.
static void write_breaking(struct msc_str *out, const cJSON *row, const cJSON *bound) {
    enum { MOST_DIGITS = 17 };
    struct msc_str value = {0}, limit = {0};
    struct msc_report_drop drop;
    const char *name = bounded_name(&drop, bound);
    double found = bounded_of(row, bound), max = msc_verdict__number(bound, "max");
    double least = found > max ? max : msc_verdict__number(bound, "min");
    if (!isnan(drop.most)) {
        found = msc_report__drop_of(&drop, msc_verdict__get(row, "metrics"));
        least = drop.most;
    }
    for (int digits = 4; digits <= MOST_DIGITS; digits++) {
        msc_str_clear(&value);
        msc_str_clear(&limit);
        msc_unit_digits(&value, name, found, digits);
        msc_unit_digits(&limit, name, least, digits);
        if (strcmp(msc_str_text(&value), msc_str_text(&limit)) != 0) {
            break;
        }
    }
    msc_str_append(out, msc_str_text(&value));
    out->failed |= value.failed || limit.failed;
    msc_str_finish(&value);
    msc_str_finish(&limit);
}

void msc_verdict__write_broken(struct msc_str *out, const cJSON *report, const cJSON *row) {
    const cJSON *bound = NULL;
    const char *before = "";
    cJSON_ArrayForEach(bound, msc_verdict__get(report, "bounds")) {
        if (breaks(bounded_of(row, bound), bound)) {
            struct msc_report_drop drop;
            msc_str_append(out, before);
            msc_str_append(out, "the ");
            msc_unit_phrase(out, bounded_name(&drop, bound));
            msc_str_append(out, " is ");
            write_breaking(out, row, bound);
            msc_str_append(out, ", but must be ");
            write_limit(out, bound);
            before = "; ";
        }
    }
}
