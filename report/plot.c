#include "report/plot.h"

#include "model/output.h"
#include "report/html.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 430, LEFT = 92, RIGHT = 20, TOP = 40, BOTTOM = 62, BAR = 24 };
#define MOST_TICKS 24
#define INK "#1b1f24"
#define QUIET "#5a636e"
#define LINE "#dfe1e4"

// An axis with its range, and the pixels of both ends of the range.
struct span {
    double least, most;
    bool is_log;
    double from, to;
};

static bool is_drawn(const struct msc_plot_set *set, size_t i) {
    return isfinite(set->x[i]) && isfinite(set->y[i]);
}

bool msc_plot_has_points(const struct msc_plot *plot) {
    for (size_t s = 0; s < plot->n_sets; s++) {
        for (size_t i = 0; i < plot->sets[s].n; i++) {
            if (is_drawn(&plot->sets[s], i)) {
                return true;
            }
        }
    }
    return false;
}

static void widen(struct span *s, double value) {
    s->least = fmin(s->least, value);
    s->most = fmax(s->most, value);
}

// Chooses the scale, and leaves some room at both ends of a range that the points give.
static void settle(struct span *s, const struct msc_plot_axis *axis) {
    if (axis->least < axis->most) {
        s->least = axis->least;
        s->most = axis->most;
        return;
    }
    s->is_log = axis->may_be_log && s->least > 0.0 && s->most > 10.0 * s->least;
    if (s->is_log) {
        s->least *= 0.8;
        s->most *= 1.25;
        return;
    }
    double room = s->most > s->least ? 0.04 * (s->most - s->least) : fmax(fabs(s->most), 1.0) * 0.1;
    s->least = s->least >= 0.0 ? fmax(s->least - room, 0.0) : s->least - room;
    s->most += room;
}

static double place(const struct span *s, double value) {
    double share = s->is_log ? log(value / s->least) / log(s->most / s->least)
                             : (value - s->least) / (s->most - s->least);
    return s->from + share * (s->to - s->from);
}

// ---- Ticks --------------------------------------------------------------------------------------

// The greatest of 1, 2 and 5 times a power of ten that is at most `value`.
static double round_step(double value) {
    double power = pow(10.0, floor(log10(value)));
    double digit = value / power;
    return power * (digit >= 5.0 ? 5.0 : digit >= 2.0 ? 2.0 : 1.0);
}

static size_t place_log_ticks(double ticks[MOST_TICKS], const struct span *s) {
    static const double digits[] = {1.0, 2.0, 5.0};
    size_t n = 0, n_digits = s->most / s->least > 2000.0 ? 1 : 3;
    int first = (int)floor(log10(s->least)), last = (int)ceil(log10(s->most));
    int stride = 1 + (last - first) / 8;
    for (int power = first; power <= last; power += stride) {
        for (size_t d = 0; d < n_digits; d++) {
            double tick = digits[d] * pow(10.0, power);
            if (tick >= s->least && tick <= s->most && n < MOST_TICKS) {
                ticks[n++] = tick;
            }
        }
    }
    return n;
}

static size_t place_ticks(double ticks[MOST_TICKS], const struct span *s) {
    if (s->is_log) {
        return place_log_ticks(ticks, s);
    }
    double step = round_step((s->most - s->least) / 4.0);
    size_t n = 0;
    for (double i = ceil(s->least / step); i * step <= s->most && n < MOST_TICKS; i++) {
        ticks[n++] = i * step;
    }
    return n;
}

static void write_text(struct msc_str *out, double x, double y, const char *more,
                       const char *text) {
    msc_str_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, more);
    msc_html_text(out, text);
    msc_str_append(out, "</text>\n");
}

