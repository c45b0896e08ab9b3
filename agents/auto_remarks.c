#include "agents/auto_remarks.h"

#include "base/str.h"

// A choice is named if it breaks a point with at least this probability; at most MOST_NAMED are.
#define SURE 0.8
#define MOST_NAMED 4

static void remark_link(const struct msc_auto *a, struct msc_str *out) {
    const struct msc_link *link = &a->parts[0].model.link;
    if (!a->has_objective_part || link->kind == MSC_LINK_NONE) {
        return;
    }
    msc_str_printf(out,
                   link->kind == MSC_LINK_EXP
                       ? "losses saturate: the model is of exp(above / %.3g)"
                       : "losses saturate: the model is of -log(1 - above / %.3g)",
                   link->scale);
    msc_str_append(out, ", above: the loss above the most expensive plan's\n");
}

static void remark_choices(struct msc_auto *a, const struct msc_space *space, struct msc_str *out) {
    int n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            size_t e = msc_exact_bounds_entry(&a->sampler.bounds, t, c);
            double breaks = msc_chance_of_break(&a->chance, e);
            if (breaks >= SURE && n++ < MOST_NAMED) {
                msc_str_printf(out, "%s: choice %s fails (probability %.2f)\n",
                               space->tasks[t].name, space->tasks[t].labels[c], breaks);
            }
        }
    }
    if (n > MOST_NAMED) {
        msc_str_printf(out, "%d more choices fail\n", n - MOST_NAMED);
    }
}

static void remark_failures(struct msc_auto *a, const struct msc_space *space,
                            struct msc_str *out) {
    if (a->chance.n_failed == 0) {
        return;
    }
    msc_str_printf(out, "%llu of %llu points failed\n", (unsigned long long)a->chance.n_failed,
                   (unsigned long long)a->chance.n_told);
    if (a->base_fails) {
        msc_str_append(out, "the most expensive plan fails: points are compared with their "
                            "neighbours instead\n");
    }
    remark_choices(a, space, out);
}

void msc_auto_remarks(struct msc_auto *a, const struct msc_space *space, struct msc_str *out) {
    remark_link(a, out);
    remark_failures(a, space, out);
}
