// One search of a configuration, from its estimate to its report.
#include "pipeline/processor_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "pipeline/cluster.h"
#include "pipeline/remarks.h"
#include "pipeline/sameness.h"
#include "records/record_query.h"
#include "search/estimate.h"
#include "search/kept.h"
#include "search/pool.h"
#include "search/recheck.h"
#include "search/report.h"
#include "search/warm.h"

#include <math.h>
#include <unistd.h>

static enum msc_status take_best(void *payload, const struct msc_trial *trial) {
    struct msc_processor *p = payload;
    msc_processor__tell_best(p, trial);
    return p->is_beside ? MSC_OK : msc_processor__take_best(p, trial);
}

void msc_processor__fill_options(struct msc_search_options *o, struct msc_processor *p,
                                 const cJSON *config) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    *o = (struct msc_search_options){
        .env = p->env,
        .agent_config = e->agent,
        .agent_folder = e->folder,
        .goal = &p->goal,
        .record_path = e->record,
        .program = msc_program_name(),
        .numerics = msc_processor_numerics(p),
        .config = config,
        .more = p->sameness,
        .free_keys = msc_config_free_keys,
        .seed = e->seed,
        .parallel = e->parallel,
        .race = &p->race,
        .budget = e->budget,
        .trial_seconds = e->trial_seconds,
        .quiet_seconds = e->quiet_seconds,
        .accept_new_numerics = p->options.accept_new_numerics,
        .warm_start = p->options.warm_start,
        .retry_failed = p->options.retry_failed,
        .log = p->log,
        .cancel = p->options.cancel,
        .worker = p->options.worker,
        .callbacks = {.payload = p, .progress = msc_processor__tell_progress, .best = take_best},
    };
}

enum msc_status msc_processor__make_config(cJSON **out, struct msc_processor *p) {
    const char *folder = msc_path_folder(&p->arena, msc_processor__entry(p)->record);
    if (!folder) {
        return msc_processor__no_memory();
    }
    return msc_config_entry_to_json(p->config, p->index, out, folder);
}

// ---- Before the start -------------------------------------------------------------------------

// The least memory that the search can do with, in bytes; 0 where the environment does not say.
// What the program comes to hold besides is not known to the byte: some is added.
static enum msc_status measure_memory(double *out, const struct msc_processor *p) {
    const struct msc_space *space = msc_env_space(p->env);
    uint32_t *first = msc_alloc_zero(space->n_tasks + 1, sizeof *first);
    cJSON *object = NULL;
    *out = 0;
    if (!first) {
        return msc_processor__no_memory();
    }
    const uint32_t *choices = space->n_baselines > 0 ? space->baselines[0].choices : first;
    enum msc_status status = msc_env_reevaluate(p->env, choices, MSC_REEVALUATE_MEMORY, &object);
    if (status == MSC_OK) {
        const cJSON *n_bytes = cJSON_GetObjectItemCaseSensitive(object, "memory_bytes");
        *out = cJSON_IsNumber(n_bytes) ? 1.15 * n_bytes->valuedouble : 0;
    }
    cJSON_Delete(object);
    msc_free(first);
    return status;
}

static enum msc_status check_memory(const struct msc_processor *p) {
    double least;
    if (!p->model || p->options.memory_bytes == 0) {
        return MSC_OK;
    }
    MSC_TRY(measure_memory(&least, p));
    return least <= (double)p->options.memory_bytes
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "--memory: %.0f MB are too few, this search needs at "
                          "least %.0f MB",
                          (double)p->options.memory_bytes * 1e-6, ceil(least * 1e-6));
}

// What the network gives before anything is done to it: where its inputs are not what they were in
// training, this tells before the night.
static enum msc_status estimate_accuracy(struct msc_str *text, cJSON *object,
                                         const struct msc_processor *p) {
    double metrics[MSC_MAX_METRICS];
    int metric = msc_space_find_metric(msc_env_space(p->env), "accuracy");
    int64_t n = msc_dataset_n_samples(p->model->dataset);
    MSC_TRY(msc_json_add_number(object, "calibration_samples", (double)n));
    if (!msc_dataset_has_labels(p->model->dataset)) {
        msc_str_append(text, "accuracy: not known, the samples have no labels (dataset.labels)\n");
        return msc_json_add(object, "float_accuracy", cJSON_CreateNull());
    }
    if (metric < 0) { // none that this environment measures
        return MSC_OK;
    }
    MSC_TRY(msc_env_reference(p->env, metrics));
    msc_str_printf(text, "accuracy: %.5g of the float model on %lld samples\n", metrics[metric],
                   (long long)n);
    return msc_json_add_number(object, "float_accuracy", metrics[metric]);
}

