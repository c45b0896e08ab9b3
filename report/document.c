#include "report/document.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/onnx/load.h"
#include "graph/rules/rules.h"
#include "pipeline/processor.h"
#include "results/effects.h"
#include "report/graph_picture.h"
#include "report/layers.h"
#include "results/units.h"
#include "results/plan_layers.h"
#include "results/trial_figures.h"
#include "results/verdict.h"
#include "results/verdict_compare.h"
#include "records/kept.h"
#include "results/report.h"
#include "results/report_rows.h"
#include "records/reranked.h"

#include <string.h>

struct subject {
    const char *path;
    const struct msc_layers_options *layers;
    const struct msc_log *log;
    struct msc_arena arena;
    struct msc_record *record;
    bool has_delivered; // false: the search found no plan
    struct msc_record_line delivered;
    struct msc_graph *graph; // NULL: not available
    const char *missing;     // why `graph` is NULL
};

// ---- Numbers ----------------------------------------------------------------------------------

static enum msc_status make_numbers(cJSON **out, const struct subject *s) {
    const struct msc_report_options o = {.record = s->record};
    cJSON *report = NULL, *kept = NULL;
    MSC_TRY(msc_report_create(&report, &o));
    enum msc_status status = msc_kept_load(&kept, s->record, s->log);
    if (status == MSC_OK) {
        status = msc_report_add_beside(report, s->record, kept, s->log);
    }
    cJSON_Delete(kept);
    if (status != MSC_OK) {
        cJSON_Delete(report);
        return status;
    }
    *out = report;
    return MSC_OK;
}

// ---- The delivered plan -----------------------------------------------------------------------

// Adds the delivered plan's row. A reranked plan's row holds only what was measured for the
// ranking, so the rest is copied from the search's row of the same trial.
static enum msc_status add_delivered(cJSON *object, const cJSON *numbers) {
    cJSON *row = cJSON_Duplicate(msc_report__find_delivered(numbers), true);
    MSC_TRY(msc_json_add(object, "delivered", row));
    bool is_whole = msc_json_get(row, "distilled") != NULL;
    return is_whole ? MSC_OK : msc_report_complete_delivered(row, numbers);
}

// Marks the weights that the stage `distill` has improved: they are rounded by that stage's method
// instead of the choice's.
static enum msc_status mark_improved(cJSON *plan, const cJSON *numbers) {
    const cJSON *distilled = msc_json_get(numbers, "distilled");
    const cJSON *weight = NULL;
    cJSON *row = NULL;
    if (!msc_json_get(numbers, "delivered")) {
        return MSC_OK;
    }
    cJSON_ArrayForEach(weight, msc_json_get(distilled, "weights")) {
        const char *site = msc_report__text(weight, "site");
        bool is_improved = msc_json_get(weight, "ridge") != NULL;
        cJSON_ArrayForEach(row, plan) {
            if (is_improved && strcmp(msc_report__text(row, "tensor"), site) == 0) {
                cJSON_DeleteItemFromObjectCaseSensitive(row, "method");
                MSC_TRY(msc_json_add_text(row, "method", "descent, better weights"));
            }
        }
    }
    return MSC_OK;
}

// ---- Network ----------------------------------------------------------------------------------

static const cJSON *config_of(const struct subject *s) {
    return msc_json_get(msc_record_header(s->record), "config");
}

static size_t read_bindings(struct msc_binding bindings[], size_t max, const cJSON *config) {
    const cJSON *item = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(item, msc_json_get(config, "bind")) {
        int64_t value;
        if (n < max && msc_json_read_i64(&value, item, 0, INT64_C(1) << 53)) {
            bindings[n++] = (struct msc_binding){item->string, value};
        }
    }
    return n;
}

// Rewrites the graph as the search did. If that fails, the page has no graph.
static enum msc_status rewrite_graph(struct subject *s, const char *folder) {
    const cJSON *pass = NULL;
    cJSON_ArrayForEach(pass, msc_json_get(config_of(s), "passes")) {
        const cJSON *rules = msc_json_get(pass, "rules");
        const char *path =
            cJSON_IsString(rules) ? msc_path_join(&s->arena, folder, rules->valuestring) : "";
        MSC_TRY(MSC_ALLOCATED(path));
        if (msc_rules_apply_files(s->graph, &path, 1) != MSC_OK) {
            msc_graph_destroy(s->graph);
            s->graph = NULL;
            s->missing = msc_arena_strdup(&s->arena, msc_status_message());
            return MSC_ALLOCATED(s->missing);
        }
    }
    return MSC_OK;
}

// If the model file is missing, the page has no graph, and s->missing is the reason.
static enum msc_status load_graph(struct subject *s) {
    enum { MOST_BINDINGS = 32 };
    struct msc_binding bindings[MOST_BINDINGS];
    const cJSON *model = msc_json_get(config_of(s), "model");
    bool is_bound = false;
    if (!cJSON_IsString(model)) {
        s->missing = "the search did not compress a network";
        return MSC_OK;
    }
    const char *folder = msc_path_folder(&s->arena, s->path);
    const char *path = folder ? msc_path_join(&s->arena, folder, model->valuestring) : NULL;
    MSC_TRY(MSC_ALLOCATED(path));
    size_t n = read_bindings(bindings, MOST_BINDINGS, config_of(s));
    if (msc_graph_load_bound(&s->graph, &is_bound, path, bindings, n, NULL) != MSC_OK) {
        s->graph = NULL;
        s->missing = msc_arena_strdup(&s->arena, msc_status_message());
        return MSC_ALLOCATED(s->missing);
    }
    return rewrite_graph(s, folder);
}

