#include "results/differences.h"

#include "base/alloc.h"
#include "base/json.h"

#include <string.h>

// Deepest level of nesting that is compared. Configurations are shallower.
#define DEEPEST 12

// ---- Configurations ---------------------------------------------------------------------------

struct walk {
    struct msc_arena arena;
    cJSON *rows;
    size_t n, n_rows, most;
};

static bool are_equal(const cJSON *const values[], size_t n) {
    for (size_t i = 1; i < n; i++) {
        bool is_there = values[0] && values[i];
        if (is_there ? !cJSON_Compare(values[0], values[i], true) : values[0] != values[i]) {
            return false;
        }
    }
    return true;
}

static bool are_objects(const cJSON *const values[], size_t n) {
    bool are = true;
    for (size_t i = 0; i < n; i++) {
        are = are && cJSON_IsObject(values[i]);
    }
    return are;
}

static bool are_alike_lists(const cJSON *const values[], size_t n) {
    bool are = cJSON_GetArraySize(values[0]) > 0;
    for (size_t i = 0; i < n; i++) {
        are = are && cJSON_IsArray(values[i]) &&
              cJSON_GetArraySize(values[i]) == cJSON_GetArraySize(values[0]);
    }
    return are;
}

static enum msc_status add_values(cJSON *list, const cJSON *const values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(
            msc_json_push(list, values[i] ? cJSON_Duplicate(values[i], true) : cJSON_CreateNull()));
    }
    return MSC_OK;
}

static enum msc_status add_difference(struct walk *w, const char *key,
                                      const cJSON *const values[]) {
    cJSON *row = cJSON_CreateObject();
    MSC_TRY(msc_json_push(w->rows, row));
    MSC_TRY(msc_json_add_text(row, "key", key));
    MSC_TRY(msc_json_add(row, "values", cJSON_CreateArray()));
    w->n_rows++;
    return add_values(msc_json_get(row, "values"), values, w->n);
}

static enum msc_status find_below(struct walk *w, const char *key, const cJSON *const values[],
                                  size_t depth);

// True if an earlier object has the key, so the key has been compared already.
static bool was_seen(const cJSON *const values[], size_t i, const char *key) {
    bool was = false;
    for (size_t k = 0; k < i && !was; k++) {
        was = msc_json_get(values[k], key) != NULL;
    }
    return was;
}

static enum msc_status find_in_objects(struct walk *w, const char *key, const cJSON *const values[],
                                       size_t depth) {
    const cJSON **below = msc_arena_array(&w->arena, w->n, sizeof *below);
    for (size_t i = 0; i < w->n && below; i++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, values[i]) {
            if (was_seen(values, i, item->string)) {
                continue;
            }
            for (size_t k = 0; k < w->n; k++) {
                below[k] = msc_json_get(values[k], item->string);
            }
            const char *name =
                msc_arena_printf(&w->arena, "%s%s%s", key, key[0] ? "." : "", item->string);
            MSC_TRY(name ? find_below(w, name, below, depth + 1)
                         : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
        }
    }
    return MSC_ALLOCATED(below);
}

static enum msc_status find_in_lists(struct walk *w, const char *key, const cJSON *const values[],
                                     size_t depth) {
    const cJSON **below = msc_arena_array(&w->arena, w->n, sizeof *below);
    MSC_TRY(MSC_ALLOCATED(below));
    for (size_t k = 0; k < w->n; k++) {
        below[k] = values[k]->child;
    }
    for (int i = 0; below[0]; i++) {
        const char *name = msc_arena_printf(&w->arena, "%s[%d]", key, i);
        MSC_TRY(name ? find_below(w, name, below, depth + 1)
                     : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
        for (size_t k = 0; k < w->n; k++) {
            below[k] = below[k]->next;
        }
    }
    return MSC_OK;
}

static enum msc_status find_below(struct walk *w, const char *key, const cJSON *const values[],
                                  size_t depth) {
    if (w->n_rows >= w->most || are_equal(values, w->n)) {
        return MSC_OK;
    }
    if (depth < DEEPEST && are_objects(values, w->n)) {
        return find_in_objects(w, key, values, depth);
    }
    if (depth < DEEPEST && are_alike_lists(values, w->n)) {
        return find_in_lists(w, key, values, depth);
    }
    return add_difference(w, key, values);
}

enum msc_status msc_differences_of_configs(struct cJSON **out, const struct cJSON *const configs[],
                                           size_t n, size_t most) {
    struct walk w = {.n = n, .most = most, .rows = cJSON_CreateArray()};
    cJSON *none = cJSON_CreateObject();
    const cJSON **roots = msc_arena_array(&w.arena, n, sizeof *roots);
    enum msc_status status = MSC_ALLOCATED(w.rows && none && roots);
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        roots[i] = configs[i] ? configs[i] : none;
    }
    if (status == MSC_OK) {
        status = find_below(&w, "", roots, 0);
    }
    cJSON_Delete(none);
    msc_arena_finish(&w.arena);
    if (status != MSC_OK) {
        cJSON_Delete(w.rows);
        return status;
    }
    *out = w.rows;
    return MSC_OK;
}

