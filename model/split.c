// Cuts a model into pieces: chooses a color for each joint, writes the pieces and the manifest.
#include "model/pieces.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/external.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/passes/extract.h"
#include "graph/target.h"
#include "base/file_hash.h"

#include <stdio.h>
#include <string.h>

// Colors of --by target.
enum { COLOR_OTHER, COLOR_TARGET, COLOR_EXTERNAL };

// ---- Colors -----------------------------------------------------------------------------------

static int32_t color_of_target(const struct msc_split_options *o, const struct msc_target *target,
                               const struct msc_graph *g, const struct msc_joint *j) {
    if (j->op == MSC_OP_EXTERNAL) {
        return COLOR_EXTERNAL;
    }
    bool is_taken = !o->only_integers || msc_target_role(target, g, j) != MSC_TARGET_FLOAT;
    return is_taken ? COLOR_TARGET : COLOR_OTHER;
}

// *out is 1 if one of the names or patterns is the joint's operator, else 0.
static enum msc_status color_of_name(int32_t *out, bool used[], const struct msc_split_options *o,
                                     const struct msc_joint *j, struct msc_arena *arena) {
    const char *words[2] = {msc_op_info(j->op)->name, NULL};
    bool is = false;
    if (j->op == MSC_OP_EXTERNAL) {
        struct msc_str name = {0};
        msc_external_write_name(&name, j);
        words[0] = msc_str_keep(&name, arena);
        words[1] = msc_joint_attr(j, "op");
        MSC_TRY(MSC_ALLOCATED(words[0]));
    }
    for (size_t i = 0; i < o->n_names; i++) {
        bool fits = msc_glob_match(o->names[i], words[0]) ||
                    (words[1] && msc_glob_match(o->names[i], words[1]));
        used[i] = used[i] || fits;
        is = is || fits;
    }
    *out = o->n_names > 0 ? is : j->op == MSC_OP_EXTERNAL;
    return MSC_OK;
}

static enum msc_status find_cuts(bool is_cut[], const struct msc_graph *g,
                                 const struct msc_split_options *o) {
    for (size_t i = 0; i < o->n_names; i++) {
        int32_t tensor = msc_graph_find_tensor(g, o->names[i]);
        int32_t producer = tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_tensor(g, tensor)->producer;
        if (producer == MSC_NO_ID || msc_graph_is_shared(g, producer)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: '%s' is not a tensor that a joint computes; mscgym graph prints "
                            "the names",
                            o->model, o->names[i]);
        }
        is_cut[tensor] = true;
    }
    return o->n_names > 0 ? MSC_OK
                          : MSC_FAIL(MSC_E_INVALID, "split: --by cut needs tensors: --at NAME");
}

// The color is the greatest number of cuts on a path to the joint, so it never decreases.
static enum msc_status color_by_cut(int32_t colors[], const struct msc_graph *g,
                                    const struct msc_split_options *o, struct msc_arena *arena) {
    bool *is_cut = msc_arena_array(arena, (size_t)msc_graph_n_tensors(g) + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(is_cut));
    MSC_TRY(find_cuts(is_cut, g, o));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        colors[i] = 0;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            int32_t level =
                colors[msc_graph_tensor(g, j->inputs[k])->producer] + is_cut[j->inputs[k]];
            colors[i] = level > colors[i] ? level : colors[i];
        }
    }
    return MSC_OK;
}

static enum msc_status color_by_ops(int32_t colors[], const struct msc_graph *g,
                                    const struct msc_split_options *o, struct msc_arena *arena) {
    bool *used = msc_arena_array(arena, o->n_names + 1, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(used));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        MSC_TRY(color_of_name(&colors[i], used, o, msc_graph_joint(g, i), arena));
    }
    for (size_t i = 0; i < o->n_names; i++) {
        if (!used[i]) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: no joint has the operator '%s'; mscgym graph "
                            "prints the operators",
                            o->model, o->names[i]);
        }
    }
    return MSC_OK;
}

static enum msc_status choose_colors(int32_t colors[], const struct msc_graph *g,
                                     const struct msc_split_options *o, struct msc_arena *arena) {
    const struct msc_target *target;
    switch (o->by) {
    case MSC_SPLIT_BY_CUT:
        return color_by_cut(colors, g, o, arena);
    case MSC_SPLIT_BY_OPS:
        return color_by_ops(colors, g, o, arena);
    case MSC_SPLIT_BY_PLAN:
    case MSC_SPLIT_BY_TARGET:
        break;
    }
    MSC_TRY(msc_target_get(&target, o->target, "split"));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        colors[i] = color_of_target(o, target, g, msc_graph_joint(g, i));
    }
    return MSC_OK;
}

