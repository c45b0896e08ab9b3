#include "tools/second_moment.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/lowering/gemm.h"
#include "tools/linear_algebra.h"
#include "tools/moment_sums.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

// Trials of the evaluator. TRIAL runs the plan, or the float model if there is no plan; FLOAT_TRIAL
// runs the float model next to a plan. Their rows are the two sides X and F of tools/moment_sums.h.
enum { TRIAL, FLOAT_TRIAL };

// Windows of a convolution that are copied together, channel by channel.
enum { WINDOWS = 16 };

// Rows that are held back at least, of twice as many or more.
enum { LEAST_HELD = 8 };

// One use of a weight while rows are gathered. Rows are added in the order of places (batches, or
// chunks of sequences), so rows of later places wait.
struct use {
    int32_t weight_slot, input_slot; // input_slot MSC_NO_ID: no moment
    int64_t n_groups, n_columns;
    int64_t *count;     // [n_places] rows taken from the place
    float **waiting[2]; // [n_places] of each trial: rows [n_groups, count, n_columns], or NULL
    size_t turn;        // next place to add
    bool is_adding;     // a thread is adding to the sums
    bool only_means;
    struct msc_moment_sums sums;
    // Rows from first_held on, counted over all places, are held back.
    double n_all; // rows that could be sampled
    int64_t n_seen, first_held, n_held, n_to_hold;
    float *held; // [n_groups, n_to_hold, n_columns], of which n_held rows are filled
};

struct gathering {
    struct msc_evaluator *ev;
    const struct msc_moment_options *options;
    struct msc_arena arena;
    pthread_mutex_t lock; // guards the turns and the waiting rows
    size_t n_places;      // batches, or chunks of sequences
    int32_t n_parts;
    struct use *uses;
    size_t n_uses;
    int32_t *use_of_slot; // [n_slots] first use that reads this input slot; `next` links to the
                          // other uses
    int32_t *next;        // [n_uses] another use that reads the same slot
    size_t n_done, n_all; // places summed and in total, over all uses
};

// ---- Selecting rows ---------------------------------------------------------------------------

static int64_t positions_of(const struct msc_gemm_desc *d) {
    int64_t n = 1;
    for (int a = 0; d->kind == MSC_GEMM_CONV && a < d->n_spatial; a++) {
        n *= d->out[a];
    }
    return n;
}

static int64_t taps_of(const struct msc_gemm_desc *d) {
    int64_t n = 1;
    for (int a = 0; d->kind == MSC_GEMM_CONV && a < d->n_spatial; a++) {
        n *= d->kernel[a];
    }
    return n;
}

// Describes as a product the joint that reads the weight in a plan. False if the joint is not a
// product.
static bool describe_use(struct msc_gemm_desc *out, const struct msc_plan *plan, int32_t slot,
                         int32_t part) {
    struct msc_gemm_spec spec;
    for (int32_t i = 0; i < plan->sites.n_slots; i++) {
        int32_t joint = plan->sites.slots[i].joint;
        if (plan->slot_ids[i] != slot || joint == MSC_NO_ID || plan->parts[joint] != part) {
            continue;
        }
        bool is = plan->sites.slots[i].operand == 1 &&
                  msc_gemm_describe(&spec, plan->graph, msc_graph_joint(plan->graph, joint)) &&
                  (spec.desc.kind == MSC_GEMM_CONV || spec.desc.kind == MSC_GEMM_LINEAR);
        *out = spec.desc;
        return is;
    }
    return false;
}

// The slot of the activation that a weight is multiplied by.
static int32_t input_slot_of(const struct msc_sites *sites, int32_t weight_slot) {
    const struct msc_slot *w = &sites->slots[weight_slot];
    int32_t found = w->operand == 1 ? msc_sites_find_slot(sites, w->joint, 0) : MSC_NO_ID;
    return found != MSC_NO_ID && sites->slots[found].kind == MSC_SITE_ACTIVATION ? found
                                                                                 : MSC_NO_ID;
}

