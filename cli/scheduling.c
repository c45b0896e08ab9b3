#include "cli/scheduling.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"
#include "cli/table.h"
#include "model/model.h"
#include "records/record_query.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct msc_variants *variants_of(const struct msc_cli_scheduled *s, size_t i) {
    return &msc_schedule_bench_class(s->bench, i)->variants;
}

// ---- A trial of a record ------------------------------------------------------------------------

static bool fits(const struct msc_cli_scheduled *s, const struct msc_space *space) {
    bool is_same = space->n_tasks == s->n;
    for (size_t i = 0; is_same && i < s->n; i++) {
        const struct msc_variants *v = variants_of(s, i);
        const struct msc_task *task = &space->tasks[i];
        is_same = task->n_choices == (uint32_t)v->n &&
                  strcmp(task->name, msc_schedule_bench_class(s->bench, i)->joint) == 0;
        for (int k = 0; is_same && k < v->n; k++) {
            is_same = strcmp(task->labels[k], v->names[k]) == 0;
        }
    }
    return is_same;
}

enum msc_status msc_cli_read_scheduled(struct msc_cli_scheduled *s, const char *path) {
    struct msc_record *record = NULL;
    struct msc_record_line best;
    enum msc_status status = MSC_OK;
    MSC_TRY(msc_record_open_best(&record, path, 1, NULL));
    if (!fits(s, msc_record_space(record))) {
        status =
            MSC_FAIL(MSC_E_INVALID,
                     "%s: is not a search of the schedule of this network on this device", path);
    } else if (!msc_record_best(&best, record) || best.trial.outcome.state != MSC_TRIAL_COMPLETE) {
        status = MSC_FAIL(MSC_E_INVALID, "%s: has no feasible trial", path);
    } else {
        memcpy(s->choices, best.trial.proposal.choices, s->n * sizeof s->choices[0]);
    }
    msc_record_close(record);
    return status;
}

// ---- For programs -----------------------------------------------------------------------------

static enum msc_status add_us(cJSON *json, const char *key, double us) {
    return isnan(us) ? msc_json_add(json, key, cJSON_CreateNull())
                     : msc_json_add_number(json, key, us);
}

static enum msc_status add_class(cJSON *json, const struct msc_cli_scheduled *s, size_t i) {
    const struct msc_schedule_class *c = msc_schedule_bench_class(s->bench, i);
    const struct msc_variants *v = &c->variants;
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "variants", list));
    MSC_TRY(msc_json_add_text(json, "joint", c->joint));
    MSC_TRY(msc_json_add_number(json, "steps", c->n_steps));
    MSC_TRY(msc_json_add_text(json, "kind", v->work.kind));
    MSC_TRY(msc_json_add_number(json, "rows", (double)v->work.rows));
    MSC_TRY(msc_json_add_number(json, "cols", (double)v->work.cols));
    MSC_TRY(msc_json_add_number(json, "depth", (double)v->work.depth));
    for (int k = 0; k < v->n; k++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_text(object, "name", v->names[k]));
        MSC_TRY(add_us(object, "us", s->rows[i].us[k]));
    }
    MSC_TRY(msc_json_add_text(json, "by_rule", v->names[v->by_rule]));
    return msc_json_add_text(json, "chosen", v->names[s->choices[i]]);
}

enum msc_status msc_cli_add_scheduled_class(cJSON *list, const struct msc_cli_scheduled *s,
                                            size_t i) {
    cJSON *json = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, json));
    return add_class(json, s, i);
}

static enum msc_status add_whole(cJSON *json, const struct msc_cli_scheduled *s) {
    MSC_TRY(msc_json_add_number(json, "by_rule_us", s->whole.rule_us));
    MSC_TRY(msc_json_add_number(json, "us", s->whole.us));
    MSC_TRY(msc_json_add_number(json, "spread", s->spread));
    MSC_TRY(msc_json_add_bool(json, "wins", s->wins));
    return msc_json_add_text(json, "folder", s->model->backend->options.cache_folder);
}

static enum msc_status fill(cJSON *json, const struct msc_cli_scheduled *s) {
    const struct msc_backend *b = s->model->backend;
    cJSON *classes = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "classes", classes));
    MSC_TRY(msc_json_add_text(json, "numerics", b->def->numerics(b)));
    for (size_t i = 0; i < s->n; i++) {
        MSC_TRY(msc_cli_add_scheduled_class(classes, s, i));
    }
    return add_whole(json, s);
}