// ---- Values between pieces --------------------------------------------------------------------

static enum msc_status check_value(const struct msc_graph *g, int32_t tensor,
                                   const int64_t lengths[], const struct msc_split_options *o) {
    if (msc_graph_counts_samples(g, tensor, lengths)) {
        return MSC_OK;
    }
    struct msc_str text = {0};
    msc_tensor_print(g, tensor, &text);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "%s: %s would pass between pieces, but its first axis does not count the "
                          "samples, so the pieces could not run as a chain; cut elsewhere",
                          o->model, msc_str_text(&text));
    }
    msc_str_finish(&text);
    return status;
}

// Checks the values that joints read from other pieces.
static enum msc_status check_values(const struct msc_graph *g, const int32_t pieces[],
                                    const struct msc_split_options *o, struct msc_arena *arena) {
    int64_t *lengths = msc_arena_array(arena, (size_t)msc_graph_n_prims(g) + 1, sizeof lengths[0]);
    MSC_TRY(MSC_ALLOCATED(lengths));
    msc_graph_sample_lengths(lengths, g);
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; !msc_graph_is_shared(g, i) && k < j->n_inputs; k++) {
            int32_t producer = msc_graph_tensor(g, j->inputs[k])->producer;
            if (!msc_graph_is_shared(g, producer) && pieces[producer] != pieces[i]) {
                MSC_TRY(check_value(g, j->inputs[k], lengths, o));
            }
        }
    }
    return MSC_OK;
}

// ---- Pieces -----------------------------------------------------------------------------------

static enum msc_status describe_value(struct msc_piece_value *out, const struct msc_graph *g,
                                      int32_t tensor, struct msc_arena *arena) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    out->name = msc_arena_strdup(arena, msc_tensor_label(t));
    out->dtype = msc_dtype_name(t->dtype);
    out->n_dims = t->n_dims;
    memcpy(out->dims, t->dims, (size_t)t->n_dims * sizeof out->dims[0]);
    return MSC_ALLOCATED(out->name);
}

static enum msc_status describe_values(struct msc_piece *p, const struct msc_graph *g,
                                       struct msc_arena *arena) {
    p->n_inputs = (size_t)msc_graph_n_inputs(g);
    p->n_outputs = (size_t)msc_graph_n_outputs(g);
    p->inputs = msc_arena_array(arena, p->n_inputs + 1, sizeof p->inputs[0]);
    p->outputs = msc_arena_array(arena, p->n_outputs + 1, sizeof p->outputs[0]);
    MSC_TRY(MSC_ALLOCATED(p->inputs && p->outputs));
    for (size_t i = 0; i < p->n_inputs; i++) {
        MSC_TRY(describe_value(&p->inputs[i], g, msc_graph_input(g, (int32_t)i), arena));
    }
    for (size_t i = 0; i < p->n_outputs; i++) {
        MSC_TRY(describe_value(&p->outputs[i], g, msc_graph_output(g, (int32_t)i), arena));
    }
    return MSC_OK;
}

// Lists the external operators of a piece, each once, and counts its joints.
static enum msc_status describe_joints(struct msc_piece *p, const struct msc_graph *g,
                                       struct msc_arena *arena) {
    p->operators = msc_arena_array(arena, (size_t)msc_graph_n_joints(g) + 1, sizeof(char *));
    MSC_TRY(MSC_ALLOCATED(p->operators));
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        struct msc_str name = {0};
        bool is_new = j->op == MSC_OP_EXTERNAL;
        p->needs_plugin = p->needs_plugin || (is_new && j->n_graphs == 0);
        p->n_joints += !msc_graph_is_shared(g, i);
        if (!is_new) {
            continue;
        }
        msc_external_write_name(&name, j);
        for (size_t k = 0; k < p->n_operators; k++) {
            is_new = is_new && strcmp(p->operators[k], msc_str_text(&name)) != 0;
        }
        const char *kept = msc_str_keep(&name, arena);
        MSC_TRY(MSC_ALLOCATED(kept));
        if (is_new) {
            p->operators[p->n_operators++] = kept;
        }
    }
    return MSC_OK;
}

