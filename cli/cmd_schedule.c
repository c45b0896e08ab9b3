#include "cli/scheduling.h"

#include "base/alloc.h"
#include "base/json.h"
#include "cli/searching.h"
#include "graph/passes/bind.h"
#include "model/model.h"
#include "tools/strategy.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct schedule_values {
    struct msc_cli_common common;
    const char *model, *inputs, *strategy, *record, *show;
    struct msc_cli_list set;
    int64_t batch, rounds;
};

#define SCHEDULE(member) offsetof(struct schedule_values, member)
enum { DEFAULT_ROUNDS = 10, MOST_INPUTS = 64 };

// The command does not set uses_models, because it measures on one thread.
static const struct msc_cli_option options[] = {
    {.name = "MODEL",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "ONNX, GGUF, or MSCGraph as text or JSON",
     .offset = SCHEDULE(model),
     .is_positional = true,
     .is_required = true},
    {.name = "show",
     .argument = "JOINT",
     .type = MSC_CLI_TEXT,
     .help = "measure only the variants of this joint's step, and keep nothing",
     .offset = SCHEDULE(show)},
    {.name = "set",
     .argument = "JOINT=VARIANT",
     .type = MSC_CLI_LIST,
     .help = "keep this variant for the joint's step, and show its time next to the others; may be "
             "repeated",
     .offset = SCHEDULE(set)},
    {.name = "record",
     .argument = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "check and keep the best trial of this search instead of measuring every variant",
     .offset = SCHEDULE(record)},
    {.name = "inputs",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "samples for the inputs: a .npz, .npy, .safetensors or .jsonl file, or a folder of "
             "images (default: random "
             "numbers)",
     .offset = SCHEDULE(inputs)},
    {.name = "batch",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "run N samples together, if the model takes any number (default: 1)",
     .offset = SCHEDULE(batch)},
    {.name = "strategy",
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "compress the model by this strategy file",
     .offset = SCHEDULE(strategy)},
    {.name = "rounds",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "runs of each variant, in turn with runs of the choices by rule (default: 10)",
     .offset = SCHEDULE(rounds)},
    {.name = "device",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "auto|cpu|vulkan",
     .help = "device to compute on: auto, cpu, vulkan, vulkan:N, vulkan:uuid=UUID or "
             "vulkan:pci=ADDRESS",
     .offset = SCHEDULE(common.device)},
    {.name = "bind",
     .argument = "SYMBOL=N",
     .type = MSC_CLI_LIST,
     .help = "set an open length of the model (default of random inputs: 1); may be repeated",
     .offset = SCHEDULE(common.bind)},
    {0},
};

// ---- The network ------------------------------------------------------------------------------

// Floats between -1 and 1 without order, and zeros for every other type.
static enum msc_status make_input(struct msc_array **out, const struct msc_input_spec *spec,
                                  int64_t batch) {
    int64_t dims[MSC_MAX_DIMS];
    for (int k = 0; k < spec->n_dims; k++) {
        bool counts = spec->is_batched && k == spec->axis;
        dims[k] = counts ? batch : spec->dims[k] > 0 ? spec->dims[k] : 1;
    }
    MSC_TRY(msc_array_create(out, spec->dtype, spec->n_dims, dims));
    memset(msc_array_data(*out), 0, msc_array_n_bytes(*out));
    float *x = spec->dtype == MSC_DTYPE_F32 ? msc_array_data(*out) : NULL;
    for (int64_t i = 0; x && i < msc_array_n_elements(*out); i++) {
        x[i] = (float)((uint32_t)i * 2654435761u >> 8) / 8388608.0f - 1.0f;
    }
    return MSC_OK;
}

static enum msc_status make_inputs(struct msc_dataset **out, const struct msc_model *m,
                                   int64_t batch) {
    struct msc_array *arrays[MOST_INPUTS] = {NULL};
    struct msc_input_spec specs[MOST_INPUTS];
    enum msc_status status = MSC_OK;
    if (m->n_inputs > MOST_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: the model has %zu inputs, more than %d: give them "
                        "with --inputs",
                        m->path, m->n_inputs, MOST_INPUTS);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        specs[i] = m->specs[i];
        MSC_TRY_OUT(make_input(&arrays[i], &specs[i], batch));
        memcpy(specs[i].dims, msc_array_dims(arrays[i]),
               (size_t)specs[i].n_dims * sizeof specs[i].dims[0]);
    }
    status =
        msc_dataset_create_whole(out, specs, (const struct msc_array *const *)arrays, m->n_inputs);
out:
    for (size_t i = 0; i < m->n_inputs; i++) {
        msc_array_release(arrays[i]);
    }
    return status;
}

static enum msc_status load_inputs(struct msc_model *m, const struct schedule_values *v) {
    static const struct msc_dataset_options init = MSC_DATASET_OPTIONS_INIT;
    struct msc_config_dataset dataset = {.options = init};
    dataset.options.inputs = v->inputs;
    dataset.options.batch = v->batch > 0 ? v->batch : 1;
    dataset.options.samples = dataset.options.batch;
    return msc_model_load_dataset(m, &dataset);
}