// The most rows of a use.
static double most_rows(const struct gathering *g, const struct use *u) {
    const struct msc_moment_options *o = g->options;
    double of_columns = o->most_of_column > 0 ? o->most_of_column * (double)u->n_columns : INFINITY;
    return fmin((double)o->n_rows, of_columns);
}

// Counts the rows of all places, and sets how many to take from each.
static enum msc_status count_rows(struct gathering *g, struct use *u) {
    double total = 0;
    struct msc_gemm_desc d;
    u->count = msc_arena_array(&g->arena, g->n_places + 1, sizeof(u->count[0]));
    MSC_TRY(MSC_ALLOCATED(u->count));
    for (size_t p = 0; p < g->n_places; p++) {
        const struct msc_plan *plan = msc_evaluator_plan(g->ev, p / (size_t)g->n_parts);
        if ((int32_t)(p % (size_t)g->n_parts) >= plan->n_parts) {
            continue; // this sequence has fewer chunks
        }
        if (!describe_use(&d, plan, u->weight_slot, (int32_t)(p % (size_t)g->n_parts))) {
            u->input_slot = MSC_NO_ID;
            return MSC_OK;
        }
        u->n_groups = d.groups;
        u->n_columns = d.in_channels / d.groups * taps_of(&d);
        u->count[p] = d.batch * positions_of(&d);
        total += (double)u->count[p];
    }
    u->n_all = total;
    double share = fmin(1, most_rows(g, u) / fmax(1, total));
    for (size_t p = 0; p < g->n_places; p++) {
        int64_t n = (int64_t)((double)u->count[p] * share);
        u->count[p] = n == 0 && u->count[p] > 0 ? 1 : n;
    }
    return MSC_OK;
}

// ---- Gathering --------------------------------------------------------------------------------

// The stride of each axis of a view, in elements.
static void strides_of(int64_t strides[MSC_MAX_DIMS], const struct msc_view *v) {
    int64_t dims[MSC_MAX_DIMS], step = 1;
    int axes[MSC_MAX_DIMS];
    msc_view_physical(v, dims, axes);
    for (int i = v->n_dims - 1; i >= 0; i--) {
        strides[axes[i]] = step;
        step *= dims[i];
    }
}

// Sets out [taps] to the offsets of the elements of the first channel that output position `at` of
// a convolution reads. -1: padding.
static void find_window(int64_t out[], const struct msc_gemm_desc *d, const int64_t strides[],
                        int64_t at) {
    int64_t corner[3], taps = taps_of(d);
    for (int a = d->n_spatial - 1; a >= 0; a--) {
        corner[a] = at % d->out[a] * d->strides[a] - d->pad_begin[a];
        at /= d->out[a];
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap, offset = at * strides[0];
        for (int a = d->n_spatial - 1; a >= 0; a--) {
            int64_t i = corner[a] + rest % d->kernel[a] * d->dilation[a];
            rest /= d->kernel[a];
            bool is_inside = i >= 0 && i < d->in[a] && offset >= 0;
            offset = is_inside ? offset + i * strides[2 + a] : -1;
        }
        out[tap] = offset;
    }
}

// Copies n windows at these offsets [n][taps] to rows `first` and following of rows [n_groups,
// count, n_columns]. Column (channel, tap) of a group is in the weight's order.
static void gather_windows(float rows[], int64_t count, int64_t first, const int64_t offsets[],
                           int64_t n, const struct msc_gemm_desc *d, const struct msc_view *v,
                           int64_t stride) {
    int64_t taps = taps_of(d), channels = d->in_channels / d->groups;
    for (int64_t c = 0; c < d->in_channels; c++) {
        const float *x = (const float *)v->data + c * stride;
        float *to = rows + (c / channels * count + first) * channels * taps + c % channels * taps;
        for (int64_t i = 0; i < n; i++, to += channels * taps) {
            for (int64_t tap = 0; tap < taps; tap++) {
                int64_t offset = offsets[i * taps + tap];
                to[tap] = offset < 0 ? 0 : x[offset];
            }
        }
    }
}

