// Reads the sections of a configuration and their lists of searches, and checks that the searches
// fit together: different files, no missing model or dataset, channels removed before bits are set.
#include "config/config_internal.h"

#include "base/file.h"
#include "base/machine.h"
#include "graph/target.h"

#include <string.h>

static enum msc_status entry_read_list(struct msc_config *c, const char *section,
                                       const struct msc_config_section *of, const cJSON *list) {
    int index = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(msc_config__read_entry(c, section, of, item, index++));
    }
    return MSC_OK;
}

static enum msc_status check_list(const struct msc_config *c, const char *section,
                                  const cJSON *list) {
    return !list || cJSON_IsArray(list)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: %s: expected a list of searches: [{...}]", c->path,
                          section);
}

static enum msc_status read_section(struct msc_config *c, const struct msc_config_tool *tool,
                                    const cJSON *object) {
    const char *name = tool->name;
    struct msc_config_section *of = msc_arena_alloc(&c->arena, sizeof *of);
    cJSON *plain = NULL;
    MSC_TRY(MSC_ALLOCATED(of));
    MSC_TRY(msc_config__read(c, msc_config__section_params, of, object, name));
    of->is_target_default = !msc_json_get(object, "target");
    if (of->is_target_default) {
        of->target = msc_target_by_default(msc_machine_sums_bytes())->name;
    }
    const struct msc_target *target = NULL;
    MSC_TRY(
        msc_target_get(&target, of->target, msc_config__text(c, "%s: %s.target", c->path, name)));
    MSC_TRY(msc_config__read_runtime(c, &of->in_runtime, of->runtime,
                                     msc_config__text(c, "%s.runtime", name)));
    MSC_TRY(check_list(c, msc_config__text(c, "%s.gym", name), of->gym));
    if (cJSON_GetArraySize(of->gym) > 0) {
        return entry_read_list(c, name, of, of->gym);
    }
    MSC_TRY(msc_json_parse(&plain, tool->plain_gym, strlen(tool->plain_gym), "plain"));
    // A section that lists no searches gets one. Reading copies everything, so the tree can be
    // freed.
    enum msc_status status = entry_read_list(c, name, of, plain);
    cJSON_Delete(plain);
    c->entries[c->n_entries - 1].is_plain = true;
    return status;
}

// For a configuration that names only stages: reads the sections whose strategy files an earlier
// run left in the workspace.
static enum msc_status read_left(struct msc_config *c) {
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        const char *path =
            msc_config__text(c, "%s/msc_%s.json", c->workspace, msc_config__tools[t].name);
        MSC_TRY(MSC_ALLOCATED(path));
        if (msc_file_exists(path)) {
            MSC_TRY(read_section(c, &msc_config__tools[t], NULL));
        }
    }
    return c->n_entries > 0
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_INVALID,
                     "%s: nothing to do: add a \"prune\", \"joint\" or \"quantize\" section, or "
                     "put a strategy file (msc_prune.json, msc_joint.json, msc_quantize.json) "
                     "into %s",
                     c->path, c->workspace);
}

static const cJSON *section_of(const struct msc_config_top *top, size_t tool) {
    return *(const cJSON *const *)((const char *)top + msc_config__tools[tool].offset);
}

// Refuses files that would overwrite each other.
static enum msc_status entry_check_names(const struct msc_config *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct msc_config_entry *a = &c->entries[i];
        for (size_t j = 0; j < c->n_entries; j++) {
            const struct msc_config_entry *b = &c->entries[j];
            if (j < i && strcmp(a->record, b->record) == 0) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: %s and %s have the same record \"%s\"; give each its own",
                                c->path, b->name, a->name, msc_path_name(a->record));
            }
            if (a->strategy_file && strcmp(a->strategy_file, b->record) == 0) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: \"%s\" is the strategy file of %s and the record of %s; give "
                                "each its own",
                                c->path, msc_path_name(b->record), a->section, b->name);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status entry_check_needs(const struct msc_config *c) {
    for (size_t i = 0; i < c->n_entries; i++) {
        unsigned needs = c->entries[i].env_def->needs;
        const char *missing = (needs & MSC_ENV_NEEDS_GRAPH) && !c->model ? "model"
                              : (needs & MSC_ENV_NEEDS_DATASET) && !c->dataset.options.inputs
                                  ? "dataset"
                                  : NULL;
        if (missing) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: \"%s\" is missing: the environment %s of %s needs it", c->path,
                            missing, c->entries[i].env_def->name, c->entries[i].name);
        }
    }
    return MSC_OK;
}

// Compensation for removed channels fits float weights, so pruning comes before quantisation.
static enum msc_status check_prunes(const struct msc_config *c) {
    const struct msc_config_entry *before = NULL;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct msc_config_entry *e = &c->entries[i];
        if (msc_config__decides_channels(e) && before && !e->base) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: %s removes channels: put it before %s, which quantises", c->path,
                            e->name, before->name);
        }
        before = e->strategy_file && !msc_config__decides_only_channels(e) ? e : before;
    }
    return MSC_OK;
}

enum msc_status msc_config__read_entries(struct msc_config *c, const struct msc_config_top *top) {
    // A section that lists no searches gets one.
    size_t n = (size_t)cJSON_GetArraySize(top->gym) + MSC_CONFIG_TOOL_COUNT;
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        const cJSON *gym = msc_json_get(section_of(top, t), "gym");
        n += (size_t)cJSON_GetArraySize(gym);
    }
    c->entries = msc_arena_array(&c->arena, n, sizeof c->entries[0]);
    MSC_TRY(MSC_ALLOCATED(c->entries));
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        if (section_of(top, t)) {
            MSC_TRY(read_section(c, &msc_config__tools[t], section_of(top, t)));
        }
    }
    MSC_TRY(check_list(c, "gym", top->gym));
    MSC_TRY(entry_read_list(c, "gym", NULL, top->gym));
    if (c->n_entries == 0 && c->stages.are_named) {
        MSC_TRY(read_left(c));
    }
    if (c->n_entries == 0) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: nothing to do: add a \"prune\", \"joint\" or \"quantize\" section, or a \"gym\" "
            "list",
            c->path);
    }
    MSC_TRY(entry_check_names(c));
    MSC_TRY(entry_check_needs(c));
    return check_prunes(c);
}
