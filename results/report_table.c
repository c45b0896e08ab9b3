// Fills the table of a report's plans.
#include "results/report_table.h"

#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "env/api/space.h"
#include "results/report_drop.h"
#include "results/report_rows.h"
#include "results/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_column(struct msc_report_table *table, const char *name) {
    for (size_t i = 0; i < table->n_columns; i++) {
        if (strcmp(table->columns[i], name) == 0) {
            return;
        }
    }
    if (table->n_columns < MSC_REPORT_COLUMNS) {
        table->columns[table->n_columns++] = name;
    }
}

// Adds columns for objectives and bounds, and for the drop of each bound that is one.
static enum msc_status add_goal_columns(struct msc_report_table *table, const cJSON *report) {
    static const char *const keys[] = {"objectives", "bounds"};
    const cJSON *item = NULL;
    table->report = report;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cJSON_ArrayForEach(item, msc_json_get(report, keys[i])) {
            struct msc_report_drop drop;
            add_column(table, msc_json_get(item, "metric")->valuestring);
            if (msc_report__read_drop(&drop, item)) {
                const char *name = msc_arena_strdup(&table->arena, drop.name);
                MSC_TRY(MSC_ALLOCATED(name));
                add_column(table, name);
            }
        }
    }
    return MSC_OK;
}

static void add_metric_columns(struct msc_report_table *table, const cJSON *report) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, msc_json_get(report, "metrics")) {
        add_column(table, item->valuestring);
    }
}

// Adds columns for the numbers of an object. Names of nested numbers are joined by dots:
// "runtime.validation.distill_loss".
static enum msc_status add_columns_of(struct msc_report_table *table, const char *before,
                                      const cJSON *object) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object) {
        bool is_number = cJSON_IsNumber(item);
        if (!is_number && !cJSON_IsObject(item)) {
            continue;
        }
        const char *name =
            msc_arena_printf(&table->arena, "%s%s%s", before, before[0] ? "." : "", item->string);
        MSC_TRY(MSC_ALLOCATED(name));
        if (is_number) {
            add_column(table, name);
        } else {
            MSC_TRY(add_columns_of(table, name, item));
        }
    }
    return MSC_OK;
}

static enum msc_status add_reevaluated_columns(struct msc_report_table *table, const cJSON *row) {
    return add_columns_of(table, "", msc_json_get(row, "examined"));
}

