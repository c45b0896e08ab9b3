#include "env/schedule/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/engine/evaluator.h"
#include "tools/bias_edits.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

enum { SIDES = 3 }; // the point, by rule, by rule once more

// Times of one side: of the current run, and the least of all. Whatever belongs to no step, such as
// quantising a value, is the last item.
struct side {
    double *now, *least; // [n_steps + 1]
    double whole;        // least time of a whole run
};

struct msc_schedule_bench {
    struct msc_arena arena;
    struct msc_schedule_options o;
    struct msc_dataset *sample;
    struct msc_step_timer timer;
    struct msc_evaluator *evaluator;
    const struct msc_edit **edits; // [n_slots]
    struct msc_bias_edits *bias_edits;
    const struct msc_plan *plan;
    size_t n_classes;
    struct msc_schedule_class *classes; // [n_steps] at most
    int32_t *class_of;                  // [n_steps] or -1
    uint32_t *by_rule;                  // [n_classes]
    double *class_us, *class_rule_us;   // [n_classes]
    struct side sides[SIDES];
    int side; // that runs now
};

// ---- Running ----------------------------------------------------------------------------------

static void note_time(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                      uint64_t ns) {
    struct msc_schedule_bench *b = payload;
    (void)value;
    b->sides[b->side].now[step == MSC_NO_ID ? plan->n_steps : step] += (double)ns / 1000.0;
}

static enum msc_status take_batch(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    (void)payload, (void)trial, (void)batch, (void)values;
    return MSC_OK;
}

// A device that takes calls one by one has computed a step when its run returns.
static bool tells_steps(const struct msc_schedule_bench *b) {
    return b->o.backend->def->max_calls <= 1;
}

// A processor's time is not disturbed by other programs, and one thread computes.
static uint64_t now_ns(const struct msc_schedule_bench *b) {
    return tells_steps(b) ? msc_clock_cpu_ns() : msc_clock_ns();
}

static void keep_lesser(double *least, double us, bool is_first) {
    *least = is_first || us < *least ? us : *least;
}

static enum msc_status run_side(struct msc_schedule_bench *b, int side, bool is_first) {
    const struct msc_sink sink = {.batch = take_batch};
    struct msc_eval_trial trial = {.edits = b->edits};
    struct side *s = &b->sides[side];
    b->side = side;
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        s->now[i] = 0.0;
    }
    uint64_t begin_ns = now_ns(b);
    MSC_TRY(msc_evaluator_run(b->evaluator, &trial, 1, &sink, MSC_EVAL_FRESH));
    keep_lesser(&s->whole, (double)(now_ns(b) - begin_ns) / 1000.0, is_first);
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        keep_lesser(&s->least[i], s->now[i], is_first);
    }
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

static void choose(struct msc_schedule_bench *b, const uint32_t choices[]) {
    for (int32_t i = 0; i < b->plan->n_steps; i++) {
        if (b->class_of[i] >= 0) {
            b->o.backend->def->choose(b->o.backend, &b->plan->steps[i],
                                      (int)choices[b->class_of[i]]);
        }
    }
}

// Runs the sides in turn; the first run of a side packs weights and is not counted.
static enum msc_status run_rounds(struct msc_schedule_bench *b, const uint32_t choices[],
                                  int n_sides, int64_t n_rounds) {
    for (int64_t round = -1; round < n_rounds; round++) {
        for (int i = 0; i < n_sides; i++) {
            int side = round % 2 == 0 ? i : n_sides - 1 - i;
            choose(b, side == 0 ? choices : b->by_rule);
            MSC_TRY(run_side(b, side, round <= 0));
            msc_cancel_beat(b->o.cancel);
        }
        if (b->o.cancel && msc_cancel_now(b->o.cancel)) {
            return MSC_FAIL(MSC_E_CANCELLED, "cancelled");
        }
    }
    return MSC_OK;
}

// ---- Opening ----------------------------------------------------------------------------------

static enum msc_status apply_strategy(struct msc_schedule_bench *b) {
    const struct msc_sites *sites = msc_evaluator_sites(b->evaluator);
    b->edits = msc_arena_array(&b->arena, (size_t)sites->n_slots + 1, sizeof b->edits[0]);
    MSC_TRY(MSC_ALLOCATED(b->edits));
    for (int32_t i = 0; i < sites->n_slots; i++) {
        b->edits[i] = NULL;
    }
    if (!b->o.strategy) {
        return MSC_OK;
    }
    MSC_TRY(msc_strategy_apply_to_any(b->o.strategy, b->o.graph, sites, b->edits));
    MSC_TRY(msc_bias_edits_create(&b->bias_edits, b->o.graph, sites));
    return msc_bias_edits_fill(b->bias_edits, b->edits);
}