// Draws rows of a place at random and copies them into rows [n_groups, count, n_columns]. offsets
// [WINDOWS, taps]
static void gather_rows(float rows[], int64_t offsets[], const struct use *u,
                        const struct gathering *g, size_t place, const struct msc_gemm_desc *d,
                        const struct msc_view *v) {
    struct msc_rng rng;
    int64_t n = u->n_columns, count = u->count[place], strides[MSC_MAX_DIMS], taps = taps_of(d);
    double length = (double)(d->batch * positions_of(d)) / (double)count;
    strides_of(strides, v);
    msc_rng_seed(&rng, g->options->seed + (uint64_t)place, (uint64_t)u->weight_slot);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = (int64_t)(((double)i + msc_rng_double(&rng)) * length), now = i % WINDOWS;
        if (d->kind == MSC_GEMM_LINEAR) {
            memcpy(rows + i * n, (const float *)v->data + at * n, (size_t)n * sizeof(rows[0]));
            continue;
        }
        find_window(offsets + now * taps, d, strides, at);
        if (now + 1 == WINDOWS || i + 1 == count) {
            gather_windows(rows, count, i - now, offsets, now + 1, d, v, strides[1]);
        }
    }
}

// Quantises the rows as the plan does for the joint.
static void quantize_rows(float rows[], const struct use *u, const struct msc_quant *quant,
                          int64_t count, const struct msc_gemm_desc *d) {
    int64_t n_channels = d->in_channels / d->groups, n_taps = taps_of(d);
    for (int64_t group = 0; group < u->n_groups; group++) {
        float *x = rows + group * count * u->n_columns;
        if (quant->n == 1) {
            msc_quant_apply_run(x, x, count * u->n_columns, quant);
            continue;
        }
        for (int64_t i = 0; i < count * n_channels; i++) {
            int64_t channel = group * n_channels + i % n_channels;
            msc_fake_quantize_run(x + i * n_taps, x + i * n_taps, n_taps, quant->scales[channel],
                                  quant->zero_points[channel], quant->low, quant->high);
        }
    }
}

static size_t n_trials(const struct gathering *g) {
    return g->options->edits ? 2 : 1;
}

// Are the rows of all trials there for the next place? First advances past places without rows.
static bool has_turn(struct use *u, const struct gathering *g) {
    while (u->turn < g->n_places && u->count[u->turn] == 0) {
        u->turn++;
    }
    return u->turn < g->n_places && u->waiting[TRIAL][u->turn] &&
           (n_trials(g) == 1 || u->waiting[FLOAT_TRIAL][u->turn]);
}

static void tell_added(struct gathering *g) {
    const struct msc_moment_options *o = g->options;
    g->n_done++;
    if (o->progress) {
        o->progress(o->payload, g->n_done * g->n_uses / g->n_all);
    }
}

static bool is_row_finite(const float x[], int64_t n) {
    int32_t n_bad = 0;
    for (int64_t i = 0; i < n; i++) {
        n_bad |= !(fabsf(x[i]) <= FLT_MAX);
    }
    return n_bad == 0;
}

// Clears rows in [n_groups, count, n_columns] that have NaN or infinity on either side, so that
// these rows add nothing; no weight can compensate for such values. Returns the number of cleared
// rows.
static int64_t clear_rows(const struct use *u, float *const sides[2], int64_t count) {
    int64_t n = u->n_columns, n_cleared = 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_finite = true;
        for (int64_t k = 0; k < 2 * u->n_groups; k++) {
            const float *rows = sides[k % 2];
            is_finite = is_finite && (!rows || is_row_finite(rows + (k / 2 * count + i) * n, n));
        }
        for (int64_t k = 0; !is_finite && k < 2 * u->n_groups; k++) {
            if (sides[k % 2]) {
                memset(sides[k % 2] + (k / 2 * count + i) * n, 0, (size_t)n * sizeof(float));
            }
        }
        n_cleared += !is_finite;
    }
    return n_cleared;
}

