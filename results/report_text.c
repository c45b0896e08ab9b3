// Writes the report as text: a few sentences and one table.
#include "results/report.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "base/table.h"
#include "env/api/drop.h"
#include "env/api/space.h"
#include "results/report_drop.h"
#include "results/report_rows.h"
#include "results/report_runtime.h"
#include "results/report_sameness.h"
#include "results/report_table.h"

#include <stdio.h>
#include <string.h>

// Metrics that are neither losses nor exact costs have their own names and explanations.
static const struct {
    const char *column;
    const char *label;
    const char *note;
} explained[] = {
    {"noise", "noise_ratio",
     "relative change of distill_loss that rounding can cause: losses closer than this are equal"},
    {"isolated_loss_sum", "isolated_loss_sum",
     "sum of the losses of the plan's choices, each measured with all others float"},
};

const char *msc_report_label(const char *column) {
    for (size_t i = 0; i < sizeof explained / sizeof explained[0]; i++) {
        if (strcmp(column, explained[i].column) == 0) {
            return explained[i].label;
        }
    }
    return column;
}

// Fills a table with a line for each plan.
static void fill_down(struct msc_table *down, const struct msc_report_table *table) {
    msc_table_add(down, "");
    down->n_columns = 1;
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!msc_report_table_is_empty(table, i)) {
            msc_table_add_styled(down, msc_report_label(table->columns[i]), MSC_STYLE_HEADING);
            down->n_columns++;
        }
    }
    for (size_t r = 0; r < table->n_rows; r++) {
        const char(*cells)[MSC_REPORT_CELL_BYTES] =
            (const char(*)[MSC_REPORT_CELL_BYTES])table->cells + r * (table->n_columns + 1);
        msc_table_add_styled(down, cells[0], table->styles[r]);
        for (size_t i = 0; i < table->n_columns; i++) {
            if (!msc_report_table_is_empty(table, i)) {
                msc_report_add_cell(down, table->columns[i], cells[i + 1], table->styles[r]);
            }
        }
    }
}

// Fills a table with a line for each metric, which is easier to read if there are few plans.
static void fill_across(struct msc_table *across, const struct msc_report_table *table) {
    across->n_columns = table->n_rows + 1;
    across->indent = 2;
    across->least_columns = 10;
    for (size_t line = 0; line < table->n_columns + 1; line++) {
        if (line > 0 && msc_report_table_is_empty(table, line - 1)) {
            continue;
        }
        msc_table_add(across, line > 0 ? msc_report_label(table->columns[line - 1]) : "");
        for (size_t r = 0; r < table->n_rows; r++) {
            const char *cell = table->cells[r * (table->n_columns + 1) + line];
            bool is_heading = line == 0 && table->styles[r] == MSC_STYLE_PLAIN;
            if (line > 0) {
                msc_report_add_cell(across, table->columns[line - 1], cell, table->styles[r]);
            } else {
                msc_table_add_styled(across, cell,
                                     is_heading ? MSC_STYLE_HEADING : table->styles[r]);
            }
        }
    }
}

// Explains the standard error of a drop, "accuracy_drop_se".
static void write_error_note(struct msc_str *out, const char *column) {
    size_t length = strlen(column), end = strlen(MSC_DROP_ERROR_SUFFIX);
    size_t kept = length - end + strlen(MSC_DROP_SUFFIX);
    if (length > end && strcmp(column + length - end, MSC_DROP_ERROR_SUFFIX) == 0 &&
        !strchr(column, '.')) {
        msc_str_printf(out, "%s: standard error of %.*s, from the differences sample by sample\n",
                       column, (int)kept, column);
    }
}

static void write_notes(struct msc_str *out, const struct msc_report_table *table) {
    for (size_t i = 0; i < table->n_columns; i++) {
        write_error_note(out, table->columns[i]);
        for (size_t k = 0; k < sizeof explained / sizeof explained[0]; k++) {
            if (strcmp(table->columns[i], explained[k].column) == 0 &&
                !msc_report_table_is_empty(table, i)) {
                msc_str_printf(out, "%s: %s\n", explained[k].label, explained[k].note);
            }
        }
    }
}

static void write_table(struct msc_str *out, const struct msc_report_table *table,
                        size_t n_columns) {
    enum { FEW = 6 };
    struct msc_table shown = {0};
    if (table->n_rows <= FEW) {
        fill_across(&shown, table);
    } else {
        fill_down(&shown, table);
    }
    msc_table_write(out, &shown, n_columns);
    msc_table_finish(&shown);
    write_notes(out, table);
}

// Names the table from which exact latencies were taken.
static void write_latency(struct msc_str *out, const cJSON *report) {
    const cJSON *of = msc_json_get(report, "latency_of");
    if (of) {
        msc_str_append(out, "latency_us: of ");
        msc_shown_append(out, msc_report__text(report, "latency_of"));
        msc_str_append(out, ", from a table measured before the search\n");
    }
}

// ---- The reranked trials ------------------------------------------------------------------------

