#include "cli/placing.h"

#include "base/file.h"
#include "base/file_hash.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/str.h"
#include "graph/onnx/load.h"
#include "graph/passes/bind.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

struct place_values {
    struct msc_cli_common common;
    const char *model, *output, *input, *table, *record, *loss_max;
    struct msc_cli_list backends, variants;
    int64_t batch, rounds, processes, groups, losses;
};

#define PLACE(member) offsetof(struct place_values, member)
#define TABLE_FILE "placement.json"

// The command does not set uses_models, because other runtimes have neither --device nor --memory.
static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX",
     .offset = PLACE(model),
     .is_positional = true,
     .is_required = true},
    {.name = "output",
     .letter = 'o',
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "write the pieces, manifest.json and the table " TABLE_FILE " to this folder",
     .offset = PLACE(output)},
    {.name = "backend",
     .argument = "NAME",
     .type = MSC_CLI_LIST,
     .names = "onnxruntime|openvino|tvm|cpu|vulkan",
     .help = "measure this backend: a runtime, or a device of mscgym; may be repeated (default: "
             "every one found, except tvm)",
     .offset = PLACE(backends)},
    {.name = "input",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "a .npz with samples for the inputs (default: random numbers)",
     .offset = PLACE(input)},
    {.name = "variant",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "ONNX of the same network, such as an 8-bit model of `mscgym quantize`, from which "
             "pieces may come, too; may be repeated",
     .details = "Its tensors between pieces have the names that they have in MODEL.",
     .offset = PLACE(variants)},
    {.name = "loss-max",
     .argument = "X",
     .type = MSC_CLI_TEXT,
     .help = "find the fastest plan whose outputs differ from MODEL's by a distill_loss of at most "
             "X, on the samples of --input",
     .needs = "input",
     .offset = PLACE(loss_max)},
    {.name = "losses",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "measure the losses of at most N combinations of variants (default: 500)",
     .needs = "loss-max",
     .offset = PLACE(losses)},
    {.name = "batch",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help =
         "run N samples together, if the model takes any number (default: 1, or that of --table)",
     .offset = PLACE(batch)},
    {.name = "groups",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "join groups until N are left, then measure every run of them (default: 10)",
     .offset = PLACE(groups)},
    {.name = "rounds",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "number of rounds; each runs everything in turn (default: 20)",
     .offset = PLACE(rounds)},
    {.name = "processes",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "fresh processes in which the result is measured whole (default: 3)",
     .offset = PLACE(processes)},
    {.name = "table",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "use the latencies of this table instead of measuring",
     .offset = PLACE(table)},
    {.name = "record",
     .argument = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "with --table: take the best trial of this search instead of the table's optimum",
     .needs = "table",
     .offset = PLACE(record)},
    {.name = "threads",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "use N threads in a run (default: one per processor, or those of --table)",
     .offset = PLACE(common.threads)},
    {.name = "bind",
     .argument = "SYMBOL=N",
     .type = MSC_CLI_LIST,
     .help = "set an open length of the model (default of random inputs: 1); may be repeated",
     .offset = PLACE(common.bind)},
    {0},
};

static enum msc_status take_count(int64_t *out, int64_t value, const char *name, int64_t most) {
    *out = value < 0 ? *out : value;
    return *out >= 1 && *out <= most
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "place: --%s is %" PRId64 ", expected a whole number of 1 to %" PRId64,
                          name, *out, most);
}

static enum msc_status fill_place(struct msc_place_options *o, const struct place_values *v,
                                  const struct msc_cli_call *call) {
    int64_t n_threads = msc_machine_n_threads();
    if (!v->output) {
        return MSC_FAIL(MSC_E_INVALID, "place: --output FOLDER is missing");
    }
    MSC_TRY(take_count(&o->batch, v->batch, "batch", INT_MAX));
    MSC_TRY(take_count(&o->n_rounds, v->rounds, "rounds", 100000));
    MSC_TRY(take_count(&o->n_processes, v->processes, "processes", MSC_PLACE_MOST_PROCESSES));
    MSC_TRY(take_count(&o->most_groups, v->groups, "groups", MSC_PLACE_MOST_GROUPS));
    MSC_TRY(take_count(&o->most_losses, v->losses, "losses", INT_MAX));
    MSC_TRY(take_count(&n_threads, v->common.threads, "threads", INT_MAX));
    if (v->loss_max && !(msc_parse_double(&o->most_loss, v->loss_max) && o->most_loss >= 0.0)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "place: --loss-max is \"%s\", expected a number of at least 0, such as "
                        "0.001",
                        v->loss_max);
    }
    MSC_TRY(msc_cli_bindings(&o->bindings, &o->n_bindings, &v->common.bind, call->arena));
    o->n_threads = (int)n_threads;
    o->model = v->model;
    o->folder = v->output;
    o->backends = v->backends.items;
    o->n_backends = v->backends.n;
    o->inputs = v->input;
    o->log = &call->console->log;
    return MSC_OK;
}

