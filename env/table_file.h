// The files of environment `table`: a space, and what its points are worth. docs/table.md has their
// forms.
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

// What two tasks add together.
struct msc_table_pair {
    uint32_t left, right;
    const double *values; // [choices of left, choices of right]; NaN: cannot be evaluated
};

// A metric that the file measures: constant + what each task adds alone + the pairs, or a column of
// the rows.
struct msc_table_metric {
    double constant;
    const double *const *alone; // [n_tasks][n_choices]; NULL: nothing
    size_t n_pairs;
    const struct msc_table_pair *pairs;
    int column; // of the rows, or -1: the sum
};

struct msc_table_point {
    struct msc_hash hash; // of its choices
    uint32_t line;        // of the file
};

// Measured points, each once.
struct msc_table_rows {
    const char *path; // NULL: there are none
    size_t n, n_columns;
    struct msc_table_point *points; // [n]
    double *values;                 // [n, n_columns]; NaN: failed
    struct msc_hash_index index;
};

struct msc_table_file { // zero-initialise
    struct msc_space space;
    // The first metrics of the space; those behind are its exact costs. One named distill_loss comes
    // first.
    size_t n_measured;
    const struct msc_table_metric *measured; // [n_measured]
    struct msc_table_rows rows;
    struct msc_hash hash; // of what the files hold
};

// Reads a file whose name ends in ".csv" as a table of rows, any other as JSON. `metrics` is a list of
// the columns of a CSV file that are metrics; NULL: distill_loss. Everything lies in the arena but
// what msc_table_file_finish frees, also after a failure. MSC_E_FORMAT, MSC_E_INVALID, MSC_E_NOT_FOUND and
// MSC_E_IO name file and place.
enum msc_status msc_table_file_load(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena);
void msc_table_file_finish(struct msc_table_file *table);

// metrics [n_measured] of a point; NaN: failed. Summed in the order of the file, so that equal points
// give equal bits. False: the rows do not have it.
bool msc_table_file_measure(const struct msc_table_file *table, const uint32_t choices[],
                            double metrics[]);

#endif
