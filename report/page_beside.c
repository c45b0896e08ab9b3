// The layers and the networks of several records side by side.
#include "report/page_internal.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

// Of larger networks, the table has only the layers with the longest bars.
#define MOST_ROWS 200
// More records do not fit next to each other.
#define MOST_RECORDS 4

// What is compared of each layer. The metric gives the unit.
static const struct quantity {
    const char *key, *name, *metric;
} quantities[] = {
    {"error", "error after it", "size_ratio"},
    {"bytes", "weights", "size_bytes"},
    {"us", "time", "latency_us"},
};
enum { N_QUANTITIES = sizeof quantities / sizeof quantities[0] };

struct beside {
    const cJSON *layers[MOST_RECORDS]; // lists of layers
    const char *names[MOST_RECORDS];
    size_t n;
    struct msc_arena arena;
    const char **joints; // of all records
    size_t n_joints;
    double greatest[N_QUANTITIES];
};

static const cJSON *find_joint(const cJSON *layers, const char *joint) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, layers) {
        if (strcmp(msc_page__text(row, "joint"), joint) == 0) {
            return row;
        }
    }
    return NULL;
}

// Lists the joints of the first record, then those that only later ones have.
static enum msc_status list_joints(struct beside *b) {
    size_t most = 1;
    for (size_t r = 0; r < b->n; r++) {
        most += (size_t)cJSON_GetArraySize(b->layers[r]);
    }
    b->joints = msc_arena_array(&b->arena, most, sizeof b->joints[0]);
    MSC_TRY(MSC_ALLOCATED(b->joints));
    for (size_t r = 0; r < b->n; r++) {
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, b->layers[r]) {
            const char *joint = msc_page__text(row, "joint");
            bool is_new = true;
            for (size_t before = 0; before < r && is_new; before++) {
                is_new = !find_joint(b->layers[before], joint);
            }
            if (is_new) {
                b->joints[b->n_joints++] = joint;
            }
            for (size_t q = 0; q < N_QUANTITIES; q++) {
                b->greatest[q] = fmax(b->greatest[q], msc_page__number(row, quantities[q].key));
            }
        }
    }
    return MSC_OK;
}

// The longest bar of a joint in any record, from 0 to 1.
static double longest_bar(const struct beside *b, const char *joint) {
    double longest = 0.0;
    for (size_t r = 0; r < b->n; r++) {
        const cJSON *row = find_joint(b->layers[r], joint);
        for (size_t q = 0; q < N_QUANTITIES; q++) {
            double value = msc_page__number(row, quantities[q].key); // NaN: no bar
            longest = b->greatest[q] > 0.0 ? fmax(longest, value / b->greatest[q]) : longest;
        }
    }
    return longest;
}

static enum msc_status mark_joints(bool is_marked[], struct beside *b) {
    double *bars = msc_arena_array(&b->arena, b->n_joints + 1, sizeof bars[0]);
    MSC_TRY(MSC_ALLOCATED(bars));
    for (size_t i = 0; i < b->n_joints; i++) {
        bars[i] = longest_bar(b, b->joints[i]);
    }
    return msc_page__mark_longest(is_marked, bars, b->n_joints, MOST_ROWS);
}

// ---- The table ----------------------------------------------------------------------------------

static void write_head(struct msc_str *out, const struct beside *b) {
    msc_str_append(out, "<div class=\"scroll grouped\" tabindex=\"0\" role=\"region\" "
                        "aria-label=\"Layers side by side\"><table><thead>"
                        "<tr><th scope=\"col\" rowspan=\"2\">layer</th>");
    msc_str_printf(out, "<th scope=\"colgroup\" colspan=\"%zu\">bits</th>", b->n);
    for (size_t q = 0; q < N_QUANTITIES; q++) {
        msc_str_printf(out, "<th scope=\"colgroup\" colspan=\"%zu\">%s</th>", b->n,
                       quantities[q].name);
    }
    msc_str_append(out, "</tr>\n<tr>");
    for (size_t q = 0; q < 1 + N_QUANTITIES; q++) {
        for (size_t r = 0; r < b->n; r++) {
            msc_str_append(out, "<th scope=\"col\">");
            msc_html_name(out, b->names[r]);
            msc_str_append(out, "</th>");
        }
    }
    msc_str_append(out, "</tr></thead><tbody>\n");
}

static void write_error(struct msc_str *out, double value) {
    char text[32] = "–";
    if (!isnan(value)) {
        snprintf(text, sizeof text, value > 0.0 ? "%.2g %%" : "0", 100.0 * value);
    }
    msc_str_append(out, text);
}

