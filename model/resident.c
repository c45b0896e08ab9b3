#include "model/resident.h"

#include "model/model_internal.h"

#include <string.h>

struct resident_input {
    struct msc_array *given; // until the first run
    void *data;              // in `given`, then in the dataset
};

struct msc_resident {
    struct msc_model *model;
    struct resident_input *inputs; // [n_inputs]
    struct msc_dataset *data;      // one batch; NULL before the first run
    struct msc_model_run run;
    struct msc_model_runner runner;
    bool is_ready;
};

static enum msc_status check_branches(const struct msc_model *m) {
    for (int32_t i = 0; i < msc_graph_n_joints(m->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(m->graph, i);
        if (j->n_graphs > 0) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s: %s has graphs of its own, which a model that stays loaded cannot "
                            "run",
                            m->path, j->name);
        }
    }
    return MSC_OK;
}

enum msc_status msc_resident_open(struct msc_resident **out, const char *path, const char *device,
                                  int n_threads) {
    struct msc_model_options o = MSC_MODEL_OPTIONS_INIT;
    struct msc_resident *r = msc_alloc_zero(1, sizeof *r);
    enum msc_status status = MSC_ALLOCATED(r);
    MSC_TRY(status);
    o.device = device;
    o.n_threads = n_threads;
    o.is_single = true;
    o.keeps_types = true;
    MSC_TRY_OUT(msc_model_open(&r->model, path, &o));
    MSC_TRY_OUT(check_branches(r->model));
    r->inputs = msc_alloc_zero(r->model->n_inputs + 1, sizeof r->inputs[0]);
    MSC_TRY_OUT(MSC_ALLOCATED(r->inputs));
    *out = r;
    r = NULL;
out:
    msc_resident_close(r);
    return status;
}

void msc_resident_close(struct msc_resident *r) {
    if (!r) {
        return;
    }
    msc_model__runner_close(&r->runner);
    msc_model_run_finish(&r->run);
    msc_dataset_destroy(r->data);
    for (size_t i = 0; r->inputs && i < r->model->n_inputs; i++) {
        msc_array_release(r->inputs[i].given);
    }
    msc_free(r->inputs);
    msc_model_close(r->model);
    msc_free(r);
}

int64_t msc_resident_n_inputs(const struct msc_resident *r) {
    return (int64_t)r->model->n_inputs;
}

int64_t msc_resident_n_outputs(const struct msc_resident *r) {
    return msc_graph_n_outputs(r->model->graph);
}

static enum msc_status check_index(int64_t i, int64_t n, const struct msc_resident *r,
                                   const char *what) {
    return i >= 0 && i < n ? MSC_OK
                           : MSC_FAIL(MSC_E_INVALID, "%s: there is no %s %lld, only %lld",
                                      r->model->path, what, (long long)i, (long long)n);
}

enum msc_status msc_resident_shape(struct msc_resident *r, int64_t input, int64_t n_dims,
                                   const int64_t dims[]) {
    struct msc_array *array = NULL;
    MSC_TRY(check_index(input, msc_resident_n_inputs(r), r, "input"));
    if (r->is_ready) {
        return MSC_FAIL(MSC_E_STATE, "%s: has run with other shapes; open it again",
                        r->model->path);
    }
    if (n_dims < 0 || n_dims > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_INVALID, "%s: input %s has %lld dimensions, at most %d are possible",
                        r->model->path, r->model->specs[input].name, (long long)n_dims,
                        MSC_MAX_DIMS);
    }
    MSC_TRY(msc_array_create(&array, r->model->specs[input].dtype, (int)n_dims, dims));
    struct resident_input *in = &r->inputs[input];
    msc_array_release(in->given);
    *in = (struct resident_input){.given = array, .data = msc_array_data(array)};
    return MSC_OK;
}

const char *msc_resident_length(const struct msc_resident *r, int64_t input, int64_t axis) {
    const struct msc_graph *g = r->model->graph;
    if (input < 0 || input >= msc_graph_n_inputs(g)) {
        return NULL;
    }
    const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, (int32_t)input));
    bool is_open = axis >= 0 && axis < t->n_dims && t->prims[axis] != MSC_NO_ID;
    return is_open ? msc_graph_prim(g, t->prims[axis])->name : NULL;
}

