#include "tools/second_moment.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/lowering/gemm.h"
#include "tools/linear_algebra.h"

#include <math.h>
#include <string.h>

// Rows whose products are added up in float32 before they go into doubles.
enum { CHUNK = 256 };

// One use of a weight while rows are gathered.
struct use {
    int32_t weight_slot, input_slot; // input_slot MSC_NO_ID: it has no moment
    int64_t n_groups, n_columns, n_rows;
    int64_t *first; // [n_places] row that the place's first one is
    int64_t *count; // [n_places] rows of the place
    float *x;       // [n_groups, n_rows, n_columns]
};

struct gathering {
    struct msc_evaluator *ev;
    const struct msc_moment_options *options;
    struct msc_arena arena;
    size_t n_places; // batches, or chunks of sequences
    int32_t n_parts;
    struct use *uses;
    size_t n_uses;
    int32_t *use_of_slot; // [n_slots] by the slots of inputs: the first use, then `next`
    int32_t *next;        // [n_uses] that reads the same slot
};

static enum msc_status second_moment_no_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for the second moments of weights' inputs");
}

// ---- Which rows -------------------------------------------------------------------------------

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

// The joint that reads the weight in a plan, as a product; false when it is none.
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

// The slot of the activation beside a weight.
static int32_t input_slot_of(const struct msc_sites *sites, int32_t weight_slot) {
    const struct msc_slot *w = &sites->slots[weight_slot];
    int32_t found = w->operand == 1 ? msc_sites_find_slot(sites, w->joint, 0) : MSC_NO_ID;
    return found != MSC_NO_ID && sites->slots[found].kind == MSC_SITE_ACTIVATION ? found
                                                                                 : MSC_NO_ID;
}

// How many rows there are in all places, and of each its share.
static enum msc_status count_rows(struct gathering *g, struct use *u) {
    double total = 0;
    struct msc_gemm_desc d;
    u->first = msc_arena_array(&g->arena, g->n_places + 1, sizeof(u->first[0]));
    u->count = msc_arena_array(&g->arena, g->n_places + 1, sizeof(u->count[0]));
    if (!u->first || !u->count) {
        return second_moment_no_memory();
    }
    for (size_t p = 0; p < g->n_places; p++) {
        const struct msc_plan *plan = msc_evaluator_plan(g->ev, p / (size_t)g->n_parts);
        if ((int32_t)(p % (size_t)g->n_parts) >= plan->n_parts) {
            continue; // a shorter sequence
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
    double share = total > (double)g->options->n_rows ? (double)g->options->n_rows / total : 1;
    for (size_t p = 0; p < g->n_places; p++) {
        int64_t n = (int64_t)((double)u->count[p] * share);
        u->count[p] = n == 0 && u->count[p] > 0 ? 1 : n;
        u->first[p] = u->n_rows;
        u->n_rows += u->count[p];
    }
    return MSC_OK;
}

// ---- Gathering --------------------------------------------------------------------------------

// Elements between neighbours along an axis of a view.
static void strides_of(int64_t strides[MSC_MAX_DIMS], const struct msc_view *v) {
    int64_t dims[MSC_MAX_DIMS], step = 1;
    int axes[MSC_MAX_DIMS];
    msc_view_physical(v, dims, axes);
    for (int i = v->n_dims - 1; i >= 0; i--) {
        strides[axes[i]] = step;
        step *= dims[i];
    }
}

// What position `at` of a convolution's output sums up, for all groups: column (channel, tap) of
// group g lies at to[g * n_rows * n_columns + column].
static void gather_window(float to[], const struct use *u, const struct msc_gemm_desc *d,
                          const struct msc_view *v, int64_t at) {
    int64_t strides[MSC_MAX_DIMS], corner[3], taps = taps_of(d);
    const float *x = v->data;
    int64_t channels = d->in_channels / d->groups;
    strides_of(strides, v);
    for (int a = d->n_spatial - 1; a >= 0; a--) {
        corner[a] = at % d->out[a] * d->strides[a] - d->pad_begin[a];
        at /= d->out[a];
    }
    x += at * strides[0];
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t rest = tap, offset = 0;
        for (int a = d->n_spatial - 1; a >= 0; a--) {
            int64_t i = corner[a] + rest % d->kernel[a] * d->dilation[a];
            rest /= d->kernel[a];
            bool is_inside = i >= 0 && i < d->in[a] && offset >= 0;
            offset = is_inside ? offset + i * strides[2 + a] : -1;
        }
        for (int64_t c = 0; c < d->in_channels; c++) {
            int64_t group = c / channels, column = c % channels * taps + tap;
            to[group * u->n_rows * u->n_columns + column] =
                offset < 0 ? 0 : x[offset + c * strides[1]];
        }
    }
}

static void gather_rows(struct use *u, const struct gathering *g, size_t place,
                        const struct msc_gemm_desc *d, const struct msc_view *v) {
    struct msc_rng rng;
    double length = (double)(d->batch * positions_of(d)) / (double)u->count[place];
    msc_rng_seed(&rng, g->options->seed + (uint64_t)place, (uint64_t)u->weight_slot);
    for (int64_t i = 0; i < u->count[place]; i++) {
        int64_t at = (int64_t)(((double)i + msc_rng_double(&rng)) * length);
        float *to = u->x + (u->first[place] + i) * u->n_columns;
        if (d->kind == MSC_GEMM_LINEAR) {
            memcpy(to, (const float *)v->data + at * u->n_columns,
                   (size_t)u->n_columns * sizeof(to[0]));
        } else {
            gather_window(to, u, d, v, at);
        }
    }
}

static enum msc_status gather_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                   int32_t slot, const struct msc_view *value) {
    struct gathering *g = payload;
    struct msc_gemm_desc d;
    size_t place = batch * (size_t)g->n_parts + (size_t)part;
    (void)trial;
    for (int32_t i = g->use_of_slot[slot]; i != MSC_NO_ID; i = g->next[i]) {
        struct use *u = &g->uses[i];
        if (describe_use(&d, msc_evaluator_plan(g->ev, batch), u->weight_slot, part)) {
            gather_rows(u, g, place, &d, value);
        }
    }
    return MSC_OK;
}

