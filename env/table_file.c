// Loads a table from a CSV or JSON file, as its name tells, and looks up the metrics of points in
// it.
#include "env/table_internal.h"

#include "env/space_json.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum msc_status msc_table_file_load(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena) {
    size_t length = strlen(path);
    bool is_csv = length > 4 && strcasecmp(path + length - 4, ".csv") == 0;
    if (!is_csv && metrics) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: \"metrics\" is for .csv files only; a JSON table lists its metrics",
                        path);
    }
    MSC_TRY(is_csv ? msc_table__read_csv(table, path, metrics, arena)
                   : msc_table__read_json(table, path, arena));
    return msc_space_finish(&table->space, arena);
}

void msc_table_file_finish(struct msc_table_file *table) {
    msc_hash_index_finish(&table->rows.index);
}

static double sum_of(const struct msc_table_file *table, const struct msc_table_metric *metric,
                     const uint32_t choices[]) {
    double alone = 0.0;
    double pairs = 0.0;
    for (size_t t = 0; metric->alone && t < table->space.n_tasks; t++) {
        alone += metric->alone[t][choices[t]];
    }
    for (size_t i = 0; i < metric->n_pairs; i++) {
        const struct msc_table_pair *pair = &metric->pairs[i];
        size_t n_right = table->space.tasks[pair->right].n_choices;
        pairs += pair->values[choices[pair->left] * n_right + choices[pair->right]];
    }
    return metric->constant + alone + pairs;
}

bool msc_table_file_measure(const struct msc_table_file *table, const uint32_t choices[],
                            double metrics[]) {
    const struct msc_table_rows *rows = &table->rows;
    int32_t row = -1;
    if (rows->path) {
        struct msc_hash hash = msc_table__hash_point(choices, table->space.n_tasks);
        row = msc_hash_index_find(&rows->index, hash, rows->points, sizeof rows->points[0]);
    }
    for (size_t i = 0; i < table->n_measured; i++) {
        const struct msc_table_metric *metric = &table->measured[i];
        metrics[i] = metric->column < 0 ? sum_of(table, metric, choices)
                     : row < 0
                         ? NAN
                         : rows->values[(size_t)row * rows->n_columns + (size_t)metric->column];
    }
    return row >= 0 || !rows->path;
}
