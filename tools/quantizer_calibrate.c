#include "base/platform.h"
#include "tools/quantizer_internal.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

// Numbers of values sampled per tensor to detect scales that put values on rounding ties. At most
// KEPT_OF_BATCH are kept per place (a batch, or a chunk of sequences), and fewer if there are many
// places.
enum { KEPT_OF_BATCH = 2048, KEPT_OF_ALL = 32768, KEPT_LEAST = 16 };
// Values sampled of a channel. A channel has no histogram; the sampled values represent all its
// values.
enum { KEPT_OF_CHANNEL = 4096 };

// Statistics of one activation tensor, or of one of its channels. Extrema and counts are exact, so
// the order of batches does not matter; sampled values are stored by place.
struct seen {
    int32_t slot;    // slot at which values are sampled
    float low, high; // over finite values
    bool has_nan, has_infinite, has_finite;
    bool is_seen;                    // has any value been observed?
    struct msc_histogram *histogram; // NULL for a channel and for a tensor with `channels`
    int64_t n_room;                  // sampled values per place
    float *kept;                     // [n_places][n_room]
    int32_t *n_kept;                 // [n_places]
    // If each channel has its own scale: the channel axis, and statistics per channel instead of
    // the members above.
    int32_t axis, n_channels;
    struct seen *channels; // [n_channels]
};

struct calibration {
    struct msc_quantizer *q;
    size_t n_places;       // units of observation: batches, or chunks of sequences
    int32_t n_parts;       // places per batch
    struct seen *seen;     // [n_sites]; slot MSC_NO_ID for weights and excluded sites
    int32_t *site_of_slot; // [n_slots] the site observed at a slot; MSC_NO_ID: none
    bool is_counting;      // the second pass, which counts values in histograms
    pthread_mutex_t lock;
    // Progress: n_observed of n_to_observe values, over both passes.
    msc_quantizer_progress progress;
    void *payload;
    size_t n_observed, n_to_observe;
};

static void keep_values(struct seen *s, size_t place, const float x[], int64_t n) {
    int64_t stride = n / s->n_room > 0 ? n / s->n_room : 1;
    float *kept = s->kept + place * (size_t)s->n_room;
    int32_t count = 0;
    for (int64_t i = 0; i < n && count < s->n_room; i += stride) {
        kept[count] = x[i];
        count += isfinite(x[i]);
    }
    s->n_kept[place] = count;
}

// The least and the greatest finite value, or 0, and numbers of other values, in lanes.
enum { LANES = 32 };
struct extrema {
    float low[LANES], high[LANES];
    int32_t n_nan[LANES], n_infinite[LANES];
};

static inline void see_value(struct extrema *e, int lane, float x) {
    bool is_infinite = fabsf(x) > FLT_MAX;
    e->n_nan[lane] += x != x;
    e->n_infinite[lane] += is_infinite;
    e->low[lane] = x < e->low[lane] && !is_infinite ? x : e->low[lane];
    e->high[lane] = x > e->high[lane] && !is_infinite ? x : e->high[lane];
}

MSC_SIMD static void see_values(struct extrema *e, const float x[], int64_t n) {
    struct extrema lanes = *e;
    int64_t n_whole = n - n % LANES;
    for (int64_t i = 0; i < n_whole; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            see_value(&lanes, k, x[i + k]);
        }
    }
    for (int64_t i = n_whole; i < n; i++) {
        see_value(&lanes, 0, x[i]);
    }
    *e = lanes;
}

static void find_extrema(struct calibration *c, struct seen *s, const float x[], int64_t n) {
    struct extrema e = {{0}, {0}, {0}, {0}};
    int64_t n_nan = 0, n_infinite = 0;
    see_values(&e, x, n);
    pthread_mutex_lock(&c->lock);
    for (int k = 0; k < LANES; k++) {
        s->low = e.low[k] < s->low ? e.low[k] : s->low;
        s->high = e.high[k] > s->high ? e.high[k] : s->high;
        n_nan += e.n_nan[k];
        n_infinite += e.n_infinite[k];
    }
    s->has_nan = s->has_nan || n_nan > 0;
    s->has_infinite = s->has_infinite || n_infinite > 0;
    s->has_finite = s->has_finite || n_nan + n_infinite < n;
    s->is_seen = true;
    pthread_mutex_unlock(&c->lock);
}

