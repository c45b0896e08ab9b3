// Shared by the readers of environment `table`.
#ifndef MSC_ENV_TABLE_INTERNAL_H
#define MSC_ENV_TABLE_INTERNAL_H

#include "base/file.h"
#include "env/table_file.h"

// The text of a file with a NUL after its end, owned by the caller; the table's hash takes it in.
static inline enum msc_status msc_table__read(char **text, size_t *n_bytes,
                                              struct msc_table_file *table, const char *path) {
    MSC_TRY(msc_file_read(text, n_bytes, path));
    table->hash = msc_hash_combine(table->hash, msc_hash_bytes(*text, *n_bytes));
    return MSC_OK;
}
enum msc_status msc_table__read_json(struct msc_table_file *table, const char *path,
                                     struct msc_arena *arena);
// The tasks are the columns that are no metrics, their choices what stands there.
enum msc_status msc_table__read_csv(struct msc_table_file *table, const char *path,
                                    const struct cJSON *metrics, struct msc_arena *arena);
// The rows of a table whose tasks are there. columns [n_columns] are those of the metrics.
enum msc_status msc_table__read_rows(struct msc_table_file *table, const char *path,
                                     const char *const columns[], size_t n_columns,
                                     struct msc_arena *arena);

static inline struct msc_hash msc_table__hash_point(const uint32_t choices[], size_t n_tasks) {
    return msc_hash_bytes(choices, n_tasks * sizeof choices[0]);
}

#endif
