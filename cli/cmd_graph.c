#include "cli/cli.h"

#include "base/json.h"
#include "base/str.h"
#include "graph/graph.h"
#include "graph/site.h"
#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kernels/vulkan/vulkan.h"

#include <stdio.h>
#include <string.h>

struct graph_values {
    struct msc_cli_common common;
    const char *model;
    bool prototxt, placement, sites;
};

#define GRAPH(member) offsetof(struct graph_values, member)

static const struct msc_cli_option options[] = {
    {.name = "MODEL", .type = MSC_CLI_TEXT, .help = "ONNX, or MSCGraph JSON",
     .offset = GRAPH(model), .is_positional = true, .is_required = true},
    {.name = "prototxt", .type = MSC_CLI_FLAG, .help = "as prototxt, for netron",
     .offset = GRAPH(prototxt)},
    {.name = "placement", .type = MSC_CLI_FLAG, .help = "the steps that the backend makes of it",
     .offset = GRAPH(placement)},
    {.name = "sites", .type = MSC_CLI_FLAG, .help = "what can be compressed",
     .offset = GRAPH(sites)},
    {0},
};

// ---- Sites ------------------------------------------------------------------------------------

static const char *kind_name(enum msc_site_kind kind) {
    return kind == MSC_SITE_WEIGHT ? "weight" : "activation";
}

enum { LINE_COLUMNS = 100, NAME_COLUMNS = 42 };

static bool is_inside_character(char c) { // of UTF-8
    return ((unsigned char)c & 0xC0) == 0x80;
}

// A long text loses its middle to a star, so that a name cut short is a pattern that fits it.
static void write_short(struct msc_str *out, const char *text, size_t columns) {
    size_t length = strlen(text);
    if (length <= columns) {
        msc_str_append(out, text);
        return;
    }
    size_t head = columns / 3;
    size_t tail = length - (columns - head - 1);
    while (head > 0 && is_inside_character(text[head])) {
        head--;
    }
    while (is_inside_character(text[tail])) {
        tail++;
    }
    msc_str_append_n(out, text, head);
    msc_str_printf(out, "*%s", text + tail);
}

static void write_padded(struct msc_str *out, const char *text, size_t columns) {
    size_t begin = out->length;
    write_short(out, text, columns);
    msc_str_printf(out, "%*s", (int)(columns + 2 - (out->length - begin)), "");
}

// The first of the joints that read the site, and how many more there are, in what is left of the
// line.
static void write_readers(struct msc_str *out, const struct msc_graph *g,
                          const struct msc_sites *sites, const struct msc_site *site,
                          size_t columns) {
    const struct msc_slot *first = &sites->slots[site->slots[0]];
    char more[24] = "";
    if (site->n_slots > 1) {
        snprintf(more, sizeof more, " and %d more", (int)site->n_slots - 1);
    }
    write_short(out, msc_graph_joint(g, first->joint)->name, columns - strlen(more));
    msc_str_printf(out, "%s\n", more);
}

static size_t at_most(size_t value, size_t limit) {
    return value < limit ? value : limit;
}

static void write_sites(struct msc_str *out, const struct msc_graph *g,
                        const struct msc_sites *sites) {
    char dims[MSC_DIMS_TEXT_BYTES];
    size_t kind_columns = strlen("activation"), shape_columns = strlen("shape"), name_columns = 4;
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, sites->sites[i].tensor);
        size_t shape = strlen(msc_dims_format(dims, t->n_dims, t->dims));
        size_t name = at_most(strlen(sites->sites[i].name), NAME_COLUMNS);
        shape_columns = shape > shape_columns ? shape : shape_columns;
        name_columns = name > name_columns ? name : name_columns;
    }
    size_t used = kind_columns + shape_columns + name_columns + 6;
    size_t left = used + 24 < LINE_COLUMNS ? LINE_COLUMNS - used : 24;
    write_padded(out, "kind", kind_columns);
    write_padded(out, "shape", shape_columns);
    write_padded(out, "name", name_columns);
    msc_str_append(out, "read by\n");
    for (int32_t i = 0; i < sites->n_sites; i++) {
        const struct msc_site *site = &sites->sites[i];
        const struct msc_tensor *t = msc_graph_tensor(g, site->tensor);
        write_padded(out, kind_name(site->kind), kind_columns);
        write_padded(out, msc_dims_format(dims, t->n_dims, t->dims), shape_columns);
        write_padded(out, site->name, name_columns);
        write_readers(out, g, sites, site, left);
    }
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
        MSC_TRY(msc_json_push(joints, cJSON_CreateString(msc_graph_joint(g, slot->joint)->name)));
    }
    return MSC_OK;
}

static enum msc_status print_sites(const struct msc_graph *g, bool as_json) {
    struct msc_sites sites = {0};
    struct msc_str text = {0};
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_sites_find(&sites, g, false));
    if (!as_json) {
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
    return status;
}

// ---- Placement --------------------------------------------------------------------------------

