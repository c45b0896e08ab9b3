// Manifests of pieces: reading and checking. model/split.c writes them.
#include "model/pieces.h"

#include "base/file.h"
#include "base/json.h"

#include <string.h>

#define MOST_LENGTH (INT64_C(1) << 53)

void msc_pieces_close(struct msc_pieces *pieces) {
    if (pieces) {
        msc_arena_finish(&pieces->arena);
        msc_free(pieces);
    }
}

static enum msc_status load_json(cJSON **out, const char *path) {
    char *text = NULL;
    size_t n_bytes;
    MSC_TRY(msc_file_read(&text, &n_bytes, path));
    enum msc_status status = msc_json_parse(out, text, n_bytes, path);
    msc_free(text);
    return status;
}

bool msc_pieces_is_manifest(const char *path) {
    cJSON *json = NULL;
    bool is_manifest = false;
    if (msc_path_ends_in(path, ".json") && load_json(&json, path) == MSC_OK) {
        const char *schema = msc_json_text_of(json, "schema");
        is_manifest = schema && strcmp(schema, MSC_PIECES_SCHEMA) == 0;
    }
    cJSON_Delete(json);
    return is_manifest;
}

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status read_names(const char ***out, size_t *n, const cJSON *object,
                                  const char *key, const char *where, struct msc_arena *arena) {
    const char *const *names;
    MSC_TRY(msc_json_get_texts(&names, n, object, key, "names", where, arena));
    *out = (const char **)names;
    return MSC_OK;
}

static enum msc_status copy_text(const char **out, const cJSON *object, const char *key,
                                 struct msc_arena *arena) {
    const char *text = msc_json_text_of(object, key);
    *out = text ? msc_arena_strdup(arena, text) : NULL;
    return MSC_ALLOCATED(!text || *out);
}

static enum msc_status read_value(struct msc_piece_value *out, const cJSON *object,
                                  const char *where, struct msc_arena *arena) {
    const char *text;
    const cJSON *dims, *item;
    MSC_TRY(msc_json_get_text(&text, object, "name", where));
    out->name = msc_arena_strdup(arena, text);
    MSC_TRY(msc_json_get_text(&text, object, "dtype", where));
    out->dtype = msc_arena_strdup(arena, text);
    MSC_TRY(MSC_ALLOCATED(out->name && out->dtype));
    MSC_TRY(msc_json_get_array(&dims, object, "dims", where));
    cJSON_ArrayForEach(item, dims) {
        if (out->n_dims == MSC_MAX_DIMS ||
            !msc_json_read_i64(&out->dims[out->n_dims], item, -1, MOST_LENGTH)) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "%s: '%s': expected at most %d lengths, integers from -1 to 2^53",
                            where, out->name, MSC_MAX_DIMS);
        }
        out->n_dims++;
    }
    return MSC_OK;
}

static enum msc_status read_values(struct msc_piece_value **out, size_t *n, const cJSON *object,
                                   const char *key, const char *where, struct msc_arena *arena) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, object, key, where));
    *out = msc_arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof **out);
    MSC_TRY(MSC_ALLOCATED(*out));
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(read_value(&(*out)[(*n)++], item, where, arena));
    }
    return MSC_OK;
}

// Paths of models, and of files that are named after pieces, stay in the folder that they belong
// to.
static enum msc_status check_paths(const struct msc_piece *p, const char *where) {
    if (!msc_path_is_inside(p->model)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: \"model\" is %s, expected a file in the manifest's folder", where,
                        p->model);
    }
    return p->name[0] != '\0' && strchr(p->name, '/') == NULL
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "%s: \"name\" is '%s', expected the name of a file", where,
                          p->name);
}

