#include "cli/cli.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/onnx/load.h"
#include "graph/onnx/onnx.h"
#include "graph/rules/rules.h"
#include "model/output.h"

#include <string.h>

struct rewrite_values {
    struct msc_cli_common common;
    const char *model, *output, *counterexample;
    struct msc_cli_list rules;
    int64_t limit;
    bool before_passes;
};

#define REWRITE(member) offsetof(struct rewrite_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text (.msc) or JSON",
     .offset = REWRITE(model),
     .is_positional = true,
     .is_required = true},
    {.name = "rules",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "apply the rules of this file; repeatable",
     .offset = REWRITE(rules)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "write the model: ONNX (.onnx), or MSCGraph as text (.msc) or JSON",
     .details = "Without this option the matches are only counted.",
     .offset = REWRITE(output)},
    {.name = "before-passes",
     .type = MSC_CLI_FLAG,
     .help = "apply the rules to the joints of the file, not to those that mscgym graph prints",
     .details = "The program's own passes then run when the written model is read.",
     .offset = REWRITE(before_passes)},
    {.name = "limit",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "fail after this number of rewrites (default: 10000)",
     .offset = REWRITE(limit)},
    {.name = "counterexample",
     .argument = "FILE.npz",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "if a rule is wrong, write the inputs that show it and the outputs of both sides",
     .offset = REWRITE(counterexample)},
    {0},
};

static enum msc_status rewrite_check(const struct rewrite_values *v) {
    if (v->rules.n == 0) {
        return MSC_FAIL(MSC_E_INVALID, "rewrite: expected --rules FILE");
    }
    if (v->counterexample && !msc_path_ends_in(v->counterexample, ".npz")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "rewrite: --counterexample is \"%s\", expected a name ending in .npz",
                        v->counterexample);
    }
    bool is_known =
        !v->output || msc_path_ends_in(v->output, ".onnx") || msc_graph_can_save(v->output);
    return is_known ? MSC_OK
                    : MSC_FAIL(MSC_E_INVALID,
                               "rewrite: --output is \"%s\", expected a name ending in .onnx, .msc "
                               "or .json",
                               v->output);
}

static enum msc_status rewrite_claim(struct msc_file_set *files, const struct rewrite_values *v) {
    MSC_TRY(msc_output_read_model(files, v->model));
    for (size_t i = 0; i < v->rules.n; i++) {
        MSC_TRY(msc_file_set_read(files, "--rules", v->rules.items[i]));
    }
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_ANY, "--counterexample", v->counterexample));
    if (v->output && msc_graph_can_save(v->output)) {
        return msc_output_claim_graph(files, "--output", v->output);
    }
    return msc_output_claim(files, MSC_OUTPUT_MODEL, "--output", v->output);
}

// The numbers of rewrites, rule by rule: {"rules": [{"file", "rule", "rewrites"}], "joints"}.
static enum msc_status rewrite_count(cJSON *list, const char *file, const struct msc_rules *rules,
                                     const int64_t counts[]) {
    for (size_t i = 0; i < msc_rules_count(rules); i++) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "file", file));
        MSC_TRY(msc_json_add_text(row, "rule", msc_rules_name(rules, i)));
        MSC_TRY(msc_json_add_number(row, "rewrites", (double)counts[i]));
    }
    return MSC_OK;
}

static enum msc_status apply_file(cJSON *list, struct msc_graph *g, const char *file,
                                  const struct msc_rules_options *o, struct msc_arena *arena) {
    struct msc_rules *rules;
    MSC_TRY(msc_rules_load(&rules, file));
    int64_t *counts = msc_arena_array(arena, msc_rules_count(rules) + 1, sizeof counts[0]);
    enum msc_status status = MSC_ALLOCATED(counts);
    status = status == MSC_OK ? msc_rules_apply(g, counts, rules, o) : status;
    status = status == MSC_OK ? rewrite_count(list, file, rules, counts) : status;
    msc_rules_destroy(rules);
    return status;
}

static enum msc_status save_example(const struct rewrite_values *v,
                                    const struct msc_array_list *example, enum msc_status status) {
    if (status == MSC_OK || example->n == 0 || !v->counterexample) {
        return status;
    }
    struct msc_arena arena = {0};
    const char *why = msc_arena_strdup(&arena, msc_status_message());
    enum msc_status saved =
        why ? msc_npz_save(v->counterexample, example) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    status = saved == MSC_OK ? msc_status_restore(status, why) : saved;
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status rewrite_print(const cJSON *list, const struct msc_graph *g, bool as_json) {
    struct msc_str text = {0};
    const cJSON *row = NULL;
    enum msc_status status;
    if (as_json) {
        cJSON *json = cJSON_CreateObject();
        status = msc_json_add(json, "rules", cJSON_Duplicate(list, true));
        status =
            status == MSC_OK ? msc_json_add_number(json, "joints", msc_graph_n_joints(g)) : status;
        status = status == MSC_OK ? msc_cli_print_json(json) : status;
        cJSON_Delete(json);
        return status;
    }
    cJSON_ArrayForEach(row, list) {
        int64_t n = (int64_t)msc_json_get(row, "rewrites")->valuedouble;
        msc_str_printf(&text, "%s: %lld rewrite%s\n", msc_json_get(row, "rule")->valuestring,
                       (long long)n, n == 1 ? "" : "s");
    }
    status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status rewrite_save(const struct msc_graph *g, const char *path) {
    return !path ? MSC_OK
           : msc_graph_can_save(path)
               ? msc_graph_save(g, path)
               : msc_onnx_save(g, path, &(struct msc_onnx_export_options){0});
}

static enum msc_status run_rewrite(const struct msc_cli_call *call,
                                   const struct rewrite_values *v) {
    struct msc_graph *g = NULL;
    struct msc_file_set files = {0};
    struct msc_array_list example = {0};
    const struct msc_rules_options o = {.most = v->limit > 0 ? v->limit : 0,
                                        .counterexample = &example};
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_ALLOCATED(list);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(rewrite_check(v));
    MSC_TRY_OUT(rewrite_claim(&files, v));
    MSC_TRY_OUT(v->before_passes ? msc_graph_load_plain(&g, v->model)
                                 : msc_graph_load(&g, v->model));
    for (size_t i = 0; status == MSC_OK && i < v->rules.n; i++) {
        status = apply_file(list, g, v->rules.items[i], &o, call->arena);
    }
    MSC_TRY_OUT(save_example(v, &example, status));
    MSC_TRY_OUT(rewrite_save(g, v->output));
    status = rewrite_print(list, g, v->common.json);
out:
    cJSON_Delete(list);
    msc_array_list_finish(&example);
    msc_graph_destroy(g);
    msc_file_set_finish(&files);
    return status;
}

static int cmd_rewrite(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = run_rewrite(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_rewrite = {
    .name = "rewrite",
    .summary = "replaces patterns of joints by rules of your own",
    .usage = "MODEL --rules FILE -o FILE [options]",
    .description = "A rule has a pattern, conditions and joints that replace the pattern. Both "
                   "sides of every match are computed on random inputs first; if they differ, the "
                   "rule is refused and nothing is written. docs/rewrite.md describes rules.",
    .examples = "  mscgym rewrite model.onnx --rules gelu.msc -o smaller.onnx\n"
                "  mscgym rewrite model.onnx --rules gelu.msc --counterexample wrong.npz\n",
    .options = options,
    .values_size = sizeof(struct rewrite_values),
    .run = cmd_rewrite,
};
