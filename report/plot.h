// Draws a plot as SVG 1.1: axes with round ticks, steps, points, levels and bars, and a legend.
//
//     struct msc_plot plot = {.title = "Loss against size", .x = {.title = "Weights"}, ...};
//     MSC_TRY(msc_plot_write(&out, &plot));
#ifndef MSC_REPORT_PLOT_H
#define MSC_REPORT_PLOT_H

#include "base/str.h"

enum msc_plot_mark {
    MSC_PLOT_STEPS,  // each value holds until the next x
    MSC_PLOT_POINTS, // filled circles
    MSC_PLOT_RINGS,  // open circles
    MSC_PLOT_LARGE,  // large diamonds
    MSC_PLOT_DASHES, // a dashed line through the points
    MSC_PLOT_LINE,   // a line through the points, which are filled circles
    MSC_PLOT_BARS,   // upright bars from 0
};

// n points. A point with a number that is not finite is left out.
struct msc_plot_set {
    const char *name; // in the legend; "": not there
    const char *color;
    const double *x, *y;
    size_t n;
    enum msc_plot_mark mark;
};

struct msc_plot_axis {
    const char *title;
    const char *metric; // its unit is written at each tick (results/units.h); NULL: plain numbers
    double least, most; // the range, if least < most; else the range of the points
    bool may_be_log;    // logarithmic if all points are positive and span more than a factor of 10
    bool has_no_ticks;
};

// All members are borrowed.
struct msc_plot {
    const char *title; // for readers of the file; not drawn
    struct msc_plot_axis x, y;
    double bar_width;                // of MSC_PLOT_BARS, in x; 0: 1, with a gap between bars
    const struct msc_plot_set *sets; // drawn in this order
    size_t n_sets;
};

// True if any set has a point to draw.
bool msc_plot_has_points(const struct msc_plot *plot);
// MSC_E_INVALID: there is no point to draw. MSC_E_NOMEM.
enum msc_status msc_plot_write(struct msc_str *out, const struct msc_plot *plot);

// Level bars from 0 to the right or to the left, one below the other, each with its name.
struct msc_plot_bar {
    const char *name;
    double value;
};
enum msc_status msc_plot_write_bars(struct msc_str *out, const char *title,
                                    const struct msc_plot_axis *x, const struct msc_plot_bar bars[],
                                    size_t n);

#endif
