#include "search/warm_internal.h"

#include "base/file.h"
#include "env/env.h"
#include "records/record.h"

#include <math.h>
#include <string.h>

// Names that are written out where tasks are not known; of the others there is a count.
#define NAMES_SHOWN 8

static enum msc_status no_warm_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for points of other searches");
}

// ---- Points -----------------------------------------------------------------------------------

int64_t msc_warm__find_choice(const struct msc_task *task, const char *label) {
    for (uint32_t c = 0; c < task->n_choices; c++) {
        if (strcmp(task->labels[c], label) == 0) {
            return c;
        }
    }
    return -1;
}

static enum msc_status add_choices(cJSON *list, const uint32_t choices[], size_t n_tasks) {
    for (size_t t = 0; t < n_tasks; t++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber(choices[t])));
    }
    return MSC_OK;
}

static enum msc_status add_told(struct msc_warm_taking *w, const uint32_t choices[],
                                const double metrics[]) {
    cJSON *object = cJSON_CreateObject(), *list = cJSON_CreateArray();
    cJSON *values = cJSON_CreateObject();
    enum msc_status status = msc_json_push(w->told, object);
    if (status != MSC_OK) {
        cJSON_Delete(list);
        cJSON_Delete(values);
        return status;
    }
    status = msc_json_add(object, "choices", list);
    if (status != MSC_OK) {
        cJSON_Delete(values);
        return status;
    }
    MSC_TRY(msc_json_add(object, "metrics", values));
    MSC_TRY(add_choices(list, choices, w->space->n_tasks));
    for (size_t i = 0; i < w->space->n_metrics; i++) {
        if (!w->space->metrics[i].is_exact) {
            MSC_TRY(msc_json_add_number(values, w->space->metrics[i].name, metrics[i]));
        }
    }
    return MSC_OK;
}

bool msc_warm__is_new(const struct msc_warm_taking *w, const struct msc_warm_source *source) {
    return msc_points_find(&w->points, msc_point_hash(source->choices, w->space->n_tasks)) < 0;
}

enum msc_status msc_warm__take(struct msc_warm_taking *w, struct msc_warm_source *source,
                               const double metrics[]) {
    size_t n_tasks = w->space->n_tasks;
    bool is_outside =
        !metrics && msc_goal_exact_violation(w->options->goal, w->space, source->choices) > 0.0;
    if (is_outside || !msc_warm__is_new(w, source)) {
        return MSC_OK;
    }
    MSC_TRY(msc_points_set(&w->points, msc_point_hash(source->choices, n_tasks), 0));
    if (metrics) {
        source->n_told++;
        return add_told(w, source->choices, metrics);
    }
    cJSON *list = cJSON_CreateArray();
    source->n_tried++;
    MSC_TRY(msc_json_push(w->tried, list));
    return add_choices(list, source->choices, n_tasks);
}

// ---- Files ------------------------------------------------------------------------------------

static void name_unknown(struct msc_str *out, const struct msc_warm_taking *w,
                         const struct msc_warm_source *source) {
    size_t n = 0;
    struct msc_str names = {0};
    for (size_t t = 0; t < w->space->n_tasks; t++) {
        if (!source->is_known[t] && n++ < NAMES_SHOWN) {
            msc_str_item(&names, w->space->tasks[t].name);
        }
    }
    if (n > 0) {
        msc_str_printf(out, "; it does not know %zu of %zu tasks: %s", n, w->space->n_tasks,
                       msc_str_text(&names));
        if (n > NAMES_SHOWN) {
            msc_str_printf(out, " and %zu more", n - NAMES_SHOWN);
        }
    }
    msc_str_finish(&names);
}

// One line of news.
static enum msc_status tell_source(const struct msc_warm_taking *w,
                                   const struct msc_warm_source *source) {
    struct msc_str text = {0};
    size_t n = source->n_told + source->n_tried;
    msc_str_printf(&text, "warm from %s: ", source->path);
    if (n > 0) {
        msc_str_printf(&text, "%zu %s %s", n, n == 1 ? "point is" : "points are",
                       source->n_told > 0 ? "told with what was measured" : "tried first");
    } else {
        msc_str_append(&text, "none of its points is new here and within the bounds");
    }
    if (source->why.length > 0) {
        msc_str_printf(&text, ", without values: %s", msc_str_text(&source->why));
    }
    name_unknown(&text, w, source);
    msc_log(w->options->log, n > 0 ? MSC_LOG_INFO : MSC_LOG_WARNING, "%s", msc_str_text(&text));
    enum msc_status status = msc_str_status(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status take_file(struct msc_warm_taking *w, struct msc_warm_source *source) {
    bool is_record = false;
    size_t n_tasks = w->space->n_tasks;
    source->choices = msc_arena_array(&w->arena, n_tasks, sizeof *source->choices);
    source->is_known = msc_arena_array(&w->arena, n_tasks, sizeof *source->is_known);
    if (!source->choices || !source->is_known) {
        return no_warm_memory();
    }
    MSC_TRY(msc_record_is_file(&is_record, source->path));
    MSC_TRY(is_record ? msc_warm__take_record(w, source) : msc_warm__take_strategy(w, source));
    return source->n_known > 0
               ? tell_source(w, source)
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: it has none of the %zu tasks of this search, such as %s: nothing "
                          "can be taken of it",
                          source->path, n_tasks, w->space->tasks[0].name);
}

static enum msc_status add_source(cJSON *list, const struct msc_warm_source *source) {
    char text[MSC_HASH_TEXT_BYTES];
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "file", msc_path_name(source->path)));
    MSC_TRY(msc_json_add_text(object, "kind", source->kind));
    MSC_TRY(msc_json_add_text(object, "hash", msc_hash_format(text, source->hash)));
    MSC_TRY(msc_json_add_number(object, "told", (double)source->n_told));
    return msc_json_add_number(object, "tried", (double)source->n_tried);
}

