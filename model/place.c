// Delivers a placement: the pieces of a point, and their manifest.
#include "model/place_internal.h"

enum msc_status msc_place__split(struct msc_pieces **out, const struct msc_graph *g,
                                 const struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o, const char *folder) {
    size_t n = (size_t)msc_graph_n_joints(g);
    int32_t *plan = msc_alloc_zero(n + 1, sizeof *plan);
    int32_t piece_of[MSC_PLACE_MOST_GROUPS];
    const char *backends[MSC_PLACE_MOST_GROUPS];
    struct msc_split_options split = {.by = MSC_SPLIT_BY_PLAN,
                                      .model = o->model,
                                      .folder = folder,
                                      .plan = plan,
                                      .backends = backends,
                                      .plugins = o->plugins,
                                      .n_plugins = o->n_plugins};
    enum msc_status status = MSC_ALLOCATED(plan);
    for (size_t i = 0; i < p->n_groups; i++) {
        split.n_plan += i == 0 || choices[i] != choices[i - 1];
        piece_of[i] = (int32_t)split.n_plan - 1;
        backends[split.n_plan - 1] = p->backends[choices[i]].name;
    }
    status = status == MSC_OK ? msc_place_groups(plan, g, p) : status;
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        plan[i] = plan[i] < 0 ? -1 : piece_of[plan[i]];
    }
    status = status == MSC_OK ? msc_split(out, g, &split) : status;
    msc_free(plan);
    return status;
}

enum msc_status msc_place_deliver(struct msc_pieces **out, const struct msc_graph *g,
                                  const struct msc_place_table *p, const uint32_t choices[],
                                  const struct msc_place_options *o) {
    return msc_place__split(out, g, p, choices, o, o->folder);
}
