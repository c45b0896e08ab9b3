#include "pipeline/board.h"

#include "base/json.h"
#include "base/str.h"
#include "results/report.h"
#include "results/tensorboard.h"

void msc_board_close(struct msc_board *b) {
    msc_tensorboard_close(b->run);
    b->run = NULL;
}

// Stops writing this search for TensorBoard.
static void give_up(struct msc_board *b) {
    msc_log(b->log, MSC_LOG_WARNING, "%s; nothing more of this search is written for TensorBoard",
            msc_status_message());
    msc_board_close(b);
    b->is_lost = true;
}

void msc_board_show(struct msc_board *b, const struct msc_record *record) {
    enum msc_status status = MSC_OK;
    if (!b->folder || b->is_lost) {
        return;
    }
    if (!b->run) {
        status = msc_tensorboard_open(&b->run, b->folder, record);
    }
    if (status == MSC_OK) {
        status = msc_tensorboard_follow(b->run, record);
    }
    if (status != MSC_OK) {
        give_up(b);
    }
}

void msc_board_end(struct msc_board *b, const struct msc_record *record, const cJSON *report) {
    struct msc_str text = {0};
    msc_board_show(b, record);
    if (!b->run) {
        return;
    }
    enum msc_status status = msc_report_text(&text, report);
    if (status == MSC_OK) {
        status = msc_tensorboard_tell(b->run, record, "result", msc_str_text(&text));
    }
    if (status != MSC_OK) {
        give_up(b);
    }
    msc_str_finish(&text);
    msc_board_close(b); // each search writes a run of its own
}
