// The report for people: a few sentences and one table.
#include "search/report.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "env/api/space.h"
#include "search/report_runtime.h"

#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 40
#define CELL_BYTES 48

// What is neither a loss of the plan nor an exact cost is named and explained as what it is.
static const struct {
    const char *column;
    const char *label;
    const char *note;
} explained[] = {
    {"noise", "noise_ratio",
     "how far rounding alone may move distill_loss, as a part of it: nearer losses are equal"},
    {"isolated_loss_sum", "isolated_loss_sum",
     "the losses of the plan's choices, each alone with the rest float, added up"},
};

struct table {
    struct msc_arena arena;
    const char *columns[MAX_COLUMNS]; // "distill_loss", "validation.accuracy"
    size_t n_columns;
    char (*cells)[CELL_BYTES]; // [n_rows, n_columns + 1]; the first of a row is its name
    size_t n_rows;
    size_t cells_capacity;
};

static void add_column(struct table *table, const char *name) {
    for (size_t i = 0; i < table->n_columns; i++) {
        if (strcmp(table->columns[i], name) == 0) {
            return;
        }
    }
    if (table->n_columns < MAX_COLUMNS) {
        table->columns[table->n_columns++] = name;
    }
}

static const cJSON *report_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

// Objectives and bounds.
static void add_goal_columns(struct table *table, const cJSON *report) {
    static const char *const keys[] = {"objectives", "bounds"};
    const cJSON *item = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cJSON_ArrayForEach(item, report_get(report, keys[i])) {
            add_column(table, report_get(item, "metric")->valuestring);
        }
    }
}

static void add_metric_columns(struct table *table, const cJSON *report) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, report_get(report, "metrics")) {
        add_column(table, item->valuestring);
    }
}

// Numbers of an object, those of objects in it behind its name: "runtime.validation.distill_loss".
static enum msc_status add_columns_of(struct table *table, const char *before,
                                      const cJSON *object) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object) {
        bool is_number = cJSON_IsNumber(item);
        if (!is_number && !cJSON_IsObject(item)) {
            continue;
        }
        const char *name =
            msc_arena_printf(&table->arena, "%s%s%s", before, before[0] ? "." : "", item->string);
        if (!name) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory for a report");
        }
        if (is_number) {
            add_column(table, name);
        } else {
            MSC_TRY(add_columns_of(table, name, item));
        }
    }
    return MSC_OK;
}

static enum msc_status add_reevaluated_columns(struct table *table, const cJSON *row) {
    return add_columns_of(table, "", report_get(row, "examined"));
}

// The number of a column in an object and those in it. Names may have dots themselves.
static const cJSON *find_in(const cJSON *object, const char *column) {
    const cJSON *item = report_get(object, column);
    if (item) {
        return item;
    }
    cJSON_ArrayForEach(item, object) {
        size_t length = item->string ? strlen(item->string) : 0;
        if (length > 0 && cJSON_IsObject(item) && strncmp(item->string, column, length) == 0 &&
            column[length] == '.') {
            return find_in(item, column + length + 1);
        }
    }
    return NULL;
}

// The number that stands in a row's column, or NULL.
static const cJSON *report_find_value(const cJSON *row, const char *column) {
    const cJSON *value = report_get(report_get(row, "metrics"), column);
    return value ? value : find_in(report_get(row, "examined"), column);
}

static enum msc_status format_cell(char cell[CELL_BYTES], const cJSON *value) {
    struct msc_str text = {0};
    if (cJSON_IsNumber(value)) {
        double number = value->valuedouble;
        bool is_whole = number > -1e15 && number < 1e15 && number == (double)(int64_t)number;
        msc_str_printf(&text, is_whole ? "%.0f" : "%.5g", number);
    } else {
        msc_str_append(&text, "-");
    }
    enum msc_status status = msc_str_status(&text);
    snprintf(cell, CELL_BYTES, "%s", msc_str_text(&text));
    msc_str_finish(&text);
    return status;
}

