#include "cli/graph_channels.h"
#include "cli/placement.h"
#include "cli/table.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "graph/graph.h"
#include "graph/onnx/load.h"
#include "graph/passes/bind.h"
#include "graph/passes/constant.h"
#include "graph/site.h"
#include "graph/weight_graph.h"
#include "model/operators.h"
#include "model/output.h"

#include <stdio.h>
#include <string.h>

struct graph_values {
    struct msc_cli_common common;
    const char *model, *output, *target;
    bool prototxt, placement, sites, channels, weights;
};

#define GRAPH(member) offsetof(struct graph_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text (.msc) or JSON",
     .offset = GRAPH(model),
     .is_positional = true,
     .is_required = true},
    {.name = "prototxt",
     .type = MSC_CLI_FLAG,
     .help = "print prototxt, which netron shows",
     .offset = GRAPH(prototxt)},
    {.name = "placement",
     .type = MSC_CLI_FLAG,
     .help = "print the execution steps, and the device of each joint",
     .details = "Steps are listed with their device, their kernels and the joints fused into them. "
                "Then come the steps and multiply-accumulates of each device, and what is copied "
                "between devices. Joints whose lengths depend on data come after the steps.",
     .offset = GRAPH(placement)},
    {.name = "sites",
     .type = MSC_CLI_FLAG,
     .help = "print the tensors that can be compressed",
     .details = "Sites are the weights and activations that joints read. If a branch of the model "
                "decides which joints run, --bind must set its condition.",
     .offset = GRAPH(sites)},
    {.name = "channels",
     .type = MSC_CLI_FLAG,
     .help = "print the channels that can be pruned, in groups that are pruned together",
     .details = "Equal groups share a row. It shows the number of units (channels, heads, hidden "
                "units), and the share of the parameters and multiply-accumulates that the network "
                "loses without them.",
     .offset = GRAPH(channels)},
    {.name = "weights",
     .type = MSC_CLI_FLAG,
     .help = "print the weight graph: which weights produce channels, and which follow them",
     .offset = GRAPH(weights)},
    {.name = "target",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "onnxruntime|onnxruntime_avx2|onnxruntime_nbits|openvino|tensorrt|tflite|generic",
     .help = "with --sites: print the tensors that this runtime requantises, such as onnxruntime",
     .details = "These are the sites of a configuration with \"sites\": \"all\".",
     .offset = GRAPH(target)},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE.msc|FILE.json",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "save the MSCGraph as text or JSON, and its weights in FILE.safetensors",
     .offset = GRAPH(output)},
    {0},
};

// ---- Sites ------------------------------------------------------------------------------------

static const char *kind_name(enum msc_site_kind kind) {
    return kind == MSC_SITE_WEIGHT ? "weight" : "activation";
}

// Widths in columns: a line that is not printed to a terminal, the longest name in such a line, the
// least room for a name and for its consumers, and the gap between columns of the table.
enum { LINE_COLUMNS = 100, NAME_COLUMNS = 42, LEAST_COLUMNS = 24, BETWEEN_COLUMNS = 2 };

struct columns {
    size_t kind, shape, name, readers;
};

// A name gets at most NAME_COLUMNS of every LINE_COLUMNS in a line. Its consumers get the rest.
static struct columns divide_columns(const struct msc_graph *g, const struct msc_sites *sites) {
    char dims[MSC_DIMS_TEXT_BYTES];
    size_t terminal = msc_cli_terminal_columns();
    size_t line = terminal > 0 ? terminal : LINE_COLUMNS;
    size_t most = line * NAME_COLUMNS / LINE_COLUMNS;
    most = most > LEAST_COLUMNS ? most : LEAST_COLUMNS;
    struct columns c = {.kind = strlen("activation"), .shape = strlen("shape"), .name = 4};
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, sites->sites[i].tensor);
        size_t shape = strlen(msc_dims_format(dims, t->n_dims, t->dims));
        size_t name = msc_table_width(sites->sites[i].name);
        name = name < most ? name : most;
        c.shape = shape > c.shape ? shape : c.shape;
        c.name = name > c.name ? name : c.name;
    }
    size_t used = c.kind + c.shape + c.name + 3 * BETWEEN_COLUMNS;
    c.readers = used + LEAST_COLUMNS < line ? line - used : LEAST_COLUMNS;
    return c;
}

