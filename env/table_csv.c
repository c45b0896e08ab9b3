// Reads tables of rows: CSV by RFC 4180 with a first line of column names. A cell of a task holds
// the label of a choice. A cell of a metric holds a number, or a word that marks a failed
// measurement.
#include "env/table_internal.h"

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "env/space_json.h"

#include <math.h>
#include <string.h>
#include <strings.h>

struct label {
    struct msc_hash hash; // must be first for msc_hash_index
    const char *text;     // in the arena
};

// The labels in the column of a task.
struct labels {
    struct label *list;
    size_t n, capacity;
    struct msc_hash_index index;
};

enum { NO_COLUMN = -1 };

struct column {
    struct msc_hash hash; // must be first for msc_hash_index
    const char *name;
    int task;   // index of the task, or NO_COLUMN
    int metric; // index among the metrics of a row, or NO_COLUMN if the column is not a metric
};

struct csv_reader {
    struct msc_table_file *table;
    const char *path;
    struct msc_arena *arena;
    const char *at, *end;
    uint32_t line;
    struct msc_str cell;
    bool is_last; // the cell ends its line

    size_t n_columns;
    struct column *columns; // [n_columns]
    struct msc_hash_index column_index;
    size_t n_tasks;
    struct labels *labels; // [n_tasks]
    bool is_open;          // labels are taken from the file; else the tasks define them
    uint32_t *choices;     // [rows->n, n_tasks]
};

// ---- Cells ------------------------------------------------------------------------------------

static enum msc_status read_quoted(struct csv_reader *r) {
    uint32_t line = r->line;
    for (r->at++; r->at < r->end; r->at++) {
        if (*r->at == '"' && r->at + 1 < r->end && r->at[1] == '"') {
            r->at++;
        } else if (*r->at == '"') {
            r->at++;
            return MSC_OK;
        }
        r->line += *r->at == '\n';
        msc_str_char(&r->cell, *r->at);
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s:%u: the quote opened here is never closed", r->path, line);
}

static void skip_blanks(struct csv_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) {
        r->at++;
    }
}

static enum msc_status read_plain(struct csv_reader *r) {
    const char *begin = r->at;
    while (r->at < r->end && *r->at != ',' && *r->at != '\n') {
        r->at++;
    }
    const char *end = r->at;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) {
        end--;
    }
    if (memchr(begin, '\r', (size_t)(end - begin))) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s:%u: a carriage return inside a cell; save the file with line feeds as "
                        "line ends",
                        r->path, r->line);
    }
    msc_str_append_n(&r->cell, begin, (size_t)(end - begin));
    return MSC_OK;
}

// Reads the next cell of a line, drops blanks around its text, and skips the comma or line feed
// that ends it.
static enum msc_status read_cell(struct csv_reader *r) {
    msc_str_clear(&r->cell);
    skip_blanks(r);
    if (r->at < r->end && *r->at == '"') {
        MSC_TRY(read_quoted(r));
        skip_blanks(r);
        r->at += r->at < r->end && *r->at == '\r';
    } else {
        MSC_TRY(read_plain(r));
    }
    if (r->at < r->end && *r->at != ',' && *r->at != '\n') {
        return MSC_FAIL(MSC_E_FORMAT, "%s:%u: text after a closing quote, expected a comma",
                        r->path, r->line);
    }
    r->is_last = r->at == r->end || *r->at == '\n';
    r->line += r->at < r->end && *r->at == '\n';
    r->at += r->at < r->end;
    return msc_str_status(&r->cell);
}

static void skip_empty_lines(struct csv_reader *r) {
    while (r->at < r->end && strchr(" \t\r\n", *r->at)) {
        r->line += *r->at == '\n';
        r->at++;
    }
}

// ---- Labels -----------------------------------------------------------------------------------