// A network as pieces are cut from it: after the passes, without fused joints.
static enum msc_status load_network(struct msc_graph **out, const char *path,
                                    const struct msc_place_options *o) {
    struct msc_graph *g = NULL;
    bool is_bound = false;
    MSC_TRY(msc_graph_load_bound(&g, &is_bound, path, o->bindings, o->n_bindings, NULL));
    enum msc_status status = msc_graph_split(out, g);
    msc_graph_destroy(g);
    return status;
}

// A variant is another file than the network and the variants before it, and no piece replaces it.
static enum msc_status check_variant(const char *const paths[], size_t i,
                                     const struct msc_place_options *o) {
    struct msc_hash hash, other;
    MSC_TRY(msc_split_check_folder(paths[i], o->folder, MSC_PLACE_MOST_GROUPS));
    MSC_TRY(msc_file_hash(&hash, paths[i]));
    for (size_t k = 0; k <= i; k++) {
        const char *path = k == 0 ? o->model : paths[k - 1];
        MSC_TRY(msc_file_hash(&other, path));
        if (msc_hash_equal(hash, other)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "place: the variant %s is the same model as %s; leave it out", paths[i],
                            path);
        }
    }
    return MSC_OK;
}

static enum msc_status load_variants(struct msc_cli_placed *r, const char *const paths[], size_t n,
                                     struct msc_place_options *o) {
    if (n >= MSC_PLACE_MOST_VARIANTS) {
        return MSC_FAIL(MSC_E_INVALID, "place: %zu variants, expected at most %d", n,
                        MSC_PLACE_MOST_VARIANTS - 1);
    }
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(check_variant(paths, i, o));
        MSC_TRY(load_network(&r->graphs[i], paths[i], o));
        r->variants[i] = (struct msc_place_given){.path = paths[i], .g = r->graphs[i]};
    }
    o->variants = r->variants;
    o->n_variants = n;
    return MSC_OK;
}

// The variants that the table names, relative to its own path.
static enum msc_status load_table_variants(struct msc_cli_placed *r, const char *table,
                                           struct msc_place_options *o, struct msc_arena *arena) {
    const char *paths[MSC_PLACE_MOST_VARIANTS], *folder = msc_path_folder(arena, table);
    const struct msc_place_table *p = r->table;
    MSC_TRY(MSC_ALLOCATED(folder));
    for (size_t i = 1; i < p->n_variants; i++) {
        paths[i - 1] = msc_path_join(arena, folder, p->variants[i].model);
        MSC_TRY(MSC_ALLOCATED(paths[i - 1]));
        MSC_TRY(msc_place_table_check(p, i, paths[i - 1], table));
    }
    return load_variants(r, paths, p->n_variants - 1, o);
}

// A table may replace only another table.
static enum msc_status check_replaced(const char *path) {
    struct msc_place_table *old = NULL;
    bool is_free = !msc_file_exists(path) || msc_place_table_load(&old, path) == MSC_OK;
    msc_place_table_close(old);
    return is_free ? MSC_OK
                   : MSC_FAIL(MSC_E_INVALID,
                              "%s: the table would replace this file, which is no table of "
                              "placement; name another folder",
                              path);
}

// The plan of a table is measured as the table was, so that their latencies can be compared.
static enum msc_status take_condition(int64_t given, int64_t of_table, const char *name,
                                      const char *path) {
    return given < 0 || given == of_table
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "place: --%s is %" PRId64 ", but %s was measured with %" PRId64, name,
                          given, path, of_table);
}

static enum msc_status load_table(struct msc_place_table **out, const struct place_values *v,
                                  struct msc_place_options *o) {
    if (v->backends.n > 0 || v->groups >= 0 || v->variants.n > 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "place: --table names the backends, variants and groups already; leave out "
                        "--backend, --variant and --groups");
    }
    MSC_TRY(msc_place_table_load(out, v->table));
    MSC_TRY(msc_place_table_check(*out, 0, o->model, v->table));
    MSC_TRY(take_condition(v->common.threads, (*out)->n_threads, "threads", v->table));
    MSC_TRY(take_condition(v->batch, (*out)->batch, "batch", v->table));
    o->n_threads = (int)(*out)->n_threads;
    o->batch = (*out)->batch;
    return MSC_OK;
}

