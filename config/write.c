// Writes a resolved configuration as JSON: all of it, or the part for the header of one entry's
// record.
#include "config/config_internal.h"

#include "base/file.h"

#include <math.h>
#include <string.h>

struct writer {
    const struct msc_config *config;
    struct msc_arena arena;
    const char *folder; // folder that paths become relative to
    bool is_full;       // also writes the defaults that environments fill in
};

// Makes `path` relative to `from`. A path that was given relative to the same folder is written as
// given.
static enum msc_status relative_to_folder(struct writer *w, const char **out, const char *path,
                                          const char *from) {
    size_t length = strlen(from);
    char *text = NULL;
    if (strncmp(path, from, length) == 0 && path[length] == '/') {
        *out = path + length + 1;
        return MSC_OK;
    }
    if (strcmp(path, from) == 0) {
        *out = ".";
        return MSC_OK;
    }
    if (strcmp(from, ".") == 0 && path[0] != '/') {
        *out = path;
        return MSC_OK;
    }
    MSC_TRY(msc_path_relative(&text, &w->arena, path, from));
    *out = text;
    return MSC_OK;
}

static enum msc_status config_add_path(struct writer *w, cJSON *object, const char *key,
                                       const char *path, const char *from) {
    const char *text = NULL;
    if (!path) {
        return MSC_OK;
    }
    MSC_TRY(relative_to_folder(w, &text, path, from));
    return msc_json_add_text(object, key, text);
}

static enum msc_status config_add_copy(cJSON *object, const char *key, const cJSON *value) {
    return msc_json_add(object, key, cJSON_Duplicate(value, true));
}

static cJSON *add_object(cJSON *object, const char *key) {
    cJSON *child = cJSON_CreateObject();
    return msc_json_add(object, key, child) == MSC_OK ? child : NULL;
}

static enum msc_status add_numbers(cJSON *object, const char *key, const double values[], int n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (int i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber(values[i])));
    }
    return MSC_OK;
}

static enum msc_status write_image(cJSON *object, const struct msc_image_options *image) {
    MSC_TRY(msc_json_add_number(object, "height", (double)image->height));
    MSC_TRY(msc_json_add_number(object, "width", (double)image->width));
    MSC_TRY(msc_json_add_number(object, "channels", image->channels));
    MSC_TRY(msc_json_add_bool(object, "channels_last", image->channels_last));
    MSC_TRY(msc_json_add_number(object, "scale", image->scale));
    MSC_TRY(add_numbers(object, "mean", image->mean, image->channels));
    return add_numbers(object, "std", image->std, image->channels);
}

static enum msc_status write_states(const struct writer *w, cJSON *dataset) {
    const struct msc_config_dataset *d = &w->config->dataset;
    cJSON *object = d->n_states > 0 ? add_object(dataset, "state") : NULL;
    MSC_TRY(MSC_ALLOCATED(d->n_states == 0 || object));
    for (size_t i = 0; i < d->n_states; i++) {
        MSC_TRY(msc_json_add_text(object, d->states[i].input, d->states[i].output));
    }
    return MSC_OK;
}

static enum msc_status add_labels(struct writer *w, cJSON *object, const char *labels) {
    return msc_labels_are_next(labels) ? msc_json_add_text(object, "labels", labels)
                                       : config_add_path(w, object, "labels", labels, w->folder);
}

static enum msc_status write_dataset(struct writer *w, cJSON *top) {
    const struct msc_config_dataset *d = &w->config->dataset;
    if (!d->options.inputs) {
        return MSC_OK;
    }
    cJSON *object = add_object(top, "dataset");
    MSC_TRY(MSC_ALLOCATED(object));
    MSC_TRY(config_add_path(w, object, "inputs", d->options.inputs, w->folder));
    MSC_TRY(add_labels(w, object, d->options.labels));
    MSC_TRY(msc_json_add_number(object, "samples", (double)d->options.samples));
    MSC_TRY(msc_json_add_number(object, "batch", (double)d->options.batch));
    if (d->options.sequence > 0) {
        MSC_TRY(msc_json_add_number(object, "sequence", (double)d->options.sequence));
    }
    MSC_TRY(write_states(w, object));
    cJSON *image = add_object(object, "image");
    MSC_TRY(MSC_ALLOCATED(image));
    MSC_TRY(write_image(image, &d->options.image));
    if (d->validation_fraction > 0) {
        return msc_json_add_number(object, "validation", d->validation_fraction);
    }
    if (!d->validation_inputs) {
        return MSC_OK;
    }
    cJSON *validation = add_object(object, "validation");
    MSC_TRY(MSC_ALLOCATED(validation));
    MSC_TRY(config_add_path(w, validation, "inputs", d->validation_inputs, w->folder));
    return add_labels(w, validation, d->validation_labels);
}

