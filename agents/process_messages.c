#include "agents/process_messages.h"

#include "base/json.h"
#include "base/str.h"
#include "env/api/message.h"

#include <stdio.h>

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
    msc_message_write_space(out, space);
    msc_str_append(out, ",\"goal\":");
    msc_message_write_goal(out, space, goal);
    msc_str_char(out, '}');
}

void msc_process_write_tell(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal, const struct msc_trial *trial) {
    msc_str_append(out, "{\"method\":\"tell\",\"trial\":{\"id\":");
    msc_str_i64(out, trial->id);
    msc_str_append(out, ",\"choices\":");
    msc_message_write_choices(out, trial->proposal.choices, space->n_tasks);
    msc_str_append(out, ",\"parent\":");
    msc_str_i64(out, trial->proposal.parent);
    msc_str_append(out, ",\"bound\":");
    msc_json_write_number(out, trial->proposal.bound);
    msc_str_append(out, "},\"outcome\":");
    msc_message_write_outcome(out, space, goal, &trial->outcome);
    msc_str_char(out, '}');
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
        int64_t value;
        if (!msc_json_read_i64(&value, item, 0, (int64_t)task->n_choices - 1)) {
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
        return MSC_FAIL(MSC_E_FORMAT, "%s is not an object, expected {\"choices\": [0, 1]}", where);
    }
    MSC_TRY(msc_json_check_keys(item, known, 4, where));
    MSC_TRY(msc_json_get_array(&choices, item, "choices", where));
    MSC_TRY(message_read_choices(out, choices, space, where));
    if (msc_json_get(item, "parent")) {
        MSC_TRY(msc_json_get_i64(&out->parent, item, "parent", where));
    }
    const cJSON *bound = msc_json_get(item, "bound");
    if (bound && !cJSON_IsNull(bound)) {
        MSC_TRY(msc_json_get_double(&out->bound, item, "bound", where));
    }
    if (msc_json_get(item, "probe")) {
        MSC_TRY(msc_json_get_bool(&out->probe, item, "probe", where));
    }
    return MSC_OK;
}

enum msc_status msc_process_read_proposals(const struct cJSON *answer,
                                           const struct msc_space *space, struct msc_proposal out[],
                                           size_t max, size_t *n, bool *is_done) {
    const cJSON *proposals = NULL;
    MSC_TRY(msc_json_get_array(&proposals, answer, "proposals", "answer"));
    *is_done = cJSON_IsTrue(msc_json_get(answer, "done"));
    const cJSON *item;
    cJSON_ArrayForEach(item, proposals) {
        char where[64];
        snprintf(where, sizeof where, "proposal %zu", *n);
        if (*n == max) {
            return MSC_FAIL(MSC_E_FORMAT, "answer: it has %d proposals, expected at most %zu",
                            cJSON_GetArraySize(proposals), max);
        }
        MSC_TRY(message_read_proposal(&out[*n], item, space, where));
        (*n)++;
    }
    return MSC_OK;
}