// Writes the first joint that reads the site, and how many more joints read it.
static void write_readers(struct msc_str *out, const struct msc_graph *g,
                          const struct msc_sites *sites, const struct msc_site *site,
                          size_t columns) {
    const struct msc_slot *first = &sites->slots[site->slots[0]];
    char more[24] = "";
    if (site->n_slots > 1) {
        snprintf(more, sizeof more, " and %d more", (int)site->n_slots - 1);
    }
    const char *reader =
        first->joint == MSC_NO_ID ? "(output)" : msc_graph_joint(g, first->joint)->name;
    msc_cli_write_short(out, reader, columns - strlen(more));
    msc_str_append(out, more);
}

static void write_sites(struct msc_str *out, const struct msc_graph *g,
                        const struct msc_sites *sites) {
    enum { NAME = 2 };
    static const char *const head[] = {"kind", "shape", "name", "read by"};
    struct msc_table table = {.n_columns = 4, .key = NAME, .is_left = true};
    struct columns c = divide_columns(g, sites);
    struct msc_str text = {0};
    char dims[MSC_DIMS_TEXT_BYTES];
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_site *site = &sites->sites[i];
        const struct msc_tensor *t = msc_graph_tensor(g, site->tensor);
        msc_table_add(&table, kind_name(site->kind));
        msc_table_add(&table, msc_dims_format(dims, t->n_dims, t->dims));
        msc_str_clear(&text);
        msc_cli_write_short(&text, site->name, c.name);
        msc_table_add(&table, msc_str_text(&text));
        msc_str_clear(&text);
        write_readers(&text, g, sites, site, c.readers);
        msc_table_add(&table, msc_str_text(&text));
    }
    table.failed |= text.failed;
    msc_str_finish(&text);
    msc_table_write(out, &table, msc_cli_terminal_columns());
    msc_table_finish(&table);
}

static enum msc_status add_site(cJSON *list, const struct msc_graph *g,
                                const struct msc_sites *sites, const struct msc_site *site) {
    const struct msc_tensor *t = msc_graph_tensor(g, site->tensor);
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "name", site->name));
    MSC_TRY(msc_json_add_text(object, "kind", kind_name(site->kind)));
    MSC_TRY(msc_json_add_text(object, "tensor", t->name));
    cJSON *shape = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "shape", shape));
    for (int k = 0; k < t->n_dims; k++) {
        MSC_TRY(msc_json_push(shape, cJSON_CreateNumber((double)t->dims[k])));
    }
    cJSON *joints = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "joints", joints));
    for (int32_t k = 0; k < site->n_slots; k++) {
        const struct msc_slot *slot = &sites->slots[site->slots[k]];
        if (slot->joint != MSC_NO_ID) {
            const char *joint = msc_graph_joint(g, slot->joint)->name;
            MSC_TRY(msc_json_push(joints, cJSON_CreateString(joint)));
        }
    }
    return MSC_OK;
}

