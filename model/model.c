#include "model/model_internal.h"

#include "base/machine.h"
#include "graph/external.h"
#include "graph/target.h"
#include "graph/onnx/load.h"
#include "graph/operators_internal.h"
#include "graph/passes/bind.h"
#include "graph/passes/constant.h"
#include "graph/rules/rules.h"
#include "graph/wide.h"
#include "kernels/engine/backends.h"
#include "model/operators.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// The default batch is the largest power of two, up to MAX_BATCH, whose largest activation fits in
// BATCH_BYTES, so that a batch stays in the caches of one core.
#define BATCH_BYTES (8 << 20)
#define MAX_BATCH 64
// With so many rows of a sample, a linear layer hardly gains from a batch.
#define MANY_ROWS 16
#define LEAST_MEMORY_BYTES ((uint64_t)256 << 20)
#define MOST_MEMORY_BYTES ((uint64_t)4 << 30) // by default

static const struct msc_tensor *input_tensor_of(const struct msc_graph *g, size_t i) {
    return msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
}

static const struct msc_tensor *input_tensor(const struct msc_model *m, size_t i) {
    return input_tensor_of(m->graph, i);
}

static enum msc_status make_specs(struct msc_model *m) {
    const struct msc_graph *g = m->graph;
    m->n_inputs = (size_t)msc_graph_n_inputs(g);
    m->specs = msc_arena_array(&m->arena, m->n_inputs + 1, sizeof m->specs[0]);
    MSC_TRY(MSC_ALLOCATED(m->specs));
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_tensor *t = input_tensor(m, i);
        struct msc_input_spec *spec = &m->specs[i];
        spec->name = msc_model__input_name(g, t);
        spec->dtype = t->dtype;
        spec->rounded = msc_graph_is_widened(g, msc_graph_input(g, (int32_t)i))
                            ? input_tensor_of(msc_graph_own(g), i)->dtype
                            : MSC_DTYPE_NONE;
        spec->n_dims = t->n_dims;
        memcpy(spec->dims, t->dims, sizeof spec->dims);
    }
    msc_model__find_symbol_axes(m);
    return MSC_OK;
}

// Gives a symbol's value to every input dimension that has this symbol. A bound dimension does not
// count samples.
static bool bind_symbol(struct msc_model *m, int32_t prim, int64_t value) {
    bool is_used = false;
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_tensor *t = input_tensor(m, i);
        for (int k = 0; k < t->n_dims; k++) {
            if (t->dims[k] < 0 && t->prims[k] == prim) {
                m->specs[i].dims[k] = value;
                m->specs[i].is_batched = m->specs[i].is_batched && k != m->specs[i].axis;
                is_used = true;
            }
        }
    }
    return is_used;
}

// Do all inputs count samples? `first`: only along their first axes.
static bool are_batched(const struct msc_model *m, bool first) {
    bool are = m->n_inputs > 0;
    for (size_t i = 0; i < m->n_inputs; i++) {
        are = are && m->specs[i].is_batched && (!first || m->specs[i].axis == 0);
    }
    return are;
}

static enum msc_status bind_all(struct msc_model *m, const struct msc_model_options *o) {
    int32_t samples = msc_graph_sample_symbol(m->graph);
    // If samples are not first in a state, the symbol may be bound to run them one by one.
    bool is_first = are_batched(m, true);
    for (size_t i = 0; i < o->n_bindings; i++) {
        int32_t prim = msc_graph_find_prim(m->graph, o->bindings[i].symbol);
        if (prim != MSC_NO_ID && prim == samples && is_first) {
            return MSC_FAIL(
                MSC_E_INVALID,
                "%s: bind: \"%s\" counts samples and cannot be bound; to run several together, "
                "set dataset.batch in a configuration, or use --batch where a command has it",
                m->path, o->bindings[i].symbol);
        }
        if (prim == MSC_NO_ID || !bind_symbol(m, prim, o->bindings[i].value)) {
            return msc_graph_fail_binding(m->graph, m->path, o->bindings[i].symbol);
        }
        if (o->bindings[i].value < 1) {
            return MSC_FAIL(MSC_E_INVALID, "%s: bind: \"%s\" is a length: expected 1 or more",
                            m->path, o->bindings[i].symbol);
        }
    }
    return MSC_OK;
}

