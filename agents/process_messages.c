#include "agents/process_messages.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>

static void message_write_key(struct msc_str *out, bool is_first, const char *key) {
    msc_str_append(out, is_first ? "" : ",");
    msc_json_write_text(out, key);
    msc_str_char(out, ':');
}

static void message_write_choices(struct msc_str *out, const uint32_t values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_str_u64(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_numbers(struct msc_str *out, const double values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_number(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_texts(struct msc_str *out, const char *const values[], size_t n) {
    msc_str_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_text(out, values[i]);
    }
    msc_str_char(out, ']');
}

static void message_write_task(struct msc_str *out, const struct msc_space *space, size_t t) {
    const struct msc_task *task = &space->tasks[t];
    msc_str_append(out, t > 0 ? ",{" : "{");
    message_write_key(out, true, "name");
    msc_json_write_text(out, task->name);
    message_write_key(out, false, "choices");
    message_write_texts(out, task->labels, task->n_choices);
    message_write_key(out, false, "dearest_first");
    message_write_choices(out, task->most_expensive_first, task->n_choices);
    message_write_key(out, false, "features");
    message_write_numbers(out, task->features, space->n_features);
    msc_str_char(out, '}');
}

static void message_write_metric(struct msc_str *out, const struct msc_metric *metric,
                                 bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "name");
    msc_json_write_text(out, metric->name);
    message_write_key(out, false, "unit");
    msc_json_write_text(out, metric->unit ? metric->unit : "");
    message_write_key(out, false, "maximised");
    msc_str_append(out, metric->is_maximised ? "true" : "false");
    message_write_key(out, false, "exact");
    msc_str_append(out, metric->is_exact ? "true" : "false");
    msc_str_char(out, '}');
}

static void message_write_term(struct msc_str *out, const struct msc_space *space,
                               const struct msc_cost_term *term, bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "scale");
    msc_json_write_number(out, term->scale);
    message_write_key(out, false, "factors");
    msc_str_char(out, '[');
    for (uint32_t j = 0; j < term->n_factors; j++) {
        uint32_t task = term->factors[j].task;
        msc_str_append(out, j > 0 ? ",{" : "{");
        message_write_key(out, true, "task");
        msc_str_u64(out, task);
        message_write_key(out, false, "values");
        message_write_numbers(out, term->factors[j].by_choice, space->tasks[task].n_choices);
        msc_str_char(out, '}');
    }
    msc_str_append(out, "]}");
}

static void message_write_cost(struct msc_str *out, const struct msc_space *space,
                               const struct msc_cost *cost, bool is_first) {
    msc_str_append(out, is_first ? "{" : ",{");
    message_write_key(out, true, "metric");
    msc_json_write_text(out, cost->metric);
    message_write_key(out, false, "constant");
    msc_json_write_number(out, cost->constant);
    message_write_key(out, false, "terms");
    msc_str_char(out, '[');
    for (size_t i = 0; i < cost->n_terms; i++) {
        message_write_term(out, space, &cost->terms[i], i == 0);
    }
    msc_str_append(out, "]}");
}

static void message_write_space(struct msc_str *out, const struct msc_space *space) {
    msc_str_char(out, '{');
    message_write_key(out, true, "feature_names");
    message_write_texts(out, space->feature_names, space->n_features);
    message_write_key(out, false, "tasks");
    msc_str_char(out, '[');
    for (size_t t = 0; t < space->n_tasks; t++) {
        message_write_task(out, space, t);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "metrics");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_metrics; i++) {
        message_write_metric(out, &space->metrics[i], i == 0);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "costs");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_costs; i++) {
        message_write_cost(out, space, &space->costs[i], i == 0);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "baselines");
    msc_str_char(out, '[');
    for (size_t i = 0; i < space->n_baselines; i++) {
        msc_str_append(out, i > 0 ? ",{" : "{");
        message_write_key(out, true, "label");
        msc_json_write_text(out, space->baselines[i].label);
        message_write_key(out, false, "choices");
        message_write_choices(out, space->baselines[i].choices, space->n_tasks);
        msc_str_char(out, '}');
    }
    msc_str_append(out, "]}");
}

static void message_write_bound(struct msc_str *out, const struct msc_bound *bound) {
    msc_str_char(out, '{');
    if (isfinite(bound->min)) {
        message_write_key(out, true, "min");
        msc_json_write_number(out, bound->min);
    }
    if (isfinite(bound->max)) {
        message_write_key(out, !isfinite(bound->min), "max");
        msc_json_write_number(out, bound->max);
    }
    msc_str_char(out, '}');
}

static void message_write_goal(struct msc_str *out, const struct msc_space *space,
                               const struct msc_goal *goal) {
    msc_str_char(out, '{');
    message_write_key(out, true, "objectives");
    msc_str_char(out, '[');
    for (size_t i = 0; i < goal->n_objectives; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_text(out, space->metrics[goal->objectives[i].metric].name);
    }
    msc_str_char(out, ']');
    message_write_key(out, false, "bounds");
    msc_str_char(out, '{');
    for (size_t i = 0; i < goal->n_bounds; i++) {
        message_write_key(out, i == 0, space->metrics[goal->bounds[i].metric].name);
        message_write_bound(out, &goal->bounds[i]);
    }
    msc_str_append(out, "}}");
}