// *path: where the table is stored; NULL: nowhere, as it was given.
static enum msc_status take_table(struct msc_cli_placed *r, const struct place_values *v,
                                  const struct msc_graph *g, struct msc_place_options *o,
                                  const char **path, struct msc_arena *arena) {
    MSC_TRY(msc_split_check_folder(o->model, o->folder, MSC_PLACE_MOST_GROUPS));
    if (v->table) {
        MSC_TRY(load_table(&r->table, v, o));
        return load_table_variants(r, v->table, o, arena);
    }
    *path = msc_path_join(arena, o->folder, TABLE_FILE);
    MSC_TRY(MSC_ALLOCATED(*path));
    MSC_TRY(check_replaced(*path));
    MSC_TRY(load_variants(r, v->variants.items, v->variants.n, o));
    MSC_TRY(msc_place_measure(&r->table, g, o));
    return msc_place_table_save(r->table, *path);
}

// The loss of the pieces in their backends, in which `mscgym run` needs mscgym-runtime; without it,
// the loss stays unknown.
static void measure_delivered(struct msc_cli_placed *r, const struct msc_place_options *o) {
    r->delivered_loss = NAN;
    if (r->table->n_variants > 1 && o->inputs &&
        msc_place_delivered_loss(&r->delivered_loss, r->graph, r->table, r->pieces, o) != MSC_OK) {
        msc_log(o->log, MSC_LOG_WARNING, "placement: the loss in the backends is unknown: %s",
                msc_status_message());
    }
}

static enum msc_status find_plan(struct msc_cli_placed *r, const struct place_values *v,
                                 const struct msc_place_options *o, const char *path) {
    MSC_TRY(msc_place_find(&r->predicted_us, &r->is_cut_short, r->graph, r->table, r->choices, o));
    if (v->record) {
        r->is_cut_short = false;
        MSC_TRY(msc_cli_read_placed(r->choices, r->table, v->record));
        r->predicted_us = msc_place_table_predict(r->table, r->choices);
    }
    MSC_TRY(msc_place_losses(r->losses, &r->loss, r->graph, r->table, r->choices, o));
    r->most_loss = o->most_loss;
    if (isfinite(o->most_loss) && !(r->loss <= o->most_loss)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: the loss of its best trial is %g, above --loss-max %g",
                        v->record, r->loss, o->most_loss);
    }
    return path ? msc_place_table_save(r->table, path) : MSC_OK; // with the losses
}

static enum msc_status place(struct msc_cli_placed *r, const struct place_values *v,
                             const struct msc_cli_call *call) {
    struct msc_place_options o = MSC_PLACE_OPTIONS_INIT;
    MSC_TRY(fill_place(&o, v, call));
    const char *path = NULL;
    MSC_TRY(load_network(&r->graph, o.model, &o));
    MSC_TRY(msc_file_make_folders(v->output));
    MSC_TRY(take_table(r, v, r->graph, &o, &path, call->arena));
    MSC_TRY(find_plan(r, v, &o, path));
    MSC_TRY(msc_place_check(&r->check, r->graph, r->table, r->choices, r->losses, &o));
    MSC_TRY(msc_place_deliver(&r->pieces, r->graph, r->table, r->check.best, &o));
    measure_delivered(r, &o);
    return v->common.json ? msc_cli_print_placed_json(r) : msc_cli_print_placed(r);
}

static int cmd_place(const struct msc_cli_call *call, void *payload) {
    struct msc_cli_placed r = {0};
    enum msc_status status = place(&r, payload, call);
    msc_pieces_close(r.pieces);
    msc_place_check_finish(&r.check);
    msc_place_table_close(r.table);
    msc_graph_destroy(r.graph);
    for (size_t i = 0; i < MSC_PLACE_MOST_VARIANTS; i++) {
        msc_graph_destroy(r.graphs[i]);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_place = {
    .name = "place",
    .summary = "finds which runtime computes which part of a model fastest",
    .usage = "MODEL -o FOLDER [options]",
    .description =
        "Measures every run of neighbouring groups of the model on every backend, in its place "
        "within the whole model, and finds the best mix by an exact dynamic program. Then measures "
        "it in fresh processes, beside the whole model on each backend. If the mix does not win by "
        "more than the spread of two equal copies, the fastest backend alone is the result. With "
        "variants of the model, it also finds which piece comes from which of them. "
        "docs/placement.md says more.",
    .examples = "  mscgym place net.onnx -o placed --threads 1\n"
                "  mscgym place net.onnx -o placed --backend onnxruntime --backend cpu\n"
                "  mscgym place net.onnx -o placed --variant small.onnx --input samples.npz "
                "--loss-max 0.001\n"
                "  mscgym run placed/manifest.json --inputs samples.npz -o out.npz\n",
    .options = options,
    .values_size = sizeof(struct place_values),
    .run = cmd_place,
};