// The length that the arrays give a symbol, from the first axis that has it.
static int64_t model_length_of(const struct msc_model *m, const struct msc_array *const arrays[],
                               int32_t prim) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        const struct msc_tensor *t = input_tensor(m, i);
        for (int k = 0; k < t->n_dims; k++) {
            if (t->dims[k] < 0 && t->prims[k] == prim) {
                return msc_array_dim(arrays[i], k);
            }
        }
    }
    return -1;
}

static bool fits_input(const struct msc_model *m, const struct msc_array *const arrays[],
                       size_t i) {
    const struct msc_tensor *t = input_tensor(m, i);
    for (int k = 0; k < t->n_dims; k++) {
        int64_t expected = t->dims[k] < 0 ? model_length_of(m, arrays, t->prims[k]) : t->dims[k];
        if (msc_array_dim(arrays[i], k) != expected) {
            return false;
        }
    }
    return true;
}

void msc_model_take_whole(struct msc_model *m, const struct msc_array *const arrays[]) {
    bool fits = !m->is_batched;
    for (size_t i = 0; fits && i < m->n_inputs; i++) {
        fits = msc_array_n_dims(arrays[i]) == m->specs[i].n_dims;
    }
    for (size_t i = 0; fits && i < m->n_inputs; i++) {
        fits = fits_input(m, arrays, i);
    }
    for (size_t i = 0; fits && i < m->n_inputs; i++) {
        memcpy(m->specs[i].dims, msc_array_dims(arrays[i]),
               (size_t)m->specs[i].n_dims * sizeof m->specs[i].dims[0]);
        m->specs[i].is_batched = false;
    }
}

static enum msc_status open_backend(struct msc_model *m, const struct msc_model_options *o) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    int n = o->n_threads > 0 ? o->n_threads : msc_machine_n_threads();
    m->n_threads = o->is_single ? 1 : n;
    options.n_threads = m->n_threads;
    options.kernel_threads = o->is_single ? n : 1;
    options.log = o->log;
    options.cache_folder = msc_machine_cache_folder(&m->arena);
    return msc_backend_open(&m->backend, o->device, &options);
}

static enum msc_status keep_bindings(struct msc_model *m, const struct msc_model_options *o) {
    m->bindings = msc_arena_array(&m->arena, o->n_bindings + 1, sizeof m->bindings[0]);
    for (; m->bindings && m->n_bindings < o->n_bindings; m->n_bindings++) {
        const struct msc_binding *from = &o->bindings[m->n_bindings];
        struct msc_binding *to = &m->bindings[m->n_bindings];
        *to = (struct msc_binding){msc_arena_strdup(&m->arena, from->symbol), from->value};
        MSC_TRY(MSC_ALLOCATED(to->symbol));
    }
    return MSC_ALLOCATED(m->bindings);
}

static enum msc_status keep_rules(struct msc_model *m, const struct msc_model_options *o) {
    m->rules = msc_arena_array(&m->arena, o->n_rules + 1, sizeof m->rules[0]);
    for (; m->rules && m->n_rules < o->n_rules; m->n_rules++) {
        m->rules[m->n_rules] = msc_arena_strdup(&m->arena, o->rules[m->n_rules]);
        MSC_TRY(MSC_ALLOCATED(m->rules[m->n_rules]));
    }
    return MSC_ALLOCATED(m->rules);
}

// `path` begins error messages. If `is_bound`, the bindings have been applied to the graph.
static enum msc_status open_loaded(struct msc_model **out, const struct msc_graph *loaded,
                                   const char *path, const struct msc_model_options *options,
                                   struct msc_operators *operators, bool is_bound) {
    struct msc_model *m = msc_alloc_zero(1, sizeof *m);
    struct msc_graph *split = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(m));
    m->log = options->log;
    m->cancel = options->cancel;
    m->memory_bytes = options->memory_bytes;
    m->operators = msc_operators_retain(operators);
    m->path = msc_arena_strdup(&m->arena, path);
    if (!m->path) {
        m->path = "the model";
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        goto out;
    }
    status = msc_graph_require_computed(loaded);
    if (status != MSC_OK) {
        status = msc_status_prefix(status, "%s", path);
        goto out;
    }
    MSC_TRY_OUT(keep_bindings(m, options));
    MSC_TRY_OUT(keep_rules(m, options));
    MSC_TRY_OUT(msc_graph_split(&split, loaded));
    MSC_TRY_OUT(msc_model__set_graph(m, split, options->keeps_types));
    MSC_TRY_OUT(msc_graph_tell_unfolded(m->graph, path, m->log));
    MSC_TRY_OUT(make_specs(m));
    if (!is_bound) {
        MSC_TRY_OUT(bind_all(m, options));
    }
    msc_model__find_equal_axes(m);
    m->is_batched = are_batched(m, false);
    MSC_TRY_OUT(open_backend(m, options));
    msc_log(m->log, MSC_LOG_DEBUG, "%s: %d joints, numerics %s", path,
            (int)msc_graph_n_joints(m->graph), msc_model_numerics(m));
    *out = m;
    m = NULL;
