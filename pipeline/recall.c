#include "pipeline/recall.h"

#include "base/json.h"
#include "pipeline/given.h"
#include "pipeline/session.h"
#include "records/record_query.h"
#include "records/distilled.h"
#include "records/kept.h"
#include "records/reranked.h"

static enum msc_status recall_winner(const struct msc_session *s, struct msc_record *record) {
    const struct msc_config_entry *e = s->entry;
    MSC_TRY(msc_kept_leave_out(record, s->setup->log));
    struct msc_record_line best;
    bool is_there = false;
    MSC_TRY(msc_reranked_winner(&is_there, &best, record, s->setup->log));
    if (!is_there || best.trial.outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: no trial meets every bound, so no other search can start "
                        "from %s",
                        e->record, e->name);
    }
    cJSON *plan = NULL;
    MSC_TRY(msc_distilled_delivered(&plan, record, best.trial.id, s->setup->log));
    enum msc_status status = plan ? msc_setup_keep_plan(s->setup, plan)
                                  : msc_setup_keep(s->setup, s->env, best.trial.proposal.choices);
    cJSON_Delete(plan);
    return status;
}

enum msc_status msc_recall(struct msc_setup *setup, size_t entry) {
    const struct msc_config_entry *e = &setup->config->entries[entry];
    struct msc_record *record = NULL;
    struct msc_session s;
    bool is_given = false;
    if (!e->is_delivered) {
        return MSC_OK;
    }
    MSC_TRY(msc_given_is(&is_given, setup, entry));
    if (is_given) {
        return msc_given_take(setup, entry);
    }
    enum msc_status status = msc_record_open(&record, e->record, MSC_RECORD_READ, setup->log);
    if (status == MSC_E_NOT_FOUND) {
        return MSC_FAIL(MSC_E_STATE, "%s: the record is missing: search %s first", e->record,
                        e->name);
    }
    MSC_TRY(status);
    status = msc_session_open(&s, setup, entry, MSC_SETUP_LOOK);
    if (status == MSC_OK) {
        status = recall_winner(&s, record);
    }
    msc_session_close(&s);
    msc_record_close(record);
    return status;
}