static enum msc_status report_add_row(struct table *table, const char *name, const cJSON *row) {
    size_t width = table->n_columns + 1;
    size_t first = table->n_rows * width;
    MSC_TRY(msc_grow(&table->cells, &table->cells_capacity, first + width, CELL_BYTES));
    snprintf(table->cells[first], CELL_BYTES, "%s", name);
    for (size_t i = 0; i < table->n_columns; i++) {
        MSC_TRY(
            format_cell(table->cells[first + 1 + i], report_find_value(row, table->columns[i])));
    }
    table->n_rows++;
    return MSC_OK;
}

// "trial 17", "uniform 8", with a remark for what cannot win.
static void name_row(char name[CELL_BYTES], const cJSON *row) {
    const cJSON *label = report_get(row, "label");
    const char *state = report_get(row, "state")->valuestring;
    const char *remark = report_get(row, "left_out") ? "left out" : state;
    bool is_usual = strcmp(remark, "complete") == 0;
    if (label) {
        snprintf(name, CELL_BYTES, "%s%.20s%s%s", msc_baseline_kind(label->valuestring),
                 label->valuestring, is_usual ? "" : ", ", is_usual ? "" : remark);
    } else {
        snprintf(name, CELL_BYTES, "trial %.0f%s%s", report_get(row, "id")->valuedouble,
                 is_usual ? "" : ", ", is_usual ? "" : remark);
    }
}

static const cJSON *find_id(const cJSON *list, double id) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (report_get(row, "id")->valuedouble == id) {
            return row;
        }
    }
    return NULL;
}

// The winner has its row already; any other trial gets one, where it is first listed. Baselines say
// more of a trial than the other lists do.
static enum msc_status add_lists(struct table *table, const cJSON *report, double winner_id) {
    static const char *const keys[] = {"top", "front", "baselines"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, report_get(report, keys[k])) {
            double id = report_get(row, "id")->valuedouble;
            bool is_listed = id == winner_id;
            for (size_t i = 0; i < k; i++) {
                is_listed = is_listed || find_id(report_get(report, keys[i]), id);
            }
            if (!is_listed) {
                const cJSON *baseline = find_id(report_get(report, "baselines"), id);
                char name[CELL_BYTES];
                name_row(name, row);
                MSC_TRY(report_add_row(table, name, baseline ? baseline : row));
            }
        }
    }
    return MSC_OK;
}

static enum msc_status fill_table(struct table *table, const cJSON *report) {
    const cJSON *winner = report_get(report, "winner");
    const cJSON *row = NULL;
    double winner_id = -1.0;
    add_goal_columns(table, report);
    add_metric_columns(table, report);
    MSC_TRY(add_reevaluated_columns(table, winner));
    cJSON_ArrayForEach(row, report_get(report, "baselines")) {
        MSC_TRY(add_reevaluated_columns(table, row));
    }
    if (cJSON_IsObject(winner)) {
        char name[CELL_BYTES];
        char text[CELL_BYTES];
        winner_id = report_get(winner, "id")->valuedouble;
        name_row(name, winner);
        snprintf(text, sizeof text, "winner: %.38s", name);
        MSC_TRY(report_add_row(table, text, winner));
    }
    if (report_get(report, "distilled")) {
        MSC_TRY(report_add_row(table, "distilled", report_get(report, "distilled")));
    }
    MSC_TRY(add_lists(table, report, winner_id));
    if (report_get(report, "reference")) {
        MSC_TRY(report_add_row(table, "uncompressed", report_get(report, "reference")));
    }
    return MSC_OK;
}

const char *msc_report_label(const char *column) {
    for (size_t i = 0; i < sizeof explained / sizeof explained[0]; i++) {
        if (strcmp(column, explained[i].column) == 0) {
            return explained[i].label;
        }
    }
    return column;
}

