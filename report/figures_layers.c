// Figures of the delivered plan's layers: the largest by error, bytes and time, and histograms of
// weights and activations.
#include "report/figures_internal.h"

#include "report/page_internal.h"

#include <stdlib.h>

enum { MOST_BARS = 20, MOST_HISTOGRAMS = 12 };

// Orders bars from the largest value down.
static int by_value(const void *a, const void *b) {
    const struct msc_plot_bar *x = a, *y = b;
    return (x->value < y->value) - (x->value > y->value);
}

static enum msc_status draw_bars(const struct msc_figures_subject *s, const cJSON *list,
                                 const char *key, const char *what,
                                 const struct msc_plot_axis *axis) {
    struct msc_arena *arena = &s->to->arena;
    struct msc_plot_bar *bars =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof bars[0]);
    const char *title = msc_arena_printf(arena, "%s: %s of each layer", s->prefix, axis->title);
    const cJSON *row = NULL;
    struct msc_str svg = {0};
    size_t n = 0;
    MSC_TRY(MSC_ALLOCATED(bars && title));
    cJSON_ArrayForEach(row, list) {
        double value = msc_page__number(row, key);
        if (value > 0.0) {
            bars[n].name = msc_figures__shorten(arena, msc_page__text(row, "joint"));
            MSC_TRY(MSC_ALLOCATED(bars[n].name));
            bars[n++].value = value;
        }
    }
    qsort(bars, n, sizeof bars[0], by_value);
    n = n < MOST_BARS ? n : MOST_BARS;
    return n == 0
               ? MSC_OK
               : msc_figures__keep(s, what, &svg, msc_plot_write_bars(&svg, title, axis, bars, n));
}

// ---- Histograms ---------------------------------------------------------------------------------

static enum msc_status draw_histogram(const struct msc_figures_subject *s, const cJSON *w,
                                      const char *kind, int index) {
    struct msc_arena *arena = &s->to->arena;
    double step = msc_page__number(w, "step"), from = msc_page__number(w, "from"), most = 0.0;
    double low = msc_page__number(w, "low") - 0.5, high = msc_page__number(w, "high") + 0.5;
    struct msc_figure_numbers x, y;
    MSC_TRY(msc_figures__read(&y, arena, msc_json_get(w, "counts")));
    MSC_TRY(msc_figures__numbers(&x, arena, y.n));
    for (size_t i = 0; i < y.n; i++) {
        x.at[x.n++] = from + ((double)i + 0.5) * step;
        most = fmax(most, y.at[i]);
    }
    const double low_x[] = {low, low}, high_x[] = {high, high}, clip_y[] = {0.0, most};
    const struct msc_plot_set sets[] = {
        {"elements", MSC_FIGURE_ACCENT, x.at, y.at, y.n, MSC_PLOT_BARS},
        {"clipped beyond", MSC_FIGURE_SECOND, low_x, clip_y, 2, MSC_PLOT_DASHES},
        {"", MSC_FIGURE_SECOND, high_x, clip_y, 2, MSC_PLOT_DASHES}};
    const struct msc_plot plot = {
        .title =
            msc_arena_printf(arena, "%s: %s on its levels", s->prefix, msc_page__text(w, "tensor")),
        .x = {.title = msc_arena_printf(arena, "%s over its scales, %.0f bits",
                                        msc_page__text(w, "tensor"), msc_page__number(w, "bits")),
              .least = from,
              .most = from + (double)y.n * step},
        .y = {.title = "elements", .least = 0.0, .most = most * 1.05},
        .bar_width = step,
        .sets = sets,
        .n_sets = sizeof sets / sizeof sets[0]};
    const char *what = msc_arena_printf(arena, "%s-%d", kind, index);
    MSC_TRY(MSC_ALLOCATED(plot.title && plot.x.title && what));
    return most > 0.0 ? msc_figures__keep_plot(s, what, &plot) : MSC_OK;
}

enum msc_status msc_figures__layers(const struct msc_figures_subject *s) {
    const cJSON *layers = msc_json_get(s->record, "layers"), *w = NULL;
    const cJSON *list = msc_json_get(layers, "layers");
    const struct msc_plot_axis error = {.title = "error after the layer", .metric = "size_ratio"};
    const struct msc_plot_axis bytes = {.title = "bytes of weights", .metric = "size_bytes"};
    const struct msc_plot_axis time = {.title = "time", .metric = "latency_us"};
    static const char *const kinds[] = {"weights", "activations"};
    if (!layers) {
        return MSC_OK;
    }
    MSC_TRY(draw_bars(s, list, "error", "layers-error", &error));
    MSC_TRY(draw_bars(s, list, "bytes", "layers-bytes", &bytes));
    MSC_TRY(draw_bars(s, list, "us", "layers-time", &time));
    for (int k = 0; k < 2; k++) {
        int n = 0;
        cJSON_ArrayForEach(w, msc_json_get(layers, kinds[k])) {
            if (n < MOST_HISTOGRAMS) {
                MSC_TRY(draw_histogram(s, w, kinds[k], ++n));
            }
        }
    }
    return MSC_OK;
}
