// The JSON form of a table: tasks, metrics as terms that add up, exact costs.
#include "env/table_internal.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "mscgym.table.1"
#define TOP "top level" // in errors

// Places that errors name, "metrics[0].pairs[3]", leave out the file: msc_table__read_json adds it.
struct json_reader {
    struct msc_table_file *table;
    const char *path;
    struct msc_arena *arena;
    struct msc_task *tasks;
    struct msc_metric *metrics; // [MSC_MAX_METRICS]
    struct msc_table_metric *measured;
    struct msc_cost *costs;
    const char *columns[MSC_MAX_METRICS]; // of the rows
    size_t n_columns;
    const char *rows; // path of their file, or NULL
};

static enum msc_status no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for a table");
}

#define N_KEYS(keys) (sizeof(keys) / sizeof((keys)[0]))

// A list of `n` numbers at `out`. `null` is NaN where that may be.
static enum msc_status read_numbers(double out[], size_t n, const cJSON *list, bool may_fail,
                                    const char *where) {
    const cJSON *item;
    size_t i = 0;
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected a list of %zu numbers, one for each choice",
                        where, n);
    }
    cJSON_ArrayForEach(item, list) {
        bool is_failed = may_fail && cJSON_IsNull(item);
        if (!is_failed && !(cJSON_IsNumber(item) && isfinite(item->valuedouble))) {
            return MSC_FAIL(MSC_E_FORMAT, "%s[%zu]: expected a finite number%s", where, i,
                            may_fail ? ", or null for what cannot be evaluated" : "");
        }
        out[i++] = is_failed ? NAN : item->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_task_index(const struct json_reader *r, uint32_t *out,
                                       const cJSON *item, const char *where) {
    size_t n = r->table->space.n_tasks;
    double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(value >= 0.0 && value < (double)n) || value != floor(value)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected the index of a task, 0 to %zu", where, n - 1);
    }
    *out = (uint32_t)value;
    return MSC_OK;
}

// "alone": what each choice of each task adds; *out is NULL where there is no such key.
static enum msc_status read_alone(const struct json_reader *r, double ***out, const cJSON *object,
                                  bool may_fail, const char *where) {
    size_t n_tasks = r->table->space.n_tasks;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "alone");
    const cJSON *item;
    size_t t = 0;
    *out = NULL;
    if (!list) {
        return MSC_OK;
    }
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.alone: expected %zu lists, one for each task", where,
                        n_tasks);
    }
    *out = msc_arena_array(r->arena, n_tasks, sizeof **out);
    cJSON_ArrayForEach(item, list) {
        char place[96];
        uint32_t n_choices = r->tasks[t].n_choices;
        double *values = msc_arena_array(r->arena, n_choices, sizeof *values);
        if (!*out || !values) {
            return no_memory();
        }
        snprintf(place, sizeof place, "%.50s.alone[%zu]", where, t);
        MSC_TRY(read_numbers(values, n_choices, item, may_fail, place));
        (*out)[t++] = values;
    }
    return MSC_OK;
}

static enum msc_status read_pair(const struct json_reader *r, struct msc_table_pair *pair,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"tasks", "values"};
    char place[96];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    const cJSON *tasks = cJSON_GetObjectItemCaseSensitive(object, "tasks");
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(object, "values");
    const cJSON *row;
    snprintf(place, sizeof place, "%.50s.tasks", where);
    MSC_TRY(read_task_index(r, &pair->left, cJSON_GetArrayItem(tasks, 0), place));
    MSC_TRY(read_task_index(r, &pair->right, cJSON_GetArrayItem(tasks, 1), place));
    if (cJSON_GetArraySize(tasks) != 2 || pair->left == pair->right) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected two different tasks", place);
    }
    uint32_t n_left = r->tasks[pair->left].n_choices;
    uint32_t n_right = r->tasks[pair->right].n_choices;
    if (!cJSON_IsArray(values) || (uint32_t)cJSON_GetArraySize(values) != n_left) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.values: expected %u lists, one for each choice of %s",
                        where, n_left, r->tasks[pair->left].name);
    }
    double *matrix = msc_arena_array(r->arena, (size_t)n_left * n_right, sizeof *matrix);
    if (!matrix) {
        return no_memory();
    }
    size_t i = 0;
    cJSON_ArrayForEach(row, values) {
        snprintf(place, sizeof place, "%.50s.values[%zu]", where, i);
        MSC_TRY(read_numbers(matrix + i++ * n_right, n_right, row, true, place));
    }
    pair->values = matrix;
    return MSC_OK;
}