// The least value of a quantity is in bold, unless all are equal.
static void write_values(struct msc_str *out, const cJSON *const rows[], size_t n, size_t q) {
    double least = INFINITY, most = -INFINITY;
    for (size_t r = 0; r < n; r++) {
        double value = msc_page__number(rows[r], quantities[q].key);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    for (size_t r = 0; r < n; r++) {
        double value = msc_page__number(rows[r], quantities[q].key);
        msc_str_append(out, value == least && least < most ? "<td class=\"b best\">"
                                                           : "<td class=\"b\">");
        if (q == 0) {
            write_error(out, value);
        } else { // layers without weights or time have a dash
            msc_page__quantity(out, quantities[q].metric, value > 0.0 ? value : NAN);
        }
        msc_str_append(out, "</td>");
    }
}

static void write_rows(struct msc_str *out, const struct beside *b, const bool is_marked[]) {
    for (size_t i = 0; i < b->n_joints; i++) {
        const cJSON *rows[MOST_RECORDS] = {NULL};
        if (!is_marked[i]) {
            continue;
        }
        msc_page__row(out, NULL);
        msc_page__head_cell(out, b->joints[i]);
        for (size_t r = 0; r < b->n; r++) {
            rows[r] = find_joint(b->layers[r], b->joints[i]);
            if (rows[r]) {
                msc_page__bits_cell(out, rows[r]);
            } else {
                msc_page__cell(out, "–");
            }
        }
        for (size_t q = 0; q < N_QUANTITIES; q++) {
            write_values(out, rows, b->n, q);
        }
        msc_str_append(out, "</tr>\n");
    }
}

static double sum_of(const cJSON *layers, const char *key) {
    const cJSON *row = NULL;
    double sum = 0.0;
    cJSON_ArrayForEach(row, layers) {
        double value = msc_page__number(row, key);
        sum += isnan(value) ? 0.0 : value;
    }
    return sum;
}

static void write_sums(struct msc_str *out, const struct beside *b) {
    msc_str_append(out, "<tr><th scope=\"row\" class=\"best\">sum</th>");
    for (size_t r = 0; r < 2 * b->n; r++) {
        msc_str_append(out, "<td></td>");
    }
    for (size_t q = 1; q < N_QUANTITIES; q++) {
        for (size_t r = 0; r < b->n; r++) {
            msc_str_append(out, "<td class=\"b best\">");
            msc_page__quantity(out, quantities[q].metric, sum_of(b->layers[r], quantities[q].key));
            msc_str_append(out, "</td>");
        }
    }
    msc_str_append(out, "</tr>\n");
}

static enum msc_status write_layers(struct msc_str *out, struct beside *b) {
    MSC_TRY(list_joints(b));
    bool *is_marked = msc_arena_array(&b->arena, b->n_joints + 1, sizeof is_marked[0]);
    MSC_TRY(MSC_ALLOCATED(is_marked));
    MSC_TRY(mark_joints(is_marked, b));
    msc_str_append(out,
                   "<section class=\"part\" id=\"compare-measured\">\n<h2>Layer by layer</h2>\n"
                   "<p class=\"note\">Each layer of the delivered plans, with the least value "
                   "in bold. What the columns mean is explained with each record below.");
    if (b->n_joints > MOST_ROWS) {
        msc_str_printf(
            out,
            " Of the %zu layers, the table has the %d with the greatest numbers, and the "
            "sum has all.",
            b->n_joints, MOST_ROWS);
    }
    msc_str_append(out, "</p>\n");
    msc_page__chart(out, "compare-layers", "Error, bytes or time of each layer of the records");
    write_head(out, b);
    write_rows(out, b, is_marked);
    write_sums(out, b);
    msc_page__end_table(out);
    msc_str_append(out, "</section>\n");
    return MSC_OK;
}

// ---- All of it ----------------------------------------------------------------------------------

static void write_networks(struct msc_str *out, const cJSON *records) {
    const cJSON *record = NULL;
    int n = 0;
    cJSON_ArrayForEach(record, records) {
        n += msc_json_get(msc_json_get(record, "graph"), "joints") != NULL;
    }
    if (n > 1) {
        msc_str_append(out,
                       "<section class=\"part\" id=\"compare-graphs\">\n"
                       "<h2>Two networks side by side</h2>\n"
                       "<p class=\"note\">Both move together, and a joint that you choose on one "
                       "side is chosen on the other side, too.</p>\n"
                       "<figure class=\"network pair\" data-chart=\"compare-graphs\"></figure>\n"
                       "<noscript><p class=\"note\">The picture needs scripts.</p></noscript>\n"
                       "</section>\n");
    }
}

enum msc_status msc_page__beside(struct msc_str *out, const cJSON *records) {
    struct beside b = {.n = 0};
    const cJSON *record = NULL;
    enum msc_status status = MSC_OK;
    cJSON_ArrayForEach(record, records) {
        const cJSON *layers = msc_json_get(msc_json_get(record, "layers"), "layers");
        if (layers && b.n < MOST_RECORDS) {
            b.names[b.n] = msc_page__text(record, "name");
            b.layers[b.n++] = layers;
        }
    }
    if (b.n > 1) {
        status = write_layers(out, &b);
    }
    write_networks(out, records);
    msc_arena_finish(&b.arena);
    return status;
}