void msc_process_write_init(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal, uint64_t seed,
                            const struct cJSON *params) {
    msc_str_append(out, "{\"method\":\"init\",\"protocol\":1,\"seed\":\"");
    msc_str_u64(out, seed);
    msc_str_append(out, "\",\"params\":");
    if (params) {
        msc_json_write(out, params);
    } else {
        msc_str_append(out, "{}");
    }
    msc_str_append(out, ",\"space\":");
    message_write_space(out, space);
    msc_str_append(out, ",\"goal\":");
    message_write_goal(out, space, goal);
    msc_str_char(out, '}');
}

static void message_write_metrics(struct msc_str *out, const struct msc_space *space,
                                  const double metrics[]) {
    bool is_first = true;
    msc_str_char(out, '{');
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (isfinite(metrics[i])) {
            message_write_key(out, is_first, space->metrics[i].name);
            msc_json_write_number(out, metrics[i]);
            is_first = false;
        }
    }
    msc_str_char(out, '}');
}

void msc_process_write_tell(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal, const struct msc_trial *trial) {
    const struct msc_outcome *outcome = &trial->outcome;
    msc_str_append(out, "{\"method\":\"tell\",\"trial\":{\"id\":");
    msc_str_i64(out, trial->id);
    msc_str_append(out, ",\"choices\":");
    message_write_choices(out, trial->proposal.choices, space->n_tasks);
    msc_str_append(out, ",\"parent\":");
    msc_str_i64(out, trial->proposal.parent);
    msc_str_append(out, ",\"bound\":");
    msc_json_write_number(out, trial->proposal.bound);
    msc_str_append(out, "},\"outcome\":{\"state\":");
    msc_json_write_text(out, msc_trial_state_name(outcome->state));
    msc_str_append(out, ",\"metrics\":");
    message_write_metrics(out, space, outcome->metrics);
    msc_str_append(out, ",\"objectives\":");
    message_write_numbers(out, outcome->objectives, goal->n_objectives);
    msc_str_append(out, ",\"violation\":");
    msc_json_write_number(out, outcome->violation);
    msc_str_append(out, ",\"reason\":");
    msc_json_write_text(out, outcome->reason);
    msc_str_append(out, "}}");
}

static enum msc_status message_read_choices(struct msc_proposal *out, const cJSON *choices,
                                            const struct msc_space *space, const char *where) {
    size_t n = (size_t)cJSON_GetArraySize(choices);
    if (n != space->n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "%s has %zu choices, expected %zu", where, n, space->n_tasks);
    }
    size_t t = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, choices) {
        const struct msc_task *task = &space->tasks[t];
        double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
        if (!(value >= 0.0 && value < task->n_choices) || value != floor(value)) {
            struct msc_str found = {0};
            msc_json_write(&found, item);
            enum msc_status status =
                MSC_FAIL(MSC_E_FORMAT, "%s has choice %s for task %s, expected 0 to %u", where,
                         msc_str_text(&found), task->name, task->n_choices - 1);
            msc_str_finish(&found);
            return status;
        }
        out->choices[t++] = (uint32_t)value;
    }
    return MSC_OK;
}

static enum msc_status message_read_proposal(struct msc_proposal *out, const cJSON *item,
                                             const struct msc_space *space, const char *where) {
    static const char *const known[] = {"choices", "parent", "bound", "probe"};
    const cJSON *choices = NULL;
    if (!cJSON_IsObject(item)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s is no object", where);
    }
    MSC_TRY(msc_json_check_keys(item, known, 4, where));
    MSC_TRY(msc_json_get_array(&choices, item, "choices", where));
    MSC_TRY(message_read_choices(out, choices, space, where));
    if (cJSON_GetObjectItemCaseSensitive(item, "parent")) {
        MSC_TRY(msc_json_get_i64(&out->parent, item, "parent", where));
    }
    const cJSON *bound = cJSON_GetObjectItemCaseSensitive(item, "bound");
    if (bound && !cJSON_IsNull(bound)) {
        MSC_TRY(msc_json_get_double(&out->bound, item, "bound", where));
    }
    if (cJSON_GetObjectItemCaseSensitive(item, "probe")) {
        MSC_TRY(msc_json_get_bool(&out->probe, item, "probe", where));
    }
    return MSC_OK;
}

enum msc_status msc_process_read_proposals(const struct cJSON *answer,
                                           const struct msc_space *space, struct msc_proposal out[],
                                           size_t max, size_t *n, bool *is_done) {
    const cJSON *proposals = NULL;
    MSC_TRY(msc_json_get_array(&proposals, answer, "proposals", "answer"));
    *is_done = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "done"));
    const cJSON *item;
    cJSON_ArrayForEach(item, proposals) {
        char where[64];
        snprintf(where, sizeof where, "proposal %zu", *n);
        if (*n == max) {
            return MSC_FAIL(MSC_E_FORMAT, "answer: it has %d proposals, asked for at most %zu",
                            cJSON_GetArraySize(proposals), max);
        }
        MSC_TRY(message_read_proposal(&out[*n], item, space, where));
        (*n)++;
    }
    return MSC_OK;
}