static enum msc_status add_label(struct csv_reader *r, struct labels *labels, struct msc_hash hash,
                                 const char *text) {
    MSC_TRY(msc_grow(&labels->list, &labels->capacity, labels->n + 1, sizeof *labels->list));
    MSC_TRY(msc_hash_index_reserve(&labels->index, labels->n + 1));
    char *copy = msc_arena_strdup(r->arena, text);
    MSC_TRY(MSC_ALLOCATED(copy));
    labels->list[labels->n] = (struct label){.hash = hash, .text = copy};
    msc_hash_index_add(&labels->index, labels->n++, labels->list, sizeof *labels->list);
    return MSC_OK;
}

static struct msc_hash hash_text(const char *text) {
    return msc_hash_bytes(text, strlen(text));
}

static enum msc_status read_choice(struct csv_reader *r, const struct column *column, uint32_t line,
                                   uint32_t *out) {
    struct labels *labels = &r->labels[column->task];
    const char *text = msc_str_text(&r->cell);
    struct msc_hash hash = hash_text(text);
    int32_t place = msc_hash_index_find(&labels->index, hash, labels->list, sizeof *labels->list);
    *out = place >= 0 ? (uint32_t)place : (uint32_t)labels->n;
    if (place >= 0) {
        return MSC_OK;
    }
    if (!r->is_open) {
        return MSC_FAIL(MSC_E_FORMAT, "%s:%u: column %s: \"%s\" is not a choice of that task",
                        r->path, line, column->name, text);
    }
    if (labels->n == MSC_SPACE_JSON_MAX_CHOICES) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s:%u: column %s has more than %d different values; if it is a metric, "
                        "list it in \"metrics\"",
                        r->path, line, column->name, MSC_SPACE_JSON_MAX_CHOICES);
    }
    return add_label(r, labels, hash, text);
}

// Whether the text of a cell marks a failed measurement.
static bool is_failure(const char *text) {
    static const char *const words[] = {"", "failed", "nan", "inf", "+inf", "-inf"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status read_value(struct csv_reader *r, const struct column *column, uint32_t line,
                                  double *out) {
    const char *text = msc_str_text(&r->cell);
    *out = NAN;
    if (is_failure(text) || (msc_parse_double(out, text) && isfinite(*out))) {
        return MSC_OK;
    }
    return MSC_FAIL(
        MSC_E_FORMAT,
        "%s:%u: column %s: \"%s\" is not a number; leave a failed measurement empty or write "
        "nan, inf or failed",
        r->path, line, column->name, text);
}

// Fills the labels from the space's tasks.
static enum msc_status fill_labels(struct csv_reader *r) {
    const struct msc_space *space = &r->table->space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        const struct msc_task *task = &space->tasks[t];
        for (uint32_t c = 0; c < task->n_choices; c++) {
            struct msc_hash hash = hash_text(task->labels[c]);
            struct labels *labels = &r->labels[t];
            if (msc_hash_index_find(&labels->index, hash, labels->list, sizeof *labels->list) >=
                0) {
                return MSC_FAIL(MSC_E_FORMAT,
                                "%s: task %s has two choices \"%s\", expected different "
                                "labels",
                                r->path, task->name, task->labels[c]);
            }
            MSC_TRY(add_label(r, labels, hash, task->labels[c]));
        }
    }
    return MSC_OK;
}

// ---- The line of names ------------------------------------------------------------------------

static struct column *find_column(const struct csv_reader *r, const char *name) {
    int32_t place =
        msc_hash_index_find(&r->column_index, hash_text(name), r->columns, sizeof *r->columns);
    return place >= 0 ? &r->columns[place] : NULL;
}

static enum msc_status read_names(struct csv_reader *r) {
    size_t capacity = 1;
    for (const char *c = r->at; c < r->end && *c != '\n'; c++) {
        capacity += *c == ',';
    }
    r->columns = msc_arena_array(r->arena, capacity, sizeof *r->columns);
    MSC_TRY(MSC_ALLOCATED(r->columns));
    MSC_TRY(msc_hash_index_reserve(&r->column_index, capacity));
    if (r->at == r->end) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: the file is empty, expected a line of names and rows",
                        r->path);
    }
    do {
        MSC_TRY(read_cell(r));
        char *name = msc_arena_strdup(r->arena, msc_str_text(&r->cell));
        MSC_TRY(MSC_ALLOCATED(name));
        if (name[0] == '\0') {
            return MSC_FAIL(MSC_E_FORMAT, "%s: column %zu has no name", r->path, r->n_columns + 1);
        }
        struct column *before = find_column(r, name);
        if (before) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: columns %td and %zu are both named %s", r->path,
                            before - r->columns + 1, r->n_columns + 1, name);
        }
        r->columns[r->n_columns] = (struct column){
            .hash = hash_text(name), .name = name, .task = NO_COLUMN, .metric = NO_COLUMN};
        msc_hash_index_add(&r->column_index, r->n_columns++, r->columns, sizeof *r->columns);
    } while (!r->is_last && r->n_columns < capacity);
    return MSC_OK;
}

