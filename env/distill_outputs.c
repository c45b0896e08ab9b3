// Decides which outputs the loss can compare, and adds tensors to the list of compared ones.
#include "env/distill_internal.h"

void msc_distill__add_compared(struct msc_distill *d, int32_t tensor, double weight) {
    const struct msc_tensor *t = msc_graph_tensor(d->host->graph, tensor);
    d->compared[d->n_compared++] = (struct msc_distill_tensor){
        .tensor = tensor, .weight = weight, .name = msc_tensor_label(t)};
}

const char *msc_distill__reason_to_leave_out(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (t->dtype != MSC_DTYPE_F32) {
        return msc_dtype_name(t->dtype);
    }
    for (int k = 0; k < t->n_dims; k++) {
        if (t->dims[k] == 0) {
            return "empty";
        }
    }
    return msc_graph_weight_of(g, tensor) != MSC_NO_ID ? "constant" : NULL;
}

// States are not compared, because their error shows in the outputs of later chunks.
bool msc_distill__is_state(const struct msc_distill *d, int32_t tensor) {
    for (size_t i = 0; i < msc_dataset_n_inputs(d->dataset); i++) {
        const char *state = msc_dataset_state(d->dataset, i);
        if (state && msc_graph_find_tensor(d->host->graph, state) == tensor) {
            return true;
        }
    }
    return false;
}
