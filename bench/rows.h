// Rows that benchmarks in C write with --json. bench/README.md describes their format.
//
//     cJSON *rows = cJSON_CreateArray();
//     MSC_TRY_OUT(bench_row_add(rows, &(struct bench_row){.bench = "engine", .ours = rate, ...}));
//     MSC_TRY_OUT(bench_rows_save(rows, path));
#ifndef MSC_BENCH_ROWS_H
#define MSC_BENCH_ROWS_H

#include "base/json.h"

struct bench_row {
    const char *bench, *model, *agent, *peer;
    double ours, theirs; // theirs: 0 without a peer
};

enum msc_status bench_row_add(cJSON *rows, const struct bench_row *row);
enum msc_status bench_rows_save(const cJSON *rows, const char *path);

#endif