static enum msc_status count_histogram(struct calibration *c, struct seen *s, const float x[],
                                       int64_t n) {
    struct msc_histogram *h = msc_alloc_zero(1, sizeof(*h));
    MSC_TRY(MSC_ALLOCATED(h));
    h->low = s->low;
    h->high = s->high;
    msc_histogram_add(h, x, n);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < MSC_HISTOGRAM_BINS; i++) {
        s->histogram->counts[i] += h->counts[i];
    }
    pthread_mutex_unlock(&c->lock);
    msc_free(h);
    return MSC_OK;
}

static void forget(const struct calibration *c, struct seen *s) {
    if (c->is_counting && s->histogram) {
        memset(s->histogram, 0, sizeof(*s->histogram));
        s->histogram->low = s->low;
        s->histogram->high = s->high;
    } else if (!c->is_counting) {
        s->low = s->high = 0;
        s->has_nan = s->has_infinite = s->has_finite = s->is_seen = false;
    }
    if (!c->is_counting && s->n_kept) {
        memset(s->n_kept, 0, c->n_places * sizeof(s->n_kept[0]));
    }
}

// Clears the statistics that this pass collects.
static void begin_pass(void *payload, size_t trial) {
    struct calibration *c = payload;
    (void)trial;
    for (int32_t i = 0; i < c->q->sites.n_sites; i++) {
        struct seen *s = &c->seen[i];
        if (s->slot == MSC_NO_ID) {
            continue;
        }
        forget(c, s);
        for (int32_t k = 0; k < s->n_channels; k++) {
            forget(c, &s->channels[k]);
        }
    }
}