static enum msc_status fail_no_column(const struct csv_reader *r, const char *what,
                                      const char *name) {
    struct msc_str names = {0};
    for (size_t i = 0; i < r->n_columns && i < 12; i++) {
        msc_str_item(&names, r->columns[i].name);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: there is no column for %s %s; the columns are %s%s", r->path,
                 what, name, msc_str_text(&names), r->n_columns > 12 ? ", …" : "");
    msc_str_finish(&names);
    return status;
}

static enum msc_status match_metrics(struct csv_reader *r, const char *const names[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct column *column = find_column(r, names[i]);
        if (!column) {
            return fail_no_column(r, "metric", names[i]);
        }
        if (column->metric != NO_COLUMN) {
            return MSC_FAIL(MSC_E_INVALID, "%s: metric %s is listed twice", r->path, names[i]);
        }
        column->metric = (int)i;
    }
    return MSC_OK;
}

static enum msc_status match_tasks(struct csv_reader *r) {
    const struct msc_space *space = &r->table->space;
    for (size_t t = 0; t < space->n_tasks; t++) {
        struct column *column = find_column(r, space->tasks[t].name);
        if (!column) {
            return fail_no_column(r, "task", space->tasks[t].name);
        }
        column->task = (int)t;
    }
    r->n_tasks = space->n_tasks;
    return MSC_OK;
}

static enum msc_status take_as_tasks(struct csv_reader *r) {
    for (size_t i = 0; i < r->n_columns; i++) {
        if (r->columns[i].metric == NO_COLUMN) {
            r->columns[i].task = (int)r->n_tasks++;
        }
    }
    return r->n_tasks > 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: every column is a metric; expected a column for each task", r->path);
}

// ---- Rows -------------------------------------------------------------------------------------

static enum msc_status read_row(struct csv_reader *r, size_t row) {
    struct msc_table_rows *rows = &r->table->rows;
    uint32_t line = r->line;
    rows->points[row].line = line;
    for (size_t i = 0; i < r->n_columns; i++) {
        const struct column *column = &r->columns[i];
        MSC_TRY(read_cell(r));
        if (column->metric != NO_COLUMN) {
            MSC_TRY(read_value(r, column, line,
                               &rows->values[row * rows->n_columns + (size_t)column->metric]));
        } else if (column->task != NO_COLUMN) {
            MSC_TRY(
                read_choice(r, column, line, &r->choices[row * r->n_tasks + (size_t)column->task]));
        }
        if (r->is_last != (i + 1 == r->n_columns)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s:%u: %s than %zu cells, expected one for each name",
                            r->path, line, r->is_last ? "fewer" : "more", r->n_columns);
        }
    }
    return MSC_OK;
}