out:
    msc_graph_destroy(split);
    msc_model_close(m);
    return status;
}

enum msc_status msc_model_open_graph(struct msc_model **out, const struct msc_graph *graph,
                                     const char *name, const struct msc_model_options *options) {
    return open_loaded(out, graph, name, options, options->operators, false);
}

static enum msc_status load_file(struct msc_graph **out, bool *is_bound, const char *path,
                                 const struct msc_model_options *o,
                                 struct msc_operators *operators) {
    return o->feeds && o->n_bindings == 0 && !o->weights
               ? msc_graph_load_for(out, path, o->feeds, operators)
               : msc_graph_load_weights(out, is_bound, path, o->bindings, o->n_bindings, o->weights,
                                        operators);
}

enum msc_status msc_model_open(struct msc_model **out, const char *path,
                               const struct msc_model_options *options) {
    struct msc_graph *loaded = NULL;
    struct msc_operators *operators = msc_operators_retain(options->operators);
    enum msc_status status = MSC_OK;
    bool is_bound = false;
    if (!operators) {
        MSC_TRY_OUT(msc_operators_open(&operators, options->plugins, options->n_plugins));
    }
    MSC_TRY_OUT(load_file(&loaded, &is_bound, path, options, operators));
    MSC_TRY_OUT(msc_rules_apply_files(loaded, options->rules, options->n_rules));
    MSC_TRY_OUT(open_loaded(out, loaded, path, options, operators, is_bound));
out:
    msc_graph_destroy(loaded);
    msc_operators_release(operators);
    return status;
}

void msc_model_close(struct msc_model *m) {
    if (!m) {
        return;
    }
    msc_dataset_destroy(m->validation);
    msc_dataset_destroy(m->dataset);
    msc_backend_close(m->backend);
    msc_graph_destroy(m->graph);
    msc_operators_release(m->operators);
    msc_arena_finish(&m->arena);
    msc_free(m);
}

const char *msc_model_numerics(const struct msc_model *model) {
    return model->backend->def->numerics(model->backend);
}

// What a single sample takes. Both are 0 if a shape is not known.
struct of_sample {
    double n_bytes; // of the largest activation
    int64_t n_rows; // that a linear layer multiplies, at most
};

// The rows that a joint multiplies if its activation can be quantised dynamically, or 0.
static int64_t rows_of(const struct msc_graph *g, const struct msc_joint *j) {
    if (!msc_target_takes_dynamic(NULL, j->op)) {
        return 0;
    }
    const struct msc_tensor *t = msc_graph_tensor(g, j->operands[0]);
    int64_t length = t->n_dims > 0 ? t->dims[t->n_dims - 1] : 0;
    return length > 0 ? msc_tensor_n_elements(t) / length : 0;
}

static enum msc_status measure_sample(struct of_sample *out, const struct msc_model *m) {
    struct msc_input_shape shapes[64];
    struct msc_graph *bound = NULL;
    *out = (struct of_sample){0};
    if (m->n_inputs > sizeof shapes / sizeof shapes[0]) {
        return MSC_OK;
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        shapes[i].n_dims = m->specs[i].n_dims;
        for (int k = 0; k < m->specs[i].n_dims; k++) {
            bool is_samples = m->specs[i].is_batched && k == m->specs[i].axis;
            shapes[i].dims[k] = is_samples ? 1 : m->specs[i].dims[k];
            if (shapes[i].dims[k] < 0) {
                return MSC_OK;
            }
        }
    }
    enum msc_status status = msc_graph_bind_shapes(&bound, m->graph, shapes, m->n_inputs);
    if (status == MSC_E_UNSUPPORTED) { // lengths depend on values of inputs
        return MSC_OK;
    }
    MSC_TRY(status);
    for (int32_t i = 0; i < msc_graph_n_tensors(bound); i++) {
        const struct msc_tensor *t = msc_graph_tensor(bound, i);
        int64_t n = t->producer == MSC_NO_ID ? 0 : msc_tensor_n_elements(t);
        out->n_bytes = fmax(out->n_bytes, (double)n * (double)msc_dtype_bytes(t->dtype));
    }
    for (int32_t i = 0; i < msc_graph_n_joints(bound); i++) {
        int64_t n = rows_of(bound, msc_graph_joint(bound, i));
        out->n_rows = n > out->n_rows ? n : out->n_rows;
    }
    msc_graph_destroy(bound);
    return MSC_OK;
}