// ---- From rows to moments ---------------------------------------------------------------------

static void add_means(double means[], const float x[], int64_t n_rows, int64_t n) {
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t k = 0; k < n; k++) {
            means[k] += x[r * n + k];
        }
    }
    for (int64_t k = 0; k < n; k++) {
        means[k] /= (double)n_rows;
    }
}

// One group's; `chunk` [n, n] and `sum` [n, n] are room.
static void multiply_rows(float h[], const float x[], int64_t n_rows, int64_t n, float chunk[],
                          double sum[]) {
    memset(sum, 0, (size_t)(n * n) * sizeof(sum[0]));
    for (int64_t first = 0; first < n_rows; first += CHUNK) {
        int64_t count = n_rows - first < CHUNK ? n_rows - first : CHUNK;
        memset(chunk, 0, (size_t)(n * n) * sizeof(chunk[0]));
        msc_add_gram_f32(chunk, x + first * n, count, n);
        for (int64_t i = 0; i < n * n; i++) {
            sum[i] += chunk[i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = i; k < n; k++) {
            h[i * n + k] = h[k * n + i] = (float)(sum[i * n + k] / (double)n_rows);
        }
    }
}

static enum msc_status make_moment(struct msc_moment *m, const struct use *u, int n_threads) {
    size_t n = (size_t)u->n_columns, n_groups = (size_t)u->n_groups;
    bool has_room = true;
    *m = (struct msc_moment){u->n_groups, u->n_columns, u->n_rows, NULL, NULL};
    m->h = msc_alloc(n_groups * n * n * sizeof(m->h[0]) + 1);
    m->means = msc_alloc_zero(n_groups * n + 1, sizeof(m->means[0]));
    if (!m->h || !m->means) {
        return second_moment_no_memory();
    }
#pragma omp parallel num_threads(n_threads) reduction(&& : has_room)
    {
        float *chunk = msc_alloc(n * n * sizeof(chunk[0]) + 1);
        double *sum = msc_alloc(n * n * sizeof(sum[0]) + 1);
        has_room = chunk && sum;
#pragma omp for schedule(dynamic)
        for (size_t g = 0; g < n_groups; g++) {
            const float *x = u->x + g * (size_t)u->n_rows * n;
            if (has_room) {
                add_means(m->means + g * n, x, u->n_rows, (int64_t)n);
                multiply_rows(m->h + g * n * n, x, u->n_rows, (int64_t)n, chunk, sum);
            }
        }
        msc_free(chunk);
        msc_free(sum);
    }
    return has_room ? MSC_OK : second_moment_no_memory();
}

void msc_moment_finish(struct msc_moment *m) {
    msc_free(m->h);
    msc_free(m->means);
    *m = (struct msc_moment){0};
}

// ---- Measuring --------------------------------------------------------------------------------

static uint64_t bytes_of(const struct use *u) {
    uint64_t n = (uint64_t)u->n_columns, groups = (uint64_t)u->n_groups;
    return groups * n * ((uint64_t)u->n_rows + n) * sizeof(float);
}

// Places, and the uses that memory has room for.
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
    if (!g->uses || !g->next || !g->use_of_slot) {
        return second_moment_no_memory();
    }
    for (; g->n_uses < n; g->n_uses++) {
        struct use *u = &g->uses[g->n_uses];
        u->weight_slot = slots[g->n_uses];
        u->input_slot = input_slot_of(sites, u->weight_slot);
        if (u->input_slot == MSC_NO_ID) {
            continue;
        }
        MSC_TRY(count_rows(g, u));
        n_bytes += u->input_slot != MSC_NO_ID ? bytes_of(u) : 0;
        if (g->n_uses > 0 && n_bytes > g->options->memory_bytes) {
            break;
        }
    }
    return MSC_OK;
}