// ---- For people -------------------------------------------------------------------------------

static void add_us_cell(struct msc_table *table, double us) {
    char cell[32] = "-";
    if (!isnan(us)) {
        snprintf(cell, sizeof cell, "%.1f", us);
    }
    msc_table_add(table, cell);
}

static void add_work_cell(struct msc_table *table, const struct msc_work *w) {
    char cell[128];
    snprintf(cell, sizeof cell, "%s, %" PRIu64 " x %" PRIu64 " x %" PRIu64, w->kind, w->rows,
             w->cols, w->depth);
    msc_table_add(table, cell);
}

static void add_row(struct msc_table *table, const struct msc_cli_scheduled *s, size_t i) {
    const struct msc_schedule_class *c = msc_schedule_bench_class(s->bench, i);
    const struct msc_variants *v = &c->variants;
    char steps[16];
    snprintf(steps, sizeof steps, "%" PRId32, c->n_steps);
    msc_table_add(table, c->joint);
    msc_table_add(table, steps);
    add_work_cell(table, &v->work);
    msc_table_add(table, v->names[v->by_rule]);
    add_us_cell(table, s->rows[i].us[v->by_rule]);
    msc_table_add(table, v->names[s->choices[i]]);
    add_us_cell(table, s->rows[i].us[s->choices[i]]);
}

static void write_whole(struct msc_str *out, const struct msc_cli_scheduled *s) {
    msc_str_printf(out,
                   "whole network: by rule %.1f us, fastest variants %.1f us (%.3f of it); two "
                   "equal runs differ by %.1f %%\n",
                   s->whole.rule_us, s->whole.us, s->whole.us / s->whole.rule_us,
                   100.0 * s->spread);
    msc_str_append(
        out,
        s->wins
            ? "the fastest variants are kept"
            : "the fastest variants do not win by more than that: the choices by rule are kept");
    msc_str_printf(out, " in %s\n", s->model->backend->options.cache_folder);
}

enum msc_status msc_cli_print_scheduled(const struct msc_cli_scheduled *s) {
    static const char *const head[] = {
        "joint", "steps", "rows x columns x depth", "by rule", "us", "fastest", "us"};
    struct msc_table table = {.n_columns = sizeof head / sizeof head[0], .is_left = true};
    struct msc_str text = {0};
    if (s->is_json) {
        cJSON *json = cJSON_CreateObject();
        enum msc_status status = fill(json, s);
        status = status == MSC_OK ? msc_cli_print_json(json) : status;
        cJSON_Delete(json);
        return status;
    }
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (size_t i = 0; i < s->n; i++) {
        add_row(&table, s, i);
    }
    msc_table_write(&text, &table, msc_cli_terminal_columns());
    write_whole(&text, s);
    enum msc_status status = msc_cli_print_str(&text);
    msc_table_finish(&table);
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_cli_print_scheduled_class(const struct msc_cli_scheduled *s, size_t i) {
    const struct msc_schedule_class *c = msc_schedule_bench_class(s->bench, i);
    const struct msc_variants *v = &c->variants;
    struct msc_str text = {0};
    if (s->is_json) {
        cJSON *json = cJSON_CreateObject();
        enum msc_status status = add_class(json, s, i);
        status = status == MSC_OK ? msc_cli_print_json(json) : status;
        cJSON_Delete(json);
        return status;
    }
    msc_shown_append(&text, c->joint);
    msc_str_printf(&text, ": %s, %" PRIu64 " x %" PRIu64 " x %" PRIu64 ", %" PRId32 " step%s\n",
                   v->work.kind, v->work.rows, v->work.cols, v->work.depth, c->n_steps,
                   c->n_steps == 1 ? "" : "s");
    for (int k = 0; k < v->n; k++) {
        msc_str_printf(&text, "  %-20s %10.1f us%s%s\n", v->names[k], s->rows[i].us[k],
                       k == v->by_rule ? ", by rule" : "",
                       k == (int)s->choices[i] ? ", chosen" : "");
    }
    if (isnan(c->us)) {
        msc_str_append(&text, "(microseconds of the whole network)\n");
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}
