// Files of environment `table`: a space and the metrics of its points. docs/table.md describes the
// formats.
//
//     struct msc_table_file table = {0};
//     MSC_TRY_OUT(msc_table_file_load(&table, "problem.json", NULL, &arena));
//     msc_table_file_measure(&table, choices, metrics);
//     out: msc_table_file_finish(&table);
#ifndef MSC_ENV_TABLE_FILE_H
#define MSC_ENV_TABLE_FILE_H

#include "base/alloc.h"
#include "base/hash_index.h"
#include "env/api/trial.h"

struct cJSON;

// A term of two tasks.
struct msc_table_pair {
    uint32_t left, right;
    const double *values; // [choices of left, choices of right]; NaN: cannot be evaluated
};

// A metric of the file: either constant + a term for each task + terms of pairs, or a column of
// measured rows.
struct msc_table_metric {
    double constant;
    const double *const *alone; // [n_tasks][n_choices], the terms of single tasks; NULL: none
    size_t n_pairs;
    const struct msc_table_pair *pairs;
    int column; // index in the rows' columns; -1: the metric is the sum of its terms
};

struct msc_table_point {
    struct msc_hash hash; // of the point's choices
    uint32_t line;        // of the file
};

// Measured points, each once.
struct msc_table_rows {
    const char *path; // NULL: the table has no rows
    size_t n, n_columns;
    struct msc_table_point *points; // [n]
    double *values;                 // [n, n_columns]; NaN: failed
    struct msc_hash_index index;
};

struct msc_table_file { // zero-initialise
    struct msc_space space;
    // The first metrics of the space; the others are its exact costs. A metric named distill_loss
    // is the first.
    size_t n_measured;
    const struct msc_table_metric *measured; // [n_measured]
    struct msc_table_rows rows;
    struct msc_hash hash; // of the files' contents
};

// Reads a file whose name ends in ".csv" as a table of rows, any other as JSON. `metrics` lists the
// columns of a CSV file that are metrics; NULL: distill_loss. Memory comes from the arena, except
// the index, which msc_table_file_finish frees. Call msc_table_file_finish also after a failure.
// MSC_E_FORMAT, MSC_E_INVALID, MSC_E_NOT_FOUND, MSC_E_IO: the message names file and place.
enum msc_status msc_table_file_load(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena);
void msc_table_file_finish(struct msc_table_file *table);

// Fills metrics [n_measured] of a point; NaN: failed. Terms are added in the order of the file, so
// equal points give equal bits. False if the table has rows but not this point.
bool msc_table_file_measure(const struct msc_table_file *table, const uint32_t choices[],
                            double metrics[]);

#endif