static enum msc_status read_pairs(const struct json_reader *r, struct msc_table_metric *metric,
                                  const cJSON *object, const char *where) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "pairs");
    const cJSON *item;
    if (!list) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, object, "pairs", where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_table_pair *pairs = msc_arena_array(r->arena, n + 1, sizeof *pairs);
    if (!pairs) {
        return no_memory();
    }
    metric->pairs = pairs;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.pairs[%zu]", where, metric->n_pairs);
        MSC_TRY(read_pair(r, &pairs[metric->n_pairs++], item, place));
    }
    return MSC_OK;
}

// A factor of one task, [n_choices of it].
static enum msc_status read_factor(const struct json_reader *r, struct msc_cost_factor *factor,
                                   const cJSON *object, const char *where) {
    static const char *const keys[] = {"task", "values"};
    char place[96];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    snprintf(place, sizeof place, "%.50s.task", where);
    MSC_TRY(
        read_task_index(r, &factor->task, cJSON_GetObjectItemCaseSensitive(object, "task"), place));
    uint32_t n = r->tasks[factor->task].n_choices;
    double *values = msc_arena_array(r->arena, n, sizeof *values);
    if (!values) {
        return no_memory();
    }
    snprintf(place, sizeof place, "%.50s.values", where);
    factor->by_choice = values;
    return read_numbers(values, n, cJSON_GetObjectItemCaseSensitive(object, "values"), false,
                        place);
}

static enum msc_status read_term(const struct json_reader *r, struct msc_cost_term *term,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"scale", "factors"};
    const cJSON *list, *item;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    term->scale = 1.0;
    if (cJSON_GetObjectItemCaseSensitive(object, "scale")) {
        MSC_TRY(msc_json_get_double(&term->scale, object, "scale", where));
    }
    MSC_TRY(msc_json_get_array(&list, object, "factors", where));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_cost_factor *factors = msc_arena_array(r->arena, n + 1, sizeof *factors);
    if (!factors) {
        return no_memory();
    }
    term->factors = factors;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.factors[%u]", where, term->n_factors);
        MSC_TRY(read_factor(r, &factors[term->n_factors++], item, place));
    }
    return MSC_OK;
}

// "alone" as terms of one factor, then "terms".
static enum msc_status read_terms(const struct json_reader *r, struct msc_cost *cost,
                                  const cJSON *object, const char *where) {
    size_t n_tasks = r->table->space.n_tasks;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "terms");
    const cJSON *item;
    double **alone = NULL;
    MSC_TRY(read_alone(r, &alone, object, false, where));
    if (list) {
        MSC_TRY(msc_json_get_array(&list, object, "terms", where));
    }
    size_t n = (size_t)cJSON_GetArraySize(list) + n_tasks;
    struct msc_cost_term *terms = msc_arena_array(r->arena, n, sizeof *terms);
    struct msc_cost_factor *factors = msc_arena_array(r->arena, n_tasks, sizeof *factors);
    if (!terms || !factors) {
        return no_memory();
    }
    cost->terms = terms;
    for (size_t t = 0; alone && t < n_tasks; t++) {
        factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = alone[t]};
        terms[cost->n_terms++] =
            (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &factors[t]};
    }
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        char place[96];
        snprintf(place, sizeof place, "%.50s.terms[%zu]", where, i++);
        MSC_TRY(read_term(r, &terms[cost->n_terms++], item, place));
    }
    return MSC_OK;
}

static enum msc_status read_constant(double *out, const cJSON *object, const char *where) {
    *out = 0.0;
    return cJSON_GetObjectItemCaseSensitive(object, "constant")
               ? msc_json_get_double(out, object, "constant", where)
               : MSC_OK;
}

static enum msc_status copy_text(const struct json_reader *r, const char **out, const cJSON *object,
                                 const char *key, const char *where) {
    const char *text = "";
    if (cJSON_GetObjectItemCaseSensitive(object, key) || strcmp(key, "name") == 0) {
        MSC_TRY(msc_json_get_text(&text, object, key, where));
    }
    *out = msc_arena_strdup(r->arena, text);
    return *out ? MSC_OK : no_memory();
}

