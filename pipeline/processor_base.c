// What a search starts from: the edits that the searches before it have found.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "pipeline/strategies.h"
#include "records/record_query.h"
#include "search/distilled.h"
#include "search/kept.h"
#include "search/reranked.h"

#include <string.h>

static enum msc_status base_path(struct msc_arena *arena, const char **out, const char *record) {
    *out = msc_arena_printf(arena, "%s.base.json", record);
    return *out ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

enum msc_status msc_processor__find_base(struct msc_config *config, const char *record) {
    struct msc_config_entry *e = &config->entries[0];
    const char *first = NULL;
    const char *own = NULL;
    MSC_TRY(base_path(&config->arena, &first, msc_path_name(e->record)));
    MSC_TRY(base_path(&config->arena, &own, record));
    bool is_own = e->base && strcmp(msc_path_name(e->base), first) == 0;
    if (is_own && msc_file_exists(own)) {
        e->base = own;
    }
    return MSC_OK;
}

enum msc_status msc_processor__copy_base(struct msc_processor *p, const char *from) {
    struct msc_config_entry *e = &p->config->entries[p->index];
    const char *old = NULL;
    const char *own = NULL;
    MSC_TRY(base_path(&p->arena, &old, from));
    MSC_TRY(base_path(&p->arena, &own, e->record));
    if (!p->model || !e->base || strcmp(e->base, old) != 0) {
        return MSC_OK;
    }
    e->base = own;
    return msc_file_exists(e->record) && msc_file_exists(own)
               ? MSC_OK
               : msc_strategy_save(p->base, p->model->graph, own);
}

static enum msc_status dup_strategy(struct msc_strategy **out, const struct msc_strategy *from) {
    MSC_TRY(msc_strategy_create(out, NULL));
    return msc_strategy_merge(*out, from);
}

// A record knows what it started from; if the searches before it now have another winner, it is the
// record of another problem.
static enum msc_status check_base(const struct msc_processor *p, const char *path) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    struct msc_strategy *stored = NULL;
    bool is_there = msc_file_exists(path);
    if (is_there) {
        MSC_TRY(msc_strategy_load(&stored, path));
    }
    bool is_equal = p->base && stored
                        ? msc_hash_equal(msc_strategy_hash(stored), msc_strategy_hash(p->base))
                        : !p->base && !stored;
    msc_strategy_destroy(stored);
    return is_equal
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%s: what the searches before %s found has changed since this record "
                          "was begun; --restart --entry %s searches anew from it",
                          e->record, e->name, e->name);
}

// A file that was named: its content must be that which the record began with.
static enum msc_status check_hash(const struct msc_processor *p, const struct msc_record *record) {
    const cJSON *env = cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "env");
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(env, "base_strategy");
    char now[MSC_HASH_TEXT_BYTES];
    msc_hash_format(now, msc_strategy_hash(p->base));
    return !cJSON_IsString(old) || strcmp(old->valuestring, now) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "%s: the strategy that it starts from, %s, is another now; put the right "
                          "one back, name another record, or start afresh with --restart",
                          msc_record_path(record), msc_processor__entry(p)->base);
}

enum msc_status msc_processor__set_base(struct msc_processor *p, const struct msc_record *record,
                                        enum msc_processor_mode mode) {
    struct msc_config_entry *e = &p->config->entries[p->index];
    const char *path = NULL;
    if (e->base) {
        MSC_TRY(msc_strategy_load(&p->base, e->base));
        if (p->model) {
            MSC_TRY(msc_strategy_check_weights(p->base, p->model->graph));
        }
        return record ? check_hash(p, record) : MSC_OK;
    }
    if (p->found && p->model) {
        MSC_TRY(dup_strategy(&p->base, p->found));
    }
    MSC_TRY(base_path(&p->arena, &path, e->record));
    if (record) {
        MSC_TRY(check_base(p, path));
    } else if (mode == MSC_PROCESSOR_RUN && !p->base) {
        MSC_TRY(msc_file_remove(path));
    } else if (mode == MSC_PROCESSOR_RUN) {
        MSC_TRY(msc_strategy_save(p->base, p->model->graph, path));
    }
    e->base = p->base ? path : NULL;
    return MSC_OK;
}

enum msc_status msc_processor__keep(struct msc_processor *p, const uint32_t choices[]) {
    struct msc_strategy *found = NULL;
    if (!msc_env_has_edits(p->env)) {
        return MSC_OK;
    }
    MSC_TRY(msc_export_strategy(&found, p->env, choices));
    msc_strategy_destroy(p->found);
    p->found = found;
    return MSC_OK;
}

enum msc_status msc_processor__keep_plan(struct msc_processor *p, const struct cJSON *plan) {
    struct msc_strategy *found = NULL;
    MSC_TRY(msc_strategy_from_json(&found, plan, "edits"));
    msc_strategy_destroy(p->found);
    p->found = found;
    return MSC_OK;
}

static enum msc_status recall_winner(struct msc_processor *p, struct msc_record *record) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    MSC_TRY(msc_kept_leave_out(record, p->log));
    struct msc_record_line best;
    bool is_there = false;
    MSC_TRY(msc_reranked_winner(&is_there, &best, record, p->log));
    if (!is_there || best.trial.outcome.state != MSC_TRIAL_COMPLETE) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s: no trial of it meets every bound, so nothing can start "
                        "from %s",
                        e->record, e->name);
    }
    cJSON *plan = NULL;
    MSC_TRY(msc_distilled_delivered(&plan, record, best.trial.id, p->log));
    enum msc_status status = plan ? msc_processor__keep_plan(p, plan)
                                  : msc_processor__keep(p, best.trial.proposal.choices);
    cJSON_Delete(plan);
    return status;
}

enum msc_status msc_processor__recall(struct msc_processor *p, size_t entry) {
    const struct msc_config_entry *e = &p->config->entries[entry];
    struct msc_record *record = NULL;
    bool is_given = false;
    if (!e->is_delivered) {
        return MSC_OK;
    }
    MSC_TRY(msc_processor__is_given(&is_given, p, entry));
    if (is_given) {
        return msc_processor__take_given(p, entry);
    }
    enum msc_status status = msc_record_open(&record, e->record, MSC_RECORD_READ, p->log);
    if (status == MSC_E_NOT_FOUND) {
        return MSC_FAIL(MSC_E_STATE, "%s: there is no such record: search %s first", e->record,
                        e->name);
    }
    MSC_TRY(status);
    status = msc_processor__enter(p, entry, MSC_PROCESSOR_LOOK);
    if (status == MSC_OK) {
        status = recall_winner(p, record);
    }
    msc_processor__leave(p);
    msc_record_close(record);
    return status;
}