static enum msc_status note_baselines(struct msc_warm_taking *w) {
    for (size_t i = 0; i < w->space->n_baselines; i++) {
        MSC_TRY(msc_points_set(
            &w->points, msc_point_hash(w->space->baselines[i].choices, w->space->n_tasks), 0));
    }
    return MSC_OK;
}

// Of a member with empty lists.
static enum msc_status fill_member(cJSON *sources, struct msc_warm_taking *w) {
    MSC_TRY(note_baselines(w));
    for (size_t i = 0; i < w->options->n_paths; i++) {
        struct msc_warm_source source = {.path = w->options->paths[i]};
        enum msc_status status = take_file(w, &source);
        if (status == MSC_OK) {
            status = add_source(sources, &source);
        }
        msc_str_finish(&source.why);
        MSC_TRY(status);
    }
    return MSC_OK;
}

enum msc_status msc_warm_collect(struct cJSON **out, const struct msc_warm_options *options) {
    struct msc_warm_taking w = {.options = options, .space = msc_env_space(options->env)};
    cJSON *member = cJSON_CreateObject();
    cJSON *sources = member ? cJSON_AddArrayToObject(member, "from") : NULL;
    w.told = member ? cJSON_AddArrayToObject(member, "told") : NULL;
    w.tried = member ? cJSON_AddArrayToObject(member, "tried") : NULL;
    enum msc_status status =
        sources && w.told && w.tried ? fill_member(sources, &w) : no_warm_memory();
    msc_points_finish(&w.points);
    msc_arena_finish(&w.arena);
    if (status != MSC_OK) {
        cJSON_Delete(member);
        return status;
    }
    *out = member;
    return MSC_OK;
}

// ---- Going on ---------------------------------------------------------------------------------

static bool has_source(const cJSON *warm, struct msc_hash hash) {
    char text[MSC_HASH_TEXT_BYTES];
    const cJSON *source = NULL;
    msc_hash_format(text, hash);
    cJSON_ArrayForEach(source, cJSON_GetObjectItemCaseSensitive(warm, "from")) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(source, "hash");
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_warm_check(const struct cJSON *warm, const char *const paths[], size_t n_paths,
                               const char *record_path, const struct msc_log *log) {
    for (size_t i = 0; i < n_paths; i++) {
        struct msc_hash hash;
        bool is_record = false;
        if (warm && !msc_file_exists(paths[i])) {
            msc_log(log, MSC_LOG_WARNING, "%s: there is no such file; %s has what it began with",
                    paths[i], record_path);
            continue;
        }
        MSC_TRY(msc_record_is_file(&is_record, paths[i]));
        MSC_TRY(is_record ? msc_warm__hash_record(&hash, paths[i])
                          : msc_warm__hash_strategy(&hash, paths[i]));
        if (!has_source(warm, hash)) {
            return MSC_FAIL(MSC_E_STATE,
                            "%s: it did not begin with %s; go on without --warm-from, name another "
                            "record, or start afresh with --restart",
                            record_path, paths[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status read_warm_choices(uint32_t choices[], const cJSON *list,
                                         const struct msc_space *space, const char *where) {
    if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) != space->n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: a point of \"warm\" has %d choices, expected %zu", where,
                        cJSON_GetArraySize(list), space->n_tasks);
    }
    size_t t = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list) {
        double choice = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
        if (!(choice >= 0.0 && choice < space->tasks[t].n_choices)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: a choice of %s in \"warm\" is out of range", where,
                            space->tasks[t].name);
        }
        choices[t++] = (uint32_t)choice;
    }
    return MSC_OK;
}

static void read_warm_metrics(double metrics[], const cJSON *object,
                              const struct msc_space *space) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, space->metrics[i].name);
        metrics[i] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
}

static enum msc_status read_warm_points(struct msc_warm_point points[], struct msc_arena *arena,
                                        const cJSON *list, const struct msc_space *space,
                                        const char *where) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list) {
        bool is_told = cJSON_IsObject(item);
        uint32_t *choices = msc_arena_array(arena, space->n_tasks, sizeof *choices);
        double *metrics =
            is_told ? msc_arena_array(arena, space->n_metrics, sizeof *metrics) : NULL;
        if (!choices || (is_told && !metrics)) {
            return no_warm_memory();
        }
        const cJSON *of = is_told ? cJSON_GetObjectItemCaseSensitive(item, "choices") : item;
        MSC_TRY(read_warm_choices(choices, of, space, where));
        if (is_told) {
            read_warm_metrics(metrics, cJSON_GetObjectItemCaseSensitive(item, "metrics"), space);
        }
        *points++ = (struct msc_warm_point){.choices = choices, .metrics = metrics};
    }
    return MSC_OK;
}

enum msc_status msc_warm_read(struct msc_warm *out, struct msc_arena *arena,
                              const struct cJSON *warm, const struct msc_space *space,
                              const char *where) {
    const cJSON *told = NULL, *tried = NULL;
    *out = (struct msc_warm){0};
    if (!warm) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&told, warm, "told", where));
    MSC_TRY(msc_json_get_array(&tried, warm, "tried", where));
    out->n_told = (size_t)cJSON_GetArraySize(told);
    out->n_tried = (size_t)cJSON_GetArraySize(tried);
    struct msc_warm_point *points =
        msc_arena_array(arena, out->n_told + out->n_tried + 1, sizeof *points);
    if (!points) {
        return no_warm_memory();
    }
    MSC_TRY(read_warm_points(points, arena, told, space, where));
    MSC_TRY(read_warm_points(points + out->n_told, arena, tried, space, where));
    out->points = points;
    return MSC_OK;
}
