// The delivered plan layer by layer on a page: a table with bars, and histograms of the weights.
#include "base/alloc.h"
#include "report/page_internal.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of larger networks, the table has only the layers with the longest bars.
#define MOST_ROWS 200
// Histograms beyond this number are folded.
#define SHOWN 8
// Size of a histogram's drawing, and the height of its ticks.
#define WIDTH 240.0
#define HEIGHT 84.0
#define TICK 5.0
// Each level has a tick if there are at most this many.
#define MOST_TICKS 64.0

static double greatest_of(const cJSON *list, const char *key) {
    const cJSON *row = NULL;
    double greatest = 0.0;
    cJSON_ArrayForEach(row, list) {
        greatest = fmax(greatest, msc_page__number(row, key));
    }
    return greatest;
}

static double sum_of(const cJSON *list, const char *key) {
    const cJSON *row = NULL;
    double sum = 0.0;
    cJSON_ArrayForEach(row, list) {
        double value = msc_page__number(row, key);
        sum += isnan(value) ? 0.0 : value;
    }
    return sum;
}

// ---- The table ----------------------------------------------------------------------------------

// Writes a value with a bar, and the uncompressed model's value after it (NaN: none).
static void write_quantity(struct msc_str *out, const char *metric, double value, double greatest,
                           double before) {
    struct msc_str text = {0};
    if (isnan(value) || value == 0.0) {
        msc_str_append(&text, "–");
    } else {
        msc_unit_value(&text, metric, value);
    }
    if (before > 0.0) {
        msc_str_append(&text, " of ");
        msc_unit_value(&text, metric, before);
    }
    msc_page__bar_cell(out, greatest > 0.0 ? value / greatest : 0.0, msc_str_text(&text));
    out->failed |= text.failed;
    msc_str_finish(&text);
}

static void write_error(struct msc_str *out, double error, double greatest) {
    char text[32] = "0";
    if (error > 0.0) {
        snprintf(text, sizeof text, "%.2g %%", 100.0 * error);
    }
    msc_page__bar_cell(out, greatest > 0.0 ? error / greatest : 0.0, isnan(error) ? "–" : text);
}

static void write_operator(struct msc_str *out, const char *op) {
    op += strncmp(op, "nn.", 3) == 0 ? 3 : strncmp(op, "msc.", 4) == 0 ? 4 : 0;
    msc_str_append(out, "<td class=\"b\">");
    msc_html_name(out, op);
    msc_str_append(out, "</td>");
}

void msc_page__bits_cell(struct msc_str *out, const cJSON *row) {
    double weight = msc_page__number(row, "weight_bits");
    double activation = msc_page__number(row, "activation_bits");
    char text[48] = "float";
    if (!isnan(weight) && !isnan(activation)) {
        snprintf(text, sizeof text, "W%.0f A%.0f", weight, activation);
    } else if (!isnan(weight) || !isnan(activation)) {
        snprintf(text, sizeof text, isnan(weight) ? "A%.0f" : "W%.0f",
                 isnan(weight) ? activation : weight);
    }
    msc_str_printf(out, "<td class=\"b\">%s</td>", text);
}

static void write_row(struct msc_str *out, const cJSON *row, const double greatest[3]) {
    msc_page__row(out, NULL);
    msc_page__head_cell(out, msc_page__text(row, "joint"));
    write_operator(out, msc_page__text(row, "op"));
    msc_page__bits_cell(out, row);
    write_error(out, msc_page__number(row, "error"), greatest[0]);
    write_quantity(out, "size_bytes", msc_page__number(row, "bytes"), greatest[1],
                   msc_page__number(row, "float_bytes"));
    write_quantity(out, "latency_us", msc_page__number(row, "us"), greatest[2],
                   msc_page__number(row, "float_us"));
    msc_str_append(out, "</tr>\n");
}

static void write_sum_cell(struct msc_str *out, const char *metric, double value, double before) {
    msc_str_append(out, "<td class=\"b best\">");
    msc_page__quantity(out, metric, value);
    msc_str_append(out, " of ");
    msc_page__quantity(out, metric, before);
    msc_str_append(out, "</td>");
}

static void write_sum(struct msc_str *out, const cJSON *layers, const cJSON *list) {
    msc_str_append(out, "<tr><th scope=\"row\" class=\"best\">sum</th><td></td><td></td><td></td>");
    write_sum_cell(out, "size_bytes", sum_of(list, "bytes"), sum_of(list, "float_bytes"));
    write_sum_cell(out, "latency_us", sum_of(list, "us") + msc_page__number(layers, "other_us"),
                   sum_of(list, "float_us") + msc_page__number(layers, "float_other_us"));
    msc_str_append(out, "</tr>\n");
}

