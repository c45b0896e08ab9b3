#include "report/units.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

enum unit { PLAIN, SHARE, BYTES, MICROSECONDS, COUNT };

static const struct metric {
    const char *metric, *name;
    enum unit unit;
} metrics[] = {
    {"accuracy", "Accuracy", SHARE},
    {"float_accuracy", "Accuracy of the float model", SHARE},
    {"accuracy_drop", "Drop of accuracy", SHARE},
    {"accuracy_drop_se", "Standard error of the drop", SHARE},
    {"distill_loss", "Loss", PLAIN},
    {"noise", "Change of the loss by rounding alone", SHARE},
    {"noise_ratio", "Change of the loss by rounding alone", SHARE},
    {"isolated_loss_sum", "Sum of the losses of single choices", PLAIN},
    {"size_bytes", "Weights", BYTES},
    {"size_ratio", "Weights, of the float model's", SHARE},
    {"file_bytes", "File", BYTES},
    {"latency_us", "Time of a run", MICROSECONDS},
    {"latency_ratio", "Time, of the float model's", SHARE},
    {"bit_ops", "Bit operations", COUNT},
    {"bit_ops_ratio", "Bit operations, of the float model's", SHARE},
    {"macs", "Multiply-accumulates", COUNT},
    {"macs_ratio", "Multiply-accumulates, of the float model's", SHARE},
    {"samples", "Samples", PLAIN},
};

// What may precede a metric in a column's name, and what then follows the name for people.
static const struct place {
    const char *before, *after;
} places[] = {
    {"runtime.validation.", " (held-back samples, in the runtime)"},
    {"validation.", " (held-back samples)"},
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

// Divides by powers of `step` until the value has at most three digits before its point.
static void append_scaled(struct msc_str *out, double value, double step, const char *const units[],
                          size_t n_units) {
    size_t i = 0;
    while (i + 1 < n_units && fabs(value) >= 999.5) {
        value /= step;
        i++;
    }
    msc_str_printf(out, i == 0 && value == floor(value) ? "%.0f" : "%.3g", value);
    msc_str_append(out, units[i]);
}

void msc_unit_value(struct msc_str *out, const char *column, double value) {
    static const char *const bytes[] = {" bytes", " KB", " MB", " GB"};
    static const char *const times[] = {" µs", " ms", " s"};
    static const char *const counts[] = {"", " thousand", " million", " billion", " trillion"};
    const struct metric *m = find(column);
    enum unit unit = m && isfinite(value) ? m->unit : PLAIN;
    bool is_whole = fabs(value) < 1e15 && value == floor(value);
    if (isnan(value)) {
        msc_str_append(out, "–");
    } else if (unit == SHARE) {
        msc_str_printf(out, "%.4g %%", 100.0 * value);
    } else if (unit == BYTES) {
        append_scaled(out, value, 1000.0, bytes, 4);
    } else if (unit == MICROSECONDS) {
        append_scaled(out, value, 1000.0, times, 3);
    } else if (unit == COUNT) {
        append_scaled(out, value, 1000.0, counts, 5);
    } else {
        msc_str_printf(out, is_whole ? "%.0f" : "%.4g", value);
    }
}

enum msc_status msc_unit_names(cJSON *object) {
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        MSC_TRY(msc_json_add_text(object, metrics[i].metric, metrics[i].name));
    }
    return MSC_OK;
}