static enum msc_status read_lines(struct csv_reader *r, size_t n_columns) {
    struct msc_table_rows *rows = &r->table->rows;
    size_t capacity = 1;
    for (const char *c = r->at; c < r->end; c++) {
        capacity += *c == '\n';
    }
    rows->n_columns = n_columns;
    rows->path = r->path;
    rows->points = msc_arena_array(r->arena, capacity, sizeof *rows->points);
    rows->values = msc_arena_array(r->arena, capacity * n_columns, sizeof *rows->values);
    r->choices = msc_alloc_zero(capacity * r->n_tasks, sizeof *r->choices);
    MSC_TRY(MSC_ALLOCATED(rows->points && rows->values && r->choices));
    for (skip_empty_lines(r); r->at < r->end; skip_empty_lines(r)) {
        MSC_TRY(read_row(r, rows->n));
        rows->n++;
    }
    return rows->n > 0 ? MSC_OK : MSC_FAIL(MSC_E_FORMAT, "%s: the table has no rows", r->path);
}

static enum msc_status index_rows(struct csv_reader *r) {
    struct msc_table_rows *rows = &r->table->rows;
    const size_t bytes = sizeof rows->points[0];
    MSC_TRY(msc_hash_index_reserve(&rows->index, rows->n));
    for (size_t i = 0; i < rows->n; i++) {
        struct msc_hash hash = msc_table__hash_point(r->choices + i * r->n_tasks, r->n_tasks);
        int32_t before = msc_hash_index_find(&rows->index, hash, rows->points, bytes);
        if (before >= 0) {
            return MSC_FAIL(MSC_E_FORMAT, "%s:%u: same point as line %u, expected each point once",
                            r->path, rows->points[i].line, rows->points[before].line);
        }
        rows->points[i].hash = hash;
        msc_hash_index_add(&rows->index, i, rows->points, bytes);
    }
    return MSC_OK;
}

// ---- A space of columns -----------------------------------------------------------------------