// As measured (docs/cluster.md): a pipe; Ray's calls; srun, which carries messages over a kilobyte in 92 ms.
static struct msc_pool_costs costs_of(enum msc_cluster_kind kind) {
    static const double messages_s[] = {
        [MSC_CLUSTER_LOCAL] = 0.1e-3, [MSC_CLUSTER_RAY] = 3e-3, [MSC_CLUSTER_SLURM] = 0.184};
    static const double starts_s[] = {
        [MSC_CLUSTER_LOCAL] = 0.5, [MSC_CLUSTER_RAY] = 6.0, [MSC_CLUSTER_SLURM] = 2.0};
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    return (struct msc_pool_costs){
        .trial_s = 20e-6,
        .worker_s = 0.8e-3,
        .message_s = messages_s[kind],
        .start_s = starts_s[kind],
        .most = kind == MSC_CLUSTER_LOCAL && n_processors > 0 ? (size_t)n_processors : 0};
}

// Where many are to measure: how many are worth having, and by what figures.
static enum msc_status estimate_workers(struct msc_str *text, cJSON *object,
                                        struct msc_processor *p, const struct msc_estimate *e) {
    size_t n_trials = msc_processor__entry(p)->parallel;
    double round_s = e->trial_s * (double)n_trials, worth_s;
    struct msc_cluster c;
    if (!p->options.cluster || isnan(round_s)) {
        return MSC_OK;
    }
    MSC_TRY(msc_cluster_read(&c, &p->arena, p->options.cluster));
    if (c.kind == MSC_CLUSTER_LOCAL && p->model) {
        msc_str_printf(text,
                       "workers: those of this machine share its %d threads, and measure no more "
                       "than one process does: none are worth having\n",
                       p->model->n_threads);
        return msc_json_add_number(object, "workers_worth_having", 0);
    }
    const struct msc_pool_costs costs = costs_of(c.kind);
    double left_s = isfinite(e->left_s) ? e->left_s : INFINITY;
    size_t n =
        msc_pool_worth(&worth_s, &costs, round_s, left_s, n_trials, msc_env_n_batches(p->env));
    msc_str_printf(text, "workers: a round of %zu trials takes ", n_trials);
    msc_str_append_duration(text, round_s);
    msc_str_printf(text, " on this machine, with %zu as fast as it ", n > 0 ? n : 2);
    msc_str_append_duration(text, worth_s);
    msc_str_append(text, ", of which messages take ");
    msc_str_append_duration(text, costs.message_s);
    msc_str_append(text, ", and they start in ");
    msc_str_append_duration(text, costs.start_s);
    if (n > 0) {
        msc_str_printf(text, ": up to %zu are worth having\n", n);
    } else {
        msc_str_append(text, ": none are worth having\n");
    }
    return msc_json_add_number(object, "workers_worth_having", (double)n);
}

// The device may have less than was asked for.
static double most_memory(const struct msc_model *m) {
    uint64_t room = msc_backend_get_memory(m->backend).room_bytes;
    return (double)(room < m->memory_bytes ? room : m->memory_bytes);
}

static enum msc_status processor_estimate(struct msc_str *text, cJSON *object,
                                          struct msc_processor *p,
                                          const struct msc_search_options *o) {
    struct msc_estimate e;
    double least = 0;
    MSC_TRY(msc_estimate_make(&e, o));
    msc_estimate_text(text, &e);
    MSC_TRY(msc_estimate_describe(&e, object));
    MSC_TRY(estimate_workers(text, object, p, &e));
    if (p->model) {
        MSC_TRY(measure_memory(&least, p));
        double most = most_memory(p->model);
        msc_str_printf(text, "memory: up to %.3g GB, at least %.0f MB\n", most * 1e-9,
                       ceil(least * 1e-6));
        MSC_TRY(msc_json_add_number(object, "memory_bytes", most));
        MSC_TRY(msc_json_add_number(object, "least_memory_bytes", least));
        MSC_TRY(estimate_accuracy(text, object, p));
    }
    MSC_TRY(msc_str_status(text));
    return msc_estimate_check(&e, o->record_path);
}