static void write_line(struct msc_str *out, double x1, double y1, double x2, double y2) {
    msc_str_printf(out, "<path stroke=\"" LINE "\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x1, y1, x2, y2);
}

static void write_axis(struct msc_str *out, const struct msc_plot_axis *axis, const struct span *s,
                       const struct span *other, bool is_x) {
    double ticks[MOST_TICKS];
    size_t n = axis->has_no_ticks ? 0 : place_ticks(ticks, s);
    for (size_t i = 0; i < n; i++) {
        struct msc_str text = {0};
        double at = place(s, ticks[i]);
        msc_unit_value(&text, axis->metric ? axis->metric : "", ticks[i]);
        if (is_x) {
            write_line(out, at, other->from, at, other->to);
            write_text(out, at, other->from + 18.0, " text-anchor=\"middle\"", msc_str_text(&text));
        } else {
            write_line(out, other->from, at, other->to, at);
            write_text(out, other->from - 7.0, at + 4.0, " text-anchor=\"end\"",
                       msc_str_text(&text));
        }
        out->failed |= text.failed;
        msc_str_finish(&text);
    }
    double middle = (s->from + s->to) / 2.0;
    if (is_x) {
        write_text(out, middle, other->from + 42.0, " text-anchor=\"middle\"", axis->title);
    } else {
        char turn[64];
        snprintf(turn, sizeof turn, " text-anchor=\"middle\" transform=\"rotate(-90 14 %.1f)\"",
                 middle);
        write_text(out, 14.0, middle, turn, axis->title);
    }
}

// ---- Points -----------------------------------------------------------------------------------

static void write_path(struct msc_str *out, const struct msc_plot_set *set, const struct span *x,
                       const struct span *y) {
    const char *before = "M";
    bool is_dashed = set->mark == MSC_PLOT_DASHES;
    msc_str_printf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s d=\"", set->color,
                   is_dashed ? "1.5" : "2", is_dashed ? " stroke-dasharray=\"5 4\"" : "");
    for (size_t i = 0; i < set->n; i++) {
        if (!is_drawn(set, i)) {
            continue;
        }
        double px = place(x, set->x[i]), py = place(y, set->y[i]);
        if (set->mark == MSC_PLOT_STEPS && before[0] == 'L') {
            msc_str_printf(out, "H%.1fV%.1f", px, py);
        } else {
            msc_str_printf(out, "%s%.1f %.1f", before, px, py);
        }
        before = "L";
    }
    msc_str_append(out, "\"/>\n");
}

static void write_mark(struct msc_str *out, const struct msc_plot_set *set, double px, double py) {
    if (set->mark == MSC_PLOT_LARGE) {
        msc_str_printf(out,
                       "<path fill=\"%s\" stroke=\"#ffffff\" d=\"M%.1f %.1fl7 7-7 7-7-7z\"/>\n",
                       set->color, px, py - 7.0);
        return;
    }
    bool is_ring = set->mark == MSC_PLOT_RINGS;
    msc_str_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\" stroke=\"%s\"/>\n",
                   px, py, is_ring ? "none" : set->color, is_ring ? set->color : "none");
}

static void write_bar(struct msc_str *out, const struct msc_plot_set *set, size_t i,
                      const struct span *x, const struct span *y, double bar_width) {
    double half = bar_width > 0.0 ? bar_width / 2.0 : 0.45;
    double left = place(x, set->x[i] - half), right = place(x, set->x[i] + half);
    double top = place(y, set->y[i]);
    msc_str_printf(out,
                   "<rect fill=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n",
                   set->color, left, top, right - left, fmax(place(y, 0.0) - top, 1.0));
}

static void write_set(struct msc_str *out, const struct msc_plot_set *set, const struct span *x,
                      const struct span *y, double bar_width) {
    bool is_path = set->mark == MSC_PLOT_STEPS || set->mark == MSC_PLOT_DASHES;
    if (is_path || set->mark == MSC_PLOT_LINE) {
        write_path(out, set, x, y);
    }
    if (is_path) {
        return;
    }
    for (size_t i = 0; i < set->n; i++) {
        if (!is_drawn(set, i)) {
            continue;
        }
        if (set->mark == MSC_PLOT_BARS) {
            write_bar(out, set, i, x, y, bar_width);
        } else {
            write_mark(out, set, place(x, set->x[i]), place(y, set->y[i]));
        }
    }
}

// ---- Plots ------------------------------------------------------------------------------------