// Orders the choices of a task: by decreasing number if all labels are numbers, else as in the
// file. order[i] is the index of the label of choice i.
static enum msc_status order_labels(const struct labels *labels, uint32_t order[]) {
    double *numbers = msc_alloc_zero(labels->n, sizeof *numbers);
    bool are_numbers = true;
    MSC_TRY(MSC_ALLOCATED(numbers));
    for (size_t i = 0; i < labels->n; i++) {
        are_numbers = are_numbers && msc_parse_double(&numbers[i], labels->list[i].text);
    }
    for (uint32_t i = 0; i < labels->n; i++) {
        uint32_t at = i;
        for (; are_numbers && at > 0 && numbers[order[at - 1]] < numbers[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    msc_free(numbers);
    return MSC_OK;
}

static enum msc_status make_task(struct csv_reader *r, struct msc_task *task,
                                 const struct column *column) {
    const struct labels *labels = &r->labels[column->task];
    const char **texts = msc_arena_array(r->arena, labels->n, sizeof *texts);
    uint32_t *order = msc_arena_array(r->arena, labels->n, sizeof *order);
    uint32_t *places = msc_arena_array(r->arena, labels->n, sizeof *places);
    MSC_TRY(MSC_ALLOCATED(texts && order && places));
    MSC_TRY(order_labels(labels, order));
    for (uint32_t i = 0; i < labels->n; i++) {
        texts[i] = labels->list[order[i]].text;
        places[order[i]] = i;
    }
    for (size_t i = 0; i < r->table->rows.n; i++) {
        uint32_t *choice = &r->choices[i * r->n_tasks + (size_t)column->task];
        *choice = places[*choice];
    }
    task->name = column->name;
    task->n_choices = (uint32_t)labels->n;
    task->labels = texts;
    return MSC_OK;
}

static enum msc_status make_space(struct csv_reader *r, const char *const names[], size_t n) {
    struct msc_space *space = &r->table->space;
    struct msc_task *tasks = msc_arena_array(r->arena, r->n_tasks, sizeof *tasks);
    struct msc_metric *metrics = msc_arena_array(r->arena, n, sizeof *metrics);
    struct msc_table_metric *measured = msc_arena_array(r->arena, n, sizeof *measured);
    MSC_TRY(MSC_ALLOCATED(tasks && metrics && measured));
    for (size_t i = 0; i < r->n_columns; i++) {
        const struct column *column = &r->columns[i];
        if (column->task != NO_COLUMN) {
            MSC_TRY(make_task(r, &tasks[column->task], column));
        }
    }
    for (size_t i = 0; i < n; i++) {
        metrics[i] = (struct msc_metric){.name = names[i], .unit = "", .help = ""};
        measured[i] = (struct msc_table_metric){.column = (int)i};
    }
    space->n_tasks = r->n_tasks;
    space->tasks = tasks;
    space->n_metrics = n;
    space->metrics = metrics;
    r->table->n_measured = n;
    r->table->measured = measured;
    return MSC_OK;
}

// ---- Both forms -------------------------------------------------------------------------------

static enum msc_status read_file(struct csv_reader *r, const char *const names[], size_t n) {
    static const char mark[] = "\xef\xbb\xbf"; // UTF-8 byte order mark, written by some programs
    if (r->end - r->at >= 3 && memcmp(r->at, mark, 3) == 0) {
        r->at += 3;
    }
    skip_empty_lines(r);
    MSC_TRY(read_names(r));
    MSC_TRY(match_metrics(r, names, n));
    MSC_TRY(r->is_open ? take_as_tasks(r) : match_tasks(r));
    r->labels = msc_alloc_zero(r->n_tasks, sizeof *r->labels);
    MSC_TRY(MSC_ALLOCATED(r->labels));
    MSC_TRY(r->is_open ? MSC_OK : fill_labels(r));
    MSC_TRY(read_lines(r, n));
    MSC_TRY(r->is_open ? make_space(r, names, n) : MSC_OK);
    return index_rows(r);
}

static enum msc_status read_table(struct csv_reader *r, const char *const names[], size_t n) {
    char *text = NULL;
    size_t n_bytes = 0;
    MSC_TRY(msc_table__read(&text, &n_bytes, r->table, r->path));
    r->at = text;
    r->end = text + n_bytes;
    r->line = 1;
    enum msc_status status = msc_utf8_check_file(text, n_bytes, r->path);
    if (status == MSC_OK) {
        status = read_file(r, names, n);
    }
    for (size_t t = 0; r->labels && t < r->n_tasks; t++) {
        msc_free(r->labels[t].list);
        msc_hash_index_finish(&r->labels[t].index);
    }
    msc_hash_index_finish(&r->column_index);
    msc_free(r->labels);
    msc_free(r->choices);
    msc_str_finish(&r->cell);
    msc_free(text);
    return status;
}

enum msc_status msc_table__read_rows(struct msc_table_file *table, const char *path,
                                     const char *const columns[], size_t n_columns,
                                     struct msc_arena *arena) {
    struct csv_reader r = {.table = table, .path = path, .arena = arena};
    return read_table(&r, columns, n_columns);
}

enum msc_status msc_table__read_csv(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena) {
    struct csv_reader r = {.table = table, .path = path, .arena = arena, .is_open = true};
    const char *names[MSC_MAX_METRICS] = {"distill_loss"};
    size_t n = metrics ? 0 : 1;
    const cJSON *item;
    if (metrics && (!cJSON_IsArray(metrics) || cJSON_GetArraySize(metrics) == 0 ||
                    cJSON_GetArraySize(metrics) > MSC_MAX_METRICS)) {
        return MSC_FAIL(MSC_E_INVALID, "env.metrics: expected a list of 1 to %d column names of %s",
                        MSC_MAX_METRICS, path);
    }
    cJSON_ArrayForEach(item, metrics) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_INVALID, "env.metrics[%zu]: expected the name of a column", n);
        }
        names[n] = msc_arena_strdup(arena, item->valuestring);
        MSC_TRY(MSC_ALLOCATED(names[n++]));
    }
    return read_table(&r, names, n);
}
