// Reads and writes the stages around the searches of a configuration: `prepare`, `parse`, `track`,
// `export`, and the groups `optimize` and `compile`.
#include "config/config_internal.h"

#include "graph/graph.h"

#include <string.h>

struct msc_config_parse {
    const char *graph;
};

struct msc_config_track {
    int64_t samples;
    const char *file;
};

struct msc_config_export {
    const char *model;
};

struct msc_config_optimize {
    const cJSON *prune, *joint, *quantize, *distill, *track;
};

struct msc_config_compile {
    const cJSON *export_model, *profile;
};

const struct msc_param msc_config__pass_params[] = {
    {.name = "rules",
     .help = "file of rules (.msc), relative to the configuration",
     .offset = offsetof(struct msc_config_pass, rules),
     .type = MSC_PARAM_TEXT},
    {0},
};

const struct msc_param msc_config__prepare_params[] = {{0}};

const struct msc_param msc_config__parse_params[] = {
    {.name = "graph",
     .help = "file in the workspace for the model as MSCGraph, as text (.msc) or JSON, with a "
             ".safetensors file next to it",
     .offset = offsetof(struct msc_config_parse, graph),
     .type = MSC_PARAM_TEXT},
    {0},
};

const struct msc_param msc_config__track_params[] = {
    {.name = "samples",
     .help = "number of samples to compare, from the first; 0: all",
     .offset = offsetof(struct msc_config_track, samples),
     .type = MSC_PARAM_I64,
     .number = 16,
     .min = 0,
     .max = 9007199254740991.0},
    {.name = "file",
     .help = "file in the workspace for the differences of all tensors, as JSON",
     .offset = offsetof(struct msc_config_track, file),
     .type = MSC_PARAM_TEXT,
     .text = "msc_track.json"},
    {0},
};

const struct msc_param msc_config__export_params[] = {
    {.name = "model",
     .help = "file in the workspace for the compressed model; default: the model's name",
     .offset = offsetof(struct msc_config_export, model),
     .type = MSC_PARAM_TEXT},
    {0},
};

#define OPTIMIZE(member) offsetof(struct msc_config_optimize, member)

const struct msc_param msc_config__optimize_params[] = {
    {.name = "prune",
     .help = "the section `prune`, as at the top level",
     .offset = OPTIMIZE(prune),
     .type = MSC_PARAM_JSON},
    {.name = "joint",
     .help = "the section `joint`, as at the top level",
     .offset = OPTIMIZE(joint),
     .type = MSC_PARAM_JSON},
    {.name = "quantize",
     .help = "the section `quantize`, as at the top level",
     .offset = OPTIMIZE(quantize),
     .type = MSC_PARAM_JSON},
    {.name = "distill",
     .help = "the stage `distill`, as at the top level",
     .offset = OPTIMIZE(distill),
     .type = MSC_PARAM_JSON},
    {.name = "track",
     .help = "the stage `track`, as at the top level",
     .offset = OPTIMIZE(track),
     .type = MSC_PARAM_JSON},
    {0},
};

const struct msc_param msc_config__compile_params[] = {
    {.name = "export",
     .help = "the stage `export`, as at the top level",
     .offset = offsetof(struct msc_config_compile, export_model),
     .type = MSC_PARAM_JSON},
    {.name = "profile",
     .help = "the stage `profile`, as at the top level",
     .offset = offsetof(struct msc_config_compile, profile),
     .type = MSC_PARAM_JSON},
    {0},
};

// A stage may be at the top level or in its group, but not in both.
static enum msc_status take(const struct msc_config *c, const cJSON **at, const cJSON *in_group,
                            const char *group, const char *name) {
    if (*at && in_group) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: \"%s\" is given twice, at the top level and in \"%s\": remove one",
                        c->path, name, group);
    }
    *at = in_group ? in_group : *at;
    return MSC_OK;
}

