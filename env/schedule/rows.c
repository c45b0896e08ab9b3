#include "env/schedule/rows.h"

#include "base/alloc.h"

#include <math.h>

#define LEAST_GAIN 0.02

struct rows {
    struct msc_schedule_row *rows;
    struct msc_schedule_bench *bench;
    size_t only;
    int64_t n_rounds;
    uint32_t *choices; // [n_classes]
};

static const struct msc_variants *variants_of(const struct rows *r, size_t i) {
    return &msc_schedule_bench_class(r->bench, i)->variants;
}

static bool is_measured(const struct rows *r, size_t i) {
    return r->only == MSC_SCHEDULE_ALL || r->only == i;
}

// Sets a time by its ratio to that of the choice by rule, whose first time is the unit of the row.
static void set_time(struct rows *r, size_t i, int variant, double us, double rule_us) {
    double *unit = &r->rows[i].us[variants_of(r, i)->by_rule];
    *unit = isnan(*unit) ? rule_us : *unit;
    if (variant != variants_of(r, i)->by_rule) {
        r->rows[i].us[variant] = us / rule_us * *unit;
    }
}

// Measures the i-th variant of every class at once.
static enum msc_status measure_together(struct rows *r) {
    size_t n = msc_schedule_bench_n(r->bench);
    int most = 0;
    for (size_t i = 0; i < n; i++) {
        most = is_measured(r, i) && variants_of(r, i)->n > most ? variants_of(r, i)->n : most;
    }
    for (int variant = 0; variant < most; variant++) {
        struct msc_schedule_time time;
        msc_schedule_bench_by_rule(r->bench, r->choices);
        for (size_t i = 0; i < n; i++) {
            if (is_measured(r, i) && variant < variants_of(r, i)->n) {
                r->choices[i] = (uint32_t)variant;
            }
        }
        MSC_TRY(msc_schedule_bench_run(&time, r->bench, r->choices, r->n_rounds));
        for (size_t i = 0; i < n; i++) {
            if (is_measured(r, i) && variant < variants_of(r, i)->n) {
                set_time(r, i, variant, time.class_us[i], time.class_rule_us[i]);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status measure_apart(struct rows *r) {
    for (size_t i = 0; i < msc_schedule_bench_n(r->bench); i++) {
        for (int variant = 0; is_measured(r, i) && variant < variants_of(r, i)->n; variant++) {
            struct msc_schedule_time time;
            if (variant == variants_of(r, i)->by_rule) {
                continue;
            }
            msc_schedule_bench_by_rule(r->bench, r->choices);
            r->choices[i] = (uint32_t)variant;
            MSC_TRY(msc_schedule_bench_run(&time, r->bench, r->choices, r->n_rounds));
            set_time(r, i, variant, time.us, time.rule_us);
        }
    }
    return MSC_OK;
}

static void find_best(struct msc_schedule_row *row, const struct msc_variants *v) {
    int least = v->by_rule;
    for (int i = 0; i < v->n; i++) {
        least = row->us[i] < row->us[least] ? i : least;
    }
    row->best = row->us[least] < (1.0 - LEAST_GAIN) * row->us[v->by_rule] ? least : v->by_rule;
}

enum msc_status msc_schedule_rows(struct msc_schedule_row rows[], struct msc_schedule_bench *bench,
                                  size_t only, int64_t n_rounds) {
    size_t n = msc_schedule_bench_n(bench);
    struct rows r = {.rows = rows, .bench = bench, .only = only, .n_rounds = n_rounds};
    r.choices = msc_alloc_zero(n + 1, sizeof r.choices[0]);
    MSC_TRY(MSC_ALLOCATED(r.choices));
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < MSC_MOST_VARIANTS; k++) {
            rows[i].us[k] = NAN;
        }
    }
    bool tells_steps = n > 0 && !isnan(msc_schedule_bench_class(bench, 0)->us);
    enum msc_status status = tells_steps ? measure_together(&r) : measure_apart(&r);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        if (is_measured(&r, i)) {
            find_best(&rows[i], variants_of(&r, i));
        }
    }
    msc_free(r.choices);
    return status;
}
