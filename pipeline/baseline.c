// The `baseline` stage: does the backend compute what the reference kernels say?
#include "pipeline/agree.h"
#include "pipeline/model.h"

#include "graph/graph.h"
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

static enum msc_status run_reference(struct msc_array *out[], const struct msc_model *m,
                                     const struct msc_array *const inputs[]) {
    struct msc_graph *bound = NULL;
    int32_t *wanted = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_graph_bind_known(&bound, NULL, m->graph, inputs, m->n_inputs));
    int32_t n = msc_graph_n_outputs(bound);
    wanted = msc_alloc_zero((size_t)n + 1, sizeof *wanted);
    if (!wanted) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", m->path);
        goto out;
    }
    for (int32_t i = 0; i < n; i++) {
        wanted[i] = msc_graph_output(bound, i);
    }
    status = msc_reference_run_graph(out, bound, inputs, wanted, (size_t)n);
out:
    msc_free(wanted);
    msc_graph_destroy(bound);
    return status;
}

static const char *output_name(const struct msc_model *m, size_t i) {
    const struct msc_tensor *t = msc_graph_tensor(m->graph, msc_graph_output(m->graph, (int32_t)i));
    return t->alias[0] ? t->alias : t->name;
}

static enum msc_status compare(const struct msc_model *m, size_t output,
                               const struct msc_array *found, const struct msc_array *truth,
                               double atol, double rtol, double *worst) {
    int64_t place;
    const char *name = output_name(m, output);
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
    struct msc_array **truth = NULL;
    struct msc_array *inputs[MAX_INPUTS] = {NULL};
    struct msc_model_run run = {.inputs = (const struct msc_array *const *)inputs};
    size_t n = (size_t)msc_graph_n_outputs(m->graph);
    double worst = 0;
    enum msc_status status = MSC_OK;
    if (m->n_inputs > MAX_INPUTS) {
        return MSC_OK;
    }
    truth = msc_alloc_zero(n + 1, sizeof *truth);
    if (!truth) {
        status = MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", m->path);
        goto out;
    }
    MSC_TRY_OUT(load_first(&first, m, from));
    MSC_TRY_OUT(take_inputs(inputs, first, m->n_inputs));
    MSC_TRY_OUT(run_reference(truth, m, run.inputs));
    MSC_TRY_OUT(msc_model_run(m, &run));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY_OUT(compare(m, i, run.outputs[i], truth[i], atol, rtol, &worst));
    }
    msc_log(m->log, MSC_LOG_INFO, "baseline: outputs agree with the reference kernels within %.2g",
            worst);
out:
    msc_model_run_finish(&run);
    for (size_t i = 0; truth && i < n; i++) {
        msc_array_release(truth[i]);
    }
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        msc_array_release(inputs[i]);
    }
    msc_free(truth);
    msc_dataset_destroy(first);
    return status;
}
