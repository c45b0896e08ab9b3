#include "pipeline/stage_rerank.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "checks/held_out.h"
#include "pipeline/delivery_plans.h"
#include "pipeline/session_runtime.h"
#include "records/record_query.h"
#include "records/rerank.h"
#include "records/reranked.h"
#include "results/report.h"
#include "tools/command.h"

#include <math.h>

struct rerank {
    const struct msc_session *session;
    struct msc_news *news;
    const struct msc_record *record;
    struct msc_arena arena;
    size_t top;
    const cJSON *command_json; // NULL: no command
    struct msc_command command;
    struct msc_delivery *delivery;
    bool has_runtime;
    cJSON *runtime; // description of the runtime
    struct msc_delivery_plans list;
    size_t n_candidates; // the trials to rerank: the first plans of `list`, in the search's order
    const char *unmeasured; // why the order could not change, or NULL
};

static const struct msc_config_entry *entry_of(const struct rerank *r) {
    return r->session->entry;
}

// True if both are equal, or both absent.
static bool is_equal(const cJSON *a, const cJSON *b) {
    return a && b ? cJSON_Compare(a, b, true) : !a && !b;
}

static enum msc_status rerank_init(struct rerank *r) {
    const cJSON *rerank = entry_of(r)->rerank;
    size_t n = 0;
    r->top = (size_t)msc_json_get(rerank, "top")->valuedouble;
    r->command_json = msc_json_get(rerank, "command");
    if (r->command_json) {
        MSC_TRY(msc_command_read(&r->command, r->command_json, "rerank.command", &r->arena));
    }
    int64_t *ids =
        msc_arena_array(&r->arena, r->top + msc_record_space(r->record)->n_baselines, sizeof *ids);
    r->runtime = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(ids && r->runtime));
    msc_reranked_candidates(ids, &n, r->top, r->record);
    r->n_candidates = n;
    return msc_delivery_plans_init(&r->list, r->record, ids, n);
}

static void rerank_finish(struct rerank *r) {
    msc_delivery_close(r->delivery);
    msc_delivery_plans_finish(&r->list);
    cJSON_Delete(r->runtime);
    msc_command_finish(&r->command);
    msc_arena_finish(&r->arena);
}

// ---- RECORD.rerank.json -----------------------------------------------------------------------

static enum msc_status add_row(cJSON *rows, const struct rerank *r,
                               const struct msc_delivery_plan *plan,
                               const struct msc_rerank_row *ranked) {
    cJSON *row = cJSON_CreateObject();
    MSC_TRY(msc_json_push(rows, row));
    if (plan->id != MSC_DELIVERY_FLOAT_ID) {
        MSC_TRY(msc_reranked_bind_row(row, r->record, plan->id));
    }
    if (ranked) {
        MSC_TRY(msc_json_add_number(row, "rank", (double)ranked->rank));
        MSC_TRY(isnan(ranked->value) ? MSC_OK : msc_json_add_number(row, "value", ranked->value));
        MSC_TRY(msc_json_add_number(row, "violation", ranked->violation));
    }
    if (plan->failure) {
        MSC_TRY(msc_json_add_text(row, "failure", plan->failure));
    }
    return plan->found ? msc_json_add(row, "examined", cJSON_Duplicate(plan->found, true)) : MSC_OK;
}

static enum msc_status fill_reranked(cJSON *object, const struct rerank *r,
                                     const struct msc_rerank_by *by,
                                     const struct msc_rerank_row rows[]) {
    cJSON *plans = cJSON_CreateArray(), *references = cJSON_CreateArray();
    enum msc_status status = msc_json_add(object, "plans", plans);
    if (status != MSC_OK) {
        cJSON_Delete(references);
        return status;
    }
    MSC_TRY(msc_json_add(object, "references", references));
    MSC_TRY(msc_json_add_number(object, "top", (double)r->top));
    if (by) {
        MSC_TRY(msc_json_add_text(object, "by", by->name));
        MSC_TRY(msc_json_add_bool(object, "maximise", by->is_maximised));
    }
    if (r->has_runtime) {
        MSC_TRY(msc_json_add(object, "runtime", cJSON_Duplicate(r->runtime, true)));
    }
    if (r->command_json) {
        MSC_TRY(msc_json_add(object, "command", cJSON_Duplicate(r->command_json, true)));
    }
    for (size_t i = 0; i < r->n_candidates; i++) {
        size_t at = by ? rows[i].rank - 1 : i;
        MSC_TRY(add_row(plans, r, &r->list.plans[at], by ? &rows[i] : NULL));
    }
    for (size_t i = r->n_candidates; i < r->list.n; i++) {
        MSC_TRY(add_row(references, r, &r->list.plans[i], NULL));
    }
    return MSC_OK;
}

