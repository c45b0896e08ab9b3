// Runs a case's network on a backend and compares its outputs, as declared in run.h.
#include "tests/conformance/run.h"

#include "base/alloc.h"
#include "graph/onnx/load.h"
#include "graph/onnx/onnx.h"
#include "kernels/engine/evaluator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The relative tolerance of ONNX's own backend test.
static const double rtol = 1e-3;

// ---- Running ----------------------------------------------------------------------------------

struct capture {
    struct msc_array **outputs;
    size_t n;
};

static enum msc_status take(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    struct capture *c = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < c->n; i++) {
        MSC_TRY(msc_array_create_from(&c->outputs[i], values[i].dtype, values[i].n_dims,
                                      values[i].dims, values[i].data));
    }
    return MSC_OK;
}

// A dataset of one batch with the inputs unchanged.
static enum msc_status make_dataset(struct msc_dataset **out, const struct msc_graph *g,
                                    struct msc_array *const inputs[]) {
    struct msc_input_spec specs[CONFORMANCE_MAX_TENSORS];
    int32_t n = msc_graph_n_inputs(g);
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        specs[i] =
            (struct msc_input_spec){.name = t->alias, .dtype = t->dtype, .n_dims = t->n_dims};
        memcpy(specs[i].dims, t->dims, sizeof t->dims);
    }
    return msc_dataset_create_whole(out, specs, (const struct msc_array *const *)inputs, (size_t)n);
}

static bool has_remainder(const struct msc_plan *plan) {
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        if (plan->in_remainder[i]) {
            return true;
        }
    }
    return false;
}

// Adds each operator that another device computes to `elsewhere`, once.
static void note_elsewhere(struct conformance_result *out, const struct msc_plan *plan) {
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *s = &plan->steps[i];
        const char *device = msc_backend_place(plan->backend, s).device;
        if (s->kind != MSC_STEP_RUN || strcmp(device, plan->backend->def->name) == 0) {
            continue;
        }
        const char *op = msc_op_info(s->joints[0].joint->op)->onnx;
        size_t n = strlen(out->elsewhere);
        if (strstr(out->elsewhere, op) == NULL) {
            snprintf(out->elsewhere + n, sizeof out->elsewhere - n, "%s%s", n > 0 ? ", " : "", op);
        }
    }
}

static enum msc_status evaluate(struct conformance_result *out, const struct msc_graph *g,
                                const struct msc_dataset *data, const int32_t wanted[],
                                struct capture *capture, struct msc_backend *backend) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev = NULL;
    const struct msc_edit **edits = NULL;
    enum msc_status status = MSC_OK;
    o.backend = backend;
    MSC_TRY_OUT(msc_evaluator_create(&ev, g, data, wanted, capture->n, &o));
    note_elsewhere(out, msc_evaluator_plan(ev, 0));
    edits = msc_alloc_zero((size_t)msc_evaluator_sites(ev)->n_slots + 1, sizeof edits[0]);
    if (edits == NULL) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        goto out;
    }
    const struct msc_sink sink = {.batch = take, .payload = capture};
    struct msc_eval_trial trial = {.edits = edits};
    MSC_TRY_OUT(msc_evaluator_run(ev, &trial, 1, &sink, MSC_EVAL_FRESH));
    if (trial.status != MSC_OK) {
        status = msc_status_restore(trial.status, trial.message);
    }
    out->is_stepwise = out->is_stepwise || has_remainder(msc_evaluator_plan(ev, 0));
out:
    msc_free(edits);
    msc_evaluator_destroy(ev);
    return status;
}

static enum msc_status run(struct conformance_result *out, struct msc_array *outputs[],
                           const struct msc_graph *g, struct msc_array *const inputs[],
                           struct msc_backend *backend) {
    int32_t wanted[CONFORMANCE_MAX_TENSORS];
    struct msc_dataset *data = NULL;
    struct capture capture = {.outputs = outputs, .n = (size_t)msc_graph_n_outputs(g)};
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        wanted[i] = msc_graph_output(g, i);
    }
    MSC_TRY(make_dataset(&data, g, inputs));
    enum msc_status status = evaluate(out, g, data, wanted, &capture, backend);
    msc_dataset_destroy(data);
    return status;
}

// ---- Comparing --------------------------------------------------------------------------------

