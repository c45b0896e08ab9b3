// Writes a comparison as text and CSV.
#include "results/compare.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "results/report.h"
#include "results/report_table.h"
#include "results/units.h"

#include <stdio.h>
#include <string.h>

// Longer values of configurations are cut to this many bytes.
#define MOST_VALUE_BYTES 60

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(msc_json_get(object, key));
    return text ? text : "";
}

// ---- For people -------------------------------------------------------------------------------

struct page {
    struct msc_str *out;
    const cJSON *comparison, *records;
    size_t n, n_columns;
};

// Names record `i`: A, B, ... Z, R27, ...
static void name_record(char name[24], size_t i) {
    if (i < 26) {
        snprintf(name, 24, "%c", (char)('A' + (int)i));
    } else {
        snprintf(name, 24, "R%zu", i + 1);
    }
}

static void begin_table(struct msc_table *table, const struct page *p, const char *first) {
    char name[24];
    *table = (struct msc_table){.n_columns = p->n + 1, .indent = 2};
    msc_table_add(table, first);
    for (size_t i = 0; i < p->n; i++) {
        name_record(name, i);
        msc_table_add(table, name);
    }
}

static void end_table(struct msc_table *table, const struct page *p) {
    msc_table_write(p->out, table, p->n_columns);
    msc_table_finish(table);
}

static void add_number(struct msc_table *table, const cJSON *value, const char *format) {
    char text[40] = "-";
    if (cJSON_IsNumber(value)) {
        snprintf(text, sizeof text, format, value->valuedouble);
    }
    msc_table_add(table, text);
}

static void write_names(const struct page *p) {
    const cJSON *record = NULL, *note = NULL;
    char name[24];
    size_t i = 0;
    cJSON_ArrayForEach(record, p->records) {
        name_record(name, i++);
        msc_str_printf(p->out, "%s: ", name);
        msc_shown_append(p->out, text_of(record, "record"));
        msc_str_char(p->out, '\n');
    }
    cJSON_ArrayForEach(note, msc_json_get(p->comparison, "notes")) {
        msc_str_append(p->out, "note: ");
        msc_shown_append(p->out, note->valuestring);
        msc_str_char(p->out, '\n');
    }
}

// Adds a row of counts unless all are 0.
static void add_counts(struct msc_table *table, const struct page *p, const char *key,
                       const char *label, const char *format) {
    const cJSON *record = NULL;
    bool has_any = false;
    cJSON_ArrayForEach(record, p->records) {
        const cJSON *count = msc_json_get(msc_json_get(record, "counts"), key);
        has_any = has_any || (count && count->valuedouble > 0.0);
    }
    if (!has_any) {
        return;
    }
    msc_table_add(table, label);
    cJSON_ArrayForEach(record, p->records) {
        const cJSON *count = msc_json_get(msc_json_get(record, "counts"), key);
        add_number(table, count, format);
    }
}

// Adds a row for a string of the records, unless it is the same in all of them.
static void add_texts(struct msc_table *table, const struct page *p, const char *key) {
    const cJSON *record = NULL;
    bool is_equal = true;
    cJSON_ArrayForEach(record, p->records) {
        is_equal = is_equal && strcmp(text_of(record, key), text_of(p->records->child, key)) == 0;
    }
    if (!is_equal) {
        msc_table_add(table, key);
        cJSON_ArrayForEach(record, p->records) {
            msc_table_add(table, text_of(record, key));
        }
    }
}

// The winner's cell in a column. The winner is the first row of a record's table.
static const char *winner_cell(const struct msc_report_table *of, const char *column) {
    for (size_t i = 0; i < of->n_columns && of->n_rows > 0; i++) {
        if (strcmp(of->columns[i], column) == 0) {
            return of->cells[1 + i];
        }
    }
    return "-";
}

static void add_winner_row(struct msc_table *table, const struct msc_report_table of[], size_t n,
                           const char *column) {
    bool has_any = false;
    for (size_t i = 0; i < n; i++) {
        has_any = has_any || strcmp(winner_cell(&of[i], column), "-") != 0;
    }
    if (has_any) {
        msc_table_add(table, msc_report_label(column));
    }
    for (size_t i = 0; i < n && has_any; i++) {
        msc_report_add_cell(table, column, winner_cell(&of[i], column), MSC_STYLE_PLAIN);
    }
}