// Writes the results so far; `by` NULL: the order is not known yet. If `out` is not NULL, *out also
// gets them.
static enum msc_status keep_reranked(cJSON **out, const struct rerank *r,
                                     const struct msc_rerank_by *by,
                                     const struct msc_rerank_row rows[]) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status =
        object ? fill_reranked(object, r, by, rows) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = msc_reranked_save(r->record, object);
    }
    if (status == MSC_OK && out) {
        *out = object;
        return MSC_OK;
    }
    cJSON_Delete(object);
    return status;
}

// The row of a plan in earlier measurements, or NULL.
static const cJSON *find_row(const cJSON *old, int64_t id) {
    static const char *const lists[] = {"plans", "references"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const cJSON *row = NULL;
        cJSON_ArrayForEach(row, msc_json_get(old, lists[i])) {
            const cJSON *item = msc_json_get(row, "id");
            int64_t row_id = item ? (int64_t)item->valuedouble : MSC_DELIVERY_FLOAT_ID;
            if (row_id == id) {
                return row;
            }
        }
    }
    return NULL;
}

// Takes over the measurements that are still valid: the file size always, the results in the
// runtime if the runtime is the same, and the score if the command is the same.
static enum msc_status recall_plan(struct msc_delivery_plan *plan, const cJSON *row,
                                   bool same_runtime, bool same_command) {
    const struct {
        const char *key;
        bool holds;
    } parts[] = {{"file_bytes", true}, {"runtime", same_runtime}, {"score", same_command}};
    const cJSON *examined = msc_json_get(row, "examined");
    plan->found = cJSON_CreateObject();
    MSC_TRY(MSC_ALLOCATED(plan->found));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const cJSON *item = msc_json_get(examined, parts[i].key);
        if (item && parts[i].holds) {
            MSC_TRY(msc_json_add(plan->found, parts[i].key, cJSON_Duplicate(item, true)));
        }
    }
    return MSC_OK;
}

static enum msc_status recall_plans(struct rerank *r, const cJSON *old) {
    bool same_runtime = is_equal(msc_json_get(old, "runtime"), r->runtime);
    bool same_command = is_equal(msc_json_get(old, "command"), r->command_json);
    for (size_t i = 0; i < r->list.n; i++) {
        const cJSON *row = find_row(old, r->list.plans[i].id);
        MSC_TRY(recall_plan(&r->list.plans[i], row, same_runtime, same_command));
    }
    return MSC_OK;
}

// ---- Measuring --------------------------------------------------------------------------------

static enum msc_status score_plan(struct rerank *r, struct msc_delivery_plan *plan) {
    struct msc_command_files files = {NULL, NULL};
    char *path = NULL;
    double score = NAN;
    MSC_TRY(msc_path_absolute(&path, &r->arena, plan->path));
    files.model = path;
    enum msc_status status = msc_command_run(&score, &r->command, &files, entry_of(r)->folder,
                                             r->session->setup->options.cancel, 1);
    if (status == MSC_OK) {
        return msc_json_add_number(plan->found, "score", score);
    }
    if (status != MSC_E_STATE) {
        return status;
    }
    plan->failure = msc_arena_strdup(&r->arena, msc_status_message());
    return MSC_ALLOCATED(plan->failure);
}

static bool lacks_in_runtime(const struct rerank *r, const struct msc_delivery_plan *plan,
                             const char *key) {
    return r->has_runtime && !msc_json_get(msc_json_get(plan->found, "runtime"), key);
}