static enum msc_status config_write_budget(cJSON *entry, const struct msc_budget *budget) {
    const struct msc_config_budget from = {
        .trials = budget->trials,
        .seconds = budget->seconds > 0 ? budget->seconds : INFINITY,
        .target = budget->has_target ? budget->target : NAN,
    };
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(entry, "budget", object));
    return msc_param_write(msc_config__budget_params, &from, object);
}

static enum msc_status write_env(const struct writer *w, cJSON *entry,
                                 const struct msc_config_entry *e) {
    cJSON *env = cJSON_Duplicate(e->env, true);
    MSC_TRY(msc_json_add(entry, "env", env));
    enum msc_status status = w->is_full ? msc_env_complete(e->env_def, env, e->folder) : MSC_OK;
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, "%s", e->place);
}

static enum msc_status config_write_entry(struct writer *w, cJSON *list,
                                          const struct msc_config_entry *e) {
    static const char *const baselines[] = {"uniform", "greedy"};
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(config_add_path(w, object, "record", e->record, w->config->workspace));
    MSC_TRY(write_env(w, object, e));
    MSC_TRY(config_add_copy(object, "agent", e->agent));
    MSC_TRY(config_write_budget(object, &e->budget));
    if (e->race) {
        MSC_TRY(config_add_copy(object, "race", e->race));
    }
    if (e->rerank) {
        MSC_TRY(config_add_copy(object, "rerank", e->rerank));
    }
    if (e->distill) {
        MSC_TRY(config_add_copy(object, "distill", e->distill));
    }
    // The seed is written as a string, because a double does not hold all of its digits.
    MSC_TRY(msc_json_add_u64_text(object, "seed", e->seed));
    MSC_TRY(msc_json_add_number(object, "parallel", e->parallel));
    MSC_TRY(msc_json_add_number(object, "trial_time", e->trial_seconds));
    MSC_TRY(msc_json_add_number(object, "quiet_time", e->quiet_seconds));
    MSC_TRY(msc_json_add_text(object, "baseline", baselines[e->baseline]));
    if (w->is_full || !e->is_delivered) { // a record's header has this key only if it is false
        MSC_TRY(msc_json_add_bool(object, "deliver", e->is_delivered));
    }
    MSC_TRY(config_add_path(w, object, "base", e->base, w->folder));
    return config_add_path(w, object, "folder", e->folder, w->folder);
}

// Finds the list that an entry belongs to; creates the list and its section if needed.
static enum msc_status find_list(struct writer *w, cJSON **list, cJSON *top,
                                 const struct msc_config_entry *e) {
    cJSON *object = top;
    if (e->strategy_file) {
        object = msc_json_get(top, e->section);
        if (!object) {
            object = add_object(top, e->section);
            MSC_TRY(MSC_ALLOCATED(object));
            MSC_TRY(config_add_path(w, object, "strategy_file", e->strategy_file,
                                    w->config->workspace));
            if (e->target) {
                MSC_TRY(msc_json_add_text(object, "target", e->target));
            }
            MSC_TRY(msc_config__write_runtime(object, &e->runtime, w->is_full));
        }
    }
    *list = msc_json_get(object, "gym");
    if (!*list) {
        *list = cJSON_CreateArray();
        MSC_TRY(msc_json_add(object, "gym", *list));
    }
    return MSC_OK;
}