// Copies the finite ones of the rows that are held back. rows [n_groups, count, n_columns]
static void hold_back(struct use *u, const float rows[], int64_t count) {
    int64_t n = u->n_columns;
    for (int64_t i = 0; i < count; i++, u->n_seen++) {
        bool is_held = u->n_to_hold > 0 && u->n_seen >= u->first_held;
        for (int64_t g = 0; is_held && g < u->n_groups; g++) {
            is_held = is_row_finite(rows + (g * count + i) * n, n);
        }
        for (int64_t g = 0; is_held && g < u->n_groups; g++) {
            memcpy(u->held + (g * u->n_to_hold + u->n_held) * n, rows + (g * count + i) * n,
                   (size_t)n * sizeof(rows[0]));
        }
        u->n_held += is_held;
    }
}

// Gives the rows held back to the moment.
static void give_held(struct msc_moment *m, struct use *u) {
    size_t n_of_group = (size_t)(u->n_held * u->n_columns);
    for (int64_t g = 1; n_of_group > 0 && g < u->n_groups; g++) {
        memmove(u->held + (size_t)g * n_of_group, u->held + g * u->n_to_hold * u->n_columns,
                n_of_group * sizeof(u->held[0]));
    }
    m->held = u->n_held > 0 ? u->held : NULL;
    m->n_held = u->n_held;
    u->held = u->n_held > 0 ? NULL : u->held;
}

// Hands in the rows of a place and a trial (takes ownership), then adds all rows whose turn it is.
// Rows that arrive twice because a trial was retried are dropped.
static void hand_in(struct gathering *g, struct use *u, size_t trial, size_t place, float *rows) {
    pthread_mutex_lock(&g->lock);
    bool is_new = place >= u->turn && !u->waiting[trial][place];
    if (is_new) {
        u->waiting[trial][place] = rows;
    } else {
        msc_free(rows);
    }
    while (!u->is_adding && has_turn(u, g)) {
        float *sides[2] = {NULL};
        for (size_t t = 0; t < n_trials(g); t++) {
            sides[t] = u->waiting[t][u->turn];
        }
        u->is_adding = true;
        pthread_mutex_unlock(&g->lock);
        hold_back(u, sides[TRIAL], u->count[u->turn]);
        int64_t n_cleared = clear_rows(u, sides, u->count[u->turn]);
        msc_moment_sums_add(&u->sums, sides[TRIAL], sides[FLOAT_TRIAL], u->count[u->turn]);
        u->sums.n_rows -= n_cleared;
        pthread_mutex_lock(&g->lock);
        for (size_t t = 0; t < n_trials(g); t++) {
            msc_free(sides[t]);
            u->waiting[t][u->turn] = NULL;
        }
        u->turn++;
        u->is_adding = false;
        tell_added(g);
    }
    pthread_mutex_unlock(&g->lock);
}

static enum msc_status gather_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                   int32_t slot, const struct msc_view *value) {
    struct gathering *g = payload;
    struct msc_gemm_desc d;
    size_t place = batch * (size_t)g->n_parts + (size_t)part;
    const struct msc_quant *quant =
        trial == TRIAL && g->options->edits ? msc_edit_quant(g->options->edits[slot]) : NULL;
    for (int32_t i = g->use_of_slot[slot]; i != MSC_NO_ID; i = g->next[i]) {
        struct use *u = &g->uses[i];
        if (!describe_use(&d, msc_evaluator_plan(g->ev, batch), u->weight_slot, part)) {
            continue;
        }
        int64_t count = u->count[place];
        size_t n_offsets = (size_t)(WINDOWS * taps_of(&d));
        float *rows = msc_alloc((size_t)(u->n_groups * count * u->n_columns) * sizeof(rows[0]) + 1);
        int64_t *offsets = msc_alloc(n_offsets * sizeof(offsets[0]));
        if (!rows || !offsets) {
            msc_free(rows);
            msc_free(offsets);
            return MSC_FAIL(MSC_E_NOMEM, "out of memory");
        }
        gather_rows(rows, offsets, u, g, place, &d, value);
        msc_free(offsets);
        if (quant) {
            quantize_rows(rows, u, quant, count, &d);
        }
        hand_in(g, u, trial, place, rows);
    }
    return MSC_OK;
}