static void take_backend(struct msc_piece *p, const char *backend) {
    bool is_device = strcmp(backend, "cpu") == 0 || strncmp(backend, "vulkan", 6) == 0;
    p->runtime = is_device ? "mscgym" : backend;
    p->device = is_device ? backend : NULL;
}

// Where a piece runs: the target's runtime for joints that the target takes, else mscgym.
static void choose_runtime(struct msc_piece *p, const struct msc_split_options *o, int32_t color) {
    const struct msc_target *target =
        o->by == MSC_SPLIT_BY_TARGET && color == COLOR_TARGET ? msc_target_find(o->target) : NULL;
    p->target = target ? target->name : NULL;
    bool is_run = target && target->runtime && !target->suffix; // pieces are ONNX files
    p->runtime = is_run ? target->runtime : "mscgym";
}

// Values pass between pieces by name, so no two may have the same one.
static enum msc_status check_names(const struct msc_pieces *all, const struct msc_piece *p,
                                   const struct msc_split_options *o) {
    for (size_t i = 0; i < p->n_outputs; i++) {
        const char *name = p->outputs[i].name;
        bool is_taken = false;
        for (size_t k = 0; k < all->n_inputs; k++) {
            is_taken = is_taken || strcmp(all->inputs[k], name) == 0;
        }
        for (const struct msc_piece *q = all->pieces; q <= p; q++) {
            for (size_t k = 0; k < (q == p ? i : q->n_outputs); k++) {
                is_taken = is_taken || strcmp(q->outputs[k].name, name) == 0;
            }
        }
        if (is_taken) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: pieces would pass two values called '%s'; give one of them "
                            "another alias",
                            o->model, name);
        }
    }
    return MSC_OK;
}

// Backends recognise joints of bytes only if their weights are bytes.
static const struct msc_onnx_export_options as_stored = {.keeps_codes = true};

static enum msc_status write_piece(struct msc_pieces *all, struct msc_piece *p,
                                   const struct msc_graph *g, const struct msc_split_options *o) {
    struct msc_arena *arena = &all->arena;
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash hash;
    const char *path = msc_path_join(arena, o->folder, p->model);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(describe_values(p, g, arena));
    MSC_TRY(check_names(all, p, o));
    MSC_TRY(describe_joints(p, g, arena));
    MSC_TRY(msc_onnx_save(g, path, &as_stored));
    MSC_TRY(msc_file_hash(&hash, path));
    p->hash = msc_arena_strdup(arena, msc_hash_format(text, hash));
    return MSC_ALLOCATED(p->hash);
}

static enum msc_status name_piece(struct msc_pieces *all, int32_t piece) {
    struct msc_piece *p = &all->pieces[piece];
    p->name = msc_arena_printf(&all->arena, "piece%d", (int)piece);
    p->model = msc_arena_printf(&all->arena, "piece%d.onnx", (int)piece);
    return MSC_ALLOCATED(p->name && p->model);
}

static enum msc_status make_piece(struct msc_pieces *all, int32_t piece, const struct msc_graph *g,
                                  const int32_t pieces[], const int32_t colors[],
                                  const struct msc_split_options *o) {
    struct msc_piece *p = &all->pieces[piece];
    struct msc_graph *part = NULL;
    int32_t first = 0;
    while (pieces[first] != piece) {
        first++;
    }
    MSC_TRY(name_piece(all, piece));
    choose_runtime(p, o, colors[first]);
    MSC_TRY(msc_graph_extract(&part, g, pieces, piece, p->name));
    enum msc_status status = write_piece(all, p, part, o);
    msc_graph_destroy(part);
    return status;
}

// ---- The manifest -----------------------------------------------------------------------------

static enum msc_status add_texts(cJSON *object, const char *key, const char *const texts[],
                                 size_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(texts[i])));
    }
    return MSC_OK;
}

static enum msc_status add_values(cJSON *object, const char *key,
                                  const struct msc_piece_value values[], size_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (size_t i = 0; i < n; i++) {
        cJSON *value = cJSON_CreateObject(), *dims = cJSON_CreateArray();
        MSC_TRY(msc_json_push(list, value));
        MSC_TRY(msc_json_add_text(value, "name", values[i].name));
        MSC_TRY(msc_json_add_text(value, "dtype", values[i].dtype));
        MSC_TRY(msc_json_add(value, "dims", dims));
        for (int d = 0; d < values[i].n_dims; d++) {
            MSC_TRY(msc_json_push(dims, cJSON_CreateNumber((double)values[i].dims[d])));
        }
    }
    return MSC_OK;
}

