#include "cli/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The scale is logarithmic if the ratio of greatest to least value is above this, so that small
// values remain visible.
#define FAR 20.0
#define PARTS 8 // steps of height within a character

static const char *const blocks[PARTS + 1] = {
    " ",
    "\xe2\x96\x81",
    "\xe2\x96\x82",
    "\xe2\x96\x83",
    "\xe2\x96\x84",
    "\xe2\x96\x85",
    "\xe2\x96\x86",
    "\xe2\x96\x87",
    "\xe2\x96\x88",
};
static const char ascii_line[PARTS + 1] = {' ', '_', '.', '-', '=', '+', '*', '%', '#'};
static const char ascii_rows[PARTS + 1] = {' ', '.', '.', '.', ':', ':', ':', '#', '#'};

bool msc_cli_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0] != '\0') {
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8");
        }
    }
    return false;
}

struct scale {
    double low, high;
    bool is_logarithmic;
};

static struct scale make_scale(const double values[], size_t n) {
    struct scale s = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            s.low = fmin(s.low, values[i]);
            s.high = fmax(s.high, values[i]);
        }
    }
    s.is_logarithmic = s.low > 0.0 && s.high / s.low > FAR;
    return s;
}

// Height of a value on a scale of 1 to n, so that every value is visible; 0 for NaN.
static size_t height(const struct scale *s, double value, size_t n) {
    if (isnan(value)) {
        return 0;
    }
    double low = s->is_logarithmic ? log(s->low) : s->low;
    double high = s->is_logarithmic ? log(s->high) : s->high;
    double at = s->is_logarithmic ? log(value) : value;
    double part = high > low ? (at - low) / (high - low) : 0.5;
    part = fmin(fmax(part, 0.0), 1.0); // infinities become 0 or 1
    return 1 + (size_t)(part * (double)(n - 1) + 0.5);
}

void msc_chart_line(struct msc_str *out, const double values[], size_t n, bool has_blocks) {
    const struct scale s = make_scale(values, n);
    for (size_t i = 0; i < n; i++) {
        size_t h = height(&s, values[i], PARTS);
        if (has_blocks) {
            msc_str_append(out, blocks[h]);
        } else {
            msc_str_char(out, ascii_line[h]);
        }
    }
}

static void write_label(struct msc_str *out, double value, bool is_written) {
    if (is_written && isfinite(value)) {
        msc_str_printf(out, "%*.4g  ", MSC_CHART_LABEL_COLUMNS - 2, value);
    } else {
        msc_str_printf(out, "%*s", MSC_CHART_LABEL_COLUMNS, "");
    }
}

void msc_chart_rows(struct msc_str *out, const double values[], size_t n, size_t n_rows,
                    bool has_blocks) {
    const struct scale s = make_scale(values, n);
    for (size_t row = 0; row < n_rows; row++) {
        size_t below = (n_rows - 1 - row) * PARTS;
        write_label(out, row == 0 ? s.high : s.low, row == 0 || row + 1 == n_rows);
        for (size_t i = 0; i < n; i++) {
            size_t h = height(&s, values[i], n_rows * PARTS);
            size_t part = h > below ? h - below : 0;
            part = part < PARTS ? part : PARTS;
            if (has_blocks) {
                msc_str_append(out, blocks[part]);
            } else {
                msc_str_char(out, ascii_rows[part]);
            }
        }
        msc_str_char(out, '\n');
    }
}