static enum msc_status open_evaluator(struct msc_schedule_bench *b) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    size_t n = (size_t)msc_graph_n_outputs(b->o.graph);
    int32_t *wanted = msc_arena_array(&b->arena, n + 1, sizeof wanted[0]);
    MSC_TRY(MSC_ALLOCATED(wanted));
    for (size_t i = 0; i < n; i++) {
        wanted[i] = msc_graph_output(b->o.graph, (int32_t)i);
    }
    MSC_TRY(msc_dataset_create_part(&b->sample, b->o.dataset, 0,
                                    msc_dataset_batch_samples(b->o.dataset, 0)));
    b->timer = (struct msc_step_timer){.ran = note_time, .payload = b};
    o.backend = b->o.backend;
    o.memory_bytes = b->o.memory_bytes > 0 ? b->o.memory_bytes : o.memory_bytes;
    o.target = b->o.strategy ? msc_strategy_scheme(b->o.strategy).target : NULL;
    o.cancel = b->o.cancel;
    o.log = b->o.log;
    o.timer = &b->timer;
    MSC_TRY(msc_evaluator_create(&b->evaluator, b->o.graph, b->sample, wanted, n, &o));
    b->plan = msc_evaluator_plan(b->evaluator, 0);
    return apply_strategy(b);
}

static enum msc_status allocate(struct msc_schedule_bench *b) {
    size_t n = (size_t)b->plan->n_steps + 1;
    b->classes = msc_arena_array(&b->arena, n, sizeof b->classes[0]);
    b->class_of = msc_arena_array(&b->arena, n, sizeof b->class_of[0]);
    b->by_rule = msc_arena_array(&b->arena, n, sizeof b->by_rule[0]);
    b->class_us = msc_arena_array(&b->arena, n, sizeof b->class_us[0]);
    b->class_rule_us = msc_arena_array(&b->arena, n, sizeof b->class_rule_us[0]);
    bool has_room = b->classes && b->class_of && b->by_rule && b->class_us && b->class_rule_us;
    for (int i = 0; i < SIDES; i++) {
        b->sides[i].now = msc_arena_array(&b->arena, n, sizeof(double));
        b->sides[i].least = msc_arena_array(&b->arena, n, sizeof(double));
        has_room = has_room && b->sides[i].now && b->sides[i].least;
    }
    for (size_t i = 0; has_room && i < n; i++) {
        b->class_of[i] = -1;
    }
    return MSC_ALLOCATED(has_room);
}

static bool is_same_choice(const struct msc_variants *a, const struct msc_variants *b) {
    bool is_same = strcmp(a->work.kind, b->work.kind) == 0 && a->work.rows == b->work.rows &&
                   a->work.cols == b->work.cols && a->work.depth == b->work.depth && a->n == b->n;
    for (int i = 0; is_same && i < a->n; i++) {
        is_same = strcmp(a->names[i], b->names[i]) == 0;
    }
    return is_same;
}

static void find_classes(struct msc_schedule_bench *b) {
    const struct msc_backend_def *def = b->o.backend->def;
    for (int32_t i = 0; def->variants && i < b->plan->n_steps; i++) {
        const struct msc_step *step = &b->plan->steps[i];
        struct msc_variants v;
        if (step->kind != MSC_STEP_RUN || !def->variants(b->o.backend, step, &v) || v.n < 2) {
            continue;
        }
        size_t k = 0;
        while (k < b->n_classes && !is_same_choice(&b->classes[k].variants, &v)) {
            k++;
        }
        if (k == b->n_classes) {
            b->classes[b->n_classes++] =
                (struct msc_schedule_class){.variants = v, .joint = step->joints[0].joint->name};
            b->by_rule[k] = (uint32_t)v.by_rule;
        }
        b->classes[k].n_steps++;
        b->class_of[i] = (int32_t)k;
    }
}

static void sum_classes(double us[], const struct msc_schedule_bench *b, const double of_steps[]) {
    for (size_t i = 0; i < b->n_classes; i++) {
        us[i] = tells_steps(b) ? 0.0 : NAN;
    }
    for (int32_t i = 0; i < b->plan->n_steps; i++) {
        if (b->class_of[i] >= 0) {
            us[b->class_of[i]] += of_steps[i];
        }
    }
}

static enum msc_status bench_init(struct msc_schedule_bench *b) {
    MSC_TRY(open_evaluator(b));
    MSC_TRY(allocate(b));
    MSC_TRY(run_side(b, 1, true));
    find_classes(b);
    choose(b, b->by_rule);
    MSC_TRY(run_side(b, 1, true));
    MSC_TRY(run_side(b, 1, true));
    sum_classes(b->class_rule_us, b, b->sides[1].least);
    for (size_t i = 0; i < b->n_classes; i++) {
        b->classes[i].us = b->class_rule_us[i];
    }
    return MSC_OK;
}