static bool wants_slot(void *payload, int32_t slot) {
    const struct gathering *g = payload;
    return g->use_of_slot[slot] != MSC_NO_ID;
}

// ---- Measuring --------------------------------------------------------------------------------

// Columns per block: as few blocks as the limit allows, of equal size.
static int64_t block_of(const struct gathering *g, const struct use *u) {
    int64_t most = g->options->most_columns > 0 ? g->options->most_columns : u->n_columns;
    int64_t n_blocks = (u->n_columns + most - 1) / most;
    return (u->n_columns + n_blocks - 1) / n_blocks;
}

// Decides how many rows are held back, and whether there are products.
static void use_rows(struct use *u, const struct gathering *g) {
    const struct msc_moment_options *o = g->options;
    int64_t n_rows = 0;
    for (size_t p = 0; p < g->n_places; p++) {
        n_rows += u->count[p];
    }
    double n_columns = (double)block_of(g, u);
    u->only_means = o->only_means || (double)n_rows < o->least_rows * n_columns;
    if (o->held_back > 0 && u->n_all < o->held_below * n_columns) {
        double least = fmin(LEAST_HELD, (double)n_rows / 2);
        u->n_to_hold = (int64_t)ceil(fmax((double)n_rows * o->held_back, least));
        u->first_held = n_rows - u->n_to_hold;
    }
}

// Bytes that a use needs: its sums, and the rows that wait. At most one place per thread waits, so
// the rows of the largest place are counted once per thread.
static uint64_t bytes_of(const struct gathering *g, const struct use *u) {
    int64_t most = 0;
    for (size_t p = 0; p < g->n_places; p++) {
        most = u->count[p] > most ? u->count[p] : most;
    }
    uint64_t n_elements = (uint64_t)(u->n_groups * most * u->n_columns);
    uint64_t n_waiting = n_trials(g) * (uint64_t)msc_evaluator_n_threads(g->ev);
    uint64_t of_sums = u->only_means ? (uint64_t)(u->n_groups * u->n_columns) * sizeof(double)
                                     : msc_moment_sums_bytes(u->n_groups, u->n_columns,
                                                             block_of(g, u), n_trials(g) > 1);
    of_sums += (uint64_t)(u->n_groups * u->n_to_hold * u->n_columns) * sizeof(float);
    return of_sums + n_waiting * n_elements * sizeof(float);
}

// Counts places, and the uses that fit in memory.
static enum msc_status plan_gathering(struct gathering *g, const int32_t slots[], size_t n) {
    const struct msc_sites *sites = msc_evaluator_sites(g->ev);
    size_t n_batches = msc_dataset_n_batches(msc_evaluator_dataset(g->ev));
    uint64_t n_bytes = 0;
    g->n_parts = 1;
    for (size_t b = 0; b < n_batches; b++) {
        int32_t n_parts = msc_evaluator_plan(g->ev, b)->n_parts;
        g->n_parts = n_parts > g->n_parts ? n_parts : g->n_parts;
    }
    g->n_places = n_batches * (size_t)g->n_parts;
    g->uses = msc_arena_array(&g->arena, n, sizeof(g->uses[0]));
    g->next = msc_arena_array(&g->arena, n, sizeof(g->next[0]));
    g->use_of_slot = msc_arena_array(&g->arena, (size_t)sites->n_slots + 1, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(g->uses && g->next && g->use_of_slot));
    for (; g->n_uses < n; g->n_uses++) {
        struct use *u = &g->uses[g->n_uses];
        u->weight_slot = slots[g->n_uses];
        u->input_slot = input_slot_of(sites, u->weight_slot);
        if (u->input_slot == MSC_NO_ID) {
            continue;
        }
        MSC_TRY(count_rows(g, u));
        if (u->input_slot == MSC_NO_ID) {
            continue; // the joint is not a convolution or linear layer
        }
        use_rows(u, g);
        n_bytes += bytes_of(g, u);
        if (g->n_uses > 0 && n_bytes > g->options->memory_bytes) {
            break;
        }
    }
    return MSC_OK;
}