static void tell_endless(const struct msc_processor *p) {
    const struct msc_budget *budget = &msc_processor__entry(p)->budget;
    if (budget->trials < 0 && budget->seconds <= 0 && !budget->has_target) {
        msc_log(p->log, MSC_LOG_INFO,
                "there is no budget: the search ends when its agent has "
                "nothing left to try, or when it is stopped");
    }
}

static enum msc_status add_estimate(struct msc_processor_result *result, struct msc_processor *p,
                                    const struct msc_search_options *o) {
    struct msc_str text = {0};
    cJSON *report = cJSON_CreateObject(), *object = cJSON_CreateObject();
    enum msc_status status = msc_json_push(result->reports, report);
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    MSC_TRY(msc_json_add(report, "estimate", object));
    MSC_TRY_OUT(msc_json_add_text(report, "entry", msc_processor__entry(p)->name));
    MSC_TRY_OUT(processor_estimate(&text, object, p, o));
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_json_add_text(report, "estimate_text", msc_str_text(&text)));
out:
    msc_str_finish(&text);
    return status;
}

// ---- What others have found -------------------------------------------------------------------

static enum msc_status check_warm(const struct msc_processor *p) {
    const struct msc_processor_options *o = &p->options;
    struct msc_record *record = NULL;
    const char *path = msc_processor__entry(p)->record;
    MSC_TRY(msc_record_open(&record, path, MSC_RECORD_HEADER, NULL));
    enum msc_status status =
        msc_warm_check(cJSON_GetObjectItemCaseSensitive(msc_record_header(record), "warm"),
                       o->warm_from, o->n_warm_from, path, p->log);
    msc_record_close(record);
    return status;
}

// *out, the caller's, stays NULL where nothing is taken, or was already.
static enum msc_status take_warm(cJSON **out, const struct msc_processor *p, bool has_record) {
    const struct msc_warm_options o = {
        .env = p->env,
        .goal = &p->goal,
        .numerics = msc_processor__trial_numerics(p),
        .paths = p->options.warm_from,
        .n_paths = p->options.n_warm_from,
        .is_dry_run = p->options.is_dry_run,
        .log = p->log,
    };
    if (o.n_paths == 0) {
        return MSC_OK;
    }
    return has_record && !p->options.is_dry_run ? check_warm(p) : msc_warm_collect(out, &o);
}

// ---- Afterwards -------------------------------------------------------------------------------

static enum msc_status add_files(cJSON *report, const struct msc_processor *p) {
    cJSON *files = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(report, "files");
    MSC_TRY(msc_json_add(report, "files", files));
    if (!p->is_strategy_due) {
        MSC_TRY(msc_json_add_text(files, "strategy", msc_processor__entry(p)->strategy_file));
    }
    return p->is_model_due || !p->model_path ? MSC_OK
                                             : msc_json_add_text(files, "model", p->model_path);
}

// The winner on disk.
static enum msc_status deliver_winner(struct msc_processor *p, struct msc_processor_result *result,
                                      cJSON *report, const struct msc_record *record,
                                      const struct msc_trial *best) {
    if (p->best_id != best->id) {
        MSC_TRY(msc_processor__take_best(p, best));
    }
    if (!p->may_publish) {
        return MSC_OK;
    }
    msc_processor__publish(p, record, result);
    return add_files(report, p);
}

// From here on it may be a while until something is heard again.
static enum msc_status announce_report(struct msc_processor *p,
                                       const struct msc_search_result *found) {
    double seconds = NAN;
    struct msc_str text = {0};
    MSC_TRY(msc_estimate_reevaluate(&seconds, p->env, found->record, found->trial_s));
    p->measured_s = msc_clock_seconds() + seconds;
    if (!isnan(seconds)) {
        msc_str_append_duration(&text, seconds);
        msc_log(p->log, MSC_LOG_INFO,
                "%s: the winner and the uniform plans are measured once more: about %s",
                msc_processor__entry(p)->name, msc_str_text(&text));
        msc_str_finish(&text);
    }
    return MSC_OK;
}

// A copy of it beside the record.
static enum msc_status keep_report(const struct msc_processor *p, const struct msc_record *record,
                                   const cJSON *report) {
    enum msc_status status = msc_kept_save(record, report);
    if (status != MSC_OK && status != MSC_E_NOMEM) { // the report has it
        msc_log(p->log, MSC_LOG_WARNING, "%s", msc_status_message());
        status = MSC_OK;
    }
    return status;
}