static struct msc_input_spec *model_find_spec(struct msc_model *m, const char *name) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (strcmp(m->specs[i].name, name) == 0) {
            return &m->specs[i];
        }
    }
    return NULL;
}

enum msc_status msc_model_set_states(struct msc_model *m, const struct msc_config_state states[],
                                     size_t n) {
    // In a sequence, only samples along the first axis are chunks without a further axis.
    for (size_t i = 0; n > 0 && i < m->n_inputs; i++) {
        m->specs[i].is_batched = m->specs[i].is_batched && m->specs[i].axis == 0;
    }
    for (size_t i = 0; i < n; i++) {
        struct msc_input_spec *spec = model_find_spec(m, states[i].input);
        if (!spec) {
            return MSC_FAIL(MSC_E_INVALID, "%s: dataset.state: there is no input \"%s\"", m->path,
                            states[i].input);
        }
        if (msc_graph_find_tensor(m->graph, states[i].output) == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: dataset.state: there is no output \"%s\" to feed %s; `mscgym "
                            "graph MODEL` lists the tensors",
                            m->path, states[i].output, states[i].input);
        }
        spec->state = states[i].output;
        spec->is_batched = false;
        m->has_state = true;
    }
    return MSC_OK;
}

static enum msc_status resolve_batch(int64_t *batch, const struct msc_model *m, bool is_dynamic) {
    struct of_sample one;
    if (m->has_state) {
        return MSC_OK; // here the batch size is the length of a sequence
    }
    if (*batch > 0 && m->is_batched) {
        return MSC_OK;
    }
    if (*batch > 1 && !m->is_batched) {
        msc_log(m->log, MSC_LOG_WARNING,
                "%s: the inputs have a fixed number of samples, so samples run one by one; "
                "dataset.batch is ignored",
                m->path);
    }
    *batch = 1;
    if (!m->is_batched) {
        return MSC_OK;
    }
    MSC_TRY(measure_sample(&one, m));
    if (is_dynamic && one.n_rows >= MANY_ROWS) {
        return MSC_OK;
    }
    while (one.n_bytes > 0 && *batch < MAX_BATCH &&
           (double)(2 * *batch) * one.n_bytes <= BATCH_BYTES) {
        *batch *= 2;
    }
    return MSC_OK;
}

static void tell_inputs(const struct msc_model *m) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        double min = 0, max = 0;
        char dims[MSC_DIMS_TEXT_BYTES];
        const struct msc_array *batch = msc_dataset_batch(m->dataset, 0, i);
        msc_dataset_range(&min, &max, m->dataset, i);
        msc_log(m->log, MSC_LOG_INFO,
                "input %s: %" PRId64 " samples in batches of %s %s, values %g to %g",
                m->specs[i].name, msc_dataset_n_samples(m->dataset),
                msc_dims_format(dims, msc_array_n_dims(batch), msc_array_dims(batch)),
                msc_dtype_name(msc_array_dtype(batch)), min, max);
    }
}

static void tell_missing(const struct msc_model *m, const struct msc_config_dataset *from) {
    const struct msc_dataset_options *o = &from->options;
    int64_t n = msc_dataset_n_samples(m->dataset);
    if (o->samples > n) {
        msc_log(m->log, MSC_LOG_WARNING,
                "%s: dataset.samples is %" PRId64 ", but there are only %" PRId64 " samples%s",
                o->inputs, o->samples, n,
                o->skip_last > 0 ? " in addition to those for validation" : "");
    }
}

// If no length is given, all calibration samples form one sequence.
static enum msc_status resolve_sequence(const struct msc_model *m, struct msc_dataset_options *o) {
    int64_t n = 0;
    if (!m->has_state || o->batch > 0) {
        return MSC_OK;
    }
    MSC_TRY(msc_dataset_count(&n, o, m->specs, m->n_inputs));
    n -= o->skip_last;
    o->batch = o->samples > 0 && o->samples < n ? o->samples : n;
    return MSC_OK;
}

