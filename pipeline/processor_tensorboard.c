// The search at hand as a run of TensorBoard, where it is asked for. What cannot be written there is
// a warning: the record has it.
#include "pipeline/processor_internal.h"

#include "base/str.h"
#include "search/report.h"
#include "search/tensorboard.h"

#include <string.h>

void msc_processor__close_tensorboard(struct msc_processor *p) {
    msc_tensorboard_close(p->tensorboard);
    p->tensorboard = NULL;
}

// From now on this launch writes none.
static void give_up(struct msc_processor *p) {
    msc_log(p->log, MSC_LOG_WARNING, "%s; TensorBoard gets no more of this search",
            msc_status_message());
    msc_processor__close_tensorboard(p);
    p->is_tensorboard_lost = true;
}

void msc_processor__show_tensorboard(struct msc_processor *p, const struct msc_record *record) {
    enum msc_status status = MSC_OK;
    if (!p->options.tensorboard || p->is_tensorboard_lost) {
        return;
    }
    if (!p->tensorboard) {
        status = msc_tensorboard_open(&p->tensorboard, p->options.tensorboard, record);
    }
    if (status == MSC_OK) {
        status = msc_tensorboard_follow(p->tensorboard, record);
    }
    if (status != MSC_OK) {
        give_up(p);
    }
}

void msc_processor__end_tensorboard(struct msc_processor *p, const struct msc_record *record,
                                    const cJSON *report) {
    struct msc_str text = {0};
    msc_processor__show_tensorboard(p, record);
    if (!p->tensorboard) {
        return;
    }
    enum msc_status status = msc_report_text(&text, report);
    if (status == MSC_OK) {
        status = msc_tensorboard_tell(p->tensorboard, record, "result", msc_str_text(&text));
    }
    if (status != MSC_OK) {
        give_up(p);
    }
    msc_str_finish(&text);
    msc_processor__close_tensorboard(p); // another search has another run
}
