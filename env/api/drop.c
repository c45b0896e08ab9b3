#include "env/api/drop.h"

#include <math.h>

bool msc_drops_any(const struct msc_drops *drops, const struct msc_goal *goal) {
    bool any = false;
    for (size_t i = 0; i < goal->n_bounds; i++) {
        any = any || drops->of_bound[i].is_stated;
    }
    return any;
}

double msc_drop_of(double value, double reference, bool is_maximised, bool is_relative) {
    double drop = is_maximised ? reference - value : value - reference;
    return is_relative ? drop / fabs(reference) : drop;
}

void msc_drop_set_limit(struct msc_bound *bound, const struct msc_drop *drop, bool is_maximised) {
    double size = fabs(drop->reference);
    double most = (drop->is_relative ? drop->most * size : drop->most) + MSC_DROP_SLACK * size;
    bound->min = is_maximised ? drop->reference - most : -INFINITY;
    bound->max = is_maximised ? INFINITY : drop->reference + most;
}
