#include "tools/equalizer.h"

#include "base/alloc.h"
#include "tools/equalizer_internal.h"
#include "tools/equalizer_pairs.h"
#include "tools/strategy.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

// Bins of a channel's histogram, from its least to its greatest value.
enum { BINS = 512 };

// Of each batch, the last one of these many samples (or rows of samples) is held back.
enum { HELD_ONE_OF = 8 };

static const double tail = 0.001;        // share of values left out at each end of a range
static const double least_share = 0.001; // of the widest range: the least that a channel counts
static const double strengths[] = {0, 0.25, 0.5, 0.75, 1};
enum { N_STRENGTHS = sizeof strengths / sizeof strengths[0] };

// What is measured of a link, and its result. The arrays have an element per channel.
struct measured {
    float *low, *high; // extreme values
    uint32_t *counts;  // [n_channels, BINS]
    uint64_t *n_zeros; // values that are 0, which are exact under every scale
    // The same of the values held back, which are part of the others.
    uint32_t *held_counts;
    uint64_t *held_zeros;
    double *ranges, *shifts, *squares,
        *used;               // r, m, the mean of (y - m)^2, the share without zeros
    double *factors;         // a
    struct msc_array *scale; // 1 / a, if the activation is multiplied by it
};

struct equalizing {
    const struct msc_graph *g;
    const struct msc_equalize_bits *bits;
    struct msc_channel_link *links; // [n]
    size_t n;
    struct measured *measured;      // [n]
    int32_t *link_of_slot;          // [n_slots]: a link, or MSC_NO_ID
    struct msc_channel_pair *pairs; // [n_pairs]
    size_t n_pairs;
    int32_t *side_of_slot;      // [n_slots]: 2 * pair + side, or MSC_NO_ID
    struct msc_array **changed; // [n_tensors], elements that replace a weight's; NULL: unchanged
    bool is_counting;           // in the second pass
    pthread_mutex_t lock;
};

// ---- The two passes ---------------------------------------------------------------------------

static void begin_pass(void *payload, size_t trial) {
    struct equalizing *e = payload;
    (void)trial;
    for (size_t i = 0; i < e->n; i++) {
        struct measured *m = &e->measured[i];
        for (int64_t c = 0; c < e->links[i].n_channels; c++) {
            m->n_zeros[c] = m->held_zeros[c] = 0;
            if (!e->is_counting) {
                m->low[c] = FLT_MAX;
                m->high[c] = -FLT_MAX;
            }
        }
        size_t n = (size_t)e->links[i].n_channels * BINS;
        memset(m->counts, 0, n * sizeof(m->counts[0]));
        memset(m->held_counts, 0, n * sizeof(m->held_counts[0]));
    }
    msc_equalizer__begin_pairs(e->pairs, e->n_pairs, e->is_counting);
}

static int bin_of(const struct measured *m, int64_t c, float x) {
    double width = (double)m->high[c] - (double)m->low[c];
    double bin = width > 0 ? ((double)x - (double)m->low[c]) / width * BINS : 0;
    return (int)fmin(fmax(bin, 0), BINS - 1);
}

static void see_value(struct measured *m, bool is_counting, bool is_held, int64_t c, float x) {
    if (!is_counting) {
        m->low[c] = x < m->low[c] ? x : m->low[c];
        m->high[c] = x > m->high[c] ? x : m->high[c];
        return;
    }
    int64_t at = c * BINS + bin_of(m, c, x);
    m->counts[at]++;
    m->n_zeros[c] += x == 0;
    m->held_counts[at] += is_held;
    m->held_zeros[c] += is_held && x == 0;
}

static enum msc_status see_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                int32_t slot, const struct msc_view *value) {
    struct equalizing *e = payload;
    int32_t at = e->link_of_slot[slot];
    int64_t outer, inner;
    (void)trial, (void)batch, (void)part;
    if (e->side_of_slot[slot] != MSC_NO_ID) {
        int32_t side = e->side_of_slot[slot];
        pthread_mutex_lock(&e->lock);
        msc_equalizer__see_pair(&e->pairs[side / 2], side % 2, value, e->is_counting, HELD_ONE_OF);
        pthread_mutex_unlock(&e->lock);
    }
    if (at == MSC_NO_ID) {
        return MSC_OK;
    }
    const struct msc_channel_reader *r = &e->links[at].readers[0];
    const float *x = value->data;
    int64_t length = e->links[at].n_channels * r->inner;
    msc_view_split(&outer, &inner, value, r->axis);
    int64_t of_part = length * inner,
            n_held = outer < 2 ? 0 : (outer + HELD_ONE_OF - 1) / HELD_ONE_OF;
    pthread_mutex_lock(&e->lock);
    for (int64_t i = 0; i < outer * of_part; i++) {
        if (fabsf(x[i]) <= FLT_MAX) {
            see_value(&e->measured[at], e->is_counting, i / of_part >= outer - n_held,
                      i / inner % length / r->inner, x[i]);
        }
    }
    pthread_mutex_unlock(&e->lock);
    return MSC_OK;
}