// The winner as it comes out again, what was measured once more, and a copy of it beside the record.
static enum msc_status make_whole_report(cJSON **out, struct msc_processor *p,
                                         const struct msc_report_options *o,
                                         struct msc_record *record) {
    cJSON *left_out = NULL;
    const struct msc_recheck_options recheck = {
        .env = p->env,
        .numerics = msc_processor_numerics(p),
        .log = p->log,
        .cancel = p->options.cancel,
    };
    o->measuring(o->payload, "metrics of the winner");
    MSC_TRY(msc_recheck_winner(&left_out, record, &recheck));
    enum msc_status status = msc_report_create(out, o);
    if (status != MSC_OK) {
        cJSON_Delete(left_out);
        return status;
    }
    if (cJSON_GetArraySize(left_out) > 0) {
        status = msc_json_add(*out, "left_out", left_out);
    } else {
        cJSON_Delete(left_out);
    }
    if (status == MSC_OK) {
        status = keep_report(p, record, *out);
    }
    if (status != MSC_OK) {
        cJSON_Delete(*out);
    }
    return status;
}

enum msc_status msc_processor__make_report(cJSON **out, struct msc_processor *p,
                                           struct msc_search_result *found) {
    struct msc_report_options o = {
        .record = found->record,
        .env = p->env,
        .result = found,
        .has_front = p->goal.n_objectives > 1,
        .measuring = msc_processor__tell_measuring,
        .payload = p,
    };
    enum msc_status status = MSC_E_CANCELLED;
    if (!msc_processor__entry(p)->is_delivered) {
        o.env = NULL;
        return msc_report_create(out, &o);
    }
    if (found->end != MSC_SEARCH_END_CANCELLED) {
        MSC_TRY(announce_report(p, found));
        status = make_whole_report(out, p, &o, found->record);
    }
    if (status == MSC_E_CANCELLED) { // before the end, or while measuring once more
        found->end = MSC_SEARCH_END_CANCELLED;
        MSC_TRY(msc_kept_leave_out(found->record, NULL));
        o.env = NULL;
        status = msc_report_create(out, &o);
    }
    return status;
}

// What becomes of it outside of the search; *best may be another one then. Stopped there, the search
// ended so, with all that it found before.
static enum msc_status measure_delivered(struct msc_processor *p, cJSON *report,
                                         struct msc_search_result *found, struct msc_trial *best) {
    enum msc_status status = MSC_OK;
    if (found->end == MSC_SEARCH_END_CANCELLED) {
        return MSC_OK;
    }
    if (msc_processor__entry(p)->rerank && p->model && msc_env_has_edits(p->env)) {
        status = msc_processor__rerank(p, report, found->record, best);
    } else if (msc_processor__has_runtime(p)) {
        status = msc_processor__add_runtime(p, report, found->record, best);
    } else {
        return MSC_OK;
    }
    if (status == MSC_E_CANCELLED) {
        found->end = MSC_SEARCH_END_CANCELLED;
        return MSC_OK;
    }
    MSC_TRY(status);
    return keep_report(p, found->record, report);
}

// Better weights for the delivered plan, which then is what the next entries start from.
static enum msc_status distill_delivered(struct msc_processor *p,
                                         struct msc_processor_result *result, cJSON *report,
                                         struct msc_search_result *found,
                                         const struct msc_trial *trial) {
    cJSON *plan = NULL;
    MSC_TRY(msc_processor__keep(p, trial->proposal.choices));
    if (found->end == MSC_SEARCH_END_CANCELLED || !msc_processor__entry(p)->distill || !p->model) {
        return MSC_OK;
    }
    enum msc_status status = msc_processor__distill(&plan, p, report, found->record, trial);
    if (status == MSC_E_CANCELLED) {
        found->end = MSC_SEARCH_END_CANCELLED;
        return MSC_OK;
    }
    if (status != MSC_OK || !plan) {
        return status;
    }
    status = msc_processor__keep_plan(p, plan);
    if (status != MSC_OK || !p->may_publish) {
        cJSON_Delete(plan);
        return status;
    }
    msc_processor__take_plan(p, plan);
    msc_processor__publish(p, found->record, result);
    return add_files(report, p);
}

