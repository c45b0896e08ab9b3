// The figures of a report as SVG files, for papers and slides.
//
//     struct msc_figures figures = {0};
//     MSC_TRY_OUT(msc_figures_draw(&figures, document));
//     for (size_t i = 0; i < figures.n; i++) {
//         ... write figures.items[i].svg to figures.items[i].name ...
//     }
//     out: msc_figures_finish(&figures);
#ifndef MSC_REPORT_FIGURES_H
#define MSC_REPORT_FIGURES_H

#include "base/alloc.h"

struct cJSON;

struct msc_figure {
    const char *name; // of the file: "digits-tradeoff.svg"
    const char *svg;
};

struct msc_figures {
    struct msc_arena arena;
    struct msc_figure *items;
    size_t n, capacity;
};

// Draws what the records of a page's document (report/document.h) have data for:
//
//     best-trials, best-time   the best so far over trials and over time
//     tradeoff                 the objective of every trial over its cost
//     bits, density            bits of each task of the plan; kept channels or elements
//     choices                  parallel coordinates of the best trials
//     importance, effects      the tasks that the objective depends on most
//     speed, reuse             trials a second, and the share of the work that was reused
//     layers-error, layers-bytes, layers-time   the largest layers (model/layers.h), if measured
//     weights-1 …, activations-1 …   weights and activations on their levels, likewise
//     network                  the network with the plan; up to 400 joints
//
// and, of several records with one objective, compared-best, compared-fronts, compared-error,
// compared-bytes and compared-time.
//
// The name of a file of one record begins with the record's name; with several records, it begins
// with the record's number, from 1. `figures` must be zeroed.
enum msc_status msc_figures_draw(struct msc_figures *figures, const struct cJSON *document);
void msc_figures_finish(struct msc_figures *figures); // accepts a zeroed struct

#endif
