#include "model/equalize.h"

enum msc_status msc_model_equalize(struct msc_strategy **out, size_t *n_equalized,
                                   const struct msc_model *model,
                                   const struct msc_equalize_bits *bits) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_evaluator *ev = NULL;
    const int32_t wanted = msc_graph_output(model->graph, 0);
    *out = NULL;
    *n_equalized = 0;
    o.backend = model->backend;
    o.n_threads = model->n_threads;
    o.memory_bytes = model->memory_bytes;
    o.host_bytes = model->memory_bytes;
    o.cancel = model->cancel;
    MSC_TRY(msc_evaluator_create(&ev, model->graph, model->dataset, &wanted, 1, &o));
    enum msc_status status = msc_equalize(out, n_equalized, model->graph, ev, bits);
    msc_evaluator_destroy(ev);
    return status;
}