static bool is_empty_column(const struct table *table, size_t column) {
    for (size_t r = 0; r < table->n_rows; r++) {
        if (strcmp(table->cells[r * (table->n_columns + 1) + 1 + column], "-") != 0) {
            return false;
        }
    }
    return true;
}

// A line for each plan.
static void fill_down(struct msc_table *down, const struct table *table) {
    msc_table_add(down, "");
    down->n_columns = 1;
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!is_empty_column(table, i)) {
            msc_table_add(down, msc_report_label(table->columns[i]));
            down->n_columns++;
        }
    }
    for (size_t r = 0; r < table->n_rows; r++) {
        const char(*cells)[CELL_BYTES] =
            (const char(*)[CELL_BYTES])table->cells + r * (table->n_columns + 1);
        msc_table_add(down, cells[0]);
        for (size_t i = 0; i < table->n_columns; i++) {
            if (!is_empty_column(table, i)) {
                msc_table_add(down, cells[i + 1]);
            }
        }
    }
}

// A line for each metric, which is easier to read where there are few plans.
static void fill_across(struct msc_table *across, const struct table *table) {
    across->n_columns = table->n_rows + 1;
    across->indent = 2;
    across->least_columns = 10;
    for (size_t line = 0; line < table->n_columns + 1; line++) {
        if (line > 0 && is_empty_column(table, line - 1)) {
            continue;
        }
        msc_table_add(across, line > 0 ? msc_report_label(table->columns[line - 1]) : "");
        for (size_t r = 0; r < table->n_rows; r++) {
            msc_table_add(across, table->cells[r * (table->n_columns + 1) + line]);
        }
    }
}

static void write_notes(struct msc_str *out, const struct table *table) {
    for (size_t i = 0; i < table->n_columns; i++) {
        for (size_t k = 0; k < sizeof explained / sizeof explained[0]; k++) {
            if (strcmp(table->columns[i], explained[k].column) == 0 && !is_empty_column(table, i)) {
                msc_str_printf(out, "%s: %s\n", explained[k].label, explained[k].note);
            }
        }
    }
}

static void write_table(struct msc_str *out, const struct table *table, size_t n_columns) {
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

// Where exact latencies are from.
static void write_latency(struct msc_str *out, const cJSON *report) {
    const cJSON *of = report_get(report, "latency_of");
    if (of) {
        msc_str_append(out, "latency_us: of ");
        msc_shown_append(out, of->valuestring);
        msc_str_append(out, ", by a table measured before the search\n");
    }
}

// ---- The best in another order ----------------------------------------------------------------

// "trial 17, was 3", "uniform 8", "uncompressed".
static void name_reranked(char name[CELL_BYTES], const cJSON *row) {
    const cJSON *rank = report_get(row, "rank");
    char plan[CELL_BYTES];
    if (!report_get(row, "id")) {
        snprintf(name, CELL_BYTES, "uncompressed");
        return;
    }
    name_row(plan, row);
    snprintf(name, CELL_BYTES, "%s", plan);
    if (rank) {
        snprintf(name, CELL_BYTES, "%.28s, was %.0f%s", plan, rank->valuedouble,
                 report_get(row, "failure") ? ", failed" : "");
    }
}

static enum msc_status fill_reranked(struct table *table, const cJSON *report,
                                     const cJSON *reranked) {
    static const char *const lists[] = {"plans", "references"};
    const cJSON *row = NULL;
    add_goal_columns(table, report);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        cJSON_ArrayForEach(row, report_get(reranked, lists[i])) {
            MSC_TRY(add_reevaluated_columns(table, row));
        }
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        cJSON_ArrayForEach(row, report_get(reranked, lists[i])) {
            char name[CELL_BYTES];
            name_reranked(name, row);
            MSC_TRY(report_add_row(table, name, row));
        }
    }
    return MSC_OK;
}

