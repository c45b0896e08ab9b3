#include "kernels/engine/sequence.h"

#include "base/alloc.h"

#include <string.h>

enum msc_status msc_sequence_first(struct msc_array *arrays[], const struct msc_dataset *dataset,
                                   size_t batch) {
    for (size_t i = 0; i < msc_dataset_n_inputs(dataset); i++) {
        MSC_TRY(msc_dataset_chunk(&arrays[i], dataset, batch, i, 0));
    }
    return MSC_OK;
}

static const char *input_name(const struct msc_graph *g, size_t input) {
    return msc_tensor_label(msc_graph_tensor(g, msc_graph_input(g, (int32_t)input)));
}

// One graph is used for all chunks, so inputs that determine dims must be equal in all chunks.
static enum msc_status check_parameter(const struct msc_graph *g, const struct msc_dataset *dataset,
                                       size_t batch, size_t input) {
    const struct msc_array *all = msc_dataset_batch(dataset, batch, input);
    enum msc_input_form form = msc_dataset_form(dataset, input);
    bool is_same = form == MSC_INPUT_SHARED;
    if (form == MSC_INPUT_CHUNKS) {
        size_t n = (size_t)msc_array_dim(all, 0);
        size_t n_bytes = msc_array_n_bytes(all) / n;
        const char *data = msc_array_data(all);
        is_same = true;
        for (size_t i = 1; i < n && n_bytes > 0; i++) {
            is_same = is_same && memcmp(data, data + i * n_bytes, n_bytes) == 0;
        }
    }
    return is_same ? MSC_OK
                   : MSC_FAIL(MSC_E_UNSUPPORTED,
                              "input %s gives parameters of joints but %s: all chunks of a "
                              "sequence must use one plan",
                              input_name(g, input),
                              form == MSC_INPUT_STATE ? "is a state"
                                                      : "differs between chunks of a sequence");
}

static enum msc_status describe_sequence(struct msc_unroll *u, bool is_chunked[],
                                         int32_t state_of[], const struct msc_graph *bound,
                                         const struct msc_dataset *dataset, size_t batch,
                                         const bool is_parameter[]) {
    for (size_t i = 0; i < msc_dataset_n_inputs(dataset); i++) {
        const char *state = msc_dataset_state(dataset, i);
        is_chunked[i] = msc_dataset_form(dataset, i) == MSC_INPUT_CHUNKS;
        state_of[i] = state ? msc_graph_find_tensor(bound, state) : MSC_NO_ID;
        if (state && state_of[i] == MSC_NO_ID) {
            return MSC_FAIL(MSC_E_INVALID,
                            "dataset.state: %s is fed by \"%s\", a tensor that the model does not "
                            "have; `mscgym graph MODEL` lists its tensors",
                            input_name(bound, i), state);
        }
        if (is_parameter[i]) {
            MSC_TRY(check_parameter(bound, dataset, batch, i));
        }
    }
    u->n_chunks = msc_dataset_batch_samples(dataset, batch);
    u->is_chunked = is_chunked;
    u->state_of = state_of;
    return MSC_OK;
}

// Matches joints by name, which binding keeps.
static void name_joints(struct msc_unrolled *out, const struct msc_graph *graph,
                        const struct msc_graph *bound) {
    for (int32_t i = 0; i < msc_graph_n_joints(out->graph); i++) {
        int32_t joint = out->joints[i];
        out->joints[i] = joint == MSC_NO_ID
                             ? MSC_NO_ID
                             : msc_graph_find_joint(graph, msc_graph_joint(bound, joint)->name);
    }
}

enum msc_status msc_sequence_unroll(struct msc_unrolled *out, const struct msc_graph *graph,
                                    const struct msc_graph *bound,
                                    const struct msc_dataset *dataset, size_t batch,
                                    const bool is_parameter[], const int32_t wanted[],
                                    size_t n_wanted) {
    size_t n_inputs = msc_dataset_n_inputs(dataset);
    struct msc_unroll u = {.gathered = wanted, .n_gathered = n_wanted};
    bool *is_chunked = msc_alloc_zero(n_inputs + 1, sizeof(is_chunked[0]));
    int32_t *state_of = msc_alloc_zero(n_inputs + 1, sizeof(state_of[0]));
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(MSC_ALLOCATED(is_chunked && state_of));
    MSC_TRY_OUT(describe_sequence(&u, is_chunked, state_of, bound, dataset, batch, is_parameter));
    MSC_TRY_OUT(msc_graph_unroll(out, bound, &u));
    name_joints(out, graph, bound);
out:
    msc_free(is_chunked);
    msc_free(state_of);
    return status;
}