enum msc_status msc_config__open_groups(struct msc_config *c, struct msc_config_top *top) {
    struct msc_config_optimize o;
    struct msc_config_compile p;
    MSC_TRY(msc_config__read(c, msc_config__optimize_params, &o, top->optimize, "optimize"));
    MSC_TRY(msc_config__read(c, msc_config__compile_params, &p, top->compile, "compile"));
    MSC_TRY(take(c, &top->prune, o.prune, "optimize", "prune"));
    MSC_TRY(take(c, &top->joint, o.joint, "optimize", "joint"));
    MSC_TRY(take(c, &top->quantize, o.quantize, "optimize", "quantize"));
    MSC_TRY(take(c, &top->distill, o.distill, "optimize", "distill"));
    MSC_TRY(take(c, &top->track, o.track, "optimize", "track"));
    MSC_TRY(take(c, &top->export_model, p.export_model, "compile", "export"));
    return take(c, &top->profile, p.profile, "compile", "profile");
}

// Joins a path to the workspace; NULL stays NULL.
static enum msc_status stage_path(struct msc_config *c, const char **path, const char *stage) {
    if (*path && (*path)[0] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "%s: %s: the file name is empty", c->path, stage);
    }
    return MSC_ALLOCATED(msc_config__join(c, path, c->workspace));
}

enum msc_status msc_config__read_stages(struct msc_config *c, const struct msc_config_top *top) {
    struct msc_config_stages *s = &c->stages;
    struct msc_config_parse parse;
    struct msc_config_track track;
    struct msc_config_export export_model;
    int none;
    s->are_named = top->prepare || top->parse || top->optimize || top->distill || top->track ||
                   top->compile || top->export_model;
    s->has_track = top->track != NULL;
    MSC_TRY(msc_config__read(c, msc_config__prepare_params, &none, top->prepare, "prepare"));
    MSC_TRY(msc_config__read(c, msc_config__parse_params, &parse, top->parse, "parse"));
    MSC_TRY(msc_config__read(c, msc_config__track_params, &track, top->track, "track"));
    MSC_TRY(
        msc_config__read(c, msc_config__export_params, &export_model, top->export_model, "export"));
    s->graph_file = parse.graph;
    s->track_samples = track.samples;
    s->track_file = track.file;
    s->model_file = export_model.model;
    if (s->graph_file && !msc_graph_can_save(s->graph_file)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: parse: graph: expected a file name that ends in .msc or .json",
                        c->path);
    }
    MSC_TRY(stage_path(c, &s->graph_file, "parse"));
    MSC_TRY(stage_path(c, &s->track_file, "track"));
    MSC_TRY(stage_path(c, &s->model_file, "export"));
    if (s->are_named && (!c->model || !c->dataset.options.inputs)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"%s\" is missing: the stages need it", c->path,
                        c->model ? "dataset" : "model");
    }
    return MSC_OK;
}

enum msc_status msc_config__set_distill(struct msc_config *c, const struct msc_config_top *top) {
    struct msc_config_entry *last = NULL;
    for (size_t i = 0; i < c->n_entries; i++) {
        if (strcmp(c->entries[i].section, "quantize") == 0) {
            last = &c->entries[i];
        }
    }
    if (!top->distill || (last && last->distill)) {
        return MSC_OK; // `distill` of a search takes precedence
    }
    const char *place = msc_config__text(c, "%s: distill", c->path);
    MSC_TRY(MSC_ALLOCATED(place));
    return last ? msc_config__read_distill(c, &last->distill, top->distill, place)
                : MSC_FAIL(MSC_E_INVALID, "%s: needs a \"quantize\" section", place);
}

// Adds "KEY": {"MEMBER": the path relative to the workspace}
static enum msc_status add_file(cJSON *top, const struct msc_config *c, const char *key,
                                const char *member, const char *path) {
    cJSON *object = cJSON_CreateObject();
    size_t length = strlen(c->workspace);
    MSC_TRY(msc_json_add(top, key, object));
    if (!path) {
        return MSC_OK;
    }
    bool is_inside = strncmp(path, c->workspace, length) == 0 && path[length] == '/';
    return msc_json_add_text(object, member, is_inside ? path + length + 1 : path);
}

enum msc_status msc_config__write_stages(cJSON *top, const struct msc_config *c) {
    const struct msc_config_stages *s = &c->stages;
    if (!s->are_named) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_add(top, "prepare", cJSON_CreateObject()));
    MSC_TRY(add_file(top, c, "parse", "graph", s->graph_file));
    if (s->has_track) {
        MSC_TRY(add_file(top, c, "track", "file", s->track_file));
        cJSON *track = msc_json_get(top, "track");
        MSC_TRY(msc_json_add_number(track, "samples", (double)s->track_samples));
    }
    return add_file(top, c, "export", "model", s->model_file);
}