static enum msc_status add_piece(cJSON *list, const struct msc_piece *p) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "name", p->name));
    MSC_TRY(msc_json_add_text(object, "model", p->model));
    MSC_TRY(msc_json_add_text(object, "hash", p->hash));
    MSC_TRY(msc_json_add_text(object, "runtime", p->runtime));
    MSC_TRY(p->device ? msc_json_add_text(object, "device", p->device) : MSC_OK);
    MSC_TRY(p->target ? msc_json_add_text(object, "target", p->target) : MSC_OK);
    MSC_TRY(msc_json_add_number(object, "joints", (double)p->n_joints));
    MSC_TRY(add_texts(object, "operators", p->operators, p->n_operators));
    MSC_TRY(add_values(object, "inputs", p->inputs, p->n_inputs));
    return add_values(object, "outputs", p->outputs, p->n_outputs);
}

static enum msc_status fill_manifest(cJSON *json, const struct msc_pieces *p, const char *by) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add_text(json, "schema", MSC_PIECES_SCHEMA));
    MSC_TRY(msc_json_add_number(json, "version", 1));
    MSC_TRY(msc_json_add_text(json, "model", p->model));
    MSC_TRY(msc_json_add_text(json, "by", by));
    MSC_TRY(add_texts(json, "inputs", p->inputs, p->n_inputs));
    MSC_TRY(add_texts(json, "outputs", p->outputs, p->n_outputs));
    MSC_TRY(add_texts(json, "plugins", p->plugins, p->n_plugins));
    MSC_TRY(msc_json_add(json, "pieces", list));
    for (size_t i = 0; i < p->n_pieces; i++) {
        MSC_TRY(add_piece(list, &p->pieces[i]));
    }
    return MSC_OK;
}

static enum msc_status write_manifest(const struct msc_pieces *p,
                                      const struct msc_split_options *o) {
    static const char *const names[] = {"target", "ops", "cut", "plan"};
    cJSON *json = cJSON_CreateObject();
    struct msc_str text = {0};
    enum msc_status status = fill_manifest(json, p, names[o->by]);
    if (status == MSC_OK) {
        msc_json_write_pretty(&text, json);
        status = msc_str_status(&text);
    }
    if (status == MSC_OK) {
        status = msc_file_write(p->path, msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

static enum msc_status name_values(struct msc_pieces *p, const struct msc_graph *g) {
    p->n_inputs = (size_t)msc_graph_n_inputs(g);
    p->n_outputs = (size_t)msc_graph_n_outputs(g);
    p->inputs = msc_arena_array(&p->arena, p->n_inputs + 1, sizeof(char *));
    p->outputs = msc_arena_array(&p->arena, p->n_outputs + 1, sizeof(char *));
    MSC_TRY(MSC_ALLOCATED(p->inputs && p->outputs));
    for (size_t i = 0; i < p->n_inputs + p->n_outputs; i++) {
        bool is_input = i < p->n_inputs;
        size_t k = is_input ? i : i - p->n_inputs;
        int32_t tensor =
            is_input ? msc_graph_input(g, (int32_t)k) : msc_graph_output(g, (int32_t)k);
        const char *name =
            msc_arena_strdup(&p->arena, msc_tensor_label(msc_graph_tensor(g, tensor)));
        MSC_TRY(MSC_ALLOCATED(name));
        (is_input ? p->inputs : p->outputs)[k] = name;
    }
    return MSC_OK;
}

static enum msc_status name_files(struct msc_pieces *p, const struct msc_split_options *o) {
    char *model = NULL;
    p->folder = msc_arena_strdup(&p->arena, o->folder);
    p->path = msc_path_join(&p->arena, o->folder, "manifest.json");
    MSC_TRY(MSC_ALLOCATED(p->folder && p->path));
    MSC_TRY(msc_path_relative(&model, &p->arena, o->model, o->folder));
    p->model = model;
    p->plugins = msc_arena_array(&p->arena, o->n_plugins + 1, sizeof(char *));
    MSC_TRY(MSC_ALLOCATED(p->plugins));
    for (; p->n_plugins < o->n_plugins; p->n_plugins++) {
        char *path;
        MSC_TRY(msc_path_relative(&path, &p->arena, o->plugins[p->n_plugins], o->folder));
        p->plugins[p->n_plugins] = path;
    }
    return MSC_OK;
}

// A piece must not replace the model that is cut, nor the manifest a file of another kind.
static enum msc_status check_files(const struct msc_pieces *p, int32_t n_pieces) {
    if (msc_file_exists(p->path) && !msc_pieces_is_manifest(p->path)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: the split would replace this file, which is no manifest of pieces; name another "
            "folder",
            p->path);
    }
    for (int32_t i = 0; i < n_pieces; i++) {
        char name[32];
        snprintf(name, sizeof name, "piece%d.onnx", (int)i);
        if (strcmp(p->model, name) == 0) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: piece %d would replace the model; name another folder", p->path,
                            (int)i);
        }
    }
    return MSC_OK;
}

