// Sections, tables and cells of a page.
#include "report/page_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "results/units.h"
#include "results/report_table.h"

#include <string.h>

void msc_page__begin(struct msc_str *out, int record, const char *id, const char *heading) {
    msc_str_printf(out,
                   "<section class=\"part\" id=\"r%d-%s\" aria-labelledby=\"r%d-%s-h\">\n"
                   "<h2 id=\"r%d-%s-h\">%s</h2>\n",
                   record, id, record, id, record, id, heading);
}

void msc_page__end(struct msc_str *out) {
    msc_str_append(out, "</section>\n");
}

void msc_page__chart(struct msc_str *out, const char *what, const char *label) {
    msc_str_printf(out, "<figure class=\"chart\" data-chart=\"%s\" data-label=\"%s\"></figure>\n",
                   what, label);
}

void msc_page__table(struct msc_str *out, const char *caption, const char *const columns[],
                     const char *kinds) {
    msc_str_append(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    msc_html_text(out, caption);
    msc_str_append(out, "\"><table><thead><tr>");
    for (size_t i = 0; columns[i]; i++) {
        bool is_number = kinds[0] == 'n';
        kinds += kinds[0] != '\0';
        msc_str_append(out, is_number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        msc_page__metric(out, columns[i]);
        msc_str_append(out, "</th>");
    }
    msc_str_append(out, "</tr></thead><tbody>\n");
}

void msc_page__begin_details(struct msc_str *out, const char *what) {
    msc_str_printf(out, "<details class=\"table\" open><summary>%s</summary>\n", what);
}

void msc_page__end_table(struct msc_str *out) {
    msc_str_append(out, "</tbody></table></div>\n");
}

void msc_page__row(struct msc_str *out, const char *class_name) {
    msc_str_append(out, "<tr");
    if (class_name) {
        msc_str_printf(out, " class=\"%s\"", class_name);
    }
    msc_str_char(out, '>');
}

void msc_page__head_cell(struct msc_str *out, const char *text) {
    msc_str_append(out, "<th scope=\"row\">");
    msc_html_name(out, text);
    msc_str_append(out, "</th>");
}

void msc_page__text_cell(struct msc_str *out, const char *text, bool is_number) {
    msc_str_append(out, is_number ? "<td class=\"n\">" : "<td>");
    msc_html_name(out, text);
    msc_str_append(out, "</td>");
}

void msc_page__cell(struct msc_str *out, const char *text) {
    msc_page__text_cell(out, text, false);
}

void msc_page__value(struct msc_str *out, double value) {
    bool is_whole = fabs(value) < 1e15 && value == floor(value);
    if (isnan(value)) {
        msc_str_append(out, "–");
    } else {
        msc_str_printf(out, is_whole ? "%.0f" : "%.4g", value);
    }
}

void msc_page__metric(struct msc_str *out, const char *metric) {
    struct msc_str name = {0};
    msc_unit_name(&name, metric);
    bool is_own = strcmp(msc_str_text(&name), metric) == 0;
    if (is_own) {
        msc_html_name(out, metric);
    } else {
        msc_str_append(out, "<span title=\"");
        msc_html_name(out, metric);
        msc_str_append(out, "\">");
        msc_html_text(out, msc_str_text(&name));
        msc_str_append(out, "</span>");
    }
    out->failed |= name.failed;
    msc_str_finish(&name);
}

void msc_page__quantity(struct msc_str *out, const char *metric, double value) {
    struct msc_str text = {0};
    msc_unit_value(&text, metric, value);
    msc_html_text(out, msc_str_text(&text));
    out->failed |= text.failed;
    msc_str_finish(&text);
}

void msc_page__quantity_cell(struct msc_str *out, const char *metric, double value) {
    msc_str_append(out, "<td class=\"n\">");
    msc_page__quantity(out, metric, value);
    msc_str_append(out, "</td>");
}

void msc_page__number_cell(struct msc_str *out, double value) {
    msc_str_append(out, "<td class=\"n\">");
    msc_page__value(out, value);
    msc_str_append(out, "</td>");
}

void msc_page__bar_cell(struct msc_str *out, double share, const char *text) {
    double width = isnan(share) ? 0.0 : 80.0 * fmin(fmax(share, 0.0), 1.0);
    msc_str_printf(
        out,
        "<td class=\"b\"><svg class=\"bar\" width=\"80\" height=\"10\" aria-hidden=\"true\">"
        "<rect class=\"track\" width=\"80\" height=\"10\" rx=\"2\"/>"
        "<rect width=\"%.1f\" height=\"10\" rx=\"2\"/></svg> ",
        width);
    msc_html_text(out, text);
    msc_str_append(out, "</td>");
}

void msc_page__reasons(struct msc_str *out, const cJSON *verdict) {
    const cJSON *reason = NULL;
    msc_str_append(out, "<ul class=\"reasons\">\n");
    cJSON_ArrayForEach(reason, msc_json_get(verdict, "reasons")) {
        msc_str_append(out, "<li>");
        msc_html_text(out, reason->valuestring);
        msc_str_append(out, "</li>\n");
    }
    msc_str_append(out, "</ul>\n");
    if (msc_json_get(verdict, "command")) {
        msc_str_append(out, "<p class=\"command\"><code>");
        msc_html_text(out, msc_page__text(verdict, "command"));
        msc_str_append(out, "</code></p>\n");
    }
}

// ---- Plans ------------------------------------------------------------------------------------

// CSS class of a plan's row: the winner, the uncompressed model or an infeasible plan.
static const char *class_of_plan(const char *name) {
    bool is_best = strncmp(name, "winner: ", 8) == 0 || strncmp(name, "distilled: ", 11) == 0;
    return is_best                              ? "best"
           : strcmp(name, "uncompressed") == 0  ? "quiet"
           : strstr(name, "infeasible") != NULL ? "out"
                                                : NULL;
}

// The place of a metric in the table: first the accuracy, then what is bounded, then the
// objectives.
static int rank_of(const char *column, const cJSON *numbers) {
    static const char *const lists[] = {"bounds", "objectives"};
    const char *metric = msc_unit_metric(column);
    if (strstr(metric, "accuracy")) {
        return 0;
    }
    for (int l = 0; l < 2; l++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, msc_json_get(numbers, lists[l])) {
            if (strcmp(msc_page__text(item, "metric"), metric) == 0) {
                return 1 + l;
            }
        }
    }
    return 3;
}

static void write_line(struct msc_str *out, const struct msc_report_table *t, size_t c) {
    size_t width = t->n_columns + 1;
    msc_str_append(out, "<tr><th scope=\"row\">");
    msc_page__metric(out, t->columns[c]);
    msc_str_append(out, "</th>");
    for (size_t r = 0; r < t->n_rows; r++) {
        const char *class_name = class_of_plan(t->cells[r * width]);
        const char *cell = t->cells[r * width + 1 + c];
        double value = NAN;
        msc_str_printf(out, "<td class=\"n %s\">", class_name ? class_name : "");
        if (msc_parse_double(&value, cell)) {
            msc_page__quantity(out, t->columns[c], value);
        } else {
            msc_html_text(out, cell);
        }
        msc_str_append(out, "</td>");
    }
    msc_str_append(out, "</tr>\n");
}

// Writes a table with a row for each metric and a column for each plan.
static void write_across(struct msc_str *out, const struct msc_report_table *t,
                         const cJSON *numbers) {
    size_t width = t->n_columns + 1;
    msc_str_append(
        out, "<div class=\"scroll whole\" tabindex=\"0\" role=\"region\" aria-label=\"Plans\">"
             "<table class=\"plans\"><thead><tr><th scope=\"col\">metric</th>");
    for (size_t r = 0; r < t->n_rows; r++) {
        const char *class_name = class_of_plan(t->cells[r * width]);
        msc_str_printf(out, "<th scope=\"col\" class=\"n %s\">", class_name ? class_name : "");
        msc_html_name(out, t->cells[r * width]);
        msc_str_append(out, "</th>");
    }
    msc_str_append(out, "</tr></thead><tbody>\n");
    for (int rank = 0; rank <= 3; rank++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            if (rank_of(t->columns[c], numbers) == rank && !msc_report_table_is_empty(t, c)) {
                write_line(out, t, c);
            }
        }
    }
    msc_page__end_table(out);
}

enum msc_status msc_page__plans(struct msc_str *out, const cJSON *numbers) {
    struct msc_report_table table = {0};
    enum msc_status status = msc_report_table_fill(&table, numbers);
    if (status == MSC_OK && table.n_rows > 0) {
        write_across(out, &table, numbers);
    } else if (status == MSC_OK) {
        msc_str_append(out, "<p>No trial has a result yet.</p>\n");
    }
    msc_report_table_finish(&table);
    return status;
}
