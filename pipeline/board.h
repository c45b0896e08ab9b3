// Shows a search in TensorBoard, if that was asked for. A failure to write is only a warning, as
// the record has everything.
#ifndef MSC_PIPELINE_BOARD_H
#define MSC_PIPELINE_BOARD_H

#include "base/log.h"

#include <stdbool.h>

struct cJSON;
struct msc_record;
struct msc_tensorboard;

struct msc_board {
    const char *folder; // gets a run of each search; NULL: none is wanted
    const struct msc_log *log;
    struct msc_tensorboard *run; // NULL: not begun
    bool is_lost;                // a write has failed: no more is written
};

// Writes the trials that are new.
void msc_board_show(struct msc_board *b, const struct msc_record *record);
// The search has ended: writes the last trials and the report, and closes the run.
void msc_board_end(struct msc_board *b, const struct msc_record *record,
                   const struct cJSON *report);
void msc_board_close(struct msc_board *b); // accepts a zeroed one

#endif