// Adds the winners' names, then every number that any of them has.
static enum msc_status add_winners(struct msc_table *table, const struct page *p,
                                   struct msc_report_table of[]) {
    const cJSON *record = NULL;
    size_t i = 0;
    msc_table_add(table, "winner");
    cJSON_ArrayForEach(record, p->records) {
        bool has_winner = cJSON_IsObject(msc_json_get(record, "winner"));
        MSC_TRY(has_winner ? msc_report_table_fill(&of[i], record) : MSC_OK);
        const char *colon = has_winner ? strstr(of[i].cells[0], ": ") : NULL; // "winner: trial 3"
        msc_table_add(table, colon ? colon + 2 : "-");
        i++;
    }
    for (i = 0; i < p->n; i++) {
        for (size_t k = 0; k < of[i].n_columns; k++) {
            bool was_added = false;
            for (size_t j = 0; j < i * MSC_REPORT_COLUMNS && !was_added; j++) {
                const struct msc_report_table *earlier = &of[j / MSC_REPORT_COLUMNS];
                size_t column = j % MSC_REPORT_COLUMNS;
                was_added = column < earlier->n_columns &&
                            strcmp(earlier->columns[column], of[i].columns[k]) == 0;
            }
            if (!was_added) {
                add_winner_row(table, of, p->n, of[i].columns[k]);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status write_results(const struct page *p) {
    static const char *const counts[] = {"trials", "complete",  "pruned", "infeasible",
                                         "failed", "baselines", "told",   "repeats"};
    struct msc_report_table *of = msc_alloc_zero(p->n, sizeof *of);
    struct msc_table table;
    const cJSON *record = NULL;
    MSC_TRY(MSC_ALLOCATED(of));
    begin_table(&table, p, "");
    msc_table_add(&table, "agent");
    cJSON_ArrayForEach(record, p->records) {
        msc_table_add(&table, text_of(msc_json_get(record, "agent"), "type"));
    }
    add_texts(&table, p, "numerics");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        add_counts(&table, p, counts[i], counts[i], "%.0f");
    }
    add_counts(&table, p, "elapsed_s", "seconds", "%.4g");
    enum msc_status status = add_winners(&table, p, of);
    end_table(&table, p);
    for (size_t i = 0; i < p->n; i++) {
        msc_report_table_finish(&of[i]);
    }
    msc_free(of);
    return status;
}

static void add_json(struct msc_table *table, const cJSON *value) {
    struct msc_str json = {0};
    char cut[MOST_VALUE_BYTES - 3];
    if (value && !cJSON_IsNull(value)) {
        msc_json_write(&json, value);
    } else {
        msc_str_char(&json, '-');
    }
    if (json.length >= MOST_VALUE_BYTES) {
        msc_shown_copy(cut, sizeof cut, msc_str_text(&json));
        msc_str_clear(&json);
        msc_str_printf(&json, "%s...", cut);
    }
    msc_table_add(table, msc_str_text(&json));
    table->failed |= json.failed;
    msc_str_finish(&json);
}

static void write_differences(const struct page *p) {
    const cJSON *differences = msc_json_get(p->comparison, "differences");
    const cJSON *row = NULL;
    struct msc_table table;
    if (cJSON_GetArraySize(differences) == 0) {
        msc_str_append(p->out, "configurations: equal\n");
        return;
    }
    msc_str_append(p->out, "configurations differ in:\n");
    begin_table(&table, p, "");
    table.is_left = true;
    cJSON_ArrayForEach(row, differences) {
        const cJSON *value = NULL;
        msc_table_add(&table, text_of(row, "key"));
        cJSON_ArrayForEach(value, msc_json_get(row, "values")) {
            add_json(&table, value);
        }
    }
    end_table(&table, p);
}

static void write_objective(const struct page *p) {
    const cJSON *record = NULL;
    const char *first = NULL;
    bool is_equal = true;
    cJSON_ArrayForEach(record, p->records) {
        const char *metric =
            text_of(cJSON_GetArrayItem(msc_json_get(record, "objectives"), 0), "metric");
        is_equal = is_equal && (!first || strcmp(first, metric) == 0);
        first = first ? first : metric;
    }
    msc_shown_append(p->out, is_equal && first ? first : "objective");
}

static void write_best(const struct page *p, const char *list, const char *key, const char *after) {
    const cJSON *row = NULL;
    struct msc_table table;
    msc_str_append(p->out, "best ");
    write_objective(p);
    msc_str_printf(p->out, " after N %s:\n", after);
    begin_table(&table, p, "");
    cJSON_ArrayForEach(row, msc_json_get(p->comparison, list)) {
        const cJSON *value = NULL;
        if (msc_json_get(row, key)) {
            add_number(&table, msc_json_get(row, key), "%.6g");
        } else {
            msc_table_add(&table, "at the end");
        }
        cJSON_ArrayForEach(value, msc_json_get(row, "values")) {
            add_number(&table, value, "%.6g");
        }
    }
    end_table(&table, p);
}

static void write_choices(const struct page *p, bool has_all) {
    const cJSON *winners = msc_json_get(p->comparison, "winners");
    const cJSON *tasks = msc_json_get(winners, "tasks");
    const cJSON *row = NULL;
    double n_partial = msc_json_get(winners, "n_partial")->valuedouble;
    int n_tasks = cJSON_GetArraySize(tasks);
    struct msc_table table;
    const cJSON *record = NULL;
    size_t n_winners = 0;
    cJSON_ArrayForEach(record, p->records) {
        n_winners += cJSON_IsObject(msc_json_get(record, "winner")) ? 1 : 0;
    }
    if (n_winners < 2) {
        return;
    }
    msc_str_printf(p->out, "winners agree in %.0f of %d tasks",
                   msc_json_get(winners, "n_equal")->valuedouble, n_tasks);
    if (n_partial > 0.0) {
        msc_str_printf(p->out, "; %.0f tasks are not in all records", n_partial);
    }
    if (!has_all && msc_json_get(winners, "n_equal")->valuedouble == (double)n_tasks) {
        msc_str_char(p->out, '\n');
        return;
    }
    msc_str_append(p->out, ":\n");
    begin_table(&table, p, "");
    table.is_left = true;
    cJSON_ArrayForEach(row, tasks) {
        const cJSON *choice = NULL;
        if (!has_all && !cJSON_IsTrue(msc_json_get(row, "differ"))) {
            continue;
        }
        msc_table_add(&table, text_of(row, "task"));
        cJSON_ArrayForEach(choice, msc_json_get(row, "choices")) {
            msc_table_add(&table, cJSON_IsString(choice) ? choice->valuestring : "-");
        }
    }
    end_table(&table, p);
}

// ---- Fronts -----------------------------------------------------------------------------------

static double first_objective(const cJSON *record, const cJSON *row) {
    const cJSON *first = cJSON_GetArrayItem(msc_json_get(record, "objectives"), 0);
    const cJSON *value = msc_json_get(msc_json_get(row, "metrics"), text_of(first, "metric"));
    double sign = cJSON_IsTrue(msc_json_get(first, "maximise")) ? -1.0 : 1.0;
    return value ? sign * value->valuedouble : 0.0;
}

static const cJSON *next_on_joint(const cJSON *row) {
    while (row && !cJSON_IsTrue(msc_json_get(row, "on_joint_front"))) {
        row = row->next;
    }
    return row;
}

// Merges the fronts, which are sorted by the first objective. Returns the index of the record whose
// point comes next, or n at the end.
static size_t find_next(const struct page *p, const cJSON *const at[]) {
    size_t best = p->n, i = 0;
    double least = 0.0;
    const cJSON *record = NULL;
    cJSON_ArrayForEach(record, p->records) {
        double value = at[i] ? first_objective(record, at[i]) : 0.0;
        if (at[i] && (best == p->n || value < least)) {
            best = i;
            least = value;
        }
        i++;
    }
    return best;
}

static void add_quantity(struct msc_table *table, const char *metric, double value) {
    struct msc_str text = {0};
    msc_unit_digits(&text, metric, value, 6);
    msc_table_add(table, msc_str_text(&text));
    table->failed |= text.failed;
    msc_str_finish(&text);
}

static void add_point(struct msc_table *table, const struct page *p, size_t record,
                      const cJSON *row) {
    const cJSON *objectives = msc_json_get(p->records->child, "objectives");
    const cJSON *objective = NULL;
    char name[24];
    name_record(name, record);
    msc_table_add(table, name);
    add_number(table, msc_json_get(row, "id"), "%.0f");
    cJSON_ArrayForEach(objective, objectives) {
        const char *metric = text_of(objective, "metric");
        const cJSON *value = msc_json_get(msc_json_get(row, "metrics"), metric);
        if (cJSON_IsNumber(value) && msc_unit_has(metric)) {
            add_quantity(table, metric, value->valuedouble);
        } else {
            add_number(table, value, "%.6g");
        }
    }
}

static enum msc_status write_joint_front(const struct page *p) {
    const cJSON *objectives = msc_json_get(p->records->child, "objectives");
    struct msc_table table = {.n_columns = 2 + (size_t)cJSON_GetArraySize(objectives), .indent = 2};
    const cJSON **at = msc_alloc_zero(p->n, sizeof *at);
    const cJSON *item = NULL;
    size_t i = 0;
    MSC_TRY(MSC_ALLOCATED(at));
    msc_table_add(&table, "record");
    msc_table_add(&table, "trial");
    cJSON_ArrayForEach(item, objectives) {
        msc_table_add(&table, text_of(item, "metric"));
    }
    cJSON_ArrayForEach(item, p->records) {
        const cJSON *front = msc_json_get(item, "front");
        at[i++] = next_on_joint(front ? front->child : NULL);
    }
    while ((i = find_next(p, at)) < p->n) {
        add_point(&table, p, i, at[i]);
        at[i] = next_on_joint(at[i]->next);
    }
    msc_free(at);
    end_table(&table, p);
    return MSC_OK;
}

static enum msc_status write_fronts(const struct page *p, bool is_listed) {
    const cJSON *joint = msc_json_get(p->comparison, "joint_front");
    const cJSON *record = NULL, *row = NULL;
    char name[24];
    size_t i = 0;
    if (!joint) {
        return MSC_OK;
    }
    msc_str_printf(p->out, "common front: %.0f points", joint->valuedouble);
    cJSON_ArrayForEach(record, p->records) {
        size_t n_on = 0;
        cJSON_ArrayForEach(row, msc_json_get(record, "front")) {
            n_on += cJSON_IsTrue(msc_json_get(row, "on_joint_front")) ? 1 : 0;
        }
        name_record(name, i++);
        msc_str_printf(p->out, "; %s has %zu of its %d on it", name, n_on,
                       cJSON_GetArraySize(msc_json_get(record, "front")));
    }
    msc_str_char(p->out, '\n');
    return is_listed ? write_joint_front(p) : MSC_OK;
}

enum msc_status msc_compare_text(struct msc_str *out, const struct cJSON *comparison,
                                 const struct msc_compare_text_options *options) {
    const cJSON *records = msc_json_get(comparison, "records");
    const struct page p = {
        .out = out,
        .comparison = comparison,
        .records = records,
        .n = (size_t)cJSON_GetArraySize(records),
        .n_columns = options->n_columns,
    };
    write_names(&p);
    MSC_TRY(write_results(&p));
    write_differences(&p);
    write_best(&p, "best_over_trials", "trials", "trials");
    write_best(&p, "best_over_time", "seconds", "seconds");
    write_choices(&p, options->has_all);
    MSC_TRY(write_fronts(&p, options->has_front));
    return msc_str_status(out);
}

// ---- CSV --------------------------------------------------------------------------------------

static void begin_row(struct msc_str *out, const char *part, const char *key) {
    msc_str_csv(out, part);
    msc_str_char(out, ',');
    msc_str_csv(out, key);
}

static void write_value(struct msc_str *out, const cJSON *value) {
    msc_str_char(out, ',');
    if (cJSON_IsNumber(value)) {
        msc_str_double(out, value->valuedouble);
    } else if (cJSON_IsString(value)) {
        msc_str_csv(out, value->valuestring);
    }
}

static void write_values(struct msc_str *out, const cJSON *values) {
    const cJSON *value = NULL;
    cJSON_ArrayForEach(value, values) {
        write_value(out, value);
    }
    msc_str_char(out, '\n');
}

// The member of a record at a path of one or two keys.
static const cJSON *object_at(const cJSON *record, const char *const path[2]) {
    const cJSON *object = msc_json_get(record, path[0]);
    return path[1] ? msc_json_get(object, path[1]) : object;
}

// Writes a row called `name` with the member `key` of the object at `path` in each record.
static void write_member(struct msc_str *out, const cJSON *records, const char *part,
                         const char *const path[2], const char *key, const char *name) {
    const cJSON *record = NULL;
    begin_row(out, part, name);
    cJSON_ArrayForEach(record, records) {
        write_value(out, msc_json_get(object_at(record, path), key));
    }
    msc_str_char(out, '\n');
}

// True if an earlier record has the member `key` in its object at `path`.
static bool is_known(const cJSON *records, const cJSON *record, const char *const path[2],
                     const char *key) {
    for (const cJSON *earlier = records->child; earlier != record; earlier = earlier->next) {
        if (msc_json_get(object_at(earlier, path), key)) {
            return true;
        }
    }
    return false;
}

// Writes a row for each member that any record has in the object at `path`.
static void write_members(struct msc_str *out, const cJSON *records, const char *part,
                          const char *const path[2]) {
    const cJSON *record = NULL, *item = NULL;
    cJSON_ArrayForEach(record, records) {
        cJSON_ArrayForEach(item, object_at(record, path)) {
            if (!is_known(records, record, path, item->string)) {
                write_member(out, records, part, path, item->string, item->string);
            }
        }
    }
}

static void write_csv_results(struct msc_str *out, const cJSON *records) {
    static const char *const agent[2] = {"agent"}, *const counts[2] = {"counts"};
    static const char *const winner[2] = {"winner"}, *const metrics[2] = {"winner", "metrics"};
    static const char *const distilled[2] = {"delivered", "metrics"};
    write_member(out, records, "result", agent, "type", "agent");
    write_members(out, records, "result", counts);
    write_member(out, records, "winner", winner, "id", "trial");
    write_member(out, records, "winner", winner, "state", "state");
    write_members(out, records, "winner", metrics);
    write_members(out, records, "distilled", distilled);
}

static void write_csv_differences(struct msc_str *out, const cJSON *comparison) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, msc_json_get(comparison, "differences")) {
        const cJSON *value = NULL;
        begin_row(out, "configuration", text_of(row, "key"));
        cJSON_ArrayForEach(value, msc_json_get(row, "values")) {
            struct msc_str json = {0};
            if (!cJSON_IsNull(value)) {
                msc_json_write(&json, value);
            }
            msc_str_char(out, ',');
            msc_str_csv(out, msc_str_text(&json));
            out->failed |= json.failed;
            msc_str_finish(&json);
        }
        msc_str_char(out, '\n');
    }
}

static void write_csv_best(struct msc_str *out, const cJSON *list, const char *key,
                           const char *part) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        struct msc_str at = {0};
        if (msc_json_get(row, key)) {
            msc_str_double(&at, msc_json_get(row, key)->valuedouble);
        } else {
            msc_str_append(&at, "end");
        }
        begin_row(out, part, msc_str_text(&at));
        write_values(out, msc_json_get(row, "values"));
        out->failed |= at.failed;
        msc_str_finish(&at);
    }
}

