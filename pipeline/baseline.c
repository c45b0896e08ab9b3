// The `baseline` stage: does the backend compute what the reference kernels say?
#include "pipeline/agree.h"
#include "pipeline/model.h"

#include "graph/graph.h"
#include "graph/jumps.h"
#include "kernels/reference.h"

#include <inttypes.h>

#define MAX_INPUTS 64

// What the network reads of the first batch.
static enum msc_status take_inputs(struct msc_array *inputs[], const struct msc_dataset *first,
                                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_dataset_chunk(&inputs[i], first, 0, i, 0));
    }
    return MSC_OK;
}

// What is compared: the outputs, or what comes before those that jump.
struct check {
    const struct msc_model *m;
    struct msc_graph *bound; // the network for the first batch
    size_t n;
    int32_t *tensors;         // [n] of `bound`
    const char **names;       // [n]
    bool is_named;            // they are not just the outputs
    struct msc_array **truth; // [n]
};

static void check_finish(struct check *c) {
    for (size_t i = 0; c->truth && i < c->n; i++) {
        msc_array_release(c->truth[i]);
    }
    msc_free(c->truth);
    msc_free(c->tensors);
    msc_free(c->names);
    msc_graph_destroy(c->bound);
}

static void add(struct check *c, int32_t tensor, const char *name) {
    c->tensors[c->n] = tensor;
    c->names[c->n++] = name;
}

static const char *output_name(const struct msc_model *m, int32_t i) {
    const struct msc_tensor *t = msc_graph_tensor(m->graph, msc_graph_output(m->graph, i));
    return t->alias[0] ? t->alias : t->name;
}

// Where two orders of summing may end in other elements, or in more of them.
static bool jumps_at(const struct msc_jumps *jumps, int32_t tensor) {
    return msc_jumps_above(jumps, tensor) != MSC_NO_ID ||
           msc_tensor_n_elements(msc_graph_tensor(jumps->g, tensor)) < 0;
}

static void choose(struct check *c, struct msc_jumps *jumps) {
    int32_t n_outputs = msc_graph_n_outputs(c->bound);
    for (int32_t i = 0; i < n_outputs; i++) {
        int32_t tensor = msc_graph_output(c->bound, i);
        if (jumps_at(jumps, tensor)) {
            msc_jumps_collect(jumps, tensor);
        }
    }
    c->is_named = jumps->n_found > 0;
    for (int32_t i = 0; i < n_outputs; i++) {
        int32_t tensor = msc_graph_output(c->bound, i);
        if (!c->is_named || !jumps_at(jumps, tensor)) {
            add(c, tensor, output_name(c->m, i));
        }
    }
    for (size_t i = 0; i < jumps->n_found; i++) {
        add(c, jumps->found[i], msc_jumps_name(jumps, jumps->found[i]));
    }
}

static enum msc_status check_init(struct check *c, const struct msc_array *const inputs[]) {
    struct msc_jumps *jumps = NULL;
    MSC_TRY(msc_graph_bind_known(&c->bound, NULL, c->m->graph, inputs, c->m->n_inputs));
    size_t room = (size_t)msc_graph_n_outputs(c->bound) + (size_t)msc_graph_n_tensors(c->bound);
    c->tensors = msc_alloc_zero(room, sizeof c->tensors[0]);
    c->names = msc_alloc_zero(room, sizeof c->names[0]);
    c->truth = msc_alloc_zero(room, sizeof c->truth[0]);
    if (!c->tensors || !c->names || !c->truth) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", c->m->path);
    }
    MSC_TRY(msc_jumps_create(&jumps, c->m->graph, c->bound));
    choose(c, jumps);
    msc_jumps_destroy(jumps);
    return MSC_OK;
}

static enum msc_status compare(const struct msc_model *m, const char *name,
                               const struct msc_array *found, const struct msc_array *truth,
                               double atol, double rtol, double *worst) {
    int64_t place;
    if (msc_array_n_elements(found) != msc_array_n_elements(truth)) {
        return MSC_FAIL(MSC_E_STATE,
                        "baseline: output %s has %" PRId64 " elements on the backend and %" PRId64
                        " by the reference kernels",
                        name, msc_array_n_elements(found), msc_array_n_elements(truth));
    }
    if (msc_outputs_agree(&place, worst, found, truth, atol, rtol)) {
        return MSC_OK;
    }
    return MSC_FAIL(MSC_E_STATE,
                    "baseline: output %s[%" PRId64 "] is %.9g on %s and %.9g by the reference "
                    "kernels; baseline.check_config may allow more than atol %g and rtol %g; if "
                    "this network should not need it, please report it, and try another --device",
                    name, place, msc_array_get_double(found, place), msc_model_numerics(m),
                    msc_array_get_double(truth, place), atol, rtol);
}

// Samples of the first batch.
static enum msc_status load_first(struct msc_dataset **out, const struct msc_model *m,
                                  const struct msc_config_dataset *from) {
    struct msc_dataset_options o = from->options;
    o.batch = m->has_state ? 1 : o.batch; // of a sequence the first chunk
    o.samples = o.samples > 0 && o.samples < o.batch ? o.samples : o.batch;
    o.labels = NULL;
    return msc_dataset_load(out, &o, m->specs, m->n_inputs);
}

enum msc_status msc_model_check(struct msc_model *m, const struct msc_config_dataset *from,
                                double atol, double rtol) {
    struct msc_dataset *first = NULL;
    struct msc_array *inputs[MAX_INPUTS] = {NULL};
    struct msc_model_run run = {.inputs = (const struct msc_array *const *)inputs};
    struct check c = {.m = m};
    double worst = 0;
    enum msc_status status = MSC_OK;
    if (m->n_inputs > MAX_INPUTS) {
        return MSC_OK;
    }
    MSC_TRY_OUT(load_first(&first, m, from));
    MSC_TRY_OUT(take_inputs(inputs, first, m->n_inputs));
    MSC_TRY_OUT(check_init(&c, run.inputs));
    MSC_TRY_OUT(msc_reference_run_graph(c.truth, c.bound, run.inputs, c.tensors, c.n));
    run.tensors = c.names;
    run.n_tensors = c.is_named ? c.n : 0;
    MSC_TRY_OUT(msc_model_run(m, &run));
    for (size_t i = 0; i < c.n; i++) {
        MSC_TRY_OUT(compare(m, c.names[i], run.outputs[i], c.truth[i], atol, rtol, &worst));
    }
    msc_log(m->log, MSC_LOG_INFO, "baseline: %s agree with the reference kernels within %.2g",
            c.is_named ? "tensors before outputs that jump" : "outputs", worst);
out:
    msc_model_run_finish(&run);
    check_finish(&c);
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        msc_array_release(inputs[i]);
    }
    msc_dataset_destroy(first);
    return status;
}
