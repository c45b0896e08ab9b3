// At the end of a search its winner, the uniform plans and the float model are measured in the runtime
// that they are for. Whatever becomes of that, the search has its result.
#include "pipeline/processor_internal.h"

#include "pipeline/delivery.h"
#include "records/record_query.h"

#include <math.h>
#include <stdio.h>

#define MOST_BASELINES 8
#define FLOAT_ID (-1)

// Plans with the trials that they are of; the last one is the float model.
struct runtime_plans {
    struct msc_delivery_plan plans[MOST_BASELINES + 2];
    struct msc_delivery_plan *order[MOST_BASELINES + 2]; // for msc_delivery_latency
    int64_t ids[MOST_BASELINES + 2];
    char names[MOST_BASELINES + 2][64];
    size_t n;
};

static void add_plan(struct runtime_plans *list, int64_t id, const uint32_t *choices,
                     const char *label) {
    size_t i = list->n;
    for (size_t k = 0; k < i; k++) {
        if (list->ids[k] == id) {
            return;
        }
    }
    if (id == FLOAT_ID) {
        snprintf(list->names[i], sizeof list->names[i], "the float model");
    } else if (label) {
        snprintf(list->names[i], sizeof list->names[i], "uniform %.40s", label);
    } else {
        snprintf(list->names[i], sizeof list->names[i], "trial %lld", (long long)id);
    }
    list->ids[i] = id;
    list->plans[i] = (struct msc_delivery_plan){.name = list->names[i], .choices = choices};
    list->order[i] = &list->plans[i];
    list->n++;
}

static void list_plans(struct runtime_plans *list, const struct msc_record *record,
                       const struct msc_trial *best) {
    const struct msc_space *space = msc_record_space(record);
    add_plan(list, best->id, best->proposal.choices, NULL);
    for (size_t i = 0; i < space->n_baselines && i < MOST_BASELINES; i++) {
        const struct msc_record_line *line = msc_record_baseline(record, i);
        if (line && line->trial.outcome.state != MSC_TRIAL_FAILED) {
            add_plan(list, line->trial.id, line->trial.proposal.choices, space->baselines[i].label);
        }
    }
    add_plan(list, FLOAT_ID, NULL, NULL);
}

// ---- In the report ----------------------------------------------------------------------------

static cJSON *runtime_get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

// Puts copies of what was found into a row's `examined`.
static enum msc_status runtime_fill_row(cJSON *row, const cJSON *found) {
    cJSON *examined = runtime_get(row, "examined");
    const cJSON *item = NULL;
    if (!examined) {
        examined = cJSON_CreateObject();
        MSC_TRY(msc_json_add(row, "examined", examined));
    }
    cJSON_ArrayForEach(item, found) {
        cJSON_DeleteItemFromObjectCaseSensitive(examined, item->string);
        MSC_TRY(msc_json_add(examined, item->string, cJSON_Duplicate(item, true)));
    }
    return MSC_OK;
}

static enum msc_status fill_rows_of(cJSON *report, int64_t id, const cJSON *found) {
    cJSON *winner = runtime_get(report, "winner");
    cJSON *row = NULL;
    if (id == FLOAT_ID) {
        cJSON *reference = runtime_get(report, "reference");
        return reference ? runtime_fill_row(reference, found) : MSC_OK;
    }
    if (cJSON_IsObject(winner) && runtime_get(winner, "id")->valuedouble == (double)id) {
        MSC_TRY(runtime_fill_row(winner, found));
    }
    cJSON_ArrayForEach(row, runtime_get(report, "baselines")) {
        if (runtime_get(row, "id")->valuedouble == (double)id) {
            MSC_TRY(runtime_fill_row(row, found));
        }
    }
    return MSC_OK;
}

// ---- Measuring --------------------------------------------------------------------------------