static bool is_close(double found, double expected, enum msc_dtype dtype, double atol) {
    // Two units in the last place of the narrow types, as in ONNX's own runner for bfloat16: the
    // data round each operator of a formula to the type.
    double relative = dtype == MSC_DTYPE_BF16  ? 1.0 / 64
                      : dtype == MSC_DTYPE_F16 ? 1.0 / 512
                                               : rtol;
    if (isnan(found) || isnan(expected)) {
        return isnan(found) && isnan(expected);
    }
    if (isinf(found) || isinf(expected)) {
        return found == expected;
    }
    return fabs(found - expected) <= atol + relative * fabs(expected);
}

static bool same_shape(const struct msc_array *a, const struct msc_array *b) {
    return msc_array_dtype(a) == msc_array_dtype(b) && msc_array_n_dims(a) == msc_array_n_dims(b) &&
           memcmp(msc_array_dims(a), msc_array_dims(b),
                  (size_t)msc_array_n_dims(a) * sizeof(int64_t)) == 0;
}

static enum msc_status compare(const struct msc_array *found, const struct msc_array *expected,
                               int output, bool has_any_values, double atol) {
    if (!same_shape(found, expected)) {
        char a[MSC_DIMS_TEXT_BYTES], b[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_STATE, "output %d is %s%s, expected %s%s", output,
                        msc_dtype_name(msc_array_dtype(found)),
                        msc_dims_format(a, msc_array_n_dims(found), msc_array_dims(found)),
                        msc_dtype_name(msc_array_dtype(expected)),
                        msc_dims_format(b, msc_array_n_dims(expected), msc_array_dims(expected)));
    }
    bool is_real = msc_dtype_is_float(msc_array_dtype(expected));
    for (int64_t i = 0; !has_any_values && i < msc_array_n_elements(expected); i++) {
        double a = msc_array_get_double(found, i), b = msc_array_get_double(expected, i);
        bool is_same = is_real ? is_close(a, b, msc_array_dtype(expected), atol)
                               : msc_array_get_i64(found, i) == msc_array_get_i64(expected, i);
        if (!is_same) {
            return MSC_FAIL(MSC_E_STATE, "output %d, element %lld is %.9g, expected %.9g", output,
                            (long long)i, a, b);
        }
    }
    return MSC_OK;
}

// Turns uint16 elements into bfloat16: some of the data store bfloat16 in this way.
static enum msc_status adapt_bits(struct msc_array **array, enum msc_dtype dtype) {
    struct msc_array *bits;
    if (dtype != MSC_DTYPE_BF16 || msc_array_dtype(*array) != MSC_DTYPE_U16) {
        return MSC_OK;
    }
    MSC_TRY(msc_array_create_from(&bits, dtype, msc_array_n_dims(*array), msc_array_dims(*array),
                                  msc_array_data(*array)));
    msc_array_release(*array);
    *array = bits;
    return MSC_OK;
}

// Some arrays in the data have another number of dimensions than the model declares. Such arrays
// get the declared shape. If the number of elements differs as well, their elements are not used.
static enum msc_status adapt_inputs(struct conformance_set *set, const struct msc_graph *g) {
    for (int i = 0; i < set->n_inputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        struct msc_array *array;
        MSC_TRY(adapt_bits(&set->inputs[i], t->dtype));
        bool fits = msc_array_n_elements(set->inputs[i]) == msc_tensor_n_elements(t);
        if (msc_array_n_dims(set->inputs[i]) == t->n_dims || msc_tensor_n_elements(t) < 0 ||
            msc_array_dtype(set->inputs[i]) != t->dtype) {
            continue;
        }
        MSC_TRY(msc_array_create_from(&array, t->dtype, t->n_dims, t->dims,
                                      fits ? msc_array_data(set->inputs[i]) : NULL));
        msc_array_release(set->inputs[i]);
        set->inputs[i] = array;
    }
    return MSC_OK;
}