enum msc_status msc_resident_input(struct msc_resident_value *out, const struct msc_resident *r,
                                   int64_t i) {
    MSC_TRY(check_index(i, msc_resident_n_inputs(r), r, "input"));
    const struct msc_input_spec *spec = &r->model->specs[i];
    const struct resident_input *in = &r->inputs[i];
    const struct msc_array *array =
        r->is_ready ? msc_dataset_batch(r->data, 0, (size_t)i) : in->given;
    *out = (struct msc_resident_value){.name = spec->name,
                                       .dtype = msc_dtype_name(spec->dtype),
                                       .n_dims = array ? msc_array_n_dims(array) : spec->n_dims,
                                       .data = in->data};
    memcpy(out->dims, array ? msc_array_dims(array) : spec->dims,
           (size_t)out->n_dims * sizeof out->dims[0]);
    return MSC_OK;
}

enum msc_status msc_resident_output(struct msc_resident_value *out, const struct msc_resident *r,
                                    int64_t i) {
    MSC_TRY(check_index(i, msc_resident_n_outputs(r), r, "output"));
    const struct msc_graph *g = r->model->graph;
    const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_output(g, (int32_t)i));
    struct msc_array *array = r->is_ready ? r->run.outputs[i] : NULL;
    int n_dims = array ? msc_array_n_dims(array) : t->n_dims;
    *out = (struct msc_resident_value){.name = msc_tensor_label(t),
                                       .dtype = msc_dtype_name(t->dtype),
                                       .n_dims = n_dims,
                                       .data = array ? msc_array_data(array) : NULL};
    memcpy(out->dims, array ? msc_array_dims(array) : t->dims,
           (size_t)n_dims * sizeof out->dims[0]);
    return MSC_OK;
}

// Moves the inputs into a dataset of one batch.
static enum msc_status take_inputs(struct msc_resident *r) {
    struct msc_model *m = r->model;
    const struct msc_array **arrays = msc_alloc_zero(m->n_inputs + 1, sizeof(void *));
    enum msc_status status = MSC_ALLOCATED(arrays);
    for (size_t i = 0; i < m->n_inputs && status == MSC_OK; i++) {
        arrays[i] = r->inputs[i].given;
        if (!arrays[i]) {
            status =
                MSC_FAIL(MSC_E_INVALID, "%s: input %s has no shape yet", m->path, m->specs[i].name);
        }
    }
    status = status == MSC_OK ? msc_dataset_create_whole(&r->data, m->specs, arrays, m->n_inputs)
                              : status;
    msc_free(arrays);
    return status;
}

static enum msc_status prepare(struct msc_resident *r) {
    struct msc_model *m = r->model;
    MSC_TRY(take_inputs(r));
    MSC_TRY(msc_model__find_wanted(m, &r->run));
    msc_model__settle_memory(m);
    MSC_TRY(msc_model__runner_open(&r->runner, m, r->data, &r->run));
    for (size_t i = 0; i < m->n_inputs; i++) {
        // The dataset's only user is this model, which may change its elements between runs.
        r->inputs[i].data = msc_array_data((struct msc_array *)msc_dataset_batch(r->data, 0, i));
        if (r->inputs[i].given != msc_dataset_batch(r->data, 0, i)) {
            msc_array_release(r->inputs[i].given);
            r->inputs[i].given = NULL;
        }
    }
    r->is_ready = true;
    return MSC_OK;
}

enum msc_status msc_resident_run(struct msc_resident *r) {
    double us;
    if (!r->is_ready) {
        enum msc_status status = prepare(r);
        if (status != MSC_OK) { // the next run begins again
            msc_model_run_finish(&r->run);
            msc_dataset_destroy(r->data);
            r->data = NULL;
            return status;
        }
    }
    r->runner.is_done = false;
    return msc_model__runner_run(&r->runner, &us);
}
