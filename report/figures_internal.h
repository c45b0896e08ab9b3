// Shared by report/figures*.c.
#ifndef MSC_REPORT_FIGURES_INTERNAL_H
#define MSC_REPORT_FIGURES_INTERNAL_H

#include "base/json.h"
#include "report/figures.h"
#include "report/plot.h"

// The colours of a page in daylight (report/page.css).
#define MSC_FIGURE_ACCENT "#1d5fbf"
#define MSC_FIGURE_SECOND "#b4540a"
#define MSC_FIGURE_THIRD "#0f766e"
#define MSC_FIGURE_FAINT "#7d8794"
#define MSC_FIGURE_FOURTH "#8e3fb0"

// A record that is drawn.
struct msc_figures_subject {
    struct msc_figures *to;
    const cJSON *record;
    const char *prefix;    // of the names of files
    const char *objective; // its first
    const char *name;      // the objective's, for people
};

struct msc_figure_numbers {
    double *at;
    size_t n;
};
// Keeps the name of a metric for people in the arena.
enum msc_status msc_figures__name(const char **out, struct msc_arena *arena, const char *metric);
// Room for n numbers, in the arena.
enum msc_status msc_figures__numbers(struct msc_figure_numbers *out, struct msc_arena *arena,
                                     size_t n);
// Reads a list of numbers; null becomes NaN.
enum msc_status msc_figures__read(struct msc_figure_numbers *out, struct msc_arena *arena,
                                  const cJSON *list);
// Leaves out the middle of a long name, at whole characters of UTF-8. NULL: out of memory.
const char *msc_figures__shorten(struct msc_arena *arena, const char *name);
// Adds a drawing to the figures, if `status` is MSC_OK, and finishes `svg`.
enum msc_status msc_figures__keep(const struct msc_figures_subject *s, const char *what,
                                  struct msc_str *svg, enum msc_status status);
// Draws a plot, if it has any point.
enum msc_status msc_figures__keep_plot(const struct msc_figures_subject *s, const char *what,
                                       const struct msc_plot *plot);

// Draws level bars, the first of which has the largest value.
enum msc_status msc_figures__keep_bars(const struct msc_figures_subject *s, const char *what,
                                       const char *title, const struct msc_plot_axis *axis,
                                       struct msc_plot_bar bars[], size_t n);
// Reads the points of a record's front in the order of their cost.
enum msc_status msc_figures__front(struct msc_figure_numbers *x, struct msc_figure_numbers *y,
                                   const struct msc_figures_subject *s, const char *cost);

// figures_choices.c: parallel coordinates of the best trials.
enum msc_status msc_figures__choices(const struct msc_figures_subject *s);
// figures_compare.c: what several records have in common.
enum msc_status msc_figures__compare(struct msc_figures *to, const cJSON *records);
// figures_layers.c: bars and histograms of the layers, if the record has them.
enum msc_status msc_figures__layers(const struct msc_figures_subject *s);
// figures_network.c: the network with its plan, if the record has it.
enum msc_status msc_figures__network(const struct msc_figures_subject *s);

#endif