enum msc_status msc_split_check_folder(const char *model, const char *folder, int32_t most_pieces) {
    const struct msc_split_options o = {.model = model, .folder = folder};
    struct msc_pieces p = {0};
    enum msc_status status = name_files(&p, &o);
    status = status == MSC_OK ? check_files(&p, most_pieces) : status;
    msc_arena_finish(&p.arena);
    return status;
}

// Takes the pieces as they are.
static enum msc_status take_parts(struct msc_pieces *p, const struct msc_graph *g,
                                  const struct msc_split_options *o) {
    MSC_TRY(name_files(p, o));
    MSC_TRY(name_values(p, g));
    MSC_TRY(check_files(p, (int32_t)o->n_plan));
    p->pieces = msc_arena_array(&p->arena, o->n_plan + 1, sizeof p->pieces[0]);
    MSC_TRY(MSC_ALLOCATED(p->pieces));
    for (size_t i = 0; i < o->n_plan; i++) {
        MSC_TRY(name_piece(p, (int32_t)i));
        take_backend(&p->pieces[i], o->backends[i]);
        MSC_TRY(write_piece(p, &p->pieces[i], o->parts[i], o));
        p->n_pieces++;
    }
    return write_manifest(p, o);
}

static enum msc_status split_graph(struct msc_pieces *p, const struct msc_graph *g,
                                   const struct msc_split_options *o) {
    size_t n = (size_t)msc_graph_n_joints(g) + 1;
    int32_t *colors = msc_arena_array(&p->arena, n, sizeof(int32_t));
    int32_t *pieces = msc_arena_array(&p->arena, n, sizeof(int32_t)), n_pieces = 0;
    MSC_TRY(MSC_ALLOCATED(colors && pieces));
    MSC_TRY(name_files(p, o));
    MSC_TRY(name_values(p, g));
    MSC_TRY(choose_colors(colors, g, o, &p->arena));
    MSC_TRY(msc_graph_partition(pieces, &n_pieces, g, colors));
    MSC_TRY(check_values(g, pieces, o, &p->arena));
    MSC_TRY(check_files(p, n_pieces));
    p->pieces = msc_arena_array(&p->arena, (size_t)n_pieces + 1, sizeof p->pieces[0]);
    MSC_TRY(MSC_ALLOCATED(p->pieces));
    for (int32_t i = 0; i < n_pieces; i++) {
        MSC_TRY(make_piece(p, i, g, pieces, colors, o));
        p->n_pieces++;
    }
    return write_manifest(p, o);
}

enum msc_status msc_split(struct msc_pieces **out, const struct msc_graph *g,
                          const struct msc_split_options *options) {
    struct msc_pieces *p = msc_alloc_zero(1, sizeof *p);
    struct msc_graph *plain = NULL;
    enum msc_status status = MSC_ALLOCATED(p);
    MSC_TRY(status);
    status = msc_graph_split(&plain, g); // fused joints as the joints that they replace
    bool has_parts = options->by == MSC_SPLIT_BY_PLAN;
    status = status != MSC_OK ? status
             : has_parts      ? take_parts(p, plain, options)
                              : split_graph(p, plain, options);
    msc_graph_destroy(plain);
    if (status != MSC_OK) {
        msc_pieces_close(p);
        return status;
    }
    *out = p;
    return MSC_OK;
}
