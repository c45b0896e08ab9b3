#include "env/schedule/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/engine/evaluator.h"
#include "kernels/vulkan/vulkan.h"
#include "tools/bias_edits.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

enum {
    SIDES = 3,        // the point, by rule, by rule once more
    FIRST_ROUNDS = 5, // by rule, when the bench is opened
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
    const uint32_t *running;            // [n_classes] choices of the current run
    // Of the current run, and the least of all runs by step and variant; a step without a choice
    // has variant 0. Whatever belongs to no step, such as quantising a value, is the last item.
    double *now, (*least)[MSC_MOST_VARIANTS]; // [n_steps + 1]
    double whole[SIDES];                      // least time of a whole run
    bool is_processor;                        // processors of this machine compute
};

// ---- Running ----------------------------------------------------------------------------------

static void note_time(void *payload, const struct msc_plan *plan, int32_t step, int32_t value,
                      uint64_t ns) {
    struct msc_schedule_bench *b = payload;
    (void)value;
    double *now = &b->now[step == MSC_NO_ID ? plan->n_steps : step];
    *now = (isnan(*now) ? 0.0 : *now) + (double)ns / 1000.0;
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

static uint64_t now_ns(const struct msc_schedule_bench *b) {
    return b->is_processor ? msc_clock_cpu_ns() : msc_clock_ns();
}

// The index of the variant of a step or of the last item.
static uint32_t variant_of(const struct msc_schedule_bench *b, int32_t step,
                           const uint32_t choices[]) {
    int32_t k = step < b->plan->n_steps ? b->class_of[step] : -1;
    return k >= 0 ? choices[k] : 0;
}

static enum msc_status run_side(struct msc_schedule_bench *b, int side) {
    const struct msc_sink sink = {.batch = take_batch};
    struct msc_eval_trial trial = {.edits = b->edits};
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        b->now[i] = NAN;
    }
    uint64_t begin_ns = now_ns(b);
    MSC_TRY(msc_evaluator_run(b->evaluator, &trial, 1, &sink, MSC_EVAL_FRESH));
    b->whole[side] = fmin(b->whole[side], (double)(now_ns(b) - begin_ns) / 1000.0);
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        double *least = &b->least[i][variant_of(b, i, b->running)];
        *least = fmin(*least, b->now[i]); // which is NaN if the step did not run
    }
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

static void choose(struct msc_schedule_bench *b, const uint32_t choices[]) {
    b->running = choices;
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
        for (int i = 0; round <= 0 && i < n_sides; i++) {
            b->whole[i] = INFINITY;
        }
        for (int i = 0; i < n_sides; i++) {
            int side = round % 2 == 0 ? i : n_sides - 1 - i;
            choose(b, side == 0 ? choices : b->by_rule);
            MSC_TRY(run_side(b, side));
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

static void forget_times(struct msc_schedule_bench *b) {
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        for (int k = 0; k < MSC_MOST_VARIANTS; k++) {
            b->least[i][k] = INFINITY;
        }
    }
}

static enum msc_status allocate(struct msc_schedule_bench *b) {
    size_t n = (size_t)b->plan->n_steps + 1;
    b->classes = msc_arena_array(&b->arena, n, sizeof b->classes[0]);
    b->class_of = msc_arena_array(&b->arena, n, sizeof b->class_of[0]);
    b->by_rule = msc_arena_array(&b->arena, n, sizeof b->by_rule[0]);
    b->class_us = msc_arena_array(&b->arena, n, sizeof b->class_us[0]);
    b->class_rule_us = msc_arena_array(&b->arena, n, sizeof b->class_rule_us[0]);
    b->now = msc_arena_array(&b->arena, n, sizeof b->now[0]);
    b->least = msc_arena_array(&b->arena, n, sizeof b->least[0]);
    bool has_room = b->classes && b->class_of && b->by_rule && b->class_us && b->class_rule_us &&
                    b->now && b->least;
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

static void sum_classes(double us[], const struct msc_schedule_bench *b, const uint32_t choices[]) {
    for (size_t i = 0; i < b->n_classes; i++) {
        us[i] = tells_steps(b) ? 0.0 : NAN;
    }
    for (int32_t i = 0; i < b->plan->n_steps; i++) {
        if (b->class_of[i] >= 0) {
            us[b->class_of[i]] += b->least[i][variant_of(b, i, choices)];
        }
    }
}

// True for the cpu backend and for software drivers of Vulkan.
static bool computes_here(const struct msc_backend *backend) {
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    int n =
        backend->def == &msc_backend_vulkan ? msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES) : 0;
    int i = backend->options.device;
    return backend->def != &msc_backend_vulkan || (i < n && !devices[i].is_gpu);
}

static enum msc_status bench_init(struct msc_schedule_bench *b) {
    b->is_processor = computes_here(b->o.backend);
    MSC_TRY(open_evaluator(b));
    MSC_TRY(allocate(b));
    forget_times(b);
    MSC_TRY(run_side(b, 1)); // also packs weights
    find_classes(b);
    forget_times(b);
    choose(b, b->by_rule);
    for (int i = 0; i < FIRST_ROUNDS; i++) {
        MSC_TRY(run_side(b, 1));
    }
    sum_classes(b->class_rule_us, b, b->by_rule);
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

static double sum_steps(const struct msc_schedule_bench *b, const uint32_t choices[]) {
    double us = 0.0;
    for (int32_t i = 0; i <= b->plan->n_steps; i++) {
        double least = b->least[i][variant_of(b, i, choices)];
        us += isinf(least) ? 0.0 : least; // infinite if the step does not run
    }
    return us;
}

static void take_whole(struct msc_schedule_time *out, struct msc_schedule_bench *b) {
    out->us = b->whole[0];
    out->rule_us = b->whole[1];
}

static void take_classes(struct msc_schedule_time *out, struct msc_schedule_bench *b,
                         const uint32_t choices[]) {
    sum_classes(b->class_us, b, choices);
    sum_classes(b->class_rule_us, b, b->by_rule);
    out->class_us = b->class_us;
    out->class_rule_us = b->class_rule_us;
}

enum msc_status msc_schedule_bench_run(struct msc_schedule_time *out, struct msc_schedule_bench *b,
                                       const uint32_t choices[], int64_t n_rounds) {
    MSC_TRY(run_rounds(b, choices, 2, n_rounds));
    if (tells_steps(b)) {
        out->us = sum_steps(b, choices);
        out->rule_us = sum_steps(b, b->by_rule);
    } else {
        take_whole(out, b);
    }
    take_classes(out, b, choices);
    return MSC_OK;
}

enum msc_status msc_schedule_bench_whole(struct msc_schedule_time *out, double *spread,
                                         struct msc_schedule_bench *b, const uint32_t choices[],
                                         int64_t n_rounds) {
    MSC_TRY(run_rounds(b, choices, 3, n_rounds));
    take_whole(out, b);
    take_classes(out, b, choices);
    double other = b->whole[2];
    *spread = fabs(other - out->rule_us) / fmin(other, out->rule_us);
    out->rule_us = fmin(other, out->rule_us);
    return MSC_OK;
}