static enum msc_status add_graph(cJSON *object, struct subject *s) {
    cJSON *picture = NULL;
    if (s->graph) {
        const cJSON *plan = msc_json_get(object, "plan");
        enum msc_status status = msc_graph_picture(&picture, s->graph, plan);
        if (status == MSC_OK) {
            return msc_json_add(object, "graph", picture);
        }
        if (status != MSC_E_UNSUPPORTED) {
            return status;
        }
        s->missing = msc_arena_strdup(&s->arena, msc_status_message());
    }
    picture = cJSON_CreateObject();
    MSC_TRY(msc_json_add(object, "graph", picture));
    return s->missing ? msc_json_add_text(picture, "missing", s->missing)
                      : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

// ---- A record ---------------------------------------------------------------------------------

static enum msc_status add_name(cJSON *object, struct subject *s) {
    const char *name = msc_path_name(s->path);
    const char *end = strstr(name, ".jsonl");
    size_t length = end && end > name ? (size_t)(end - name) : strlen(name);
    const char *text = msc_arena_strndup(&s->arena, name, length);
    MSC_TRY(MSC_ALLOCATED(text));
    MSC_TRY(msc_json_add_text(object, "name", text));
    return msc_json_add_text(object, "path", s->path);
}

static enum msc_status add_from_header(cJSON *object, const struct subject *s) {
    static const char *const keys[] = {"env", "config"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *member = msc_json_get(msc_record_header(s->record), keys[i]);
        if (member) {
            MSC_TRY(msc_json_add(object, keys[i], cJSON_Duplicate(member, true)));
        }
    }
    return MSC_OK;
}

static enum msc_status add_plan(cJSON *object, struct subject *s) {
    cJSON *plan = NULL;
    if (!s->has_delivered) {
        return MSC_OK;
    }
    MSC_TRY(msc_plan_layers(&plan, s->record, s->delivered.trial.proposal.choices, s->graph));
    MSC_TRY(msc_json_add(object, "plan", plan));
    return mark_improved(plan, msc_json_get(object, "numbers"));
}

// Figures of the trials, with the choices of the tasks that the objective depends on most. The list
// of effects begins with the largest.
static enum msc_status add_trials(cJSON *object, const struct subject *s) {
    enum { MOST_TASKS = 6 };
    const char *tasks[MOST_TASKS] = {NULL};
    const cJSON *alone = msc_json_get(msc_json_get(object, "effects"), "alone"), *row = NULL;
    cJSON *figures = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(row, alone) {
        const char *task = msc_report__text(row, "task");
        size_t at = 0;
        while (at < n && strcmp(tasks[at], task) != 0) {
            at++;
        }
        if (at == n && n < MOST_TASKS) {
            tasks[n++] = task;
        }
    }
    MSC_TRY(msc_trial_figures(&figures, s->record, tasks, n));
    return msc_json_add(object, "trials", figures);
}

static enum msc_status add_layers(cJSON *object, const struct subject *s) {
    cJSON *layers = NULL;
    if (!s->layers || !s->has_delivered) {
        return MSC_OK;
    }
    MSC_TRY(msc_report_layers(&layers, s->path, s->layers));
    return msc_json_add(object, "layers", layers);
}

static enum msc_status fill_record(cJSON *object, struct subject *s) {
    cJSON *report = NULL, *verdict = NULL, *effects = NULL;
    MSC_TRY(msc_record_open(&s->record, s->path, MSC_RECORD_READ, s->log));
    MSC_TRY(msc_kept_leave_out(s->record, s->log));
    MSC_TRY(msc_reranked_winner(&s->has_delivered, &s->delivered, s->record, NULL));
    MSC_TRY(load_graph(s));
    MSC_TRY(add_name(object, s));
    MSC_TRY(make_numbers(&report, s));
    MSC_TRY(msc_json_add(object, "numbers", report));
    MSC_TRY(add_delivered(object, report));
    MSC_TRY(add_plan(object, s));
    MSC_TRY(msc_effects_describe(&effects, s->record,
                                 s->has_delivered ? s->delivered.trial.proposal.choices : NULL));
    MSC_TRY(msc_json_add(object, "effects", effects));
    MSC_TRY(add_trials(object, s));
    MSC_TRY(add_layers(object, s));
    MSC_TRY(add_graph(object, s));
    MSC_TRY(add_from_header(object, s));
    MSC_TRY(msc_verdict_make(&verdict, object));
    return msc_json_add(object, "verdict", verdict);
}

static enum msc_status add_record(cJSON *records, const char *path,
                                  const struct msc_document_options *o) {
    struct subject s = {.path = path, .layers = o->layers, .log = o->log};
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(records, object));
    enum msc_status status = fill_record(object, &s);
    msc_graph_destroy(s.graph);
    msc_record_close(s.record);
    msc_arena_finish(&s.arena);
    return status;
}

static enum msc_status fill_document(cJSON *document, const struct msc_document_options *o) {
    cJSON *records = cJSON_CreateArray();
    MSC_TRY(msc_json_add(document, "records", records));
    MSC_TRY(msc_unit_describe(document));
    MSC_TRY(msc_json_add_text(document, "schema", "mscgym.page.1"));
    MSC_TRY(msc_json_add_text(document, "program", msc_program_name()));
    for (size_t i = 0; i < o->n; i++) {
        MSC_TRY(add_record(records, o->paths[i], o));
    }
    if (o->n < 2) {
        return MSC_OK;
    }
    cJSON *verdict = NULL;
    MSC_TRY(msc_verdict_compare(&verdict, records));
    return msc_json_add(document, "verdict", verdict);
}

enum msc_status msc_document_create(struct cJSON **out,
                                    const struct msc_document_options *options) {
    cJSON *document = cJSON_CreateObject();
    enum msc_status status =
        document ? fill_document(document, options) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(document);
        return status;
    }
    *out = document;
    return MSC_OK;
}