static enum msc_status has_sites(bool *out, const struct msc_joint *j) {
    *out = false;
    for (int32_t k = 0; k < j->n_graphs && !*out; k++) {
        struct msc_sites sites = {0};
        enum msc_status status = msc_sites_find(&sites, j->graphs[k], NULL);
        *out = sites.n_sites > 0;
        msc_sites_finish(&sites);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// Logs which branches have sites that are not listed, and the inputs to bind so that they are
// known.
static enum msc_status tell_branches(const struct msc_graph *g, const struct msc_cli_call *call) {
    const char *const *names;
    size_t n;
    struct msc_str all = {0};
    MSC_TRY(msc_graph_bindables(&names, &n, g, call->arena));
    for (size_t i = 0; i < n; i++) {
        msc_str_item(&all, names[i]);
    }
    enum msc_status status = msc_str_status(&all);
    for (int32_t i = 0; status == MSC_OK && i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        bool hides = false;
        status = j->op == MSC_OP_IF ? has_sites(&hides, j) : MSC_OK;
        if (status == MSC_OK && hides) {
            msc_log(&call->console->log, MSC_LOG_INFO,
                    n > 0 ? "%s: its branches also have sites; to see them, --bind the inputs that "
                            "select the branch: %s"
                          : "%s: its branches also have sites, known only if one branch is taken%s",
                    j->name, msc_str_text(&all));
        }
    }
    msc_str_finish(&all);
    return status;
}

// For a target that requantises nothing, sites are the tensors that joints read.
static enum msc_status read_target(struct msc_site_scheme *scheme, const struct graph_values *v) {
    const struct msc_target *target = NULL;
    MSC_TRY(v->target ? msc_target_get(&target, v->target, "graph: --target") : MSC_OK);
    scheme->target = target && target->requantises ? target : NULL;
    return MSC_OK;
}

static enum msc_status print_sites(const struct msc_graph *fused, const struct msc_cli_call *call,
                                   const struct graph_values *v) {
    struct msc_site_scheme scheme = {0};
    struct msc_graph *g = NULL;
    struct msc_sites sites = {0};
    struct msc_str text = {0};
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_graph_split(&g, fused));
    MSC_TRY_OUT(read_target(&scheme, v));
    MSC_TRY_OUT(msc_sites_find(&sites, g, &scheme));
    MSC_TRY_OUT(tell_branches(g, call));
    MSC_TRY_OUT(msc_graph_tell_unfolded(g, v->model, &call->console->log));
    if (!v->common.json) {
        write_sites(&text, g, &sites);
        status = msc_cli_print_str(&text);
        goto out;
    }
    for (int32_t i = 0; i < sites.n_sites; i++) {
        MSC_TRY_OUT(add_site(list, g, &sites, &sites.sites[i]));
    }
    status = msc_cli_print_json(list);
out:
    cJSON_Delete(list);
    msc_str_finish(&text);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
    return status;
}

// ---- Forms ------------------------------------------------------------------------------------

static enum msc_status print_form(const struct msc_graph *g,
                                  void (*write)(const struct msc_graph *g, struct msc_str *out),
                                  enum msc_status (*print_text)(const struct msc_str *text)) {
    struct msc_str text = {0};
    write(g, &text);
    if (text.length > 0 && text.data[text.length - 1] != '\n') {
        msc_str_char(&text, '\n');
    }
    enum msc_status status = print_text(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status print_weights(const struct msc_graph *g, const struct graph_values *v) {
    struct msc_weight_graph weights;
    struct msc_str text = {0};
    cJSON *json = NULL;
    MSC_TRY(msc_weight_graph_build(&weights, g));
    enum msc_status status = MSC_OK;
    if (v->common.json) {
        MSC_TRY_OUT(msc_weight_graph_to_json(&json, &weights, g));
        status = msc_cli_print_json(json);
    } else {
        (v->prototxt ? msc_weight_graph_write_prototxt : msc_weight_graph_print)(&weights, g,
                                                                                 &text);
        msc_str_append(&text, v->prototxt ? "\n" : "");
        status = msc_cli_print_str(&text);
    }
out:
    cJSON_Delete(json);
    msc_str_finish(&text);
    msc_weight_graph_finish(&weights);
    return status;
}

// ---- The command ------------------------------------------------------------------------------

static enum msc_status graph_check(const struct graph_values *v) {
    const int n_views = v->placement + v->sites + v->channels + v->weights;
    if (n_views > 1 || (v->prototxt && n_views > v->weights)) {
        return MSC_FAIL(MSC_E_INVALID, "graph: use only one of --prototxt, --placement, --sites, "
                                       "--channels and --weights (or --weights with --prototxt)");
    }
    if (v->target && !v->sites) {
        return MSC_FAIL(MSC_E_INVALID, "graph: --target needs --sites");
    }
    if (!v->output) {
        return MSC_OK;
    }
    if (v->prototxt || n_views > 0 || v->common.json) {
        return MSC_FAIL(MSC_E_INVALID, "graph: --output cannot be used with --json, --prototxt, "
                                       "--placement, --sites, --channels or --weights");
    }
    return msc_graph_can_save(v->output)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "graph: --output is \"%s\", expected a name ending in .msc or .json",
                          v->output);
}

static enum msc_status print_graph(const struct msc_graph *g, const struct msc_cli_call *call,
                                   const struct graph_values *v) {
    return v->sites         ? print_sites(g, call, v)
           : v->channels    ? msc_cli_print_channels(g, v->common.json)
           : v->weights     ? print_weights(g, v)
           : v->prototxt    ? print_form(g, msc_graph_write_prototxt, msc_cli_print_str)
           : v->common.json ? print_form(g, msc_graph_write_json, msc_cli_print_data)
                            : print_form(g, msc_graph_print, msc_cli_print_str);
}

// Weights may be missing if the graph is only printed.
static enum msc_status load_with(struct msc_graph **out, bool *is_bound,
                                 const struct msc_binding bindings[], size_t n,
                                 const struct msc_cli_call *call, const struct graph_values *v,
                                 struct msc_operators *operators) {
    bool has_weights = true;
    if (n > 0 || v->placement || v->sites || v->channels || v->output) {
        return msc_graph_load_bound(out, is_bound, v->model, bindings, n, operators);
    }
    *is_bound = false;
    MSC_TRY(msc_graph_load_form(out, &has_weights, v->model, operators));
    if (!has_weights) {
        msc_log(&call->console->log, MSC_LOG_WARNING,
                "%s: there is no .safetensors file of this name next to it, so the graph has no "
                "weights; --bind, --sites, --channels, --placement and --output need them",
                v->model);
    }
    return MSC_OK;
}

static enum msc_status cmd_graph_load(struct msc_graph **out, bool *is_bound,
                                      const struct msc_binding bindings[], size_t n,
                                      const struct msc_cli_call *call,
                                      const struct graph_values *v) {
    struct msc_operators *operators;
    MSC_TRY(msc_operators_open(&operators, v->common.operators.items, v->common.operators.n));
    enum msc_status status = load_with(out, is_bound, bindings, n, call, v, operators);
    msc_operators_close(operators);
    return status;
}

static enum msc_status run_graph(const struct msc_cli_call *call, const struct graph_values *v) {
    struct msc_graph *g = NULL, *bound = NULL;
    const struct msc_binding *bindings;
    size_t n;
    bool is_bound;
    struct msc_file_set files = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY(graph_check(v));
    if (v->output) {
        MSC_TRY_OUT(msc_output_read_model(&files, v->model));
        MSC_TRY_OUT(msc_output_claim_graph(&files, "--output", v->output));
    }
    MSC_TRY_OUT(msc_cli_bindings(&bindings, &n, &v->common.bind, call->arena));
    MSC_TRY_OUT(cmd_graph_load(&g, &is_bound, bindings, n, call, v));
    n = is_bound ? 0 : n; // bindings not yet applied to the graph
    if (v->placement) {
        status = msc_cli_print_placement(g, bindings, n, call, &v->common);
        goto out;
    }
    if (n > 0) {
        MSC_TRY_OUT(msc_graph_bind_open(&bound, g, bindings, n));
    }
    status = v->output ? msc_graph_save(bound ? bound : g, v->output)
                       : print_graph(bound ? bound : g, call, v);
out:
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    msc_file_set_finish(&files);
    return status;
}

static int cmd_graph(const struct msc_cli_call *call, void *payload) {
    enum msc_status status = run_graph(call, payload);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_graph = {
    .name = "graph",
    .summary = "prints a model as MSCGraph, or its steps, sites or channels",
    .usage = "MODEL [options]",
    .description = "With --json the MSCGraph, sites, channels, weights or placement are JSON. A "
                   "placement needs a value for every symbol; the number of samples is 1 by "
                   "default. In a long name * replaces the middle; include, exclude and fix of a "
                   "configuration accept such names. --json prints names in full. MSCGraph "
                   "without its .safetensors file is printed without weights. The printed form can "
                   "be read back from a file that ends in .msc.",
    .examples = "  mscgym graph digits.onnx --sites\n"
                "  mscgym graph digits.onnx --prototxt > digits.prototxt\n"
                "  mscgym graph digits.onnx --placement --bind N=64\n"
                "  mscgym graph digits.onnx -o digits.msc\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct graph_values),
    .run = cmd_graph,
};
