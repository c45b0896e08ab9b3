// Runs a model with edits at one of its joints, for tests/long/check_edits.py.
//
//     edit_tool MODEL DEVICE INPUT.npy OUT [--mask JOINT CHANNEL] [--replace JOINT WEIGHT.npy]
//         [--round JOINT STEP]
//
// It writes OUT<i>.npy for each output, and OUT.onnx, the model exported with the edits. --mask
// removes one channel (axis 1) of the joint's input; --round rounds its bias to STEP.
#include "base/alloc.h"
#include "data/npy.h"
#include "graph/onnx/onnx.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OUTPUTS = 16, MOST_CHANNELS = 4096 };

struct run {
    const char *out;
    struct msc_graph *g;
    struct msc_array *input, *weight;
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    struct msc_evaluator_options options;
    int32_t wanted[MOST_OUTPUTS];
    size_t n_wanted;
    const struct msc_edit **edits;
    bool is_kept[MOST_CHANNELS];
    struct msc_edit mask, replace, round;
    float step;
};

static enum msc_status write_batch(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    const struct run *r = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < r->n_wanted; i++) {
        char path[512];
        struct msc_array *a;
        const struct msc_view *v = &values[i];
        snprintf(path, sizeof(path), "%s%zu.npy", r->out, i);
        MSC_TRY(msc_array_create_from(&a, v->dtype, v->n_dims, v->dims, v->data));
        enum msc_status status = msc_npy_save(path, a);
        msc_array_release(a);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status find_slot(int32_t *slot, const struct run *r, const char *joint,
                                 int32_t operand) {
    int32_t id = msc_graph_find_joint(r->g, joint);
    *slot =
        id == MSC_NO_ID ? MSC_NO_ID : msc_sites_find_slot(msc_evaluator_sites(r->ev), id, operand);
    return *slot != MSC_NO_ID ? MSC_OK
                              : MSC_FAIL(MSC_E_INVALID, "joint %s has no such slot", joint);
}

static enum msc_status set_mask(struct run *r, const char *joint, int channel) {
    int32_t slot;
    MSC_TRY(find_slot(&slot, r, joint, 0));
    int32_t tensor = msc_evaluator_sites(r->ev)->slots[slot].tensor;
    int64_t n = msc_graph_tensor(r->g, tensor)->dims[1];
    if (n > MOST_CHANNELS) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s reads too many channels", joint);
    }
    for (int64_t c = 0; c < n; c++) {
        r->is_kept[c] = c != channel;
    }
    r->mask = (struct msc_edit){.kind = MSC_EDIT_KEEP_CHANNELS,
                                .mask = {.axis = 1, .n = (int32_t)n, .is_kept = r->is_kept}};
    msc_edit_seal(&r->mask);
    r->edits[slot] = &r->mask;
    return MSC_OK;
}

static enum msc_status set_weight(struct run *r, const char *joint, const char *path) {
    int32_t slot;
    MSC_TRY(find_slot(&slot, r, joint, 1));
    MSC_TRY(msc_npy_load(&r->weight, path));
    r->replace = (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = r->weight};
    msc_edit_seal(&r->replace);
    r->edits[slot] = &r->replace;
    return MSC_OK;
}

static enum msc_status set_step(struct run *r, const char *joint, const char *step) {
    int32_t slot;
    MSC_TRY(find_slot(&slot, r, joint, 2));
    r->step = strtof(step, NULL);
    r->round =
        (struct msc_edit){.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = 1, .steps = &r->step}};
    msc_edit_seal(&r->round);
    r->edits[slot] = &r->round;
    return MSC_OK;
}

static enum msc_status set_edit(struct run *r, char **argv) {
    if (strcmp(argv[0], "--mask") == 0) {
        return set_mask(r, argv[1], atoi(argv[2]));
    }
    return strcmp(argv[0], "--round") == 0 ? set_step(r, argv[1], argv[2])
                                           : set_weight(r, argv[1], argv[2]);
}

// The whole file is one sample.
static enum msc_status make_dataset(struct run *r) {
    struct msc_input_spec spec = {.name = msc_graph_tensor(r->g, msc_graph_input(r->g, 0))->alias,
                                  .dtype = msc_array_dtype(r->input),
                                  .n_dims = msc_array_n_dims(r->input)};
    memcpy(spec.dims, msc_array_dims(r->input), (size_t)spec.n_dims * sizeof(spec.dims[0]));
    return msc_dataset_create(&r->data, &spec, &r->input, 1, NULL, 1);
}

static enum msc_status prepare(struct run *r, char **argv) {
    struct msc_backend_options backend = MSC_BACKEND_OPTIONS_INIT;
    MSC_TRY(msc_onnx_load(&r->g, argv[1], NULL));
    MSC_TRY(msc_backend_open(&r->options.backend, argv[2], &backend));
    MSC_TRY(msc_npy_load(&r->input, argv[3]));
    r->out = argv[4];
    MSC_TRY(make_dataset(r));
    for (int32_t i = 0; i < msc_graph_n_outputs(r->g) && i < MOST_OUTPUTS; i++) {
        r->wanted[r->n_wanted++] = msc_graph_output(r->g, i);
    }
    MSC_TRY(msc_evaluator_create(&r->ev, r->g, r->data, r->wanted, r->n_wanted, &r->options));
    size_t n_slots = (size_t)msc_evaluator_sites(r->ev)->n_slots;
    r->edits = msc_alloc_zero(n_slots + 1, sizeof(r->edits[0]));
    return r->edits ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

static enum msc_status run_edits(struct run *r, int argc, char **argv) {
    const struct msc_sink sink = {.batch = write_batch, .payload = r};
    MSC_TRY(prepare(r, argv));
    for (int i = 5; i + 2 < argc; i += 3) {
        MSC_TRY(set_edit(r, argv + i));
    }
    const struct msc_onnx_export_options options = {.sites = msc_evaluator_sites(r->ev),
                                                    .slot_edits = r->edits};
    char path[512];
    snprintf(path, sizeof(path), "%s.onnx", r->out);
    MSC_TRY(msc_onnx_save(r->g, path, &options));
    struct msc_eval_trial trial = {.edits = r->edits};
    MSC_TRY(msc_evaluator_run(r->ev, &trial, 1, &sink, 0));
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

int main(int argc, char **argv) {
    struct run r = {.options = MSC_EVALUATOR_OPTIONS_INIT};
    if (argc < 5) {
        fprintf(stderr, "usage: edit_tool MODEL DEVICE INPUT.npy OUT [--mask JOINT CHANNEL] "
                        "[--replace JOINT WEIGHT.npy] [--round JOINT STEP]\n");
        return 2;
    }
    enum msc_status status = run_edits(&r, argc, argv);
    if (status != MSC_OK) {
        fprintf(stderr, "%s\n", msc_status_message());
    }
    msc_evaluator_destroy(r.ev);
    msc_dataset_destroy(r.data);
    msc_backend_close(r.options.backend);
    msc_free(r.edits);
    msc_array_release(r.input);
    msc_array_release(r.weight);
    msc_graph_destroy(r.g);
    return status == MSC_OK ? 0 : 1;
}