static void tell_step(void *payload, const char *what) {
    struct msc_processor *p = payload;
    p->measured_s = NAN; // nobody knows how long another runtime takes
    msc_processor__tell_measuring(p, what);
}

enum msc_status msc_processor__open_delivery(struct msc_delivery **out, struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    const struct msc_delivery_options o = {
        .env = p->env,
        .model = p->model,
        .target = e->target,
        .folder = msc_arena_printf(&p->arena, "%s.runtime", e->record),
        .n_threads = (int)e->runtime.threads,
        .n_rounds = e->runtime.rounds,
        .log = p->log,
        .cancel = p->options.cancel,
        .tell = tell_step,
        .payload = p,
    };
    return o.folder ? msc_delivery_open(out, &o) : msc_processor__no_memory();
}

void msc_processor__tell_refused(const struct msc_processor *p,
                                 const struct msc_delivery_plan *plan) {
    if (plan->failure) {
        msc_log(p->log, MSC_LOG_WARNING, "%s: %s is not measured in its runtime: %s",
                msc_processor__entry(p)->name, plan->name, plan->failure);
    }
}

static enum msc_status measure_plans(struct msc_processor *p, struct msc_delivery *d,
                                     struct runtime_plans *list) {
    for (size_t i = 0; i < list->n; i++) {
        MSC_TRY(msc_delivery_export(d, &list->plans[i]));
        MSC_TRY(msc_delivery_outputs(d, &list->plans[i]));
        msc_processor__tell_refused(p, &list->plans[i]);
    }
    return msc_delivery_latency(d, list->order, list->n);
}

// *runtime: what it is, or why it is missing.
static enum msc_status measure_in_runtime(struct msc_processor *p, cJSON *runtime,
                                          struct runtime_plans *list) {
    struct msc_delivery *d = NULL;
    const char *missing = NULL;
    MSC_TRY(msc_processor__open_delivery(&d, p));
    enum msc_status status = msc_delivery_start(d, &missing);
    if (status == MSC_OK && missing) {
        status = msc_json_add_text(runtime, "name", msc_processor__entry(p)->target);
        if (status == MSC_OK) {
            status = msc_json_add_text(runtime, "missing", missing);
        }
    } else if (status == MSC_OK) {
        status = msc_delivery_describe(d, runtime);
        if (status == MSC_OK) {
            status = measure_plans(p, d, list);
        }
    }
    msc_delivery_close(d);
    return status;
}

bool msc_processor__has_runtime(const struct msc_processor *p) {
    const struct msc_config_entry *e = msc_processor__entry(p);
    return e->runtime.is_wanted && msc_delivery_has_runtime(e->target) && p->model &&
           p->model->dataset && msc_env_has_edits(p->env);
}

enum msc_status msc_processor__add_runtime(struct msc_processor *p, cJSON *report,
                                           struct msc_record *record,
                                           const struct msc_trial *best) {
    struct runtime_plans list = {.n = 0};
    cJSON *runtime = cJSON_CreateObject();
    enum msc_status status = msc_json_add(report, "runtime", runtime);
    if (status != MSC_OK) {
        return status;
    }
    list_plans(&list, record, best);
    enum msc_status measured = measure_in_runtime(p, runtime, &list);
    if (measured != MSC_OK && measured != MSC_E_CANCELLED) {
        msc_log(p->log, MSC_LOG_WARNING, "%s: not measured in its runtime to the end: %s",
                msc_processor__entry(p)->name, msc_status_message());
        measured = MSC_OK;
    }
    for (size_t i = 0; i < list.n; i++) {
        if (status == MSC_OK && list.plans[i].found) {
            status = fill_rows_of(report, list.ids[i], list.plans[i].found);
        }
        cJSON_Delete(list.plans[i].found);
    }
    if (!runtime->child) { // nothing is known of it
        cJSON_DeleteItemFromObjectCaseSensitive(report, "runtime");
    }
    return status == MSC_OK ? measured : status;
}