// Finds a column's number in an object and its nested objects. Names may contain dots themselves.
static const cJSON *find_in(const cJSON *object, const char *column) {
    const cJSON *item = msc_json_get(object, column);
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

// The number of a row in a column; NaN: the row has no such number.
static double report_find_value(const cJSON *report, const cJSON *row, const char *column) {
    const cJSON *metrics = msc_json_get(row, "metrics");
    const cJSON *value = msc_json_get(metrics, column);
    struct msc_report_drop drop;
    if (!value && msc_report__find_drop(&drop, report, column)) {
        return msc_report__drop_of(&drop, metrics);
    }
    value = value ? value : find_in(msc_json_get(row, "examined"), column);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static enum msc_status format_cell(char cell[MSC_REPORT_CELL_BYTES], double number) {
    struct msc_str text = {0};
    if (!isnan(number)) {
        bool is_whole = number > -1e15 && number < 1e15 && number == (double)(int64_t)number;
        msc_str_printf(&text, is_whole ? "%.0f" : "%.5g", number);
    } else {
        msc_str_append(&text, "-");
    }
    enum msc_status status = msc_str_status(&text);
    snprintf(cell, MSC_REPORT_CELL_BYTES, "%s", msc_str_text(&text));
    msc_str_finish(&text);
    return status;
}

// True if the plan of this row cannot win.
static bool is_out(const cJSON *row) {
    const cJSON *state = msc_json_get(row, "state");
    return msc_json_get(row, "left_out") || msc_json_get(row, "failure") ||
           (cJSON_IsString(state) && strcmp(state->valuestring, "complete") != 0);
}

static enum msc_status report_add_row(struct msc_report_table *table, const char *name,
                                      const cJSON *row) {
    size_t width = table->n_columns + 1;
    size_t first = table->n_rows * width;
    MSC_TRY(msc_grow(&table->cells, &table->cells_capacity, first + width, MSC_REPORT_CELL_BYTES));
    MSC_TRY(msc_grow(&table->styles, &table->styles_capacity, table->n_rows + 1,
                     sizeof table->styles[0]));
    table->styles[table->n_rows] = is_out(row) ? MSC_STYLE_FAINT : MSC_STYLE_PLAIN;
    snprintf(table->cells[first], MSC_REPORT_CELL_BYTES, "%s", name);
    for (size_t i = 0; i < table->n_columns; i++) {
        MSC_TRY(format_cell(table->cells[first + 1 + i],
                            report_find_value(table->report, row, table->columns[i])));
    }
    table->n_rows++;
    return MSC_OK;
}

void msc_report_name_row(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row) {
    const cJSON *label = msc_json_get(row, "label");
    const char *state = msc_json_get(row, "state")->valuestring;
    const char *remark = msc_json_get(row, "left_out") ? "left out" : state;
    bool is_usual = strcmp(remark, "complete") == 0;
    if (label) {
        snprintf(name, MSC_REPORT_CELL_BYTES, "%s%.20s%s%s", msc_baseline_kind(label->valuestring),
                 label->valuestring, is_usual ? "" : ", ", is_usual ? "" : remark);
    } else {
        snprintf(name, MSC_REPORT_CELL_BYTES, "trial %.0f%s%s",
                 msc_json_get(row, "id")->valuedouble, is_usual ? "" : ", ",
                 is_usual ? "" : remark);
    }
}

// Marks the last row as the best plan, unless that plan cannot win.
static void mark_best(struct msc_report_table *table) {
    enum msc_style *style = &table->styles[table->n_rows - 1];
    *style = *style == MSC_STYLE_FAINT ? *style : MSC_STYLE_BEST;
}

// Adds a plan's row, named by the plan's role in the search.
static enum msc_status add_named_row(struct msc_report_table *table, const char *what,
                                     const cJSON *plan, const cJSON *row) {
    char name[MSC_REPORT_CELL_BYTES];
    char text[MSC_REPORT_CELL_BYTES];
    msc_report_name_row(name, plan);
    snprintf(text, sizeof text, "%s%.*s", what, (int)(sizeof text - strlen(what) - 1), name);
    return report_add_row(table, text, row);
}

static const cJSON *find_id(const cJSON *list, double id) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (msc_json_get(row, "id")->valuedouble == id) {
            return row;
        }
    }
    return NULL;
}