static enum msc_status load_validation(struct msc_model *m, const struct msc_config_dataset *from,
                                       struct msc_dataset_options *calibration) {
    struct msc_dataset_options o = *calibration;
    int64_t n = 0;
    o.samples = 0;
    if (from->validation_fraction > 0) {
        MSC_TRY(msc_dataset_count(&n, &o, m->specs, m->n_inputs));
        o.take_last = (int64_t)floor(from->validation_fraction * (double)n);
        if (m->has_state && o.batch > 0) { // the validation set gets only whole sequences
            o.take_last -= o.take_last % o.batch;
        }
        if (o.take_last < 1) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: a validation fraction of %g yields no %s from %" PRId64
                            " samples: at least %.0f are needed",
                            o.inputs, from->validation_fraction,
                            m->has_state ? "sequence" : "sample", n,
                            ceil(1 / from->validation_fraction) *
                                (m->has_state && o.batch > 0 ? (double)o.batch : 1));
        }
        calibration->skip_last = o.take_last;
        MSC_TRY(resolve_sequence(m, calibration));
        o.batch = calibration->batch;
    } else if (from->validation_inputs) {
        MSC_TRY(resolve_sequence(m, calibration));
        o.batch = calibration->batch;
        o.inputs = from->validation_inputs;
        o.labels = from->validation_labels;
    } else {
        return MSC_OK;
    }
    return msc_dataset_load(&m->validation, &o, m->specs, m->n_inputs);
}

// Computed tensors are in the device's memory, and everything else is in the machine's. The default
// limit fits both.
void msc_model__settle_memory(struct msc_model *m) {
    uint64_t room = msc_backend_get_memory(m->backend).room_bytes;
    if (m->memory_bytes > room) {
        msc_log(m->log, MSC_LOG_INFO,
                "memory: %.3g GB are allowed, but the device has only %.3g GB",
                (double)m->memory_bytes * 1e-9, (double)room * 1e-9);
    }
    if (m->memory_bytes == 0) {
        uint64_t half = msc_machine_free_bytes() / 2;
        half = room / 2 < half ? room / 2 : half;
        half = half < MOST_MEMORY_BYTES ? half : MOST_MEMORY_BYTES;
        m->memory_bytes = half > LEAST_MEMORY_BYTES ? half : LEAST_MEMORY_BYTES;
    }
}

// Leaves calibration samples out of the validation samples, because the search uses them to find
// scales and plans.
static enum msc_status leave_out_shared(struct msc_model *m, const struct msc_dataset_options *o) {
    struct msc_dataset *apart = NULL;
    if (!m->validation) {
        return MSC_OK;
    }
    int64_t n = msc_dataset_n_samples(m->validation);
    MSC_TRY(msc_dataset_create_apart(&apart, &m->n_shared, m->validation, m->dataset));
    if (m->n_shared == 0) {
        return MSC_OK;
    }
    msc_dataset_destroy(m->validation);
    m->validation = apart;
    if (apart) {
        msc_log(m->log, MSC_LOG_WARNING,
                "%s: %" PRId64 " of %" PRId64 " validation samples are also calibration samples: "
                "they are left out",
                o->inputs, m->n_shared, n);
    } else {
        msc_log(m->log, MSC_LOG_WARNING,
                "%s: all %" PRId64
                " validation samples are also calibration samples: they are left "
                "out, so nothing is validated",
                o->inputs, n);
    }
    return MSC_OK;
}

enum msc_status msc_model_load_dataset(struct msc_model *m, struct msc_config_dataset *from) {
    struct msc_dataset_options *o = &from->options;
    MSC_TRY(msc_model_set_states(m, from->states, from->n_states));
    MSC_TRY(resolve_batch(&o->batch, m, from->is_dynamic));
    MSC_TRY(load_validation(m, from, o));
    MSC_TRY(resolve_sequence(m, o));
    MSC_TRY(msc_dataset_load(&m->dataset, o, m->specs, m->n_inputs));
    MSC_TRY(leave_out_shared(m, o));
    MSC_TRY(msc_model__take_branches(m, m->dataset, m->validation));
    tell_missing(m, from);
    tell_inputs(m);
    msc_model__settle_memory(m);
    return MSC_OK;
}