// The longest bar of a layer, from 0 to 1.
static double longest_bar(const cJSON *row, const double greatest[3]) {
    static const char *const keys[] = {"error", "bytes", "us"};
    double longest = 0.0;
    for (int i = 0; i < 3; i++) {
        double value = msc_page__number(row, keys[i]); // NaN: no bar
        longest = greatest[i] > 0.0 ? fmax(longest, value / greatest[i]) : longest;
    }
    return longest;
}

static int by_length(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

enum msc_status msc_page__mark_longest(bool is_marked[], const double bars[], size_t n,
                                       size_t most) {
    double *sorted = msc_alloc_zero(n + 1, sizeof sorted[0]);
    size_t n_longer = 0, n_equal = 0;
    MSC_TRY(MSC_ALLOCATED(sorted));
    memcpy(sorted, bars, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], by_length);
    double least = n > most ? sorted[most - 1] : 0.0;
    while (n_longer < n && sorted[n_longer] > least) {
        n_longer++;
    }
    msc_free(sorted);
    for (size_t i = 0; i < n; i++) {
        is_marked[i] =
            n <= most || bars[i] > least || (bars[i] == least && n_longer + n_equal++ < most);
    }
    return MSC_OK;
}

// Writes at most MOST_ROWS layers, in the order of the network.
static void write_rows(struct msc_str *out, const cJSON *list, const double greatest[3]) {
    size_t n = (size_t)cJSON_GetArraySize(list), i = 0;
    double *bars = msc_alloc_zero(n + 1, sizeof bars[0]);
    bool *is_marked = msc_alloc_zero(n + 1, sizeof is_marked[0]);
    const cJSON *row = NULL;
    if (bars && is_marked) {
        cJSON_ArrayForEach(row, list) {
            bars[i++] = longest_bar(row, greatest);
        }
        out->failed |= msc_page__mark_longest(is_marked, bars, n, MOST_ROWS) != MSC_OK;
        i = 0;
        cJSON_ArrayForEach(row, list) {
            if (is_marked[i++]) {
                write_row(out, row, greatest);
            }
        }
    } else {
        out->failed = true;
    }
    msc_free(bars);
    msc_free(is_marked);
}

static void write_table(struct msc_str *out, const cJSON *layers) {
    static const char *const columns[] = {"layer",   "operator", "bits", "error after it",
                                          "weights", "time",     NULL};
    const cJSON *list = msc_json_get(layers, "layers");
    const double greatest[] = {greatest_of(list, "error"), greatest_of(list, "bytes"),
                               greatest_of(list, "us")};
    msc_str_printf(
        out,
        "<p class=\"note\">W are the bits of weights, A those of activations. The error is "
        "the norm of the difference from the uncompressed model relative to the norm of "
        "the layer's outputs, over %.0f samples. Weights count their scales. Times are the "
        "least of %.0f runs of one sample on one thread of the machine that wrote this page, "
        "by mscgym's own kernels; the sum includes ",
        msc_page__number(layers, "samples"), msc_page__number(layers, "runs"));
    msc_page__quantity(out, "latency_us", msc_page__number(layers, "other_us"));
    msc_str_append(out, " between layers. After “of” stands the uncompressed model.");
    if (cJSON_GetArraySize(list) > MOST_ROWS) {
        msc_str_printf(out,
                       " Of the %d layers, the table has the %d with the longest bars, and the sum "
                       "has all.",
                       cJSON_GetArraySize(list), MOST_ROWS);
    }
    msc_str_append(out, "</p>\n");
    msc_page__table(out, "The plan, layer by layer", columns, "");
    write_rows(out, list, greatest);
    write_sum(out, layers, list);
    msc_page__end_table(out);
}

// ---- Histograms ---------------------------------------------------------------------------------

static double place(const cJSON *w, size_t n_bins, double level) {
    return WIDTH * (level - msc_page__number(w, "from")) /
           (msc_page__number(w, "step") * (double)n_bins);
}