static enum msc_status write_reranked(struct msc_str *out, const cJSON *report, size_t n_columns) {
    const cJSON *reranked = report_get(report, "reranked");
    const cJSON *first = cJSON_GetArrayItem(report_get(reranked, "plans"), 0);
    struct table table = {0};
    struct msc_table down = {0};
    char name[CELL_BYTES];
    if (!first) {
        return MSC_OK;
    }
    name_reranked(name, first);
    msc_str_printf(out, "%d plans, by %s as it was measured: %s, comes first, and is delivered\n",
                   cJSON_GetArraySize(report_get(reranked, "plans")),
                   report_get(reranked, "by")->valuestring, name);
    enum msc_status status = fill_reranked(&table, report, reranked);
    if (status == MSC_OK) {
        fill_down(&down, &table);
        msc_table_write(out, &down, n_columns);
    }
    msc_table_finish(&down);
    msc_free(table.cells);
    msc_arena_finish(&table.arena);
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
    const cJSON *counts = report_get(report, "counts");
    msc_str_append(out, "record: ");
    msc_shown_append(out, report_get(report, "record")->valuestring);
    msc_str_printf(out, "\ntrials: %.0f", report_get(counts, "trials")->valuedouble);
    const char *before = " (";
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (report_get(counts, states[i])->valuedouble > 0.0) {
            msc_str_printf(out, "%s%.0f %s", before, report_get(counts, states[i])->valuedouble,
                           states[i]);
            before = ", ";
        }
    }
    msc_str_append(out, before[0] == ',' ? ")" : "");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const cJSON *n = report_get(counts, kinds[i]); // of other records only where there are some
        if (n && n->valuedouble > 0.0) {
            msc_str_printf(out, ", %.0f %s", n->valuedouble, kinds[i]);
        }
    }
    msc_str_char(out, '\n');
    if (report_get(report, "end")) {
        write_end(out, report_get(report, "end")->valuestring);
    }
}

static void write_left_out(struct msc_str *out, const cJSON *report) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, report_get(report, "left_out")) {
        msc_str_printf(out, "line %.0f (trial %.0f) does not come out again, and is left out: ",
                       report_get(row, "line")->valuedouble, report_get(row, "id")->valuedouble);
        msc_shown_append(out, report_get(row, "difference")->valuestring);
        msc_str_char(out, '\n');
    }
}

static void write_verdict(struct msc_str *out, const cJSON *report) {
    const cJSON *winner = report_get(report, "winner");
    if (!cJSON_IsObject(winner)) {
        msc_str_append(out, "no trial has a result yet\n");
    } else if (strcmp(report_get(winner, "state")->valuestring, "complete") != 0) {
        msc_str_printf(out,
                       "no trial meets every bound: the nearest one misses them by %.3g in all\n",
                       report_get(winner, "violation")->valuedouble);
    } else if (report_get(winner, "label")) {
        const char *label = report_get(winner, "label")->valuestring;
        bool is_uniform = msc_baseline_kind(label)[0] != '\0';
        msc_str_printf(out, "nothing found is better than %s",
                       is_uniform ? "the uniform plan " : "");
        msc_shown_append(out, label);
        msc_str_append(out, is_uniform ? "\n" : " of its plans, which it began with\n");
    }
}

enum msc_status msc_report_text(struct msc_str *out, const struct cJSON *report) {
    return msc_report_text_folded(out, report, 0);
}

enum msc_status msc_report_text_folded(struct msc_str *out, const struct cJSON *report,
                                       size_t n_columns) {
    struct table table = {0};
    write_counts(out, report);
    write_left_out(out, report);
    write_verdict(out, report);
    enum msc_status status = fill_table(&table, report);
    if (status == MSC_OK && table.n_rows > 0) {
        write_table(out, &table, n_columns);
        write_latency(out, report);
    }
    if (status == MSC_OK && report_get(report, "distilled")) {
        msc_report_distilled_text(out, report_get(report, "distilled"));
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
    msc_free(table.cells);
    msc_arena_finish(&table.arena);
    return status;
}