static bool wants_slot(void *payload, int32_t slot) {
    const struct equalizing *e = payload;
    return e->link_of_slot[slot] != MSC_NO_ID || e->side_of_slot[slot] != MSC_NO_ID;
}

static enum msc_status measure(struct equalizing *e, struct msc_evaluator *ev) {
    struct msc_sink sink = {
        .begin = begin_pass, .slot = see_slot, .wants_slot = wants_slot, .payload = e};
    for (int pass = 0; pass < 2; pass++) {
        struct msc_eval_trial trial = {.edits = NULL};
        e->is_counting = pass == 1;
        MSC_TRY(msc_evaluator_run(ev, &trial, 1, &sink, MSC_EVAL_KEEP));
        if (trial.status != MSC_OK) {
            return msc_status_restore(trial.status, trial.message);
        }
    }
    return MSC_OK;
}

// ---- Ranges -----------------------------------------------------------------------------------

// The number of values in a bin that are not zero.
static double count_used(const struct measured *m, int64_t c, int bin) {
    double n_zeros = bin == bin_of(m, c, 0) ? (double)m->n_zeros[c] : 0;
    return m->counts[c * BINS + bin] - n_zeros;
}

// Sets range, shift, mean square and share of a channel; all are 0 if it has no values. Zeros do
// not count as values of a tail: a channel that is rarely used would lose its whole range.
static void sum_up_channel(struct measured *m, int64_t c, bool takes_shift) {
    const uint32_t *counts = m->counts + c * BINS;
    double low = (double)m->low[c], step = ((double)m->high[c] - low) / BINS;
    double total = 0, below = 0, above = 0;
    int first = 0, last = BINS - 1;
    for (int i = 0; i < BINS; i++) {
        total += counts[i];
    }
    m->ranges[c] = m->shifts[c] = m->squares[c] = m->used[c] = 0;
    if (!(total > 0)) {
        return;
    }
    double outermost = tail * (total - (double)m->n_zeros[c]);
    for (; first < last && below + count_used(m, c, first) <= outermost; first++) {
        below += count_used(m, c, first);
    }
    for (; last > first && above + count_used(m, c, last) <= outermost; last--) {
        above += count_used(m, c, last);
    }
    double begin = low + first * step, end = low + (last + 1) * step;
    m->shifts[c] = takes_shift ? (begin + end) / 2 : 0;
    m->ranges[c] = takes_shift ? (end - begin) / 2 : fmax(fabs(begin), fabs(end));
    m->used[c] = 1 - (double)m->n_zeros[c] / total;
    for (int i = 0; i < BINS; i++) {
        double x = low + (i + 0.5) * step - m->shifts[c];
        m->squares[c] += counts[i] / total * x * x;
    }
}

// ---- Strength ---------------------------------------------------------------------------------

// The channel and the index of an element of a reader's weight.
static int64_t channel_of(const struct msc_channel_reader *r, int64_t row, int64_t k) {
    return row / r->rows_per_group * r->channels_per_group + k / r->repeat;
}

static int64_t element_of(const struct msc_channel_reader *r, int64_t row, int64_t k) {
    return r->is_input_first ? k * r->n_rows + row : row * r->n_columns + k;
}

// The expected squared error of a reader's outputs if weights and activation are rounded: a step t
// adds t^2 / 12 to each element. `step` is the activation's, as rescaled.
static double error_of(const struct msc_channel_reader *r, const float w[],
                       const struct measured *m, double step, int weight_bits) {
    double error = 0, levels = (double)((1 << (weight_bits - 1)) - 1);
    for (int64_t row = 0; row < r->n_rows; row++) {
        double greatest = 0, inputs = 0, carried = 0;
        for (int64_t k = 0; k < r->n_columns; k++) {
            int64_t c = channel_of(r, row, k);
            double own = (double)w[element_of(r, row, k)] * m->factors[c];
            greatest = fmax(greatest, fabs(own));
            inputs += m->squares[c] / (m->factors[c] * m->factors[c]);
            carried += m->used[c] * own * own;
        }
        double own_step = greatest / levels;
        error += (own_step * own_step * inputs + step * step * carried) / 12;
    }
    return error;
}