// Latencies can be compared only within one measurement: if one is missing, all are measured.
static bool lacks_latencies(const struct rerank *r) {
    for (size_t i = 0; i < r->list.n; i++) {
        if (lacks_in_runtime(r, &r->list.plans[i], "latency_us")) {
            return true;
        }
    }
    return false;
}

static enum msc_status measure_plan(struct rerank *r, struct msc_delivery_plan *plan,
                                    bool needs_latency) {
    bool needs_outputs = lacks_in_runtime(r, plan, "distill_loss");
    bool needs_score = r->command_json && !msc_json_get(plan->found, "score");
    if (!needs_latency && !needs_outputs && !needs_score &&
        msc_json_get(plan->found, "file_bytes")) {
        return MSC_OK;
    }
    MSC_TRY(msc_delivery_export(r->delivery, plan));
    if (needs_outputs) {
        MSC_TRY(msc_delivery_outputs(r->delivery, plan));
    }
    if (needs_score && !plan->failure) {
        MSC_TRY(score_plan(r, plan));
    }
    msc_session_tell_refused(r->session, plan);
    return needs_outputs || needs_score ? keep_reranked(NULL, r, NULL, NULL) : MSC_OK;
}

static enum msc_status measure_candidates(struct rerank *r) {
    bool needs_latency = lacks_latencies(r);
    for (size_t i = 0; i < r->list.n; i++) {
        MSC_TRY(measure_plan(r, &r->list.plans[i], needs_latency));
    }
    return needs_latency ? msc_delivery_latency(r->delivery, r->list.order, r->list.n) : MSC_OK;
}

// ---- The order --------------------------------------------------------------------------------

