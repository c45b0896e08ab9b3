// Writes a search for TensorBoard, if requested. A failed write only causes a warning, because the
// record has all data.
#ifndef MSC_PIPELINE_BOARD_H
#define MSC_PIPELINE_BOARD_H

#include "base/log.h"

#include <stdbool.h>

struct cJSON;
struct msc_record;
struct msc_tensorboard;

struct msc_board {
    const char *folder; // folder for the runs, one per search; NULL: not requested
    const struct msc_log *log;
    struct msc_tensorboard *run; // NULL: not begun
    bool is_lost;                // a write has failed: nothing more is written
};

// Writes the trials that were added to the record.
void msc_board_show(struct msc_board *b, const struct msc_record *record);
// Ends a search: writes the last trials and the report, and closes the run.
void msc_board_end(struct msc_board *b, const struct msc_record *record,
                   const struct cJSON *report);
void msc_board_close(struct msc_board *b); // accepts a zeroed struct

#endif