static enum msc_status write_reranked(struct msc_str *out, const cJSON *report, size_t n_columns) {
    const cJSON *reranked = msc_json_get(report, "reranked");
    const cJSON *first = cJSON_GetArrayItem(msc_json_get(reranked, "plans"), 0);
    struct msc_report_table table = {0};
    struct msc_table down = {0};
    char name[MSC_REPORT_CELL_BYTES];
    if (!first) {
        return MSC_OK;
    }
    msc_report_name_reranked(name, first);
    int n_plans = cJSON_GetArraySize(msc_json_get(reranked, "plans"));
    msc_str_printf(out, "%d plan%s, ordered by measured ", n_plans, n_plans == 1 ? "" : "s");
    msc_shown_append(out, msc_report__text(reranked, "by"));
    msc_str_append(out, ": ");
    msc_shown_append(out, name);
    msc_str_append(out, ", is first and delivered\n");
    enum msc_status status = msc_report_table_fill_reranked(&table, report, reranked);
    if (status == MSC_OK) {
        fill_down(&down, &table);
        msc_table_write(out, &down, n_columns);
    }
    msc_table_finish(&down);
    msc_report_table_finish(&table);
    return status;
}

// ---- The sentences ----------------------------------------------------------------------------

static void write_end(struct msc_str *out, const char *name) {
    for (int i = 0; i < MSC_SEARCH_END_COUNT; i++) {
        enum msc_search_end end = (enum msc_search_end)i;
        if (strcmp(name, msc_search_end_name(end)) == 0) {
            msc_str_printf(out, "ended: %s\n", msc_search_end_text(end));
        }
    }
}

static void write_counts(struct msc_str *out, const cJSON *report) {
    static const char *const states[] = {"complete", "pruned", "infeasible", "failed"};
    static const char *const kinds[] = {"baselines", "told", "repeats", "retries"};
    const cJSON *counts = msc_json_get(report, "counts");
    msc_str_append(out, "record: ");
    msc_shown_append(out, msc_json_get(report, "record")->valuestring);
    msc_str_printf(out, "\ntrials: %.0f", msc_json_get(counts, "trials")->valuedouble);
    const char *before = " (";
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (msc_json_get(counts, states[i])->valuedouble > 0.0) {
            msc_str_printf(out, "%s%.0f %s", before, msc_json_get(counts, states[i])->valuedouble,
                           states[i]);
            before = ", ";
        }
    }
    msc_str_append(out, before[0] == ',' ? ")" : "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const cJSON *n = msc_json_get(counts, kinds[i]); // NULL if there are none
        if (n && n->valuedouble > 0.0) {
            msc_str_printf(out, ", %.0f %s", n->valuedouble, kinds[i]);
        }
    }
    msc_str_char(out, '\n');
    if (msc_json_get(report, "end")) {
        write_end(out, msc_report__text(report, "end"));
    }
}

static void write_left_out(struct msc_str *out, const cJSON *report) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, msc_json_get(report, "left_out")) {
        if (msc_json_get(row, "held_out")) {
            continue; // msc_report__write_drops counts these lines
        }
        msc_str_printf(out, "line %.0f (trial %.0f) could not be reproduced and is left out: ",
                       msc_json_get(row, "line")->valuedouble,
                       msc_json_get(row, "id")->valuedouble);
        msc_shown_append(out, msc_report__text(row, "difference"));
        msc_str_char(out, '\n');
    }
}

static void write_verdict(struct msc_str *out, const cJSON *report) {
    const cJSON *winner = msc_json_get(report, "winner");
    if (!cJSON_IsObject(winner) && msc_report__has_held_out(report)) {
        msc_str_append(out, "no trial meets every bound on the validation samples\n");
    } else if (!cJSON_IsObject(winner)) {
        msc_str_append(out, "no trial has a result yet\n");
    } else if (strcmp(msc_json_get(winner, "state")->valuestring, "complete") != 0) {
        msc_style_begin(out, MSC_STYLE_WARNING);
        msc_str_append(out, "no trial meets every bound");
        msc_style_end(out);
        msc_str_printf(out, ": the nearest trial violates them by %.3g in total\n",
                       msc_json_get(winner, "violation")->valuedouble);
    } else if (msc_json_get(winner, "label") && !msc_json_get(report, "delivered")) {
        const char *label = msc_json_get(winner, "label")->valuestring;
        bool is_uniform = msc_baseline_kind(label)[0] != '\0';
        msc_str_printf(out, "nothing found is better than %s",
                       is_uniform ? "the uniform plan " : "");
        msc_shown_append(out, label);
        msc_str_append(out, is_uniform ? "\n" : " of its first plans\n");
    }
}

enum msc_status msc_report_text(struct msc_str *out, const struct cJSON *report) {
    return msc_report_text_folded(out, report, 0);
}

enum msc_status msc_report_text_folded(struct msc_str *out, const struct cJSON *report,
                                       size_t n_columns) {
    struct msc_report_table table = {0};
    write_counts(out, report);
    write_left_out(out, report);
    write_verdict(out, report);
    msc_report__write_drops(out, report);
    msc_report__write_sameness(out, report);
    enum msc_status status = msc_report_table_fill(&table, report);
    if (status == MSC_OK && table.n_rows > 0) {
        write_table(out, &table, n_columns);
        write_latency(out, report);
    }
    if (status == MSC_OK && msc_json_get(report, "distilled")) {
        msc_report_distilled_text(out, msc_json_get(report, "distilled"));
        msc_str_char(out, '\n');
    }
    if (status == MSC_OK) {
        status = msc_report__write_runtime(out, report);
    }
    if (status == MSC_OK) {
        status = write_reranked(out, report, n_columns);
    }
    if (status == MSC_OK) {
        status = msc_str_status(out);
    }
    msc_report_table_finish(&table);
    return status;
}
