// Takes the point of a strategy file: the file's choices at sites that are tasks here.
#include "search/warm_internal.h"

#include "tools/strategy.h"

#include <string.h>

// Sets the task called `name` to its choice with `label`.
static void take_entry(struct msc_warm_taking *w, struct msc_warm_source *source, const cJSON *name,
                       const cJSON *label) {
    for (size_t t = 0; cJSON_IsString(name) && cJSON_IsString(label) && t < w->space->n_tasks;
         t++) {
        const struct msc_task *task = &w->space->tasks[t];
        int64_t choice = strcmp(task->name, name->valuestring) == 0
                             ? msc_warm__find_choice(task, label->valuestring)
                             : -1;
        if (choice >= 0) {
            source->n_known += !source->is_known[t];
            source->is_known[t] = true;
            source->choices[t] = (uint32_t)choice;
        }
    }
}

// Lists in a strategy file, and the members of their entries that are matched with task names.
static const struct { const char *list, *name; } lists[] = {{"edits", "site"}, {"prune", "group"}};

static void take_strategy_json(struct msc_warm_taking *w, struct msc_warm_source *source,
                               const cJSON *json) {
    for (size_t t = 0; t < w->space->n_tasks; t++) {
        source->choices[t] = w->space->tasks[t].most_expensive_first[0];
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, msc_json_get(json, lists[i].list)) {
            take_entry(w, source, msc_json_get(item, lists[i].name), msc_json_get(item, "choice"));
        }
    }
}

static enum msc_status load_strategy_json(cJSON **out, const char *path) {
    static const char schema[] = "mscgym.strategy.";
    MSC_TRY(msc_json_load(out, path));
    const cJSON *item = msc_json_get(*out, "schema");
    if (cJSON_IsString(item) && strncmp(item->valuestring, schema, sizeof schema - 1) == 0) {
        return MSC_OK;
    }
    cJSON_Delete(*out);
    return MSC_FAIL(MSC_E_INVALID, "%s: it is neither a record nor a strategy file", path);
}

enum msc_status msc_warm__hash_strategy(struct msc_hash *out, const char *path) {
    cJSON *json = NULL;
    MSC_TRY(load_strategy_json(&json, path));
    enum msc_status status = msc_json_hash(out, json);
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_warm__take_strategy(struct msc_warm_taking *w, struct msc_warm_source *source) {
    struct msc_strategy *strategy = NULL;
    cJSON *json = NULL;
    source->kind = "strategy";
    MSC_TRY(load_strategy_json(&json, source->path));
    enum msc_status status = msc_json_hash(&source->hash, json);
    if (status == MSC_OK) { // read only to check that the strategy is valid
        status = msc_strategy_from_json(&strategy, json, source->path);
        msc_strategy_destroy(strategy);
    }
    if (status == MSC_OK) {
        take_strategy_json(w, source, json);
        status = source->n_known > 0 ? msc_warm__take(w, source, NULL) : MSC_OK;
    }
    cJSON_Delete(json);
    return status;
}