static enum msc_status gathering_run(struct gathering *g) {
    int32_t n_slots = msc_evaluator_sites(g->ev)->n_slots;
    bool has_any = false;
    for (int32_t i = 0; i < n_slots; i++) {
        g->use_of_slot[i] = MSC_NO_ID;
    }
    for (size_t i = 0; i < g->n_uses; i++) {
        struct use *u = &g->uses[i];
        if (u->input_slot == MSC_NO_ID) {
            continue;
        }
        u->x = msc_alloc((size_t)(u->n_groups * u->n_rows * u->n_columns) * sizeof(float) + 1);
        if (!u->x) {
            return second_moment_no_memory();
        }
        g->next[i] = g->use_of_slot[u->input_slot];
        g->use_of_slot[u->input_slot] = (int32_t)i;
        has_any = true;
    }
    struct msc_sink sink = {.slot = gather_slot, .payload = g};
    struct msc_eval_trial trial = {.edits = NULL};
    if (has_any) {
        MSC_TRY(msc_evaluator_run(g->ev, &trial, 1, &sink, 0));
    }
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

enum msc_status msc_moments_measure(struct msc_moment moments[], size_t *n_done,
                                    const int32_t slots[], size_t n, struct msc_evaluator *ev,
                                    const struct msc_moment_options *options) {
    struct gathering g = {.ev = ev, .options = options};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(plan_gathering(&g, slots, n));
    MSC_TRY_OUT(gathering_run(&g));
    msc_linear_algebra_begin();
    for (size_t i = 0; i < g.n_uses; i++) {
        if (g.uses[i].input_slot != MSC_NO_ID) {
            MSC_TRY_OUT(make_moment(&moments[i], &g.uses[i], options->n_threads));
        }
        msc_free(g.uses[i].x);
        g.uses[i].x = NULL;
    }
    *n_done = g.n_uses;
out:
    for (size_t i = 0; i < g.n_uses; i++) {
        msc_free(g.uses[i].x);
    }
    msc_arena_finish(&g.arena);
    return status;
}
