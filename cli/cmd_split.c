#include "cli/searching.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/graph.h"
#include "graph/onnx/load.h"
#include "model/operators.h"
#include "model/output.h"
#include "model/pieces.h"

#include <string.h>

struct split_values {
    struct msc_cli_common common;
    const char *model, *output, *target;
    int64_t by;
    struct msc_cli_list ops, cuts;
    bool integers;
};

#define SPLIT(member) offsetof(struct split_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text or JSON",
     .offset = SPLIT(model),
     .is_positional = true,
     .is_required = true},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "write the pieces and manifest.json to this folder",
     .offset = SPLIT(output)},
    {.name = "by",
     .argument = "WHAT",
     .type = MSC_CLI_CHOICE,
     .names = MSC_SPLIT_BY_NAMES,
     .help = "what separates pieces: target (default), ops or cut",
     .details = "target: joints that --target takes, and all others. ops: joints of the operators "
                "--op, and all others. cut: the tensors --at.",
     .offset = SPLIT(by)},
    {.name = "target",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "generic|onnxruntime|openvino|tensorrt|tflite",
     .help = "with --by target: the runtime that takes joints (default: onnxruntime)",
     .details = "Operators that mscgym does not know fall to other pieces.",
     .offset = SPLIT(target)},
    {.name = "integers",
     .type = MSC_CLI_FLAG,
     .help = "with --by target: the target takes only joints that it computes in integers",
     .offset = SPLIT(integers)},
    {.name = "op",
     .argument = "NAME",
     .type = MSC_CLI_LIST,
     .help = "with --by ops: an operator or a pattern, such as 'nn.softmax' or 'my.domain::*'; may "
             "be repeated",
     .details = "Without it: the operators that mscgym does not know.",
     .offset = SPLIT(ops)},
    {.name = "at",
     .argument = "TENSOR",
     .type = MSC_CLI_LIST,
     .help = "with --by cut: a tensor that ends a piece; may be repeated",
     .offset = SPLIT(cuts)},
    {0},
};

static enum msc_status split_check(const struct split_values *v) {
    enum msc_split_by by = v->by < 0 ? MSC_SPLIT_BY_TARGET : (enum msc_split_by)v->by;
    const struct {
        bool is_given;
        const char *name, *by;
        enum msc_split_by needs;
    } rows[] = {
        {v->target != NULL, "target", "target", MSC_SPLIT_BY_TARGET},
        {v->integers, "integers", "target", MSC_SPLIT_BY_TARGET},
        {v->ops.n > 0, "op", "ops", MSC_SPLIT_BY_OPS},
        {v->cuts.n > 0, "at", "cut", MSC_SPLIT_BY_CUT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].is_given && rows[i].needs != by) {
            return MSC_FAIL(MSC_E_INVALID, "split: --%s needs --by %s", rows[i].name, rows[i].by);
        }
    }
    return v->output ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "split: --output FOLDER is missing");
}

static void fill_split(struct msc_split_options *o, const struct split_values *v) {
    o->by = v->by < 0 ? MSC_SPLIT_BY_TARGET : (enum msc_split_by)v->by;
    o->model = v->model;
    o->folder = v->output;
    o->target = v->target ? v->target : "onnxruntime";
    o->only_integers = v->integers;
    o->names = o->by == MSC_SPLIT_BY_CUT ? v->cuts.items : v->ops.items;
    o->n_names = o->by == MSC_SPLIT_BY_CUT ? v->cuts.n : v->ops.n;
    o->plugins = v->common.operators.items;
    o->n_plugins = v->common.operators.n;
}

static enum msc_status split_load(struct msc_graph **out, const struct msc_cli_call *call,
                                  const struct split_values *v) {
    const struct msc_binding *bindings;
    struct msc_operators *operators;
    size_t n;
    bool is_bound = false;
    MSC_TRY(msc_cli_bindings(&bindings, &n, &v->common.bind, call->arena));
    MSC_TRY(msc_operators_open(&operators, v->common.operators.items, v->common.operators.n));
    enum msc_status status = msc_graph_load_bound(out, &is_bound, v->model, bindings, n, operators);
    msc_operators_close(operators);
    return status;
}

static void add_names(struct msc_str *out, const struct msc_piece_value values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        msc_str_printf(out, "%s%s", i > 0 ? ", " : "", values[i].name);
    }
}

static enum msc_status print_pieces(const struct msc_pieces *p) {
    struct msc_str text = {0};
    for (size_t i = 0; i < p->n_pieces; i++) {
        const struct msc_piece *piece = &p->pieces[i];
        msc_str_printf(&text, "%s: %lld joint%s in %s: ", piece->model, (long long)piece->n_joints,
                       piece->n_joints == 1 ? "" : "s", piece->runtime);
        add_names(&text, piece->inputs, piece->n_inputs);
        msc_str_append(&text, " -> ");
        add_names(&text, piece->outputs, piece->n_outputs);
        for (size_t k = 0; k < piece->n_operators; k++) {
            msc_str_printf(&text, "%s%s",
                           k > 0                 ? ", "
                           : piece->needs_plugin ? "; needs a plug-in for "
                                                 : "; has ",
                           piece->operators[k]);
        }
        msc_str_char(&text, '\n');
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_split_json(const struct msc_pieces *p) {
    cJSON *json = NULL;
    char *text = NULL;
    size_t n_bytes;
    MSC_TRY(msc_file_read(&text, &n_bytes, p->path));
    enum msc_status status = msc_json_parse(&json, text, n_bytes, p->path);
    status = status == MSC_OK ? msc_cli_print_json(json) : status;
    cJSON_Delete(json);
    msc_free(text);
    return status;
}

static enum msc_status run_split(const struct msc_cli_call *call, const struct split_values *v) {
    struct msc_graph *g = NULL;
    struct msc_pieces *pieces = NULL;
    struct msc_split_options o = {0};
    MSC_TRY(split_check(v));
    fill_split(&o, v);
    enum msc_status status = split_load(&g, call, v);
    status = status == MSC_OK ? msc_file_make_folders(v->output) : status;
    status = status == MSC_OK ? msc_split(&pieces, g, &o) : status;
    if (status == MSC_OK) {
        status = v->common.json ? print_split_json(pieces) : print_pieces(pieces);
    }
    msc_pieces_close(pieces);
    msc_graph_destroy(g);
    return status;
}

static int cmd_split(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = run_split(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_split = {
    .name = "split",
    .summary = "cuts a model into pieces for several runtimes, with a manifest",
    .usage = "MODEL -o FOLDER [options]",
    .description = "Pieces form no cycle, so they run one after another: mscgym run FOLDER/"
                   "manifest.json. docs/split.md describes the manifest.",
    .examples = "  mscgym split net.onnx -o pieces\n"
                "  mscgym split net.onnx --by target --target tflite --integers -o pieces\n"
                "  mscgym split net.onnx --by ops --op 'my.domain::*' -o pieces\n"
                "  mscgym split net.onnx --by cut --at features -o pieces\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct split_values),
    .run = cmd_split,
};