static void begin(struct msc_str *out, const char *title, int height) {
    msc_str_printf(out,
                   MSC_OUTPUT_FIGURE_BEGINNING
                   " width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
                   "font-family=\"sans-serif\" font-size=\"12\" fill=\"" QUIET "\">\n<title>",
                   WIDTH, height, WIDTH, height);
    msc_html_text(out, title);
    msc_str_printf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH,
                   height);
}

static bool has_any(const struct msc_plot_set *set) {
    for (size_t i = 0; i < set->n; i++) {
        if (is_drawn(set, i)) {
            return true;
        }
    }
    return false;
}

// Names the sets in a row above the plot; the width of a letter is an estimate.
static void write_legend(struct msc_str *out, const struct msc_plot *plot) {
    double x = LEFT;
    for (size_t s = 0; s < plot->n_sets; s++) {
        const struct msc_plot_set *set = &plot->sets[s];
        if (!has_any(set) || set->name[0] == '\0') {
            continue;
        }
        msc_str_printf(out, "<rect x=\"%.1f\" y=\"16\" width=\"14\" height=\"4\" fill=\"%s\"/>\n",
                       x, set->color);
        write_text(out, x + 20.0, 22.0, "", set->name);
        x += 40.0 + 6.6 * (double)strlen(set->name);
    }
}

static void frame(struct span *x, struct span *y, const struct msc_plot *plot) {
    *x = (struct span){.least = INFINITY, .most = -INFINITY, .from = LEFT, .to = WIDTH - RIGHT};
    *y = (struct span){.least = INFINITY, .most = -INFINITY, .from = HEIGHT - BOTTOM, .to = TOP};
    for (size_t s = 0; s < plot->n_sets; s++) {
        for (size_t i = 0; i < plot->sets[s].n; i++) {
            if (is_drawn(&plot->sets[s], i)) {
                widen(x, plot->sets[s].x[i]);
                widen(y, plot->sets[s].y[i]);
            }
        }
    }
    settle(x, &plot->x);
    settle(y, &plot->y);
}

enum msc_status msc_plot_write(struct msc_str *out, const struct msc_plot *plot) {
    struct span x, y;
    if (!msc_plot_has_points(plot)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: there is nothing to draw", plot->title);
    }
    frame(&x, &y, plot);
    begin(out, plot->title, HEIGHT);
    write_axis(out, &plot->x, &x, &y, true);
    write_axis(out, &plot->y, &y, &x, false);
    for (size_t s = 0; s < plot->n_sets; s++) {
        write_set(out, &plot->sets[s], &x, &y, plot->bar_width);
    }
    write_legend(out, plot);
    msc_str_append(out, "</svg>\n");
    return msc_str_status(out);
}

enum msc_status msc_plot_write_bars(struct msc_str *out, const char *title,
                                    const struct msc_plot_axis *axis,
                                    const struct msc_plot_bar bars[], size_t n) {
    enum { NAMES = 250 };
    double bottom = TOP + (double)n * BAR;
    struct span x = {.from = NAMES, .to = WIDTH - RIGHT}; // 0 belongs to the range
    const struct span y = {.from = bottom, .to = TOP};
    for (size_t i = 0; i < n; i++) {
        widen(&x, bars[i].value);
    }
    if (!(x.least < x.most)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: there is nothing to draw", title);
    }
    settle(&x, axis);
    begin(out, title, (int)bottom + BOTTOM);
    write_axis(out, axis, &x, &y, true);
    for (size_t i = 0; i < n; i++) {
        double zero = place(&x, 0.0), end = place(&x, bars[i].value);
        double top = TOP + (double)i * BAR;
        msc_str_printf(out,
                       "<rect fill=\"#1d5fbf\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                       "height=\"%d\"/>\n",
                       fmin(zero, end), top + 3.0, fmax(fabs(end - zero), 1.0), BAR - 6);
        write_text(out, NAMES - 8.0, top + 16.0, " text-anchor=\"end\"", bars[i].name);
    }
    msc_str_append(out, "</svg>\n");
    return msc_str_status(out);
}
