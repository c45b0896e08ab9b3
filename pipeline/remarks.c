#include "pipeline/remarks.h"

#include "base/str.h"

static bool is_used(const struct msc_goal *goal, int metric) {
    for (size_t i = 0; i < goal->n_objectives; i++) {
        if (goal->objectives[i].metric == metric) {
            return true;
        }
    }
    for (size_t i = 0; i < goal->n_bounds; i++) {
        if (goal->bounds[i].metric == metric) {
            return true;
        }
    }
    return false;
}

static bool values_vary(const double values[], uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        if (values[i] != values[0]) {
            return true;
        }
    }
    return false;
}

static bool cost_differs(const struct msc_space *space, const struct msc_cost *cost,
                         uint32_t task) {
    for (size_t t = 0; t < cost->n_terms; t++) {
        const struct msc_cost_term *term = &cost->terms[t];
        for (uint32_t f = 0; f < term->n_factors; f++) {
            if (term->factors[f].task == task && term->scale != 0 &&
                values_vary(term->factors[f].by_choice, space->tasks[task].n_choices)) {
                return true;
            }
        }
    }
    return false;
}

enum msc_status msc_remark_costs(const struct msc_space *space, const struct msc_goal *goal,
                                 const struct msc_log *log) {
    size_t n_tasks = 0;
    uint32_t first = 0;
    struct msc_str names = {0};
    for (uint32_t t = 0; t < space->n_tasks; t++) {
        bool is_counted = false;
        bool is_free = true;
        for (size_t c = 0; c < space->n_costs; c++) {
            if (cost_differs(space, &space->costs[c], t)) {
                is_counted = true;
                is_free =
                    is_free && !is_used(goal, msc_space_find_metric(space, space->costs[c].metric));
            }
        }
        first = is_counted && is_free && n_tasks == 0 ? t : first;
        n_tasks += is_counted && is_free;
    }
    for (size_t c = 0; n_tasks > 0 && c < space->n_costs; c++) {
        if (cost_differs(space, &space->costs[c], first)) {
            msc_str_item(&names, space->costs[c].metric);
        }
    }
    if (n_tasks > 0) {
        msc_log(log, MSC_LOG_WARNING,
                "the choices of %zu of %zu tasks (%s first) differ in %s, which no objective or "
                "bound uses: nothing speaks for a cheaper choice there; set env.bounds",
                n_tasks, space->n_tasks, space->tasks[first].name, msc_str_text(&names));
    }
    enum msc_status status = msc_str_status(&names);
    msc_str_finish(&names);
    return status;
}