// Every symbol as told, or 1: the number of samples needs no telling.
static enum msc_status bind(struct msc_graph **out, const struct msc_graph *g,
                            const struct msc_cli_call *call, const struct msc_cli_common *common) {
    const struct msc_binding *given = NULL;
    size_t n_given = 0;
    size_t n = 0;
    MSC_TRY(msc_cli_bindings(&given, &n_given, &common->bind, call->arena));
    struct msc_binding *all = msc_arena_array(
        call->arena, n_given + (size_t)msc_graph_n_prims(g) + 1, sizeof *all);
    if (!all) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (; n < n_given; n++) {
        all[n] = given[n];
    }
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        bool is_open = t->n_dims > 0 && t->dims[0] < 0;
        const char *symbol = is_open ? msc_graph_prim(g, t->prims[0])->name : NULL;
        for (size_t k = 0; symbol && k < n; k++) {
            symbol = strcmp(all[k].symbol, symbol) == 0 ? NULL : symbol;
        }
        if (symbol) {
            all[n++] = (struct msc_binding){.symbol = symbol, .value = 1};
        }
    }
    return msc_graph_bind(out, g, all, n);
}

static void write_step(struct msc_str *out, const struct msc_plan *plan, int32_t index) {
    static const char *const kinds[] = {"run", "alias", "reorder"};
    static const char *const layouts[] = {"plain", "channels last"};
    const struct msc_step *step = &plan->steps[index];
    const struct msc_value *value = &plan->values[step->outputs[0]];
    char dims[MSC_DIMS_TEXT_BYTES];
    msc_str_printf(out, "%4d  %-7s  ", (int)index, kinds[step->kind]);
    for (int32_t k = 0; k < step->n_joints; k++) {
        const struct msc_joint *j = step->joints[k].joint;
        msc_str_printf(out, "%s%s (%s)", k > 0 ? " + " : "", j->name, msc_op_info(j->op)->name);
    }
    if (step->n_joints == 0) {
        msc_str_append(out, msc_graph_tensor(plan->graph, value->tensor)->name);
    }
    msc_str_printf(out, " -> %s %s, %s", msc_dims_format(dims, value->n_dims, value->dims),
                   msc_dtype_name(value->dtype), layouts[value->layout]);
    if (step->macs > 0) {
        msc_str_printf(out, ", %.3g MACs", step->macs);
    }
    if (plan->backend->def == &msc_backend_vulkan && step->kind != MSC_STEP_ALIAS &&
        !msc_vulkan_is_on_device(step)) {
        msc_str_append(out, ", on the host");
    }
    msc_str_char(out, '\n');
}

static enum msc_status print_placement(const struct msc_graph *g, const struct msc_cli_call *call,
                                       const struct msc_cli_common *common) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend = NULL;
    struct msc_graph *bound = NULL;
    struct msc_plan *plan = NULL;
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(bind(&bound, g, call, common));
    MSC_TRY_OUT(msc_backend_open(&backend, common->device ? common->device : "auto", &o));
    size_t n = (size_t)msc_graph_n_outputs(bound);
    int32_t *wanted = msc_arena_array(call->arena, n + 1, sizeof *wanted);
    if (!wanted) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        wanted[i] = msc_graph_output(bound, (int32_t)i);
    }
    status = msc_plan_create(&plan, bound, backend, wanted, n);
    bound = NULL; // the plan's, also on failure
    if (status != MSC_OK) {
        goto out;
    }
    msc_str_printf(&text, "on %s\n", backend->def->numerics(backend));
    for (int32_t i = 0; i < plan->n_steps; i++) {
        write_step(&text, plan, i);
    }
    status = msc_cli_print_str(&text);
out:
    msc_str_finish(&text);
    msc_plan_destroy(plan);
    msc_graph_destroy(bound);
    msc_backend_close(backend);
    return status;
}

// ---- Forms ------------------------------------------------------------------------------------

static enum msc_status print_form(const struct msc_graph *g,
                                  void (*write)(const struct msc_graph *g, struct msc_str *out)) {
    struct msc_str text = {0};
    write(g, &text);
    if (text.length > 0 && text.data[text.length - 1] != '\n') {
        msc_str_char(&text, '\n');
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static int run(const struct msc_cli_call *call, void *payload) {
    const struct graph_values *v = payload;
    struct msc_graph *g = NULL;
    enum msc_status status = MSC_OK;
    if (v->prototxt + v->placement + v->sites > 1) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_INVALID, "graph: one of --prototxt, --placement "
                                                          "and --sites at a time"));
    }
    const struct msc_binding *bindings;
    size_t n_bindings;
    bool is_bound;
    status = msc_cli_bindings(&bindings, &n_bindings, &v->common.bind, call->arena);
    if (status == MSC_OK) {
        status = msc_graph_load_bound(&g, &is_bound, v->model, bindings, n_bindings);
    }
    if (status == MSC_OK) {
        status = v->sites          ? print_sites(g, v->common.json)
                 : v->placement    ? print_placement(g, call, &v->common)
                 : v->prototxt     ? print_form(g, msc_graph_write_prototxt)
                 : v->common.json  ? print_form(g, msc_graph_write_json)
                                   : print_form(g, msc_graph_print);
    }
    msc_graph_destroy(g);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_graph = {
    .name = "graph",
    .summary = "a model as MSCGraph: printed, JSON, prototxt; its steps, its sites",
    .usage = "MODEL [options]",
    .description = "With --json the MSCGraph JSON, or the sites as JSON. A placement needs every "
                   "symbol\nbound; the number of samples is 1 unless bound. Long names of sites lose "
                   "their middle to\na star: include, exclude and fix take them so. --json has them "
                   "whole.",
    .examples = "  mscgym graph digits.onnx --sites\n"
                "  mscgym graph digits.onnx --prototxt > digits.prototxt\n"
                "  mscgym graph digits.onnx --placement --bind N=64\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct graph_values),
    .run = run,
};