static enum msc_status use_begin(struct use *u, struct gathering *g) {
    for (size_t t = 0; t < n_trials(g); t++) {
        u->waiting[t] = msc_alloc_zero(g->n_places + 1, sizeof(u->waiting[t][0]));
        MSC_TRY(MSC_ALLOCATED(u->waiting[t]));
    }
    for (size_t p = 0; p < g->n_places; p++) {
        g->n_all += u->count[p] > 0;
    }
    u->held = msc_alloc((size_t)(u->n_groups * u->n_to_hold * u->n_columns) * sizeof(float) + 1);
    MSC_TRY(MSC_ALLOCATED(u->held));
    return u->only_means ? msc_moment_sums_init_means(&u->sums, u->n_groups, u->n_columns)
                         : msc_moment_sums_init(&u->sums, u->n_groups, u->n_columns, block_of(g, u),
                                                n_trials(g) > 1);
}

static void use_finish(struct use *u, size_t n_places) {
    for (size_t t = 0; t < 2; t++) {
        for (size_t p = 0; u->waiting[t] && p < n_places; p++) {
            msc_free(u->waiting[t][p]);
        }
        msc_free(u->waiting[t]);
        u->waiting[t] = NULL;
    }
    msc_free(u->held);
    u->held = NULL;
    msc_moment_sums_finish(&u->sums);
}

static enum msc_status gathering_run(struct gathering *g) {
    int32_t n_slots = msc_evaluator_sites(g->ev)->n_slots;
    bool has_any = false;
    for (int32_t i = 0; i < n_slots; i++) {
        g->use_of_slot[i] = MSC_NO_ID;
    }
    for (size_t i = 0; i < g->n_uses; i++) {
        struct use *u = &g->uses[i];
        if (u->input_slot != MSC_NO_ID) {
            MSC_TRY(use_begin(u, g));
            g->next[i] = g->use_of_slot[u->input_slot];
            g->use_of_slot[u->input_slot] = (int32_t)i;
            has_any = true;
        }
    }
    struct msc_sink sink = {.slot = gather_slot, .wants_slot = wants_slot, .payload = g};
    struct msc_eval_trial trials[2] = {{.edits = g->options->edits}};
    if (has_any) {
        // Weights under a plan are measured in topological order.
        unsigned flags = g->options->edits ? MSC_EVAL_ONWARD : 0;
        MSC_TRY(msc_evaluator_run(g->ev, trials, n_trials(g), &sink, flags));
    }
    for (size_t t = 0; t < n_trials(g); t++) {
        if (trials[t].status != MSC_OK) {
            return msc_status_restore(trials[t].status, trials[t].message);
        }
    }
    return MSC_OK;
}

enum msc_status msc_moments_measure(struct msc_moment moments[], size_t *n_done,
                                    const int32_t slots[], size_t n, struct msc_evaluator *ev,
                                    const struct msc_moment_options *options) {
    struct gathering g = {.ev = ev, .options = options};
    enum msc_status status = MSC_OK;
    pthread_mutex_init(&g.lock, NULL);
    msc_linear_algebra_begin();
    MSC_TRY_OUT(plan_gathering(&g, slots, n));
    MSC_TRY_OUT(gathering_run(&g));
    for (size_t i = 0; i < g.n_uses; i++) {
        if (g.uses[i].sums.n_rows > 0) {
            MSC_TRY_OUT(msc_moment_sums_end(&moments[i], &g.uses[i].sums));
            give_held(&moments[i], &g.uses[i]);
        }
        use_finish(&g.uses[i], g.n_places);
    }
    *n_done = g.n_uses;
out:
    for (size_t i = 0; i < g.n_uses; i++) {
        use_finish(&g.uses[i], g.n_places);
    }
    pthread_mutex_destroy(&g.lock);
    msc_arena_finish(&g.arena);
    return status;
}
