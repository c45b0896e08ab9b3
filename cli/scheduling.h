// The result of `mscgym schedule`: reading a point from a record, and printing.
#ifndef MSC_CLI_SCHEDULING_H
#define MSC_CLI_SCHEDULING_H

#include "cli/cli.h"
#include "env/schedule/rows.h"

struct cJSON;

struct msc_cli_scheduled {
    struct msc_model *model;
    struct msc_strategy *strategy; // or NULL
    struct msc_graph *pruned;      // without the channels that the strategy removes, or NULL
    struct msc_dataset *random;    // random inputs, or NULL
    struct msc_schedule_bench *bench;
    size_t n; // classes
    struct msc_schedule_row *rows;
    uint32_t *choices; // [n] the fastest variants, or those of the record
    bool wins;         // they take less than the choices by rule, by more than the spread
    struct msc_schedule_time whole;
    double spread;
    bool is_json;
};

// Reads the best trial of a search with the environment schedule into `choices`. MSC_E_INVALID: the
// record has no feasible trial, or is of other work.
enum msc_status msc_cli_read_scheduled(struct msc_cli_scheduled *s, const char *record);
enum msc_status msc_cli_print_scheduled(const struct msc_cli_scheduled *s);
// Every variant of one class, with its time.
enum msc_status msc_cli_add_scheduled_class(struct cJSON *list, const struct msc_cli_scheduled *s,
                                            size_t i);
enum msc_status msc_cli_print_scheduled_class(const struct msc_cli_scheduled *s, size_t i);

#endif
