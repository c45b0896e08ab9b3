#include "results/units.h"

#include "base/json.h"
#include "base/shown.h"

#include <math.h>
#include <string.h>

enum unit { PLAIN, SHARE, BYTES, MICROSECONDS, COUNT };

static const struct metric {
    const char *metric, *name, *phrase;
    enum unit unit;
} metrics[] = {
    {"accuracy", "Accuracy", "accuracy", SHARE},
    {"float_accuracy", "Accuracy of the float model", "accuracy of the float model", SHARE},
    {"accuracy_drop", "Drop of accuracy", "drop of accuracy", SHARE},
    {"accuracy_drop_ratio", "Drop of accuracy, of the float model's", "relative drop of accuracy",
     SHARE},
    {"accuracy_drop_se", "Standard error of the drop", "standard error of the drop", SHARE},
    {"distill_loss", "Loss", "loss", PLAIN},
    {"top1_kept", "Tokens that stay the most likely", "share of tokens that stay the most likely",
     SHARE},
    {"float_top1_kept", "Tokens that stay the most likely, of the float model",
     "share of tokens that stay the most likely in the float model", SHARE},
    {"cross_entropy", "Cross entropy", "cross entropy", PLAIN},
    {"float_cross_entropy", "Cross entropy of the float model", "cross entropy of the float model",
     PLAIN},
    {"noise", "Change of the loss by rounding alone", "noise", SHARE},
    {"noise_ratio", "Change of the loss by rounding alone", "noise", SHARE},
    {"isolated_loss_sum", "Sum of the losses of single choices",
     "sum of the losses of single choices", PLAIN},
    {"size_bytes", "Weights", "size of the weights", BYTES},
    {"size_ratio", "Weights, of the float model's", "relative size", SHARE},
    {"file_bytes", "File", "size of the file", BYTES},
    {"latency_us", "Time of a run", "time of a run", MICROSECONDS},
    {"latency_ratio", "Time, of the float model's", "relative time", SHARE},
    {"bit_ops", "Bit operations", "number of bit operations", COUNT},
    {"bit_ops_ratio", "Bit operations, of the float model's", "share of bit operations", SHARE},
    {"macs", "Multiply-accumulates", "number of multiply-accumulates", COUNT},
    {"macs_ratio", "Multiply-accumulates, of the float model's", "share of multiply-accumulates",
     SHARE},
    {"samples", "Samples", "number of samples", PLAIN},
};

// What may precede a metric in a column's name, and what then follows the name for people.
static const struct place {
    const char *before, *after;
} places[] = {
    {"runtime.validation.", " (held-back samples, in the runtime)"},
    {"runtime.held_back.", " (held-back samples, in the runtime)"},
    {"validation.", " (held-back samples)"},
    {"held_back.", " (held-back samples)"},
    {"runtime.", " (in the runtime)"},
    {"", ""},
};

static const struct place *place_of(const char *column) {
    const struct place *p = places;
    while (strncmp(column, p->before, strlen(p->before)) != 0) {
        p++;
    }
    return p;
}

const char *msc_unit_metric(const char *column) {
    return column + strlen(place_of(column)->before);
}

static const struct metric *find(const char *column) {
    const char *metric = msc_unit_metric(column);
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        if (strcmp(metric, metrics[i].metric) == 0) {
            return &metrics[i];
        }
    }
    return NULL;
}

void msc_unit_name(struct msc_str *out, const char *column) {
    const struct metric *m = find(column);
    msc_str_append(out, m ? m->name : column);
    msc_str_append(out, m ? place_of(column)->after : "");
}

void msc_unit_phrase(struct msc_str *out, const char *column) {
    const struct metric *m = find(column);
    if (m) {
        msc_str_append(out, m->phrase);
        msc_str_append(out, place_of(column)->after);
    } else {
        msc_shown_append(out, column);
    }
}

bool msc_unit_has(const char *column) {
    const struct metric *m = find(column);
    return m && m->unit != PLAIN;
}

// Divides by powers of 1,000 until the value has at most three digits before its point.
static void append_scaled(struct msc_str *out, double value, const char *const units[],
                          size_t n_units, int digits) {
    size_t i = 0;
    while (i + 1 < n_units && fabs(value) >= 999.5) {
        value /= 1000.0;
        i++;
    }
    if (i == 0 && value == floor(value)) {
        msc_str_printf(out, "%.0f%s", value, units[i]);
    } else {
        msc_str_printf(out, "%.*g%s", digits, value, units[i]);
    }
}

// Appends a value with `digits` significant digits, or as many as its unit usually has (0).
static void append_value(struct msc_str *out, const char *column, double value, int digits) {
    static const char *const bytes[] = {" bytes", " KB", " MB", " GB"};
    static const char *const times[] = {" µs", " ms", " s"};
    static const char *const counts[] = {"", " thousand", " million", " billion", " trillion"};
    const struct metric *m = find(column);
    enum unit unit = m && isfinite(value) ? m->unit : PLAIN;
    bool is_whole = fabs(value) < 1e15 && value == floor(value);
    int few = digits > 0 ? digits : 3, more = digits > 0 ? digits : 4;
    if (isnan(value)) {
        msc_str_append(out, "–");
    } else if (unit == SHARE) {
        msc_str_printf(out, "%.*g %%", more, 100.0 * value);
    } else if (unit == BYTES) {
        append_scaled(out, value, bytes, 4, few);
    } else if (unit == MICROSECONDS) {
        append_scaled(out, value, times, 3, few);
    } else if (unit == COUNT) {
        append_scaled(out, value, counts, 5, few);
    } else if (is_whole) {
        msc_str_printf(out, "%.0f", value);
    } else {
        msc_str_printf(out, "%.*g", more, value);
    }
}

void msc_unit_value(struct msc_str *out, const char *column, double value) {
    append_value(out, column, value, 0);
}

void msc_unit_digits(struct msc_str *out, const char *column, double value, int digits) {
    append_value(out, column, value, digits);
}

enum msc_status msc_unit_describe(struct cJSON *object) {
    static const char *const words[] = {"", "share", "bytes", "us", "count"};
    cJSON *names = cJSON_CreateObject(), *units = cJSON_CreateObject();
    enum msc_status status = msc_json_add(object, "names", names);
    if (status != MSC_OK) {
        cJSON_Delete(units);
        return status;
    }
    MSC_TRY(msc_json_add(object, "units", units));
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const struct metric *m = &metrics[i];
        MSC_TRY(msc_json_add_text(names, m->metric, m->name));
        if (m->unit != PLAIN) {
            MSC_TRY(msc_json_add_text(units, m->metric, words[m->unit]));
        }
    }
    return MSC_OK;
}