static enum msc_status observe_channels(struct calibration *c, struct seen *s, size_t place,
                                        bool keeps, const struct msc_view *value) {
    int64_t outer, inner, n = msc_view_n_elements(value) / s->n_channels;
    const float *x = value->data;
    float *own = msc_alloc((size_t)n * sizeof(own[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(own));
    msc_view_split(&outer, &inner, value, s->axis);
    for (int32_t i = 0; i < s->n_channels; i++) {
        for (int64_t o = 0; o < outer; o++) {
            memcpy(own + o * inner, x + (o * s->n_channels + i) * inner,
                   (size_t)inner * sizeof(own[0]));
        }
        if (keeps) {
            keep_values(&s->channels[i], place, own, n);
        }
        find_extrema(c, &s->channels[i], own, n);
    }
    msc_free(own);
    return MSC_OK;
}

static enum msc_status observe_value(struct calibration *c, size_t place, int32_t slot,
                                     const struct msc_view *value) {
    struct seen *s = &c->seen[c->site_of_slot[slot]];
    int64_t n = msc_view_n_elements(value);
    if (c->is_counting) {
        return s->histogram ? count_histogram(c, s, value->data, n) : MSC_OK;
    }
    find_extrema(c, s, value->data, n);
    if (s->n_channels > 0) {
        return observe_channels(c, s, place, s->slot == slot, value);
    }
    if (s->slot == slot) {
        keep_values(s, place, value->data, n);
    }
    return MSC_OK;
}

static void tell_observed(struct calibration *c) {
    pthread_mutex_lock(&c->lock);
    // A pass that runs out of memory is repeated, so the count is limited.
    c->n_observed += c->n_observed < c->n_to_observe;
    if (c->progress) {
        c->progress(c->payload, MSC_STAGE_PASSES, c->n_observed, c->n_to_observe);
    }
    pthread_mutex_unlock(&c->lock);
}

static enum msc_status observe_slot(void *payload, size_t trial, size_t batch, int32_t part,
                                    int32_t slot, const struct msc_view *value) {
    struct calibration *c = payload;
    (void)trial;
    if (c->site_of_slot[slot] != MSC_NO_ID) {
        MSC_TRY(observe_value(c, batch * (size_t)c->n_parts + (size_t)part, slot, value));
        tell_observed(c);
    }
    return MSC_OK;
}

// ---- From statistics to scales ----------------------------------------------------------------

// Share of the sampled values within a thousandth of a step of a rounding tie.
static double share_on_ties(const struct calibration *c, const struct seen *s, float scale) {
    size_t on_ties = 0;
    size_t n = 0;
    for (size_t b = 0; b < c->n_places; b++) {
        for (int32_t i = 0; i < s->n_kept[b]; i++) {
            double x = (double)s->kept[b * (size_t)s->n_room + (size_t)i] / (double)scale;
            double distance = fabs(x - floor(x) - 0.5);
            on_ties += distance < 1e-3;
            n++;
        }
    }
    return n > 0 ? (double)on_ties / (double)n : 0;
}

// Inputs on a regular grid (images normalised to [-1, 1]) can all fall on rounding ties. The last
// bit of an earlier sum then decides how they are rounded. In this case, the range is widened a
// little, until few values fall on ties.
static void nudge_off_ties(const struct calibration *c, const struct seen *s,
                           const struct msc_scheme *scheme, struct msc_range range, float *scale,
                           int32_t *zero_point) {
    for (int i = 0; i < 16; i++) {
        float factor = 1 + (float)i / 512;
        struct msc_range wider = {range.low * factor, range.high * factor};
        msc_scheme_fit(scheme, wider, scale, zero_point);
        if (share_on_ties(c, s, *scale) < 0.01) {
            return;
        }
    }
    msc_scheme_fit(scheme, range, scale, zero_point);
}

// The range of a channel, from its sampled values and extrema.
static enum msc_status range_of_channel(struct msc_range *out, const struct calibration *c,
                                        const struct seen *s, const struct msc_observation *o) {
    size_t n = 2;
    float *values = msc_alloc((c->n_places * (size_t)s->n_room + n) * sizeof(values[0]));
    MSC_TRY(MSC_ALLOCATED(values));
    values[0] = s->low;
    values[1] = s->high;
    for (size_t place = 0; place < c->n_places; place++) {
        size_t n_kept = (size_t)s->n_kept[place];
        memcpy(values + n, s->kept + place * (size_t)s->n_room, n_kept * sizeof(values[0]));
        n += n_kept;
    }
    enum msc_status status = msc_range_of_values(out, values, (int64_t)n, o);
    msc_free(values);
    return status;
}

static enum msc_status fit_seen(const struct calibration *c, const struct seen *s,
                                const struct msc_observation *o, float factor, float *scale,
                                int32_t *zero_point) {
    struct msc_range range = {s->low, s->high};
    if (o->observer != MSC_OBSERVER_MINMAX) {
        MSC_TRY((s->histogram ? msc_range_of_histogram(&range, s->histogram, o)
                              : range_of_channel(&range, c, s, o)));
    }
    range.low *= factor;
    range.high *= factor;
    nudge_off_ties(c, s, &o->scheme, range, scale, zero_point);
    return MSC_OK;
}

static enum msc_status fit_activation(struct calibration *c, int32_t site, int32_t choice) {
    struct msc_quantizer *q = c->q;
    const struct seen *s = &c->seen[site];
    struct msc_observation o = msc_quantizer__observation(q, site, choice);
    float factor = (float)q->choices[choice].range_scale;
    int32_t n = s->n_channels > 0 ? s->n_channels : 1;
    float *scales = msc_alloc((size_t)n * sizeof(scales[0]));
    int32_t *zeros = msc_alloc((size_t)n * sizeof(zeros[0]));
    enum msc_status status = MSC_ALLOCATED(scales && zeros);
    for (int32_t i = 0; status == MSC_OK && i < n; i++) {
        status =
            fit_seen(c, s->n_channels > 0 ? &s->channels[i] : s, &o, factor, &scales[i], &zeros[i]);
    }
    if (status == MSC_OK) {
        const struct msc_quant found = {.scales = scales, .zero_points = zeros};
        status = msc_quantizer__set(q, site, choice, &found);
    }
    msc_free(scales);
    msc_free(zeros);
    return status;
}

static enum msc_status fit_weight(struct msc_quantizer *q, int32_t site, int32_t choice) {
    const struct msc_tensor *t = msc_graph_tensor(q->graph, q->sites.sites[site].tensor);
    struct msc_quant found;
    MSC_TRY(msc_quantizer__fit_elements(&found, q, site, choice, t->data));
    enum msc_status status = msc_quantizer__set(q, site, choice, &found);
    msc_quant_finish(&found);
    return status;
}

static enum msc_status fit_site(struct calibration *c, int32_t site) {
    struct msc_quantizer *q = c->q;
    for (size_t i = 0; i < q->n_choices; i++) {
        if (!msc_quantizer__has_scales(q, site, i)) {
            continue;
        }
        if (q->sites.sites[site].kind == MSC_SITE_WEIGHT) {
            MSC_TRY(fit_weight(q, site, (int32_t)i));
        } else {
            MSC_TRY(fit_activation(c, site, (int32_t)i));
        }
    }
    return MSC_OK;
}

// ---- The two passes ---------------------------------------------------------------------------

// Observes each tensor of a site once, where it is produced; the outputs of joints that only move
// elements hold the same values.
static void choose_slots(struct calibration *c, int32_t site) {
    const struct msc_sites *sites = &c->q->sites;
    const struct msc_site *s = &sites->sites[site];
    const struct msc_target *target = sites->scheme.target;
    const struct msc_graph *g = c->q->graph;
    c->seen[site].slot = s->slots[0];
    for (int32_t k = 0; k < s->n_slots; k++) {
        int32_t tensor = sites->slots[s->slots[k]].tensor;
        const struct msc_joint *maker = msc_graph_joint(g, msc_graph_producer(g, tensor));
        bool is_first = true;
        for (int32_t i = 0; i < k; i++) {
            is_first = is_first && sites->slots[s->slots[i]].tensor != tensor;
        }
        bool is_moved = target && msc_target_role(target, g, maker) == MSC_TARGET_MOVES;
        if (k == 0 || (is_first && !is_moved)) {
            c->site_of_slot[s->slots[k]] = site;
        }
    }
}

static enum msc_status make_room(const struct calibration *c, struct seen *s, int64_t n_kept,
                                 struct msc_arena *arena) {
    int64_t room = n_kept / (int64_t)c->n_places;
    s->n_room = room > KEPT_OF_BATCH ? KEPT_OF_BATCH : room < KEPT_LEAST ? KEPT_LEAST : room;
    s->kept = msc_arena_array(arena, c->n_places * (size_t)s->n_room, sizeof(float));
    s->n_kept = msc_arena_array(arena, c->n_places, sizeof(int32_t));
    return MSC_ALLOCATED(s->kept && s->n_kept);
}

static enum msc_status seen_init(const struct calibration *c, int32_t site,
                                 struct msc_arena *arena) {
    struct seen *s = &c->seen[site];
    struct msc_quant form = msc_quantizer__form(c->q, site, 0);
    if (form.axis < 0) {
        s->histogram = msc_arena_alloc(arena, sizeof(*s->histogram));
        return s->histogram ? make_room(c, s, KEPT_OF_ALL, arena)
                            : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    s->axis = form.axis;
    s->n_channels = form.n;
    s->channels = msc_arena_array(arena, (size_t)form.n, sizeof(s->channels[0]));
    MSC_TRY(MSC_ALLOCATED(s->channels));
    for (int32_t i = 0; i < form.n; i++) {
        MSC_TRY(make_room(c, &s->channels[i], KEPT_OF_CHANNEL, arena));
    }
    return MSC_OK;
}

static enum msc_status calibration_init(struct calibration *c, struct msc_arena *arena) {
    struct msc_quantizer *q = c->q;
    size_t n_slots = (size_t)q->sites.n_slots;
    c->seen = msc_arena_array(arena, (size_t)q->sites.n_sites + 1, sizeof(c->seen[0]));
    c->site_of_slot = msc_arena_array(arena, n_slots + 1, sizeof(c->site_of_slot[0]));
    MSC_TRY(MSC_ALLOCATED(c->seen && c->site_of_slot));
    for (size_t i = 0; i < n_slots; i++) {
        c->site_of_slot[i] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        struct seen *s = &c->seen[i];
        const struct msc_site *site = &q->sites.sites[i];
        s->slot = MSC_NO_ID;
        if (site->kind == MSC_SITE_WEIGHT || !msc_quantizer__is_used(q, i)) {
            continue;
        }
        choose_slots(c, i);
        MSC_TRY(seen_init(c, i, arena));
    }
    return MSC_OK;
}

static enum msc_status calibration_run_pass(struct calibration *c, struct msc_evaluator *ev) {
    struct msc_sink sink = {.begin = begin_pass, .slot = observe_slot, .payload = c};
    struct msc_eval_trial trial = {.edits = NULL};
    // The next pass, and what follows, reads the same values.
    MSC_TRY(msc_evaluator_run(ev, &trial, 1, &sink, MSC_EVAL_KEEP));
    if (trial.status != MSC_OK) {
        return msc_status_restore(trial.status, trial.message);
    }
    return MSC_OK;
}

static bool needs_histograms(const struct msc_quantizer *q) {
    for (size_t i = 0; i < q->n_choices; i++) {
        const struct msc_choice *c = &q->choices[i];
        if (!c->is_float && c->type == MSC_DTYPE_NONE && !c->is_dynamic && !c->blocks &&
            c->observers[MSC_SITE_ACTIVATION] != MSC_OBSERVER_MINMAX) {
            return true;
        }
    }
    return false;
}

// Clips ranges to exclude values that all consumers of a tensor treat alike.
static void cut_ranges(struct calibration *c) {
    for (int32_t i = 0; i < c->q->sites.n_sites; i++) {
        float cut = msc_quantizer__cut(c->q, i);
        c->seen[i].low = cut > 0 ? fmaxf(c->seen[i].low, -cut) : c->seen[i].low;
    }
}

static bool is_input(const struct msc_quantizer *q, int32_t site) {
    int32_t producer = msc_graph_tensor(q->graph, q->sites.sites[site].tensor)->producer;
    return producer != MSC_NO_ID && msc_graph_joint(q->graph, producer)->op == MSC_OP_INPUT;
}

static enum msc_status observe_all(struct calibration *c, struct msc_evaluator *ev) {
    for (int32_t i = 0; i < c->q->sites.n_slots; i++) {
        c->n_to_observe += c->site_of_slot[i] != MSC_NO_ID ? c->n_places : 0;
    }
    c->n_to_observe *= needs_histograms(c->q) ? 2 : 1;
    MSC_TRY(calibration_run_pass(c, ev));
    for (int32_t i = 0; i < c->q->sites.n_sites; i++) {
        struct seen *s = &c->seen[i];
        if (s->slot == MSC_NO_ID) {
            continue;
        }
        if (!s->is_seen && is_input(c->q, i)) {
            c->q->left[i] = true; // no elements, as the past of a decoder's first tokens
            continue;
        }
        if (!s->is_seen) {
            return MSC_FAIL(MSC_E_INVALID,
                            "tensor %s has no values when the float model runs on the dataset: "
                            "it cannot be calibrated; exclude it or use other samples",
                            c->q->sites.sites[i].name);
        }
        if (s->has_infinite || !s->has_finite || (s->has_nan && msc_quantizer__is_asked(c->q, i))) {
            c->q->left[i] = true;
        }
    }
    MSC_TRY(msc_quantizer__leave_infinite_weights(c->q));
    MSC_TRY(msc_quantizer__drop_left(c->q));
    cut_ranges(c);
    c->is_counting = true;
    return needs_histograms(c->q) ? calibration_run_pass(c, ev) : MSC_OK;
}

static int32_t most_parts(const struct msc_evaluator *ev) {
    int32_t most = 1;
    for (size_t b = 0; b < msc_dataset_n_batches(msc_evaluator_dataset(ev)); b++) {
        int32_t n = msc_evaluator_plan(ev, b)->n_parts;
        most = n > most ? n : most;
    }
    return most;
}

enum msc_status msc_quantizer_observe(struct msc_quantizer *q, struct msc_evaluator *ev,
                                      msc_quantizer_progress progress, void *payload) {
    struct msc_arena arena = {0};
    struct calibration c = {
        .q = q, .n_parts = most_parts(ev), .progress = progress, .payload = payload};
    c.n_places = msc_dataset_n_batches(msc_evaluator_dataset(ev)) * (size_t)c.n_parts;
    size_t done = 0;
    q->n_threads = msc_evaluator_n_threads(ev);
    enum msc_status status = msc_quantizer__find_questions(q);
    if (status == MSC_OK) {
        status = calibration_init(&c, &arena);
    }
    pthread_mutex_init(&c.lock, NULL);
    if (status == MSC_OK) {
        status = observe_all(&c, ev);
    }
    for (int32_t i = 0; status == MSC_OK && i < q->sites.n_sites; i++) {
        if (msc_quantizer__is_used(q, i)) {
            status = fit_site(&c, i);
        }
        if (progress) {
            progress(payload, MSC_STAGE_RANGES, ++done, (size_t)q->sites.n_sites);
        }
        if (status == MSC_OK && msc_cancel_now(msc_evaluator_cancel(ev))) {
            status = MSC_FAIL(MSC_E_CANCELLED, "stopped");
        }
    }
    pthread_mutex_destroy(&c.lock);
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_quantizer_calibrate(struct msc_quantizer *q, struct msc_evaluator *ev,
                                        msc_quantizer_progress progress, void *payload) {
    const struct msc_quantizer_rounding o = {.progress = progress, .payload = payload};
    MSC_TRY(msc_quantizer_observe(q, ev, progress, payload));
    return msc_quantizer_round(q, ev, &o);
}
