// The plans of a report as rows of cells, for whoever shows them: a row for the winner, the uniform plans,
// the lists and the uncompressed model, a column for every number that one of them has.
//
//     struct msc_report_table table = {0};
//     MSC_TRY_OUT(msc_report_table_fill(&table, report));
//     ... table.cells[row * (table.n_columns + 1) + 1 + column] ...
//     out: msc_report_table_finish(&table);
#ifndef MSC_SEARCH_REPORT_TABLE_H
#define MSC_SEARCH_REPORT_TABLE_H

#include "base/alloc.h"
#include "base/style.h"

#include <stdbool.h>

struct cJSON;

#define MSC_REPORT_COLUMNS 40
#define MSC_REPORT_CELL_BYTES 48

struct msc_report_table {
    struct msc_arena arena;
    const char *columns[MSC_REPORT_COLUMNS]; // "distill_loss", "validation.accuracy"
    size_t n_columns;
    // [n_rows, n_columns + 1]; the first of a row is its name; "-": it has no such number
    char (*cells)[MSC_REPORT_CELL_BYTES];
    enum msc_style *styles; // [n_rows]
    size_t n_rows;
    size_t cells_capacity, styles_capacity;
};

// Zeroed before. On failure, too, it is to be finished.
enum msc_status msc_report_table_fill(struct msc_report_table *table, const struct cJSON *report);
// The same of `reranked`: its plans in their new order, then what they stand beside.
enum msc_status msc_report_table_fill_reranked(struct msc_report_table *table,
                                               const struct cJSON *report,
                                               const struct cJSON *reranked);
bool msc_report_table_is_empty(const struct msc_report_table *table, size_t column);
void msc_report_table_finish(struct msc_report_table *table);
// "trial 17", "uniform 8", with a remark for what cannot win: a row of a report.
void msc_report_name_row(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row);
// "trial 17, was 3", "uniform 8", "uncompressed": a row of `reranked`.
void msc_report_name_reranked(char name[MSC_REPORT_CELL_BYTES], const struct cJSON *row);

#endif
