#include "kernels/plan.h"

#include <string.h>

struct msc_view msc_plan_view(const struct msc_plan *plan, int32_t value, void *data) {
    const struct msc_value *v = &plan->values[value];
    struct msc_view view = {
        .data = data, .dtype = v->dtype, .layout = v->layout, .n_dims = v->n_dims};
    memcpy(view.dims, v->dims, sizeof(view.dims));
    return view;
}
