// What may stand beside the winner: a greedy search, and latencies.
#include "pipeline/processor_internal.h"

#include "base/file.h"
#include "records/record_query.h"
#include "search/search.h"

#include <string.h>

// ---- The greedy search ------------------------------------------------------------------------

const char *msc_processor__record_beside(struct msc_processor *p, const char *record,
                                         const char *what) {
    static const char ending[] = ".jsonl";
    size_t n = strlen(record);
    size_t n_ending = sizeof ending - 1;
    bool has_ending = n > n_ending && strcmp(record + n - n_ending, ending) == 0;
    return msc_arena_printf(&p->arena, "%.*s.%s%s", (int)(has_ending ? n - n_ending : n), record,
                            what, ending);
}

const char *msc_processor__greedy_record(struct msc_processor *p, const char *record) {
    return msc_processor__record_beside(p, record, "greedy");
}

// With every parameter, as the record's configuration is read again.
static enum msc_status make_agent(struct msc_config_entry *e, struct msc_processor *p) {
    e->agent_said = cJSON_CreateObject();
    MSC_TRY(msc_json_add_text(e->agent_said, "type", "grid_search"));
    MSC_TRY(msc_json_add_text(e->agent_said, "mode", "greedy"));
    return msc_config_resolve_agent(p->config, e->name, e->agent_said, &e->agent);
}

// The record, if there is one, keeps the agent that it began with.
static enum msc_status keep_agent(struct msc_config_entry *e) {
    struct msc_record *record = NULL;
    if (!msc_file_exists(e->record)) {
        return MSC_OK;
    }
    enum msc_status status = msc_record_open(&record, e->record, MSC_RECORD_HEADER, NULL);
    if (status == MSC_OK) {
        const cJSON *header = msc_record_header(record);
        status =
            msc_processor__keep_old_agent(e, cJSON_GetObjectItemCaseSensitive(header, "config"));
        msc_record_close(record);
    }
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

static void compare_with_record(const struct msc_processor *p, const struct msc_record *record,
                                const struct msc_trial *winner) {
    struct msc_record_line best;
    int metric = p->goal.objectives[0].metric;
    if (msc_record_best(&best, record) && best.trial.outcome.state == MSC_TRIAL_COMPLETE) {
        const double *metrics = best.trial.outcome.metrics;
        double gain = metrics[metric] - winner->outcome.metrics[metric];
        gain = p->goal.objectives[0].is_maximised ? gain : -gain;
        if (gain > 0) {
            msc_log(p->log, MSC_LOG_WARNING,
                    "the greedy search beside it found a better plan: %s %.6g against %.6g",
                    msc_env_space(p->env)->metrics[metric].name, metrics[metric],
                    winner->outcome.metrics[metric]);
        }
    }
}

static enum msc_status search_greedily(struct msc_processor *p, struct msc_processor_result *result,
                                       cJSON *report, const struct msc_trial *winner) {
    struct msc_search_options o;
    struct msc_search_result found = {0};
    cJSON *config = NULL;
    cJSON *greedy = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_processor__make_config(&config, p));
    msc_processor__fill_options(&o, p, config);
    MSC_TRY_OUT(msc_search_run(&found, &o));
    MSC_TRY_OUT(msc_processor__make_report(&greedy, p, &found));
    result->was_cancelled = found.end == MSC_SEARCH_END_CANCELLED;
    compare_with_record(p, found.record, winner);
    msc_processor__tell_end(p, greedy, &found);
    status = msc_json_add(report, "greedy", greedy);
out:
    msc_search_result_finish(&found);
    cJSON_Delete(config);
    return status;
}

enum msc_status msc_processor__add_greedy(struct msc_processor *p,
                                          struct msc_processor_result *result, cJSON *report,
                                          const struct msc_trial *winner) {
    // The entry becomes that of the greedy search while it runs.
    struct msc_config_entry *e = &p->config->entries[p->index];
    const struct msc_config_entry kept = *e;
    const struct msc_race race = p->race;
    e->race = NULL; // what stands beside is measured in full
    p->race = (struct msc_race){0};
    e->baseline = MSC_CONFIG_BASELINE_UNIFORM;
    e->agent = NULL;
    e->agent_said = NULL;
    p->is_beside = true;
    e->record = msc_processor__greedy_record(p, kept.record);
    enum msc_status status = e->record ? make_agent(e, p) : msc_processor__no_memory();
    if (status == MSC_OK) {
        status = keep_agent(e);
    }
    if (status == MSC_OK) {
        status = msc_processor__copy_base(p, kept.record);
    }
    if (status == MSC_OK) {
        msc_log(p->log, MSC_LOG_INFO, "%s: a greedy search beside it, %s", e->name, e->record);
        status = search_greedily(p, result, report, winner);
    }
    cJSON_Delete(e->agent);
    cJSON_Delete(e->agent_said);
    *e = kept;
    p->race = race;
    p->is_beside = false;
    return status;
}

// ---- Latencies --------------------------------------------------------------------------------

static enum msc_status measure_latency(cJSON *out, const char *name, struct msc_model *m,
                                       const struct msc_dataset *sample,
                                       const struct msc_strategy *strategy, int64_t repeat) {
    static const struct {
        const char *key;
        double fraction;
    } rows[] = {{"p10_us", 0.1}, {"median_us", 0.5}, {"p90_us", 0.9}};
    struct msc_model_run run = {.strategy = strategy, .repeat = repeat};
    struct msc_array **inputs = msc_alloc_zero(m->n_inputs + 1, sizeof *inputs);
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    if (!inputs || !object) {
        status = msc_processor__no_memory();
        goto out;
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        MSC_TRY_OUT(msc_dataset_chunk(&inputs[i], sample, 0, i, 0));
    }
    run.inputs = (const struct msc_array *const *)inputs;
    MSC_TRY_OUT(msc_model_run(m, &run));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t at = (size_t)(rows[i].fraction * (double)(repeat - 1));
        MSC_TRY_OUT(msc_json_add_number(object, rows[i].key, run.microseconds[at]));
    }
    MSC_TRY_OUT(msc_json_add_number(object, "runs", (double)repeat));
    status = msc_json_add(out, name, object);
    object = NULL;
out:
    cJSON_Delete(object);
    msc_model_run_finish(&run);
    for (size_t i = 0; inputs && i < m->n_inputs; i++) {
        msc_array_release(inputs[i]);
    }
    msc_free(inputs);
    return status;
}

enum msc_status msc_processor__add_profile(struct msc_processor *p, cJSON *report,
                                           const struct msc_strategy *delivered) {
    struct msc_dataset_options o = p->config->dataset.options;
    struct msc_dataset *sample = NULL;
    cJSON *profile = cJSON_CreateObject();
    int64_t repeat = p->config->profile_repeat;
    enum msc_status status = msc_json_add(report, "profile", profile);
    if (status != MSC_OK || !o.inputs || !delivered) {
        return status;
    }
    o.samples = 1;
    o.batch = 1;
    o.labels = NULL;
    MSC_TRY_OUT(msc_dataset_load(&sample, &o, p->model->specs, p->model->n_inputs));
    MSC_TRY_OUT(measure_latency(profile, "float", p->model, sample, NULL, repeat));
    status = measure_latency(profile, "winner", p->model, sample, delivered, repeat);
out:
    msc_dataset_destroy(sample);
    return status;
}
