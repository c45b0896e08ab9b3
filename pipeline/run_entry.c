#include "pipeline/run_entry.h"

#include "pipeline/given.h"
#include "pipeline/recall.h"
#include "pipeline/run_search.h"

enum msc_status msc_run_entry(struct msc_setup *setup, size_t i,
                              struct msc_processor_result *result) {
    enum msc_setup_mode mode = setup->options.is_dry_run ? MSC_SETUP_LOOK : MSC_SETUP_RUN;
    bool is_given = false;
    if (i < setup->first) {
        return setup->config->entries[i].strategy_file ? msc_recall(setup, i) : MSC_OK;
    }
    MSC_TRY(msc_given_is(&is_given, setup, i));
    if (is_given) {
        return msc_given_apply(setup, i, result);
    }
    msc_log(setup->log, MSC_LOG_INFO, "%s: %s", setup->config->entries[i].name,
            setup->config->entries[i].record);
    struct msc_session s;
    enum msc_status status = msc_session_open(&s, setup, i, mode);
    if (status == MSC_OK) {
        status = msc_run_search(&s, result);
    }
    msc_session_close(&s);
    return status;
}