// Sets the factors of a strength. False if all values are 0.
static bool set_factors(struct measured *m, int64_t n, double strength) {
    double widest = 0, mean = 0;
    for (int64_t c = 0; c < n; c++) {
        widest = fmax(widest, m->ranges[c]);
    }
    for (int64_t c = 0; c < n; c++) {
        m->factors[c] = fmax(m->ranges[c], least_share * widest);
        mean += log(m->factors[c]) / (double)n;
    }
    for (int64_t c = 0; widest > 0 && c < n; c++) {
        m->factors[c] = pow(m->factors[c] / exp(mean), strength);
    }
    return widest > 0;
}

static const float *elements_now(const struct equalizing *e, int32_t tensor) {
    const struct msc_array *own = msc_graph_tensor(e->g, tensor)->data;
    return msc_array_data(e->changed[tensor] ? e->changed[tensor] : own);
}

// The expected error of all readers of a link with its present factors.
static double error_of_link(const struct equalizing *e, const struct msc_channel_link *link,
                            const struct measured *m) {
    double widest = 0, error = 0, has_signs = 0;
    for (int64_t c = 0; c < link->n_channels; c++) {
        widest = fmax(widest, m->ranges[c] / m->factors[c]);
        has_signs = fmax(has_signs, m->low[c] < 0 || m->shifts[c] != 0);
    }
    double step = widest * (1 + has_signs) / (double)((1 << e->bits->activations) - 1);
    for (int32_t i = 0; i < link->n_readers; i++) {
        const struct msc_channel_reader *r = &link->readers[i];
        error += error_of(r, elements_now(e, r->weight), m, step, e->bits->weights);
    }
    return error;
}

static void sum_up(struct measured *m, const struct msc_channel_link *link) {
    for (int64_t c = 0; c < link->n_channels; c++) {
        sum_up_channel(m, c, link->takes_shift);
    }
}

// Adds the values held back to the others, or takes them out of all.
static void add_held(struct measured *m, const struct msc_channel_link *link, int sign) {
    for (int64_t i = 0; i < link->n_channels * BINS; i++) {
        m->counts[i] += (uint32_t)sign * m->held_counts[i];
    }
    for (int64_t c = 0; c < link->n_channels; c++) {
        m->n_zeros[c] += (uint64_t)(int64_t)sign * m->held_zeros[c];
    }
}

static void swap_held(struct measured *m) {
    uint32_t *counts = m->counts;
    uint64_t *zeros = m->n_zeros;
    m->counts = m->held_counts;
    m->n_zeros = m->held_zeros;
    m->held_counts = counts;
    m->held_zeros = zeros;
}

// Is the expected error on the values held back lower with the factors that the other values give?
// True if no values are held back.
static bool is_confirmed(const struct equalizing *e, const struct msc_channel_link *link,
                         struct measured *m, double strength) {
    add_held(m, link, -1);
    sum_up(m, link);
    bool has_others = set_factors(m, link->n_channels, strength);
    swap_held(m);
    sum_up(m, link);
    double with = error_of_link(e, link, m);
    bool has_held = set_factors(m, link->n_channels, 0);
    double without = error_of_link(e, link, m);
    add_held(m, link, 1);
    return !has_others || !has_held || with < without;
}

// Sets the factors with the least expected error. False if they are all 1.
static bool find_factors(const struct equalizing *e, const struct msc_channel_link *link,
                         struct measured *m) {
    double least = INFINITY, best = 0;
    sum_up(m, link);
    for (size_t i = 0; i < N_STRENGTHS && set_factors(m, link->n_channels, strengths[i]); i++) {
        double error = error_of_link(e, link, m);
        if (error < least) {
            best = strengths[i];
            least = i == 0 ? error * (1 - e->bits->least_gain) : error;
        }
    }
    if (best == 0 || !is_confirmed(e, link, m, best)) {
        return false;
    }
    sum_up(m, link);
    return set_factors(m, link->n_channels, best);
}

// ---- Weights ----------------------------------------------------------------------------------

// The elements of a weight as changed so far.
static enum msc_status change(float **out, struct equalizing *e, int32_t tensor) {
    const struct msc_array *from = msc_graph_tensor(e->g, tensor)->data;
    if (!e->changed[tensor]) {
        MSC_TRY(msc_array_create_from(&e->changed[tensor], MSC_DTYPE_F32, msc_array_n_dims(from),
                                      msc_array_dims(from), msc_array_data(from)));
    }
    *out = msc_array_data(e->changed[tensor]);
    return MSC_OK;
}

