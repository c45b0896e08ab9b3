#include "search/warm_internal.h"

#include "base/file.h"
#include "env/env.h"
#include "records/record.h"

#include <math.h>
#include <string.h>

// At most this many missing tasks are listed by name; the others are counted.
#define NAMES_SHOWN 8

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
        msc_str_printf(out, "; it lacks %zu of %zu tasks: %s", n, w->space->n_tasks,
                       msc_str_text(&names));
        if (n > NAMES_SHOWN) {
            msc_str_printf(out, " and %zu more", n - NAMES_SHOWN);
        }
    }
    msc_str_finish(&names);
}

// Logs one line about a source.
static enum msc_status tell_source(const struct msc_warm_taking *w,
                                   const struct msc_warm_source *source) {
    struct msc_str text = {0};
    size_t n = source->n_told + source->n_tried;
    msc_str_printf(&text, "warm from %s: ", source->path);
    if (source->n_known == 0) {
        msc_str_append(&text, "it has none of the tasks");
    } else if (n > 0) {
        msc_str_printf(&text, "%zu %s %s", n, n == 1 ? "point is" : "points are",
                       source->n_told > 0 ? "observed with recorded values" : "tried first");
    } else {
        msc_str_append(&text, "no point is both new and within the bounds");
    }
    if (source->n_known > 0 && source->why.length > 0) {
        msc_str_printf(&text, ", without values: %s", msc_str_text(&source->why));
    }
    if (source->n_known > 0) {
        name_unknown(&text, w, source);
    }
    if (source->is_repeated) {
        msc_str_append(&text, "; a file before it is of the same search");
    } else if (source->n_losses > 0) {
        msc_str_printf(&text, "; %zu of its losses teach%s how losses depend on features",
                       source->n_losses, source->n_losses == 1 ? "es" : "");
    }
    msc_log(w->options->log, n + source->n_losses > 0 ? MSC_LOG_INFO : MSC_LOG_WARNING, "%s",
            msc_str_text(&text));
    enum msc_status status = msc_str_status(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status take_file(struct msc_warm_taking *w, struct msc_warm_source *source) {
    bool is_record = false;
    size_t n_tasks = w->space->n_tasks;
    source->choices = msc_arena_array(&w->arena, n_tasks, sizeof *source->choices);
    source->is_known = msc_arena_array(&w->arena, n_tasks, sizeof *source->is_known);
    MSC_TRY(MSC_ALLOCATED(source->choices && source->is_known));
    MSC_TRY(msc_record_is_file(&is_record, source->path));
    MSC_TRY(is_record ? msc_warm__take_record(w, source) : msc_warm__take_strategy(w, source));
    return source->n_known + source->n_losses > 0 || source->is_repeated
               ? tell_source(w, source)
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: it has none of the %zu tasks of this search, such "
                          "as %s; name a file of the same model",
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

static enum msc_status take_files(cJSON *sources, struct msc_warm_taking *w) {
    MSC_TRY(note_baselines(w));
    w->sources = sources;
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

static void end_list(struct msc_str *list) {
    msc_str_append(list, list->length == 0 ? "[]" : "]");
}

static enum msc_status add_list(cJSON *member, const char *key, struct msc_str *list) {
    end_list(list);
    MSC_TRY(msc_str_status(list));
    return msc_json_add(member, key, cJSON_CreateRaw(msc_str_text(list)));
}

static enum msc_status add_lessons(cJSON *member, const struct msc_warm_taking *w) {
    int metric = w->options->goal->objectives[0].metric;
    cJSON *lessons = NULL;
    MSC_TRY(msc_feature_lessons_write(&lessons, &w->lessons, w->space->metrics[metric].name));
    return msc_json_add(member, "coefficients", lessons);
}

static enum msc_status fill_member(cJSON *member, struct msc_warm_taking *w) {
    cJSON *sources = cJSON_CreateArray();
    MSC_TRY(msc_json_add(member, "from", sources));
    MSC_TRY(take_files(sources, w));
    MSC_TRY(add_list(member, "told", &w->told));
    MSC_TRY(add_list(member, "tried", &w->tried));
    return w->lessons.n_losses > 0 ? add_lessons(member, w) : MSC_OK;
}

enum msc_status msc_warm_collect(struct cJSON **out, const struct msc_warm_options *options) {
    struct msc_warm_taking w = {.options = options, .space = msc_env_space(options->env)};
    cJSON *member = cJSON_CreateObject();
    enum msc_status status =
        member ? fill_member(member, &w) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_points_finish(&w.points);
    msc_str_finish(&w.told);
    msc_str_finish(&w.tried);
    msc_arena_finish(&w.arena);
    if (status != MSC_OK) {
        cJSON_Delete(member);
        return status;
    }
    *out = member;
    return MSC_OK;
}

// ---- Resuming -----------------------------------------------------------------------------------

// Passes each element of the list `key` in the member `warm` to `take`. In a header that was read
// from a file, the list is still JSON text.
static enum msc_status each_of(const cJSON *warm, const char *key, const char *where,
                               enum msc_status (*take)(void *payload, const cJSON *element),
                               void *payload) {
    const cJSON *list = msc_json_get(warm, key);
    if (cJSON_IsRaw(list)) {
        return msc_json_each(list->valuestring, strlen(list->valuestring), where, take, payload);
    }
    const cJSON *item = NULL;
    MSC_TRY(msc_json_get_array(&list, warm, key, where));
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(take(payload, item));
    }
    return MSC_OK;
}

struct source_search {
    char hash[MSC_HASH_TEXT_BYTES];
    bool is_found;
};

static enum msc_status compare_source(void *payload, const cJSON *source) {
    struct source_search *s = payload;
    const cJSON *hash = msc_json_get(source, "hash");
    s->is_found = s->is_found || (cJSON_IsString(hash) && strcmp(hash->valuestring, s->hash) == 0);
    return MSC_OK;
}

static enum msc_status has_source(bool *out, const cJSON *warm, struct msc_hash hash,
                                  const char *where) {
    struct source_search s = {.is_found = false};
    msc_hash_format(s.hash, hash);
    MSC_TRY(warm ? each_of(warm, "from", where, compare_source, &s) : MSC_OK);
    *out = s.is_found;
    return MSC_OK;
}

enum msc_status msc_warm_check(const struct cJSON *warm, const char *const paths[], size_t n_paths,
                               const char *record_path, const struct msc_log *log) {
    for (size_t i = 0; i < n_paths; i++) {
        struct msc_hash hash;
        bool is_record = false;
        if (warm && !msc_file_exists(paths[i])) {
            msc_log(log, MSC_LOG_WARNING,
                    "%s: file not found; the search continues with the copies of its points in %s",
                    paths[i], record_path);
            continue;
        }
        MSC_TRY(msc_record_is_file(&is_record, paths[i]));
        MSC_TRY(is_record ? msc_warm__hash_record(&hash, paths[i])
                          : msc_warm__hash_strategy(&hash, paths[i]));
        bool is_known = false;
        MSC_TRY(has_source(&is_known, warm, hash, record_path));
        if (!is_known) {
            return MSC_FAIL(MSC_E_STATE,
                            "%s: this search did not begin with %s; continue without --warm-from, "
                            "name another record, or start afresh with --restart",
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
        int64_t choice;
        if (!msc_json_read_i64(&choice, item, 0, (int64_t)space->tasks[t].n_choices - 1)) {
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
        const cJSON *item = msc_json_get(object, space->metrics[i].name);
        metrics[i] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
}

struct warm_reading {
    struct msc_arena *arena;
    const struct msc_space *space;
    const char *where;
    bool is_told;
    struct msc_warm_point *points;
    size_t n, capacity;
};

static enum msc_status add_point(struct warm_reading *r, const struct msc_warm_point *point) {
    if (r->n == r->capacity) {
        size_t capacity = 2 * r->capacity + 16;
        struct msc_warm_point *points = msc_arena_array(r->arena, capacity, sizeof *points);
        MSC_TRY(MSC_ALLOCATED(points));
        if (r->n > 0) {
            memcpy(points, r->points, r->n * sizeof *points);
        }
        r->points = points;
        r->capacity = capacity;
    }
    r->points[r->n++] = *point;
    return MSC_OK;
}

static enum msc_status read_warm_point(void *payload, const cJSON *item) {
    struct warm_reading *r = payload;
    const struct msc_space *space = r->space;
    uint32_t *choices = msc_arena_array(r->arena, space->n_tasks, sizeof *choices);
    double *metrics =
        r->is_told ? msc_arena_array(r->arena, space->n_metrics, sizeof *metrics) : NULL;
    if (!choices || (r->is_told && !metrics)) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    const cJSON *of = r->is_told ? msc_json_get(item, "choices") : item;
    MSC_TRY(read_warm_choices(choices, of, space, r->where));
    if (r->is_told) {
        read_warm_metrics(metrics, msc_json_get(item, "metrics"), space);
    }
    return add_point(r, &(struct msc_warm_point){.choices = choices, .metrics = metrics});
}

const struct cJSON *msc_warm_lessons(const struct cJSON *warm) {
    return warm ? msc_json_get(warm, "coefficients") : NULL;
}

enum msc_status msc_warm_read(struct msc_warm *out, struct msc_arena *arena,
                              const struct cJSON *warm, const struct msc_space *space,
                              const char *where) {
    struct warm_reading r = {.arena = arena, .space = space, .where = where, .is_told = true};
    *out = (struct msc_warm){0};
    if (!warm) {
        return MSC_OK;
    }
    MSC_TRY(each_of(warm, "told", where, read_warm_point, &r));
    out->n_told = r.n;
    r.is_told = false;
    MSC_TRY(each_of(warm, "tried", where, read_warm_point, &r));
    out->n_tried = r.n - out->n_told;
    out->points = r.points;
    return MSC_OK;
}
