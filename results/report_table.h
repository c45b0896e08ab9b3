// The plans of a report as a table of cells: a row for the winner, the uniform plans, the listed
// trials and the uncompressed model, and a column for every number that any of them has.
//
//     struct msc_report_table table = {0};
//     MSC_TRY_OUT(msc_report_table_fill(&table, report));
//     ... table.cells[row * (table.n_columns + 1) + 1 + column] ...
//     out: msc_report_table_finish(&table);
#ifndef MSC_RESULTS_REPORT_TABLE_H
#define MSC_RESULTS_REPORT_TABLE_H

#include "base/alloc.h"
#include "base/style.h"

#include <stdbool.h>

struct cJSON;
struct msc_table;

#define MSC_REPORT_COLUMNS 40
#define MSC_REPORT_CELL_BYTES 48

struct msc_report_table {
    struct msc_arena arena;
    const struct cJSON *report;              // borrowed while the table is filled
    const char *columns[MSC_REPORT_COLUMNS]; // such as "distill_loss", "validation.accuracy"
    size_t n_columns;
    // [n_rows, n_columns + 1]; the first cell of a row is its name; "-": no such number
    char (*cells)[MSC_REPORT_CELL_BYTES];
    enum msc_style *styles; // [n_rows]
    size_t n_rows;
    size_t cells_capacity, styles_capacity;
};

// `table` must be zeroed. The caller calls msc_report_table_finish, also after a failure.
enum msc_status msc_report_table_fill(struct msc_report_table *table, const struct cJSON *report);
// Like msc_report_table_fill, but for `reranked`: its plans in their new order, then the plans that
// they are compared with.
enum msc_status msc_report_table_fill_reranked(struct msc_report_table *table,
                                               const struct cJSON *report,
                                               const struct cJSON *reranked);
bool msc_report_table_is_empty(const struct msc_report_table *table, size_t column);
// Adds a cell of a column, such as "11324" of size_bytes, to a table for people: with its unit.
void msc_report_add_cell(struct msc_table *out, const char *column, const char *cell,
                         enum msc_style style);
void msc_report_table_finish(struct msc_report_table *table);
// Names a row of a report: "trial 17", "uniform 8", with a remark if its plan cannot win.
void msc_report_name_row(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row);
// Names a row of `reranked`: "trial 17, was 3", "uniform 8", "uncompressed".
void msc_report_name_reranked(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row);

#endif