static enum msc_status order_candidates(cJSON **out, struct rerank *r) {
    struct msc_rerank_by by;
    struct msc_rerank_row *rows = msc_arena_array(&r->arena, r->n_candidates, sizeof *rows);
    struct msc_record_line *lines = msc_arena_array(&r->arena, r->n_candidates, sizeof *lines);
    MSC_TRY(MSC_ALLOCATED(rows && lines));
    for (size_t i = 0; i < r->n_candidates; i++) {
        const struct msc_delivery_plan *plan = &r->list.plans[i];
        lines[i] = msc_record_trial(r->record, (size_t)plan->id);
        rows[i] = (struct msc_rerank_row){
            .trial = &lines[i].trial,
            .rank = i + 1,
            .examined = plan->found,
            .has_failed = plan->failure != NULL,
            .held_out_violation = msc_held_out_violation(
                msc_record_space(r->record), &r->session->goal, &r->session->drops,
                msc_json_get(msc_json_get(plan->found, "runtime"), "validation")),
        };
    }
    msc_rerank_sort(&by, rows, r->n_candidates, &r->session->goal, msc_record_space(r->record),
                    r->command_json != NULL, r->command_json && r->command.is_maximised);
    if (by.n_measured == 0) {
        r->unmeasured = msc_arena_printf(&r->arena, "no plan has a %s", by.name);
        return r->unmeasured ? keep_reranked(NULL, r, NULL, NULL)
                             : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    if (rows[0].violation > 0.0) {
        msc_log(r->session->setup->log, MSC_LOG_WARNING,
                "%s: by these measurements none of the %zu plans meets every bound; the nearest, "
                "trial %lld, comes first",
                entry_of(r)->name, r->n_candidates, (long long)rows[0].trial->id);
    }
    return keep_reranked(out, r, &by, rows);
}

// Reports that the search's order and winner are kept.
static enum msc_status tell_unmeasured(const struct rerank *r) {
    const struct msc_delivery_plan *first = &r->list.plans[0];
    struct msc_str text = {0};
    msc_str_printf(&text,
                   "none of %zu plans could be measured, so the search's own winner is "
                   "delivered: %s",
                   r->n_candidates, r->unmeasured);
    if (first->failure) {
        msc_str_printf(&text, " (%s: %s)", first->name, first->failure);
    }
    msc_log(r->session->setup->log, MSC_LOG_WARNING, "%s: rerank: %s", entry_of(r)->name,
            msc_str_text(&text));
    enum msc_status status = msc_json_add_text(r->runtime, "unmeasured", msc_str_text(&text));
    msc_str_finish(&text);
    return status;
}

// If the runtime is missing, uses the results that an earlier launch measured in it.
static enum msc_status recall_whole(cJSON **out, struct rerank *r) {
    cJSON *old = NULL;
    MSC_TRY(msc_reranked_load(&old, r->record, r->session->setup->log));
    const cJSON *runtime = msc_json_get(old, "runtime");
    if (!runtime || !is_equal(msc_json_get(old, "command"), r->command_json)) {
        cJSON_Delete(old);
        return MSC_OK;
    }
    *out = old;
    cJSON_Delete(r->runtime);
    r->runtime = cJSON_Duplicate(runtime, true);
    return r->runtime ? recall_plans(r, old) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static void tell_nothing_to_measure_by(const struct rerank *r) {
    const cJSON *missing = msc_json_get(r->runtime, "missing");
    msc_log(r->session->setup->log, MSC_LOG_WARNING,
            "%s: rerank: the order of the search is kept, as there is neither a command nor %s%s",
            entry_of(r)->name, missing ? "the runtime: " : "a runtime",
            missing ? missing->valuestring : "");
}

// *out remains NULL if there is nothing to order by: no runtime, no earlier result, no command.
static enum msc_status rerank_measure(cJSON **out, struct rerank *r) {
    cJSON *old = NULL;
    if (msc_session_has_runtime(r->session) || r->command_json) {
        MSC_TRY(msc_session_open_delivery(&r->delivery, r->session, r->news));
    }
    if (msc_session_has_runtime(r->session)) {
        MSC_TRY(msc_session_start_runtime(&r->has_runtime, r->runtime, r->session, r->delivery));
    }
    if (!r->has_runtime) {
        MSC_TRY(recall_whole(out, r));
    }
    if (*out) {
        return MSC_OK;
    }
    if (!r->has_runtime && !r->command_json) {
        tell_nothing_to_measure_by(r);
        return MSC_OK;
    }
    MSC_TRY(msc_reranked_load_rows(&old, r->record, r->session->setup->log));
    enum msc_status status = recall_plans(r, old);
    cJSON_Delete(old);
    MSC_TRY(status);
    MSC_TRY(measure_candidates(r));
    return order_candidates(out, r);
}

static void tell_first(const struct rerank *r, const struct msc_trial *first,
                       const cJSON *reranked) {
    msc_log(r->session->setup->news, MSC_LOG_INFO, "%s: of %zu plans, trial %lld comes first by %s",
            entry_of(r)->name, r->n_candidates, (long long)first->id,
            msc_json_get(reranked, "by")->valuestring);
}

static enum msc_status report_reranked(struct rerank *r, cJSON *report, const cJSON *reranked,
                                       struct msc_trial *best) {
    const cJSON *first = msc_json_get(reranked, "plans");
    MSC_TRY(msc_report_add_reranked(report, r->record, reranked));
    if (reranked) {
        const cJSON *id = msc_json_get(first->child, "id");
        *best = msc_record_trial(r->record, (size_t)id->valuedouble).trial;
        tell_first(r, best, reranked);
    }
    return MSC_OK;
}

enum msc_status msc_stage_rerank(const struct msc_session *session, struct msc_news *news,
                                 cJSON *report, const struct msc_record *record,
                                 struct msc_trial *best) {
    struct rerank r = {.session = session, .news = news, .record = record};
    cJSON *reranked = NULL;
    enum msc_status measured = MSC_OK;
    enum msc_status status = rerank_init(&r);
    if (status == MSC_OK) {
        measured = msc_session_settle_measuring(session, rerank_measure(&reranked, &r));
        status = report_reranked(&r, report, reranked, best);
    }
    if (status == MSC_OK && r.unmeasured) {
        status = tell_unmeasured(&r);
    }
    if (status == MSC_OK) {
        status = msc_session_report_runtime(report, r.runtime, &r.list);
        r.runtime = NULL;
    }
    cJSON_Delete(reranked);
    rerank_finish(&r);
    return status == MSC_OK ? measured : status;
}