// Makes what the activation is multiplied by; it broadcasts along the axes after the channels'.
static enum msc_status make_scale(const struct equalizing *e, const struct msc_channel_link *link,
                                  struct measured *m) {
    int n_dims = msc_graph_tensor(e->g, link->multiplied)->n_dims - link->readers[0].axis;
    int64_t dims[MSC_MAX_DIMS] = {link->n_channels};
    for (int i = 1; i < n_dims; i++) {
        dims[i] = 1;
    }
    MSC_TRY(msc_array_create(&m->scale, MSC_DTYPE_F32, n_dims, dims));
    float *scale = msc_array_data(m->scale);
    for (int64_t c = 0; c < link->n_channels; c++) {
        scale[c] = (float)(1 / m->factors[c]);
        m->factors[c] = 1 / (double)scale[c]; // so that rounding does not change the product
    }
    return MSC_OK;
}

static enum msc_status divide_maker(struct equalizing *e, const struct msc_channel_link *link,
                                    struct measured *m) {
    float *w, *b;
    int64_t n = link->n_channels, n_all = n * link->n_per_channel;
    if (link->weight == MSC_NO_ID) {
        return make_scale(e, link, m);
    }
    MSC_TRY(change(&w, e, link->weight));
    for (int64_t i = 0; i < n_all; i++) {
        int64_t c = link->is_input_first ? i % n : i / link->n_per_channel;
        w[i] = (float)((double)w[i] / m->factors[c]);
    }
    if (link->bias != MSC_NO_ID) {
        MSC_TRY(change(&b, e, link->bias));
        for (int64_t c = 0; c < n; c++) {
            b[c] = (float)(((double)b[c] - m->shifts[c]) / m->factors[c]);
        }
    }
    return MSC_OK;
}

static enum msc_status multiply_reader(struct equalizing *e, const struct msc_channel_link *link,
                                       const struct msc_channel_reader *r,
                                       const struct measured *m) {
    float *w, *b = NULL;
    MSC_TRY(change(&w, e, r->weight));
    MSC_TRY(link->takes_shift ? change(&b, e, r->bias) : MSC_OK);
    for (int64_t row = 0; row < r->n_rows; row++) {
        double shift = 0;
        for (int64_t k = 0; k < r->n_columns; k++) {
            int64_t c = channel_of(r, row, k);
            float *own = &w[element_of(r, row, k)];
            shift += (double)*own * m->shifts[c];
            *own = (float)((double)*own * m->factors[c]);
        }
        if (b) {
            b[row] = (float)((double)b[row] + shift);
        }
    }
    return MSC_OK;
}

static enum msc_status multiply_pairs(size_t *n_done, struct equalizing *e,
                                      struct msc_arena *arena) {
    for (size_t i = 0; i < e->n_pairs; i++) {
        struct msc_channel_pair *pair = &e->pairs[i];
        bool pays;
        MSC_TRY(msc_equalizer__balance_pair(&pays, pair, arena));
        for (int k = 0; pays && k < 2; k++) {
            float *w, *b = NULL;
            MSC_TRY(change(&w, e, pair->sides[k].weight));
            MSC_TRY(pair->sides[k].bias == MSC_NO_ID ? MSC_OK : change(&b, e, pair->sides[k].bias));
            msc_equalizer__multiply_side(pair, k, w, b);
            (*n_done)++;
        }
    }
    return MSC_OK;
}

static enum msc_status rescale(size_t *n_done, struct equalizing *e) {
    for (size_t i = 0; i < e->n; i++) {
        const struct msc_channel_link *link = &e->links[i];
        if (!find_factors(e, link, &e->measured[i])) {
            continue;
        }
        MSC_TRY(divide_maker(e, link, &e->measured[i]));
        for (int32_t k = 0; k < link->n_readers; k++) {
            MSC_TRY(multiply_reader(e, link, &link->readers[k], &e->measured[i]));
        }
        (*n_done)++;
    }
    return MSC_OK;
}

