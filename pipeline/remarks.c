#include "pipeline/remarks.h"

#include "base/alloc.h"
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

// COUNTED: the task's choices differ in a cost. USED: they differ in a cost that the goal uses.
enum { COUNTED = 1, USED = 2 };

static void mark_tasks(unsigned char marks[], const struct msc_space *space,
                       const struct msc_goal *goal) {
    for (size_t c = 0; c < space->n_costs; c++) {
        const struct msc_cost *cost = &space->costs[c];
        bool counts = is_used(goal, msc_space_find_metric(space, cost->metric));
        for (size_t i = 0; i < cost->n_terms; i++) {
            for (uint32_t j = 0; cost->terms[i].scale != 0 && j < cost->terms[i].n_factors; j++) {
                const struct msc_cost_factor *factor = &cost->terms[i].factors[j];
                if (values_vary(factor->by_choice, space->tasks[factor->task].n_choices)) {
                    marks[factor->task] |= counts ? COUNTED | USED : COUNTED;
                }
            }
        }
    }
}

enum msc_status msc_remark_costs(const struct msc_space *space, const struct msc_goal *goal,
                                 const struct msc_log *log) {
    size_t n_tasks = 0;
    uint32_t first = 0;
    struct msc_str names = {0};
    unsigned char *marks = msc_alloc_zero(space->n_tasks, 1);
    MSC_TRY(MSC_ALLOCATED(marks));
    mark_tasks(marks, space, goal);
    for (uint32_t t = 0; t < space->n_tasks; t++) {
        first = marks[t] == COUNTED && n_tasks == 0 ? t : first;
        n_tasks += marks[t] == COUNTED;
    }
    msc_free(marks);
    for (size_t c = 0; n_tasks > 0 && c < space->n_costs; c++) {
        if (cost_differs(space, &space->costs[c], first)) {
            msc_str_item(&names, space->costs[c].metric);
        }
    }
    if (n_tasks > 0) {
        msc_log(log, MSC_LOG_WARNING,
                "the choices of %zu of %zu tasks (such as %s) differ in %s, which no objective or "
                "bound uses, so cheaper choices have no advantage; set env.bounds",
                n_tasks, space->n_tasks, space->tasks[first].name, msc_str_text(&names));
    }
    enum msc_status status = msc_str_status(&names);
    msc_str_finish(&names);
    return status;
}