// Writes the points of all fronts; a point's numbers are in its record's column.
static void write_csv_front(struct msc_str *out, const cJSON *records) {
    const cJSON *record = NULL, *row = NULL, *objective = NULL;
    cJSON_ArrayForEach(record, records) {
        cJSON_ArrayForEach(row, msc_json_get(record, "front")) {
            cJSON_ArrayForEach(objective, msc_json_get(record, "objectives")) {
                const char *metric = text_of(objective, "metric");
                const cJSON *column = NULL;
                msc_str_append(out, "front ");
                msc_str_printf(out, "%.0f,", msc_json_get(row, "id")->valuedouble);
                msc_str_csv(out, metric);
                cJSON_ArrayForEach(column, records) {
                    write_value(out, column == record
                                         ? msc_json_get(msc_json_get(row, "metrics"), metric)
                                         : NULL);
                }
                msc_str_char(out, '\n');
            }
        }
    }
}

void msc_compare_csv(struct msc_str *out, const struct cJSON *comparison) {
    const cJSON *records = msc_json_get(comparison, "records");
    const cJSON *item = NULL;
    msc_str_append(out, "part,key");
    cJSON_ArrayForEach(item, records) {
        msc_str_char(out, ',');
        msc_str_csv(out, text_of(item, "record"));
    }
    msc_str_char(out, '\n');
    write_csv_results(out, records);
    write_csv_differences(out, comparison);
    write_csv_best(out, msc_json_get(comparison, "best_over_trials"), "trials",
                   "best after trials");
    write_csv_best(out, msc_json_get(comparison, "best_over_time"), "seconds",
                   "best after seconds");
    cJSON_ArrayForEach(item, msc_json_get(msc_json_get(comparison, "winners"), "tasks")) {
        begin_row(out, "choice", text_of(item, "task"));
        write_values(out, msc_json_get(item, "choices"));
    }
    write_csv_front(out, records);
}
