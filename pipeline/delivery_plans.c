#include "pipeline/delivery_plans.h"

#include "base/json.h"
#include "records/record_query.h"

#define MOST_BASELINES 8

// ---- The list ---------------------------------------------------------------------------------

static bool is_in_list(const struct msc_delivery_plans *list, int64_t id) {
    for (size_t i = 0; i < list->n; i++) {
        if (list->plans[i].id == id) {
            return true;
        }
    }
    return false;
}

// The label of the uniform plan that was measured in a line of the record, or NULL.
static const char *uniform_label(const struct msc_record *record,
                                 const struct msc_record_line *line) {
    return line->baseline >= 0 ? msc_record_space(record)->baselines[line->baseline].label : NULL;
}

static enum msc_status add_plan(struct msc_delivery_plans *list, int64_t id,
                                const uint32_t *choices, const char *label) {
    const char *name = id == MSC_DELIVERY_FLOAT_ID ? "the float model"
                       : label
                           ? msc_arena_printf(&list->arena, "%s%s", msc_baseline_kind(label), label)
                           : msc_arena_printf(&list->arena, "trial %lld", (long long)id);
    list->plans[list->n] = (struct msc_delivery_plan){.id = id, .name = name, .choices = choices};
    list->order[list->n] = &list->plans[list->n];
    list->n++;
    return MSC_ALLOCATED(name);
}

static enum msc_status add_trial(struct msc_delivery_plans *list, const struct msc_record *record,
                                 const struct msc_record_line *line) {
    return is_in_list(list, line->trial.id)
               ? MSC_OK
               : add_plan(list, line->trial.id, line->trial.proposal.choices,
                          uniform_label(record, line));
}

enum msc_status msc_delivery_plans_init(struct msc_delivery_plans *list,
                                        const struct msc_record *record, const int64_t ids[],
                                        size_t n_ids) {
    size_t room = n_ids + MOST_BASELINES + 1;
    list->plans = msc_arena_array(&list->arena, room, sizeof list->plans[0]);
    list->order = msc_arena_array(&list->arena, room, sizeof(struct msc_delivery_plan *));
    MSC_TRY(MSC_ALLOCATED(list->plans && list->order));
    for (size_t i = 0; i < n_ids; i++) {
        const struct msc_record_line line = msc_record_trial(record, (size_t)ids[i]);
        MSC_TRY(add_trial(list, record, &line));
    }
    for (size_t i = 0; i < msc_record_space(record)->n_baselines && i < MOST_BASELINES; i++) {
        struct msc_record_line line;
        if (msc_record_baseline(&line, record, i) && line.trial.outcome.state != MSC_TRIAL_FAILED) {
            MSC_TRY(add_trial(list, record, &line));
        }
    }
    return add_plan(list, MSC_DELIVERY_FLOAT_ID, NULL, NULL);
}

void msc_delivery_plans_finish(struct msc_delivery_plans *list) {
    for (size_t i = 0; i < list->n; i++) {
        cJSON_Delete(list->plans[i].found);
    }
    msc_arena_finish(&list->arena);
    *list = (struct msc_delivery_plans){.n = 0};
}

// ---- In the report ----------------------------------------------------------------------------

// Copies results into a row's `examined`.
static enum msc_status fill_examined(cJSON *row, const cJSON *found) {
    cJSON *examined = msc_json_get(row, "examined");
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

static bool is_row_of(const cJSON *row, int64_t id) {
    const cJSON *item = msc_json_get(row, "id");
    return cJSON_IsNumber(item) && item->valuedouble == (double)id;
}

static enum msc_status report_plan(cJSON *report, const struct msc_delivery_plan *plan) {
    cJSON *winner = msc_json_get(report, "winner");
    cJSON *reference = msc_json_get(report, "reference");
    cJSON *row = NULL;
    if (!plan->found || !plan->found->child) {
        return MSC_OK;
    }
    if (plan->id == MSC_DELIVERY_FLOAT_ID && reference) {
        MSC_TRY(fill_examined(reference, plan->found));
    }
    if (is_row_of(winner, plan->id)) {
        MSC_TRY(fill_examined(winner, plan->found));
    }
    cJSON_ArrayForEach(row, msc_json_get(report, "baselines")) {
        if (is_row_of(row, plan->id)) {
            MSC_TRY(fill_examined(row, plan->found));
        }
    }
    return MSC_OK;
}

enum msc_status msc_delivery_plans_report(const struct msc_delivery_plans *list,
                                          struct cJSON *report) {
    for (size_t i = 0; i < list->n; i++) {
        MSC_TRY(report_plan(report, &list->plans[i]));
    }
    return MSC_OK;
}