// Adds each listed trial once, except the winner, which has its row already. If a trial is also a
// baseline, the baseline's row is used, because it has more numbers.
static enum msc_status add_lists(struct msc_report_table *table, const cJSON *report,
                                 double winner_id) {
    static const char *const keys[] = {"top", "front", "baselines"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, msc_json_get(report, keys[k])) {
            double id = msc_json_get(row, "id")->valuedouble;
            bool is_listed = id == winner_id;
            for (size_t i = 0; i < k; i++) {
                is_listed = is_listed || find_id(msc_json_get(report, keys[i]), id);
            }
            if (!is_listed) {
                const cJSON *baseline = find_id(msc_json_get(report, "baselines"), id);
                char name[MSC_REPORT_CELL_BYTES];
                msc_report_name_row(name, row);
                MSC_TRY(report_add_row(table, name, baseline ? baseline : row));
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_report_table_fill(struct msc_report_table *table, const struct cJSON *report) {
    const cJSON *winner = msc_json_get(report, "winner");
    const cJSON *row = NULL;
    double winner_id = -1.0;
    MSC_TRY(add_goal_columns(table, report));
    add_metric_columns(table, report);
    MSC_TRY(add_reevaluated_columns(table, winner));
    cJSON_ArrayForEach(row, msc_json_get(report, "baselines")) {
        MSC_TRY(add_reevaluated_columns(table, row));
    }
    const cJSON *delivered = msc_json_get(report, "delivered");
    bool is_winner = !delivered && !msc_report__is_another(report);
    MSC_TRY(add_reevaluated_columns(table, delivered));
    if (delivered) {
        MSC_TRY(add_named_row(table, "distilled: ", delivered, delivered));
        mark_best(table);
    }
    if (cJSON_IsObject(winner)) {
        winner_id = msc_json_get(winner, "id")->valuedouble;
        MSC_TRY(
            add_named_row(table, is_winner ? "winner: " : "best by the search: ", winner, winner));
        if (is_winner) {
            mark_best(table);
        }
    }
    if (!delivered && msc_json_get(report, "distilled")) { // the improved plan is not delivered
        MSC_TRY(report_add_row(table, "distilled", msc_json_get(report, "distilled")));
    }
    MSC_TRY(add_lists(table, report, winner_id));
    if (msc_json_get(report, "reference")) {
        MSC_TRY(report_add_row(table, "uncompressed", msc_json_get(report, "reference")));
    }
    return MSC_OK;
}

// Names a reranked plan: "trial 17, was 3", "uniform 8", "uncompressed".
void msc_report_name_reranked(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row) {
    const cJSON *rank = msc_json_get(row, "rank");
    char plan[MSC_REPORT_CELL_BYTES];
    if (!msc_json_get(row, "id")) {
        snprintf(name, MSC_REPORT_CELL_BYTES, "uncompressed");
        return;
    }
    msc_report_name_row(plan, row);
    snprintf(name, MSC_REPORT_CELL_BYTES, "%s", plan);
    if (rank) {
        snprintf(name, MSC_REPORT_CELL_BYTES, "%.28s, was %.0f%s", plan, rank->valuedouble,
                 msc_json_get(row, "failure") ? ", failed" : "");
    }
}

enum msc_status msc_report_table_fill_reranked(struct msc_report_table *table, const cJSON *report,
                                               const cJSON *reranked) {
    static const char *const lists[] = {"plans", "references"};
    const cJSON *row = NULL;
    MSC_TRY(add_goal_columns(table, report));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        cJSON_ArrayForEach(row, msc_json_get(reranked, lists[i])) {
            MSC_TRY(add_reevaluated_columns(table, row));
        }
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        cJSON_ArrayForEach(row, msc_json_get(reranked, lists[i])) {
            char name[MSC_REPORT_CELL_BYTES];
            msc_report_name_reranked(name, row);
            MSC_TRY(report_add_row(table, name, row));
            if (table->n_rows == 1) {
                mark_best(table);
            }
        }
    }
    return MSC_OK;
}

bool msc_report_table_is_empty(const struct msc_report_table *table, size_t column) {
    for (size_t r = 0; r < table->n_rows; r++) {
        if (strcmp(table->cells[r * (table->n_columns + 1) + 1 + column], "-") != 0) {
            return false;
        }
    }
    return true;
}

void msc_report_add_cell(struct msc_table *out, const char *column, const char *cell,
                         enum msc_style style) {
    enum { DIGITS = 4 };
    struct msc_str text = {0};
    double value;
    if (msc_unit_has(column) && msc_parse_double(&value, cell)) {
        msc_unit_digits(&text, column, value, DIGITS);
        msc_table_add_styled(out, msc_str_text(&text), style);
        out->failed |= text.failed;
    } else {
        msc_table_add_styled(out, cell, style);
    }
    msc_str_finish(&text);
}

void msc_report_table_finish(struct msc_report_table *table) {
    msc_free(table->cells);
    msc_free(table->styles);
    msc_arena_finish(&table->arena);
    *table = (struct msc_report_table){0};
}