enum msc_status msc_schedule_bench_open(struct msc_schedule_bench **out,
                                        const struct msc_schedule_options *options) {
    struct msc_schedule_bench *b = msc_alloc_zero(1, sizeof *b);
    MSC_TRY(MSC_ALLOCATED(b));
    b->o = *options;
    enum msc_status status = bench_init(b);
    if (status != MSC_OK) {
        msc_schedule_bench_close(b);
        return status;
    }
    *out = b;
    return MSC_OK;
}

void msc_schedule_bench_close(struct msc_schedule_bench *b) {
    if (b) {
        msc_bias_edits_destroy(b->bias_edits);
        msc_evaluator_destroy(b->evaluator);
        msc_dataset_destroy(b->sample);
        msc_arena_finish(&b->arena);
        msc_free(b);
    }
}

// ---- Classes ----------------------------------------------------------------------------------

size_t msc_schedule_bench_n(const struct msc_schedule_bench *b) {
    return b->n_classes;
}

const struct msc_schedule_class *msc_schedule_bench_class(const struct msc_schedule_bench *b,
                                                          size_t i) {
    return &b->classes[i];
}

enum msc_status msc_schedule_bench_find(size_t *out, const struct msc_schedule_bench *b,
                                        const char *joint) {
    for (int32_t i = 0; i < b->plan->n_steps; i++) {
        const struct msc_step *step = &b->plan->steps[i];
        for (int32_t k = 0; k < step->n_joints; k++) {
            if (strcmp(step->joints[k].joint->name, joint) == 0) {
                *out = (size_t)b->class_of[i];
                return b->class_of[i] >= 0
                           ? MSC_OK
                           : MSC_FAIL(MSC_E_NOT_FOUND,
                                      "joint %s: its step has only one variant on this device",
                                      joint);
            }
        }
    }
    return MSC_FAIL(MSC_E_NOT_FOUND, "there is no joint %s; `mscgym graph` lists them", joint);
}

void msc_schedule_bench_by_rule(const struct msc_schedule_bench *b, uint32_t choices[]) {
    memcpy(choices, b->by_rule, b->n_classes * sizeof choices[0]);
}

void msc_schedule_bench_kept(const struct msc_schedule_bench *b, uint32_t choices[]) {
    for (size_t i = 0; i < b->n_classes; i++) {
        const struct msc_variants *v = &b->classes[i].variants;
        choices[i] = (uint32_t)(v->kept >= 0 ? v->kept : v->by_rule);
    }
}

// ---- Measuring --------------------------------------------------------------------------------

// Steps with equal choices on both sides count the lesser time on both.
static void sum_steps(struct msc_schedule_time *out, const struct msc_schedule_bench *b,
                      const uint32_t choices[]) {
    double *point = b->sides[0].least, *rule = b->sides[1].least;
    out->us = out->rule_us = 0.0;
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        int32_t k = i < b->plan->n_steps ? b->class_of[i] : -1;
        if (k < 0 || choices[k] == b->by_rule[k]) {
            point[i] = rule[i] = fmin(point[i], rule[i]);
        }
        out->us += point[i];
        out->rule_us += rule[i];
    }
}

static void take_whole(struct msc_schedule_time *out, struct msc_schedule_bench *b) {
    out->us = b->sides[0].whole;
    out->rule_us = b->sides[1].whole;
}

static void take_classes(struct msc_schedule_time *out, struct msc_schedule_bench *b) {
    sum_classes(b->class_us, b, b->sides[0].least);
    sum_classes(b->class_rule_us, b, b->sides[1].least);
    out->class_us = b->class_us;
    out->class_rule_us = b->class_rule_us;
}

enum msc_status msc_schedule_bench_run(struct msc_schedule_time *out, struct msc_schedule_bench *b,
                                       const uint32_t choices[], int64_t n_rounds) {
    MSC_TRY(run_rounds(b, choices, 2, n_rounds));
    if (tells_steps(b)) {
        sum_steps(out, b, choices);
    } else {
        take_whole(out, b);
    }
    take_classes(out, b);
    return MSC_OK;
}

enum msc_status msc_schedule_bench_whole(struct msc_schedule_time *out, double *spread,
                                         struct msc_schedule_bench *b, const uint32_t choices[],
                                         int64_t n_rounds) {
    MSC_TRY(run_rounds(b, choices, 3, n_rounds));
    take_whole(out, b);
    take_classes(out, b);
    double other = b->sides[2].whole;
    *spread = fabs(other - out->rule_us) / fmin(other, out->rule_us);
    out->rule_us = fmin(other, out->rule_us);
    return MSC_OK;
}