// What a metric and a cost have in common.
static enum msc_status read_metric_head(const struct json_reader *r, struct msc_metric *metric,
                                        const cJSON *object, const char *where) {
    MSC_TRY(copy_text(r, &metric->name, object, "name", where));
    MSC_TRY(copy_text(r, &metric->unit, object, "unit", where));
    MSC_TRY(copy_text(r, &metric->help, object, "help", where));
    return cJSON_GetObjectItemCaseSensitive(object, "maximised")
               ? msc_json_get_bool(&metric->is_maximised, object, "maximised", where)
               : MSC_OK;
}

static bool has_terms(const cJSON *object) {
    return cJSON_GetObjectItemCaseSensitive(object, "constant") ||
           cJSON_GetObjectItemCaseSensitive(object, "alone") ||
           cJSON_GetObjectItemCaseSensitive(object, "pairs");
}

static enum msc_status read_metric(struct json_reader *r, size_t i, const cJSON *object,
                                   const char *where) {
    static const char *const keys[] = {"name",     "unit",  "help", "maximised",
                                       "constant", "alone", "pairs"};
    struct msc_table_metric *metric = &r->measured[i];
    double **alone = NULL;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(read_metric_head(r, &r->metrics[i], object, where));
    metric->column = -1;
    if (!has_terms(object) && !r->rows) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "%s: it has none of \"constant\", \"alone\" and \"pairs\", and there are no "
            "\"rows\" to take it from",
            where);
    }
    if (!has_terms(object)) {
        metric->column = (int)r->n_columns;
        r->columns[r->n_columns++] = r->metrics[i].name;
        return MSC_OK;
    }
    MSC_TRY(read_constant(&metric->constant, object, where));
    MSC_TRY(read_alone(r, &alone, object, true, where));
    metric->alone = (const double *const *)alone;
    return read_pairs(r, metric, object, where);
}

static enum msc_status read_cost(struct json_reader *r, size_t i, const cJSON *object,
                                 const char *where) {
    static const char *const keys[] = {"name",     "unit",  "help", "maximised",
                                       "constant", "alone", "terms"};
    struct msc_metric *metric = &r->metrics[r->table->n_measured + i];
    struct msc_cost *cost = &r->costs[i];
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(read_metric_head(r, metric, object, where));
    metric->is_exact = true;
    cost->metric = metric->name;
    MSC_TRY(read_constant(&cost->constant, object, where));
    return read_terms(r, cost, object, where);
}

static enum msc_status read_features(const struct json_reader *r, const cJSON *object,
                                     const double **out, const char *where) {
    size_t n = r->table->space.n_features;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "features");
    if (n == 0 && !list) {
        return MSC_OK;
    }
    double *features = msc_arena_array(r->arena, n + 1, sizeof *features);
    const cJSON *item;
    size_t i = 0;
    if (!features) {
        return no_memory();
    }
    cJSON_ArrayForEach(item, list) {
        if (i < n && cJSON_IsNumber(item)) {
            features[i] = item->valuedouble;
        }
        i += cJSON_IsNumber(item);
    }
    if (!cJSON_IsArray(list) || i != n || (size_t)cJSON_GetArraySize(list) != n) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s.features: expected %zu numbers, one for each of the "
                        "\"features\" at the top",
                        where, n);
    }
    *out = features;
    return MSC_OK;
}

static enum msc_status read_task(const struct json_reader *r, struct msc_task *task,
                                 const cJSON *object, const char *where) {
    static const char *const keys[] = {"name", "choices", "features"};
    const char *const *labels = NULL;
    size_t n = 0;
    MSC_TRY(msc_json_check_keys(object, keys, N_KEYS(keys), where));
    MSC_TRY(copy_text(r, &task->name, object, "name", where));
    MSC_TRY(msc_json_get_texts(&labels, &n, object, "choices", "labels", where, r->arena));
    if (n == 0 || n > MSC_TABLE_MAX_CHOICES) {
        return MSC_FAIL(MSC_E_FORMAT, "%s.choices: expected a list of 1 to %d labels", where,
                        MSC_TABLE_MAX_CHOICES);
    }
    task->labels = labels;
    task->n_choices = (uint32_t)n;
    return read_features(r, object, &task->features, where);
}