// A record's header has this key only if there are passes.
static enum msc_status write_passes(struct writer *w, cJSON *top) {
    const struct msc_config *c = w->config;
    cJSON *list = cJSON_CreateArray();
    if (!w->is_full && c->n_rules == 0) {
        cJSON_Delete(list);
        return MSC_OK;
    }
    MSC_TRY(msc_json_add(top, "passes", list));
    for (size_t i = 0; i < c->n_rules; i++) {
        cJSON *pass = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, pass));
        MSC_TRY(config_add_path(w, pass, "rules", c->rules[i], w->folder));
    }
    return MSC_OK;
}

static enum msc_status write_operators(struct writer *w, cJSON *top) {
    const struct msc_config *c = w->config;
    if (c->n_operators == 0) {
        return MSC_OK;
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(top, "operators", list));
    for (size_t i = 0; i < c->n_operators; i++) {
        const char *path = NULL;
        MSC_TRY(relative_to_folder(w, &path, c->operators[i], w->folder));
        cJSON *text = cJSON_CreateString(path);
        MSC_TRY(MSC_ALLOCATED(text));
        cJSON_AddItemToArray(list, text);
    }
    return MSC_OK;
}

static enum msc_status write_top(struct writer *w, cJSON *top) {
    const struct msc_config *c = w->config;
    MSC_TRY(config_add_path(w, top, "workspace", c->workspace, w->folder));
    MSC_TRY(msc_json_add_text(top, "verbose", msc_log_level_name((size_t)c->verbose)));
    MSC_TRY(c->log_file ? config_add_path(w, top, "log_file", c->log_file, c->workspace)
                        : msc_json_add_text(top, "log_file", ""));
    MSC_TRY(msc_json_add_number(top, "log_every", c->log_seconds));
    MSC_TRY(msc_json_add_text(top, "device", c->device));
    MSC_TRY(config_add_path(w, top, "model", c->model, w->folder));
    cJSON *bind = cJSON_CreateObject();
    MSC_TRY(msc_json_add(top, "bind", bind));
    for (size_t i = 0; i < c->n_bindings; i++) {
        MSC_TRY(msc_json_add_number(bind, c->bindings[i].symbol, (double)c->bindings[i].value));
    }
    MSC_TRY(write_passes(w, top));
    MSC_TRY(write_operators(w, top));
    MSC_TRY(write_dataset(w, top));
    cJSON *baseline = add_object(top, "baseline");
    cJSON *check = baseline ? add_object(baseline, "check_config") : NULL;
    MSC_TRY(MSC_ALLOCATED(check));
    MSC_TRY(msc_json_add_number(check, "atol", c->atol));
    return msc_json_add_number(check, "rtol", c->rtol);
}

static enum msc_status write_all(struct writer *w, cJSON *top,
                                 const struct msc_config_entry entries[], size_t n) {
    const struct msc_config *c = w->config;
    MSC_TRY(write_top(w, top));
    if (w->is_full) {
        MSC_TRY(msc_config__write_stages(top, c));
    }
    for (size_t i = 0; i < n; i++) {
        cJSON *list = NULL;
        MSC_TRY(find_list(w, &list, top, &entries[i]));
        MSC_TRY(config_write_entry(w, list, &entries[i]));
    }
    if (c->profile_repeat > 0) {
        cJSON *profile = add_object(top, "profile");
        return profile ? msc_json_add_number(profile, "repeat", (double)c->profile_repeat)
                       : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    return MSC_OK;
}

// Writes the configuration with the given entries in place of its own.
static enum msc_status write_entries(struct writer *w, cJSON **out,
                                     const struct msc_config_entry entries[], size_t n) {
    cJSON *top = cJSON_CreateObject();
    enum msc_status status =
        top ? write_all(w, top, entries, n) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_arena_finish(&w->arena);
    if (status != MSC_OK) {
        cJSON_Delete(top);
        return status;
    }
    *out = top;
    return MSC_OK;
}

enum msc_status msc_config_to_json(const struct msc_config *config, struct cJSON **out,
                                   const char *folder) {
    struct writer w = {.config = config, .folder = folder, .is_full = true};
    return write_entries(&w, out, config->entries, config->n_entries);
}

enum msc_status msc_config_entry_to_json(const struct msc_config *config,
                                         const struct msc_config_entry *entry, struct cJSON **out,
                                         const char *folder) {
    struct writer w = {.config = config, .folder = folder};
    return write_entries(&w, out, entry, 1);
}