static enum msc_status make_strategy(struct msc_strategy **out, const struct equalizing *e) {
    MSC_TRY(msc_strategy_create(out, NULL));
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < e->n; i++) {
        const struct msc_array *scale = e->measured[i].scale;
        if (scale) {
            const char *name = msc_graph_tensor(e->g, e->links[i].multiplied)->name;
            status = msc_strategy_multiply(*out, name, scale);
        }
    }
    for (int32_t i = 0; status == MSC_OK && i < msc_graph_n_tensors(e->g); i++) {
        if (e->changed[i]) {
            status = msc_strategy_replace(*out, msc_graph_tensor(e->g, i)->name, e->changed[i]);
        }
    }
    if (status != MSC_OK) {
        msc_strategy_destroy(*out);
        *out = NULL;
    }
    return status;
}

// ---- All together -----------------------------------------------------------------------------

static enum msc_status equalizing_init(struct equalizing *e, const struct msc_sites *sites,
                                       struct msc_arena *arena) {
    size_t n_slots = (size_t)sites->n_slots, n_tensors = (size_t)msc_graph_n_tensors(e->g);
    MSC_TRY(msc_equalizer__find(&e->links, &e->n, e->g, sites, e->bits, arena));
    if (e->bits->rotates) {
        MSC_TRY(msc_equalizer__find_pairs(&e->pairs, &e->n_pairs, e->g, sites, arena));
    }
    e->measured = msc_arena_array(arena, e->n + 1, sizeof(e->measured[0]));
    e->link_of_slot = msc_arena_array(arena, n_slots + 1, sizeof(e->link_of_slot[0]));
    e->side_of_slot = msc_arena_array(arena, n_slots + 1, sizeof(e->side_of_slot[0]));
    e->changed = msc_arena_array(arena, n_tensors + 1, sizeof(e->changed[0]));
    MSC_TRY(MSC_ALLOCATED(e->measured && e->link_of_slot && e->side_of_slot && e->changed));
    for (size_t i = 0; i < n_slots; i++) {
        e->link_of_slot[i] = e->side_of_slot[i] = MSC_NO_ID;
    }
    for (size_t i = 0; i < e->n_pairs; i++) {
        for (int k = 0; k < 2; k++) {
            e->side_of_slot[e->pairs[i].sides[k].slot] = 2 * (int32_t)i + k;
        }
    }
    for (size_t i = 0; i < e->n; i++) {
        size_t n = (size_t)e->links[i].n_channels;
        struct measured *m = &e->measured[i];
        e->link_of_slot[e->links[i].readers[0].slot] = (int32_t)i;
        m->low = msc_arena_array(arena, 2 * n, sizeof(m->low[0]));
        m->counts = msc_arena_array(arena, n * BINS, sizeof(m->counts[0]));
        m->n_zeros = msc_arena_array(arena, 2 * n, sizeof(m->n_zeros[0]));
        m->held_counts = msc_arena_array(arena, n * BINS, sizeof(m->held_counts[0]));
        m->ranges = msc_arena_array(arena, 5 * n, sizeof(m->ranges[0]));
        MSC_TRY(MSC_ALLOCATED(m->low && m->counts && m->held_counts && m->n_zeros && m->ranges));
        m->high = m->low + n;
        m->held_zeros = m->n_zeros + n;
        m->shifts = m->ranges + n;
        m->squares = m->ranges + 2 * n;
        m->used = m->ranges + 3 * n;
        m->factors = m->ranges + 4 * n;
    }
    return MSC_OK;
}

enum msc_status msc_equalize(struct msc_strategy **out, size_t *n_equalized,
                             const struct msc_graph *g, struct msc_evaluator *ev,
                             const struct msc_equalize_bits *bits) {
    struct msc_arena arena = {0};
    struct equalizing e = {.g = g, .bits = bits};
    enum msc_status status = MSC_OK;
    *out = NULL;
    *n_equalized = 0;
    pthread_mutex_init(&e.lock, NULL);
    MSC_TRY_OUT(equalizing_init(&e, msc_evaluator_sites(ev), &arena));
    if (e.n + e.n_pairs > 0) {
        MSC_TRY_OUT(measure(&e, ev));
        MSC_TRY_OUT(multiply_pairs(n_equalized, &e, &arena));
        MSC_TRY_OUT(rescale(n_equalized, &e));
        status = *n_equalized > 0 ? make_strategy(out, &e) : MSC_OK;
    }
out:
    for (int32_t i = 0; e.changed && i < msc_graph_n_tensors(g); i++) {
        msc_array_release(e.changed[i]);
    }
    for (size_t i = 0; e.measured && i < e.n; i++) {
        msc_array_release(e.measured[i].scale);
    }
    pthread_mutex_destroy(&e.lock);
    msc_arena_finish(&arena);
    return status;
}
