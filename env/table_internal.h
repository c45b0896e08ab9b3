// The readers of the files of environment `table`: table_json.c and table_csv.c.
#ifndef MSC_ENV_TABLE_INTERNAL_H
#define MSC_ENV_TABLE_INTERNAL_H

#include "base/file.h"
#include "env/table_file.h"

// Reads a file as text that ends in NUL, owned by the caller, and adds it to the table's hash.
static inline enum msc_status msc_table__read(char **text, size_t *n_bytes,
                                              struct msc_table_file *table, const char *path) {
    MSC_TRY(msc_file_read(text, n_bytes, path));
    table->hash = msc_hash_combine(table->hash, msc_hash_bytes(*text, *n_bytes));
    return MSC_OK;
}
enum msc_status msc_table__read_json(struct msc_table_file *table, const char *path,
                                     struct msc_arena *arena);
// Reads a table that consists of one CSV file: columns that are not metrics are tasks, and their
// cells are choices.
enum msc_status msc_table__read_csv(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena);
// Reads the rows of a table whose tasks are known. `columns` [n_columns] has the names of the
// columns that are metrics.
enum msc_status msc_table__read_rows(struct msc_table_file *table, const char *path,
                                     const char *const columns[], size_t n_columns,
                                     struct msc_arena *arena);

static inline struct msc_hash msc_table__hash_point(const uint32_t choices[], size_t n_tasks) {
    return msc_hash_bytes(choices, n_tasks * sizeof choices[0]);
}

#endif