static enum msc_status open_network(struct msc_cli_scheduled *s, const struct msc_cli_call *call,
                                    const struct schedule_values *v) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    MSC_TRY(msc_cli_fill_model_options(&o, call, &v->common));
    o.n_threads = 1;
    MSC_TRY(msc_model_open(&s->model, v->model, &o));
    if (v->strategy) {
        MSC_TRY(msc_strategy_load(&s->strategy, v->strategy));
    }
    if (v->inputs) {
        MSC_TRY(load_inputs(s->model, v));
    } else {
        MSC_TRY(make_inputs(&s->random, s->model, v->batch > 0 ? v->batch : 1));
    }
    if (s->strategy && msc_strategy_prunes(s->strategy)) {
        MSC_TRY(msc_strategy_prune(&s->pruned, s->strategy, s->model->graph));
    }
    const struct msc_schedule_options of = {.graph = s->pruned ? s->pruned : s->model->graph,
                                            .dataset = s->random ? s->random : s->model->dataset,
                                            .backend = s->model->backend,
                                            .strategy = s->strategy,
                                            .memory_bytes = s->model->memory_bytes,
                                            .log = s->model->log};
    MSC_TRY(msc_schedule_bench_open(&s->bench, &of));
    s->n = msc_schedule_bench_n(s->bench);
    s->rows = msc_arena_array(call->arena, s->n + 1, sizeof s->rows[0]);
    s->choices = msc_arena_array(call->arena, s->n + 1, sizeof s->choices[0]);
    MSC_TRY(MSC_ALLOCATED(s->rows && s->choices));
    return s->n > 0 ? MSC_OK
                    : MSC_FAIL(MSC_E_NOT_FOUND, "%s: no step has more than one variant on %s",
                               v->model, s->model->backend->def->name);
}

static void close_network(struct msc_cli_scheduled *s) {
    msc_schedule_bench_close(s->bench);
    msc_graph_destroy(s->pruned);
    msc_dataset_destroy(s->random);
    msc_strategy_destroy(s->strategy);
    msc_model_close(s->model);
}

// ---- What is done -----------------------------------------------------------------------------

static const struct msc_variants *variants_of(const struct msc_cli_scheduled *s, size_t i) {
    return &msc_schedule_bench_class(s->bench, i)->variants;
}

// Keeps `choices` of n classes.
static enum msc_status keep(struct msc_cli_scheduled *s, const uint32_t choices[],
                            const size_t classes[], size_t n, struct msc_arena *arena) {
    struct msc_backend *b = s->model->backend;
    struct msc_kept_choice *list = msc_arena_array(arena, n + 1, sizeof list[0]);
    MSC_TRY(MSC_ALLOCATED(list));
    for (size_t i = 0; i < n; i++) {
        const struct msc_variants *v = variants_of(s, classes[i]);
        list[i].work = v->work;
        memcpy(list[i].variant, v->names[choices[classes[i]]], sizeof list[i].variant);
    }
    return b->def->keep(b, list, n);
}

// Measures the point whole. What wins is kept: the point, or else the choices by rule.
static enum msc_status check_and_keep(struct msc_cli_scheduled *s, int64_t n_rounds,
                                      struct msc_arena *arena) {
    size_t *classes = msc_arena_array(arena, s->n + 1, sizeof classes[0]);
    uint32_t *kept = msc_arena_array(arena, s->n + 1, sizeof kept[0]);
    MSC_TRY(MSC_ALLOCATED(classes && kept));
    MSC_TRY(msc_schedule_bench_whole(&s->whole, &s->spread, s->bench, s->choices, n_rounds));
    s->wins = s->whole.us < (1.0 - s->spread) * s->whole.rule_us;
    msc_schedule_bench_by_rule(s->bench, kept);
    for (size_t i = 0; i < s->n; i++) {
        classes[i] = i;
        kept[i] = s->wins ? s->choices[i] : kept[i];
    }
    return keep(s, kept, classes, s->n, arena);
}

static enum msc_status measure_all(struct msc_cli_scheduled *s, int64_t n_rounds,
                                   struct msc_arena *arena) {
    MSC_TRY(msc_schedule_rows(s->rows, s->bench, MSC_SCHEDULE_ALL, n_rounds));
    for (size_t i = 0; i < s->n; i++) {
        s->choices[i] = (uint32_t)s->rows[i].best;
    }
    return check_and_keep(s, n_rounds, arena);
}