static enum msc_status read_tasks(struct json_reader *r, const cJSON *root) {
    struct msc_space *space = &r->table->space;
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_texts(&space->feature_names, &space->n_features, root, "features",
                               "names of features", TOP, r->arena));
    MSC_TRY(msc_json_get_array(&list, root, "tasks", TOP));
    size_t n = (size_t)cJSON_GetArraySize(list);
    r->tasks = msc_arena_array(r->arena, n + 1, sizeof *r->tasks);
    if (!r->tasks) {
        return no_memory();
    }
    if (n == 0) {
        return MSC_FAIL(MSC_E_FORMAT, "tasks: expected at least one");
    }
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        char where[96];
        snprintf(where, sizeof where, "tasks[%zu]", i);
        MSC_TRY(read_task(r, &r->tasks[i++], item, where));
    }
    space->n_tasks = n;
    space->tasks = r->tasks;
    return MSC_OK;
}

// Where a metric has its place: one named distill_loss is the first.
static size_t place_of(const cJSON *list, size_t i) {
    size_t first = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
        if (cJSON_IsString(name) && strcmp(name->valuestring, "distill_loss") == 0) {
            return i == first ? 0 : i + (i < first);
        }
        first++;
    }
    return i;
}

static enum msc_status read_metrics(struct json_reader *r, const cJSON *root) {
    struct msc_space *space = &r->table->space;
    const cJSON *costs = cJSON_GetObjectItemCaseSensitive(root, "costs");
    const cJSON *list, *item;
    size_t i = 0;
    MSC_TRY(msc_json_get_array(&list, root, "metrics", TOP));
    if (costs) {
        MSC_TRY(msc_json_get_array(&costs, root, "costs", TOP));
    }
    r->table->n_measured = (size_t)cJSON_GetArraySize(list);
    space->n_costs = (size_t)cJSON_GetArraySize(costs);
    space->n_metrics = r->table->n_measured + space->n_costs;
    if (space->n_metrics == 0 || space->n_metrics > MSC_MAX_METRICS) {
        return MSC_FAIL(MSC_E_FORMAT, "there are %zu metrics and costs, expected 1 to %d",
                        space->n_metrics, MSC_MAX_METRICS);
    }
    r->measured = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->measured);
    r->metrics = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->metrics);
    r->costs = msc_arena_array(r->arena, MSC_MAX_METRICS, sizeof *r->costs);
    if (!r->measured || !r->metrics || !r->costs) {
        return no_memory();
    }
    cJSON_ArrayForEach(item, list) {
        char where[96];
        snprintf(where, sizeof where, "metrics[%zu]", i);
        MSC_TRY(read_metric(r, place_of(list, i), item, where));
        i++;
    }
    i = 0;
    cJSON_ArrayForEach(item, costs) {
        char where[96];
        snprintf(where, sizeof where, "costs[%zu]", i);
        MSC_TRY(read_cost(r, i++, item, where));
    }
    r->table->measured = r->measured;
    space->metrics = r->metrics;
    space->costs = r->costs;
    return MSC_OK;
}

static enum msc_status read_rows_path(struct json_reader *r, const cJSON *root) {
    const char *text = NULL;
    if (!cJSON_GetObjectItemCaseSensitive(root, "rows")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&text, root, "rows", TOP));
    char *folder = msc_path_folder(r->arena, r->path);
    r->rows = folder ? msc_path_join(r->arena, folder, text) : NULL;
    return r->rows ? MSC_OK : no_memory();
}

static enum msc_status read_root(struct json_reader *r, const cJSON *root) {
    static const char *const keys[] = {"schema", "features", "tasks", "metrics", "costs", "rows"};
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
    MSC_TRY(read_tasks(r, root));
    MSC_TRY(read_metrics(r, root));
    if (r->rows && r->n_columns == 0) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "\"rows\" are there, and every metric has terms of its own; leave either "
                        "out");
    }
    return MSC_OK;
}

enum msc_status msc_table__read_json(struct msc_table_file *table, const char *path,
                                     struct msc_arena *arena) {
    struct json_reader r = {.table = table, .path = path, .arena = arena};
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