static void write_outline(struct msc_str *out, const cJSON *counts, double bin) {
    const cJSON *count = NULL;
    double most = 1.0;
    cJSON_ArrayForEach(count, counts) {
        most = fmax(most, count->valuedouble);
    }
    msc_str_printf(out, "<path class=\"count\" d=\"M0 %.0f", HEIGHT);
    cJSON_ArrayForEach(count, counts) {
        msc_str_printf(out, "V%.1fh%.2f", HEIGHT * (1.0 - count->valuedouble / most), bin);
    }
    msc_str_printf(out, "V%.0fz\"/>", HEIGHT);
}

static void write_ticks(struct msc_str *out, const cJSON *w, size_t n_bins) {
    double low = msc_page__number(w, "low"), high = msc_page__number(w, "high");
    msc_str_append(out, "<path class=\"level\" d=\"");
    for (double level = low; level <= high && high - low < MOST_TICKS; level++) {
        msc_str_printf(out, "M%.1f %.0fv%.0f", place(w, n_bins, level), HEIGHT, TICK);
    }
    msc_str_append(out, "\"/>");
}

static void write_drawing(struct msc_str *out, const cJSON *w) {
    const cJSON *counts = msc_json_get(w, "counts");
    size_t n = (size_t)cJSON_GetArraySize(counts);
    double low = place(w, n, msc_page__number(w, "low") - 0.5);
    double high = place(w, n, msc_page__number(w, "high") + 0.5);
    msc_str_printf(out,
                   "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Histogram over the "
                   "levels %.0f to %.0f\">"
                   "<rect class=\"inside\" x=\"%.1f\" width=\"%.1f\" height=\"%.0f\"/>",
                   WIDTH, HEIGHT + TICK + 1.0, msc_page__number(w, "low"),
                   msc_page__number(w, "high"), low, high - low, HEIGHT);
    write_outline(out, counts, WIDTH / (double)n);
    write_ticks(out, w, n);
    msc_str_printf(out, "<path class=\"clip\" d=\"M%.1f 0v%.0fM%.1f 0v%.0f\"/></svg>\n", low,
                   HEIGHT + TICK, high, HEIGHT + TICK);
}

static void write_histogram(struct msc_str *out, const cJSON *w) {
    double clipped = 100.0 * msc_page__number(w, "clipped");
    double n_scales = msc_page__number(w, "scales");
    msc_str_append(out, "<figure><figcaption><b>");
    msc_html_name(out, msc_page__text(w, "tensor"));
    msc_str_printf(out, "</b> %.0f bits, levels %.0f to %.0f; %.0f scale%s, clipped at %s%.3g%s",
                   msc_page__number(w, "bits"), msc_page__number(w, "low"),
                   msc_page__number(w, "high"), n_scales, n_scales == 1.0 ? "" : "s",
                   msc_page__number(w, "low") < 0.0 ? "±" : "", msc_page__number(w, "clip"),
                   n_scales == 1.0 ? "" : " (median)");
    if (clipped > 0.0) {
        msc_str_printf(out, "; %.2g %% of the elements are beyond", clipped);
    }
    msc_str_append(out, "</figcaption>\n");
    write_drawing(out, w);
    msc_str_append(out, "</figure>\n");
}

static void write_histograms(struct msc_str *out, const cJSON *list, const char *heading,
                             const char *note) {
    const cJSON *w = NULL;
    int n = cJSON_GetArraySize(list), i = 0;
    if (n == 0) {
        return;
    }
    msc_str_printf(out, "<h3>%s</h3>\n<p class=\"note\">%s</p>\n<div class=\"histograms\">\n",
                   heading, note);
    cJSON_ArrayForEach(w, list) {
        if (i++ == SHOWN) {
            msc_str_printf(out,
                           "</div>\n<details><summary>%d more</summary>"
                           "<div class=\"histograms\">\n",
                           n - SHOWN);
        }
        write_histogram(out, w);
    }
    msc_str_append(out, n > SHOWN ? "</div></details>\n" : "</div>\n");
}

void msc_page__layers(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *layers = msc_json_get(record, "layers");
    if (layers) {
        msc_page__begin(out, index, "measured", "Layer by layer");
        write_table(out, layers);
        write_histograms(
            out, msc_json_get(layers, "weights"), "Weights on their levels",
            "Each element is divided by its scale, so all channels have the same "
            "levels. Between the dashed lines, elements are rounded to a level; beyond "
            "them, they are clipped. Small ticks mark the levels if there are few.");
        write_histograms(out, msc_json_get(layers, "activations"), "Activations on their levels",
                         "The values of the compressed network before they are rounded, over the "
                         "samples.");
        msc_page__end(out);
    }
}