static enum msc_status read_piece(struct msc_piece *out, const cJSON *object, const char *path,
                                  size_t i, struct msc_arena *arena) {
    const char *where = msc_arena_printf(arena, "%s: piece %zu", path, i);
    const char *text;
    MSC_TRY(MSC_ALLOCATED(where));
    MSC_TRY(msc_json_get_text(&text, object, "name", where));
    MSC_TRY(msc_json_get_text(&text, object, "model", where));
    MSC_TRY(copy_text(&out->name, object, "name", arena));
    MSC_TRY(copy_text(&out->model, object, "model", arena));
    MSC_TRY(copy_text(&out->hash, object, "hash", arena));
    MSC_TRY(copy_text(&out->runtime, object, "runtime", arena));
    MSC_TRY(copy_text(&out->device, object, "device", arena));
    MSC_TRY(copy_text(&out->target, object, "target", arena));
    out->runtime = out->runtime ? out->runtime : "mscgym";
    MSC_TRY(check_paths(out, where));
    MSC_TRY(read_names(&out->operators, &out->n_operators, object, "operators", where, arena));
    MSC_TRY(read_values(&out->inputs, &out->n_inputs, object, "inputs", where, arena));
    return read_values(&out->outputs, &out->n_outputs, object, "outputs", where, arena);
}

// ---- Checking ---------------------------------------------------------------------------------

// True if the value is an input of the whole model or an output of one of the first n pieces.
static bool is_available(const struct msc_pieces *p, size_t n, const char *name) {
    bool is = false;
    for (size_t i = 0; i < p->n_inputs; i++) {
        is = is || strcmp(p->inputs[i], name) == 0;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < p->pieces[i].n_outputs; k++) {
            is = is || strcmp(p->pieces[i].outputs[k].name, name) == 0;
        }
    }
    return is;
}

static enum msc_status check_order(const struct msc_pieces *p) {
    for (size_t i = 0; i < p->n_pieces; i++) {
        for (size_t k = 0; k < p->pieces[i].n_inputs; k++) {
            const char *name = p->pieces[i].inputs[k].name;
            if (!is_available(p, i, name)) {
                return MSC_FAIL(MSC_E_FORMAT,
                                "%s: piece '%s' reads '%s', which no earlier piece computes",
                                p->path, p->pieces[i].name, name);
            }
        }
    }
    for (size_t i = 0; i < p->n_outputs; i++) {
        if (!is_available(p, p->n_pieces, p->outputs[i])) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: no piece computes output '%s'", p->path,
                            p->outputs[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status read_all(struct msc_pieces *p, const cJSON *json) {
    const char *schema = msc_json_text_of(json, "schema");
    const cJSON *list, *item;
    int64_t version;
    if (!schema || strcmp(schema, MSC_PIECES_SCHEMA) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: not a manifest of pieces, which has \"schema\": \"%s\"",
                        p->path, MSC_PIECES_SCHEMA);
    }
    MSC_TRY(msc_json_get_i64(&version, json, "version", p->path));
    if (version != 1) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: version %lld of manifests, expected 1", p->path,
                        (long long)version);
    }
    MSC_TRY(copy_text(&p->model, json, "model", &p->arena));
    MSC_TRY(read_names(&p->inputs, &p->n_inputs, json, "inputs", p->path, &p->arena));
    MSC_TRY(read_names(&p->outputs, &p->n_outputs, json, "outputs", p->path, &p->arena));
    MSC_TRY(read_names(&p->plugins, &p->n_plugins, json, "plugins", p->path, &p->arena));
    MSC_TRY(msc_json_get_array(&list, json, "pieces", p->path));
    p->pieces =
        msc_arena_array(&p->arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof p->pieces[0]);
    MSC_TRY(MSC_ALLOCATED(p->pieces));
    cJSON_ArrayForEach(item, list) {
        size_t i = p->n_pieces++;
        MSC_TRY(read_piece(&p->pieces[i], item, p->path, i, &p->arena));
    }
    return check_order(p);
}

enum msc_status msc_pieces_load(struct msc_pieces **out, const char *path) {
    struct msc_pieces *p = msc_alloc_zero(1, sizeof *p);
    cJSON *json = NULL;
    enum msc_status status = MSC_ALLOCATED(p);
    MSC_TRY(status);
    p->path = msc_arena_strdup(&p->arena, path);
    p->folder = msc_path_folder(&p->arena, path);
    status = MSC_ALLOCATED(p->path && p->folder);
    status = status == MSC_OK ? load_json(&json, path) : status;
    status = status == MSC_OK ? read_all(p, json) : status;
    cJSON_Delete(json);
    if (status != MSC_OK) {
        msc_pieces_close(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}