static enum msc_status finish_entry(struct msc_processor *p, struct msc_processor_result *result,
                                    struct msc_search_result *found) {
    cJSON *report = NULL;
    MSC_TRY(msc_processor__make_report(&report, p, found));
    struct msc_record_line line;
    const struct msc_trial *best = msc_record_best(&line, found->record) ? &line.trial : NULL;
    MSC_TRY(msc_json_push(result->reports, report));
    MSC_TRY(msc_json_add_text(report, "entry", msc_processor__entry(p)->name));
    result->was_cancelled = found->end == MSC_SEARCH_END_CANCELLED;
    if (!msc_processor__entry(p)->is_delivered) {
        msc_processor__tell_end(p, report, found);
        return MSC_OK;
    }
    if (!best || best->outcome.state != MSC_TRIAL_COMPLETE) {
        result->is_feasible = result->was_cancelled; // who was stopped may find one yet
        msc_processor__tell_end(p, report, found);
        return MSC_OK;
    }
    struct msc_trial delivered = *best;
    MSC_TRY(deliver_winner(p, result, report, found->record, best));
    MSC_TRY(measure_delivered(p, report, found, &delivered));
    if (delivered.id != best->id) {
        MSC_TRY(deliver_winner(p, result, report, found->record, &delivered));
    }
    MSC_TRY(distill_delivered(p, result, report, found, &delivered));
    msc_processor__check_refused(p, report, result);
    result->was_cancelled = found->end == MSC_SEARCH_END_CANCELLED;
    msc_processor__tell_end(p, report, found);
    if (result->was_cancelled) {
        return MSC_OK;
    }
    if (msc_processor__entry(p)->baseline == MSC_CONFIG_BASELINE_GREEDY) {
        MSC_TRY(msc_processor__add_greedy(p, result, report, best));
    }
    return p->config->profile_repeat > 0 && p->model
               ? msc_processor__add_profile(p, report, msc_env_has_edits(p->env) ? p->found : NULL)
               : MSC_OK;
}

static enum msc_status search_entry(struct msc_processor *p, struct msc_processor_result *result,
                                    struct msc_search_options *o) {
    struct msc_search_result found = {0};
    o->record = p->record;
    p->record = NULL;
    MSC_TRY(msc_search_run(&found, o));
    enum msc_status status = finish_entry(p, result, &found);
    msc_search_result_finish(&found);
    return status;
}

// Names of files in the workspace may have folders in them.
static enum msc_status make_folders(struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    const char *const paths[] = {e->record, e->strategy_file};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *folder = paths[i] ? msc_path_folder(&p->arena, paths[i]) : ".";
        if (!folder) {
            return msc_processor__no_memory();
        }
        MSC_TRY(msc_file_make_folders(folder));
    }
    return MSC_OK;
}

// Whether the samples, and the outputs on them, differ at all: said at each start, and in the record.
enum msc_status msc_processor__look_at_samples(struct msc_processor *p) {
    cJSON *found = NULL;
    cJSON_Delete(p->sameness);
    p->sameness = NULL;
    MSC_TRY(p->model
                ? msc_sameness_find(&found, p->model, p->env, msc_processor__entry(p)->name, p->log)
                : MSC_OK);
    if (!found) {
        return MSC_OK;
    }
    p->sameness = cJSON_CreateObject();
    return msc_json_add(p->sameness, "sameness", found);
}

enum msc_status msc_processor__search(struct msc_processor *p,
                                      struct msc_processor_result *result) {
    struct msc_search_options o = {0};
    cJSON *config = NULL, *warm = NULL;
    bool has_record = false;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_processor__check_numerics(p));
    MSC_TRY_OUT(msc_processor__check_cluster(p));
    MSC_TRY_OUT(msc_processor__look_at_samples(p));
    MSC_TRY_OUT(msc_processor__make_config(&config, p));
    msc_processor__fill_options(&o, p, config);
    o.own_numerics = o.numerics;
    o.numerics = msc_processor__trial_numerics(p);
    MSC_TRY_OUT(msc_processor__has_record(&has_record, o.record_path));
    MSC_TRY_OUT(take_warm(&warm, p, has_record));
    o.warm = warm;
    if (!has_record || p->options.is_dry_run) { // said once
        MSC_TRY_OUT(msc_remark_costs(msc_env_space(p->env), &p->goal, p->log));
    }
    if (p->options.is_dry_run) {
        o.restart = p->options.restart;
        status = add_estimate(result, p, &o);
        goto out;
    }
    MSC_TRY_OUT(check_memory(p));
    msc_processor__tell_begin(p);
    tell_endless(p);
    MSC_TRY_OUT(make_folders(p));
    MSC_TRY_OUT(msc_processor__start_publishing(p));
    MSC_TRY_OUT(msc_processor__open_pool(&o.pool, p));
    status = search_entry(p, result, &o);
out:
    msc_pool_close(o.pool);
    cJSON_Delete(config);
    cJSON_Delete(warm);
    return status;
}
