// Reads the JSON form of a table: tasks, metrics as sums of terms, exact costs.
#include "env/table_internal.h"

#include "base/file.h"
#include "base/json.h"
#include "env/space_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "mscgym.table.1"
#define TOP "top level" // in errors

// Errors name a place such as "metrics[0].pairs[3]"; msc_table__read_json adds the file.
struct json_reader {
    struct msc_table_file *table;
    const char *path;
    struct msc_arena *arena;
    struct msc_space_json space;
    struct msc_table_metric *measured;    // [MSC_MAX_METRICS]
    const char *columns[MSC_MAX_METRICS]; // names of the metrics' columns
    size_t n_columns;
    const char *rows; // path of the file of rows, or NULL
};

#define N_KEYS(keys) (sizeof(keys) / sizeof((keys)[0]))

static enum msc_status read_pair(const struct json_reader *r, struct msc_table_pair *pair,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"tasks", "values"};
    char place[96];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    const cJSON *tasks = msc_json_get(object, "tasks");
    const cJSON *values = msc_json_get(object, "values");
    const cJSON *row;
    snprintf(place, sizeof place, "%.50s.tasks", where);
    MSC_TRY(msc_space_json_read_task(&r->space, &pair->left, cJSON_GetArrayItem(tasks, 0), place));
    MSC_TRY(msc_space_json_read_task(&r->space, &pair->right, cJSON_GetArrayItem(tasks, 1), place));
    if (cJSON_GetArraySize(tasks) != 2 || pair->left == pair->right) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected two different tasks", place);
    }
    uint32_t n_left = r->space.tasks[pair->left].n_choices;
    uint32_t n_right = r->space.tasks[pair->right].n_choices;
    if (!cJSON_IsArray(values) || (uint32_t)cJSON_GetArraySize(values) != n_left) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.values: expected %u lists, one for each choice of %s",
                        where, n_left, r->space.tasks[pair->left].name);
    }
    double *matrix = msc_arena_array(r->arena, (size_t)n_left * n_right, sizeof *matrix);
    MSC_TRY(MSC_ALLOCATED(matrix));
    size_t i = 0;
    cJSON_ArrayForEach(row, values) {
        snprintf(place, sizeof place, "%.50s.values[%zu]", where, i);
        MSC_TRY(msc_space_json_read_numbers(matrix + i++ * n_right, n_right, row, true, place));
    }
    pair->values = matrix;
    return MSC_OK;
}

static enum msc_status read_pairs(const struct json_reader *r, struct msc_table_metric *metric,
                                  const cJSON *object, const char *where) {
    const cJSON *list = msc_json_get(object, "pairs");
    const cJSON *item;
    if (!list) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, object, "pairs", where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_table_pair *pairs = msc_arena_array(r->arena, n + 1, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(pairs));
    metric->pairs = pairs;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.pairs[%zu]", where, metric->n_pairs);
        MSC_TRY(read_pair(r, &pairs[metric->n_pairs++], item, place));
    }
    return MSC_OK;
}

static bool has_terms(const cJSON *object) {
    return msc_json_get(object, "constant") || msc_json_get(object, "alone") ||
           msc_json_get(object, "pairs");
}

static enum msc_status read_metric(void *payload, size_t i, const cJSON *object,
                                   const char *where) {
    struct json_reader *r = payload;
    static const char *const keys[] = {"name",     "unit",  "help", "maximised",
                                       "constant", "alone", "pairs"};
    struct msc_table_metric *metric = &r->measured[i];
    double **alone = NULL;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(msc_space_json_read_head(&r->space, &r->space.metrics[i], object, where));
    metric->column = -1;
    if (!has_terms(object) && !r->rows) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: expected \"constant\", \"alone\" or \"pairs\", or a file of \"rows\" at the top "
            "level",
            where);
    }
    if (!has_terms(object)) {
        metric->column = (int)r->n_columns;
        r->columns[r->n_columns++] = r->space.metrics[i].name;
        return MSC_OK;
    }
    MSC_TRY(msc_space_json_read_constant(&metric->constant, object, where));
    MSC_TRY(msc_space_json_read_alone(&r->space, &alone, object, true, where));
    metric->alone = (const double *const *)alone;
    return read_pairs(r, metric, object, where);
}

static enum msc_status read_rows_path(struct json_reader *r, const cJSON *root) {
    const char *text = NULL;
    if (!msc_json_get(root, "rows")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&text, root, "rows", TOP));
    if (!msc_path_is_inside(text)) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            TOP ": \"rows\" is \"%s\", expected the path of a file in the table's folder", text);
    }
    char *folder = msc_path_folder(r->arena, r->path);
    r->rows = folder ? msc_path_join(r->arena, folder, text) : NULL;
    return MSC_ALLOCATED(r->rows);
}

static enum msc_status read_root(struct json_reader *r, const cJSON *root) {
    static const char *const keys[] = {"schema",  "features", "choice_features", "tasks",
                                       "metrics", "costs",    "neighbours",      "rows"};
    const char *schema = NULL;
    if (!cJSON_IsObject(root)) {
        return MSC_FAIL(MSC_E_FORMAT, "expected an object with \"schema\": \"" SCHEMA "\"");
    }
    MSC_TRY(msc_json_get_text(&schema, root, "schema", TOP));
    if (strcmp(schema, SCHEMA) != 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "its schema is \"%s\", expected \"" SCHEMA "\"", schema);
    }
    MSC_TRY(msc_json_check_keys(root, keys, N_KEYS(keys), TOP));
    MSC_TRY(read_rows_path(r, root));
    r->measured = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->measured);
    MSC_TRY(MSC_ALLOCATED(r->measured));
    MSC_TRY(msc_space_json_read_tasks(&r->space, root));
    MSC_TRY(msc_space_json_read_metrics(&r->space, root, read_metric, r));
    r->table->n_measured = r->space.n_measured;
    r->table->measured = r->measured;
    if (r->rows && r->n_columns == 0) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "\"rows\" is not used, because every metric has terms of its own; remove the "
            "rows or these terms");
    }
    return MSC_OK;
}

enum msc_status msc_table__read_json(struct msc_table_file *table, const char *path,
                                     struct msc_arena *arena) {
    struct json_reader r = {.table = table,
                            .path = path,
                            .arena = arena,
                            .space = {.space = &table->space, .arena = arena}};
    char *text = NULL;
    size_t n_bytes = 0;
    cJSON *root = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_table__read(&text, &n_bytes, table, path));
    MSC_TRY_OUT(msc_json_parse(&root, text, n_bytes, path));
    status = read_root(&r, root);
    if (status != MSC_OK) {
        msc_status_prefix(status, "%s", path);
        goto out;
    }
    if (r.rows) {
        status = msc_table__read_rows(table, r.rows, r.columns, r.n_columns, arena);
    }
out:
    cJSON_Delete(root);
    msc_free(text);
    return status;
}