// ---- Plans ------------------------------------------------------------------------------------

// Finds a task's choice in a plan. Plans list their tasks in nearly the same order, so the search
// begins after the task that was found last.
static const char *find_choice(const cJSON *plan, const cJSON **next, const char *task) {
    const cJSON *item =
        *next && strcmp((*next)->string, task) == 0 ? *next : msc_json_get(plan, task);
    *next = item ? item->next : *next;
    return cJSON_GetStringValue(item);
}

struct beside {
    const cJSON *const *plans;
    const cJSON **next;   // [n]
    const char **choices; // [n]
    size_t n;
    cJSON *tasks;
    size_t n_equal, n_partial;
};

static enum msc_status add_task(struct beside *b, const char *task) {
    const char *first = NULL;
    bool is_partial = false, is_equal = true;
    cJSON *row = cJSON_CreateObject(), *list = NULL;
    MSC_TRY(msc_json_push(b->tasks, row));
    MSC_TRY(msc_json_add_text(row, "task", task));
    MSC_TRY(msc_json_add(row, "choices", cJSON_CreateArray()));
    list = msc_json_get(row, "choices");
    for (size_t i = 0; i < b->n; i++) {
        const char *choice = b->choices[i];
        MSC_TRY(msc_json_push(list, choice ? cJSON_CreateString(choice) : cJSON_CreateNull()));
        is_partial = is_partial || (b->plans[i] && !choice);
        is_equal = is_equal && (!choice || !first || strcmp(choice, first) == 0);
        first = first ? first : choice;
    }
    b->n_partial += is_partial;
    b->n_equal += is_equal && !is_partial;
    return msc_json_add_bool(row, "differ", is_partial || !is_equal);
}

// Adds the tasks of plan i that no earlier plan has.
static enum msc_status add_tasks_of(struct beside *b, size_t i) {
    const cJSON *item = NULL;
    for (size_t k = 0; k < b->n; k++) {
        b->next[k] = b->plans[k] ? b->plans[k]->child : NULL;
    }
    cJSON_ArrayForEach(item, b->plans[i]) {
        bool was_added = false;
        for (size_t k = 0; k < b->n; k++) {
            b->choices[k] = find_choice(b->plans[k], &b->next[k], item->string);
            was_added = was_added || (k < i && b->choices[k]);
        }
        MSC_TRY(was_added ? MSC_OK : add_task(b, item->string));
    }
    return MSC_OK;
}

static enum msc_status fill_plans(cJSON *object, struct beside *b) {
    b->tasks = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "tasks", b->tasks));
    for (size_t i = 0; i < b->n; i++) {
        MSC_TRY(b->plans[i] ? add_tasks_of(b, i) : MSC_OK);
    }
    MSC_TRY(msc_json_add_number(object, "n_equal", (double)b->n_equal));
    return msc_json_add_number(object, "n_partial", (double)b->n_partial);
}

enum msc_status msc_differences_of_plans(struct cJSON **out, const struct cJSON *const plans[],
                                         size_t n) {
    struct msc_arena arena = {0};
    struct beside b = {
        .plans = plans,
        .next = msc_arena_array(&arena, n, sizeof *b.next),
        .choices = msc_arena_array(&arena, n, sizeof *b.choices),
        .n = n,
    };
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = object && b.next && b.choices ? fill_plans(object, &b)
                                                           : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_arena_finish(&arena);
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}