static enum msc_status run_set(struct conformance_result *out, struct conformance_set *set,
                               const struct conformance_case *c, const struct msc_graph *g,
                               struct msc_backend *backend, double atol) {
    struct msc_array *outputs[CONFORMANCE_MAX_TENSORS] = {NULL};
    enum msc_status status = MSC_OK;
    if (msc_graph_n_inputs(g) != set->n_inputs || msc_graph_n_outputs(g) != set->n_outputs) {
        return MSC_FAIL(
            MSC_E_STATE, "the model has %d inputs and %d outputs, the case has %d and %d",
            (int)msc_graph_n_inputs(g), (int)msc_graph_n_outputs(g), set->n_inputs, set->n_outputs);
    }
    MSC_TRY_OUT(adapt_inputs(set, g));
    MSC_TRY_OUT(run(out, outputs, g, set->inputs, backend));
    for (int i = 0; i < set->n_outputs; i++) {
        MSC_TRY_OUT(adapt_bits(&set->outputs[i], msc_array_dtype(outputs[i])));
        MSC_TRY_OUT(compare(outputs[i], set->outputs[i], i, c->has_any_values, atol));
    }
out:
    for (int i = 0; i < set->n_outputs; i++) {
        msc_array_release(outputs[i]);
    }
    return status;
}

// Writes the graph as ONNX, or in the form that the path names, and reads it.
static enum msc_status write_and_read(struct msc_graph **out, const struct msc_graph *g,
                                      const struct conformance_options *o) {
    const struct msc_onnx_export_options options = {.sites = NULL};
    const struct msc_onnx_import_options import = {.by_text = o->by_text};
    if (msc_graph_can_save(o->rewritten)) {
        MSC_TRY(msc_graph_save(g, o->rewritten));
        return msc_graph_load(out, o->rewritten);
    }
    MSC_TRY(msc_onnx_save(g, o->rewritten, &options));
    return msc_onnx_load(out, o->rewritten, &import);
}

static enum msc_status rewrite(struct msc_graph **g, const struct conformance_options *o) {
    struct msc_graph *again = NULL;
    enum msc_status status = write_and_read(&again, *g, o);
    remove(o->rewritten);
    MSC_TRY(status);
    msc_graph_destroy(*g);
    *g = again;
    return MSC_OK;
}

static bool is_initializer(const Onnx__GraphProto *g, const char *name) {
    for (size_t i = 0; i < g->n_initializer; i++) {
        if (strcmp(g->initializer[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Loads the model like `mscgym run`: the inputs are known when the model is imported.
static enum msc_status load_for(struct msc_graph **out, const char *path,
                                const struct msc_array_list *feeds, bool by_text) {
    struct msc_onnx_import_options options = {.by_text = by_text};
    if (!by_text) {
        return msc_graph_load_for(out, path, feeds, NULL);
    }
    if (msc_onnx_load(out, path, &options) == MSC_OK) {
        return MSC_OK;
    }
    options.feeds = feeds;
    return msc_onnx_load(out, path, &options);
}

static enum msc_status load(struct msc_graph **out, const struct conformance_case *c,
                            bool by_text) {
    const Onnx__GraphProto *g = c->model->graph;
    const struct conformance_set *set = &c->sets[0];
    struct msc_array_list feeds = {0};
    enum msc_status status = MSC_OK;
    int n = 0;
    for (size_t i = 0; status == MSC_OK && i < g->n_input && n < set->n_inputs; i++) {
        if (!is_initializer(g, g->input[i]->name)) {
            status = msc_array_list_add(&feeds, g->input[i]->name, set->inputs[n++]);
        }
    }
    if (status == MSC_OK) {
        status = load_for(out, c->model_path, &feeds, by_text);
    }
    msc_array_list_finish(&feeds);
    return status;
}

void conformance_run(struct conformance_result *out, struct conformance_case *c,
                     struct msc_backend *backend, const struct conformance_options *options) {
    struct msc_graph *g = NULL;
    *out = (struct conformance_result){.is_passed = false};
    enum msc_status status = load(&g, c, options->by_text);
    if (status == MSC_OK && options->rewritten != NULL) {
        status = rewrite(&g, options);
    }
    for (int s = 0; status == MSC_OK && s < c->n_sets; s++) {
        status = run_set(out, &c->sets[s], c, g, backend, options->atol);
    }
    out->is_passed = status == MSC_OK;
    if (status != MSC_OK) {
        const char *text = msc_status_message();
        size_t n = strlen(c->model_path);
        text += strncmp(text, c->model_path, n) == 0 ? n + 2 : 0;
        snprintf(out->reason, sizeof out->reason, "%s", text);
    }
    msc_graph_destroy(g);
}