static enum msc_status find_variant(uint32_t *out, const struct msc_variants *v, const char *name) {
    for (int i = 0; i < v->n; i++) {
        if (strcmp(v->names[i], name) == 0) {
            *out = (uint32_t)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID, "schedule: there is no variant \"%s\"; --show lists them", name);
}

// Sets the class of the joint and the choice of "JOINT=VARIANT". Joints before it in the list, of
// the classes [n], must not have set another variant.
static enum msc_status set_one(struct msc_cli_scheduled *s, size_t classes[], size_t n,
                               const char *item, struct msc_arena *arena) {
    // A joint's name may contain '=', a variant's does not.
    const char *at = strrchr(item, '=');
    char *joint = at ? msc_arena_strdup(arena, item) : NULL;
    uint32_t choice = 0;
    if (!at) {
        return MSC_FAIL(MSC_E_INVALID, "schedule: --set \"%s\": expected JOINT=VARIANT", item);
    }
    MSC_TRY(MSC_ALLOCATED(joint));
    joint[at - item] = '\0';
    MSC_TRY(msc_schedule_bench_find(&classes[n], s->bench, joint));
    MSC_TRY(find_variant(&choice, variants_of(s, classes[n]), at + 1));
    for (size_t i = 0; i < n; i++) {
        if (classes[i] == classes[n] && s->choices[classes[n]] != choice) {
            return MSC_FAIL(MSC_E_INVALID,
                            "schedule: --set \"%s\": another --set gives a step of equal work "
                            "another variant; equal steps share one",
                            item);
        }
    }
    s->choices[classes[n]] = choice;
    return MSC_OK;
}

static enum msc_status set_all(struct msc_cli_scheduled *s, const struct msc_cli_list *list,
                               int64_t n_rounds, struct msc_arena *arena) {
    size_t *classes = msc_arena_array(arena, list->n + 1, sizeof classes[0]);
    cJSON *json = cJSON_CreateArray();
    enum msc_status status = MSC_ALLOCATED(classes && json);
    for (size_t i = 0; status == MSC_OK && i < list->n; i++) {
        status = set_one(s, classes, i, list->items[i], arena);
    }
    for (size_t i = 0; status == MSC_OK && i < list->n; i++) {
        MSC_TRY_OUT(msc_schedule_rows(s->rows, s->bench, classes[i], n_rounds));
        status = s->is_json ? msc_cli_add_scheduled_class(json, s, classes[i])
                            : msc_cli_print_scheduled_class(s, classes[i]);
    }
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(s->is_json ? msc_cli_print_json(json) : MSC_OK);
    status = keep(s, s->choices, classes, list->n, arena);
out:
    cJSON_Delete(json);
    return status;
}

static enum msc_status show(struct msc_cli_scheduled *s, const char *joint, int64_t n_rounds) {
    size_t i;
    MSC_TRY(msc_schedule_bench_find(&i, s->bench, joint));
    MSC_TRY(msc_schedule_rows(s->rows, s->bench, i, n_rounds));
    msc_schedule_bench_kept(s->bench, s->choices);
    return msc_cli_print_scheduled_class(s, i);
}

static enum msc_status schedule(struct msc_cli_scheduled *s, const struct schedule_values *v,
                                const struct msc_cli_call *call) {
    int64_t n_rounds = v->rounds < 0 ? DEFAULT_ROUNDS : v->rounds;
    int n_ways = (v->show != NULL) + (v->set.n > 0) + (v->record != NULL);
    if (n_ways > 1) {
        return MSC_FAIL(MSC_E_INVALID, "schedule: use only one of --show, --set and --record");
    }
    if (n_rounds < 1 || n_rounds > 10000 || v->batch == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "schedule: --rounds must be 1 to 10000, and --batch at least 1");
    }
    MSC_TRY(open_network(s, call, v));
    s->is_json = v->common.json;
    if (!v->show && !s->model->backend->options.cache_folder) {
        return MSC_FAIL(MSC_E_DEVICE, "no folder for the results: set XDG_CACHE_HOME or HOME");
    }
    msc_schedule_bench_kept(s->bench, s->choices);
    if (v->show) {
        return show(s, v->show, n_rounds);
    }
    if (v->set.n > 0) {
        return set_all(s, &v->set, n_rounds, call->arena);
    }
    if (v->record) {
        MSC_TRY(msc_cli_read_scheduled(s, v->record));
        MSC_TRY(msc_schedule_rows(s->rows, s->bench, MSC_SCHEDULE_ALL, n_rounds));
        MSC_TRY(check_and_keep(s, n_rounds, call->arena));
    } else {
        MSC_TRY(measure_all(s, n_rounds, call->arena));
    }
    return msc_cli_print_scheduled(s);
}

static int cmd_schedule(const struct msc_cli_call *call, void *payload) {
    struct msc_cli_scheduled s = {.n = 0};
    enum msc_status status = schedule(&s, payload, call);
    close_network(&s);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_schedule = {
    .name = "schedule",
    .summary = "finds how a device computes each step of a model fastest, for later runs",
    .usage = "MODEL [options]",
    .description =
        "Measures every variant of every step: the ways to compute it that give the same bits on "
        "the device. Then measures the whole network under the fastest, in turn with the choices "
        "by rule. What wins is kept for this device: later runs and searches use it for equal and "
        "similar steps of any model. docs/schedule.md says more.",
    .examples = "  mscgym schedule net.onnx --device cpu\n"
                "  mscgym schedule net.onnx --show conv1\n"
                "  mscgym schedule net.onnx --set conv1=library\n"
                "  mscgym schedule net.onnx --record msc_workspace/gym_0.jsonl\n",
    .options = options,
    .values_size = sizeof(struct schedule_values),
    .run = cmd_schedule,
};
