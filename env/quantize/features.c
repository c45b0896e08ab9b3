// Computes the features of each choice of a task, for agents (docs/environments.md).
#include "base/alloc.h"
#include "env/quantize/space.h"

#include <math.h>

enum { BITS, GROUP_SIZE, SIZE_BYTES, WEIGHT_ERROR, DISTILL_LOSS, N_FEATURES };

static const char *const names[N_FEATURES] = {"bits", "group_size", "size_bytes", "weight_error",
                                              "distill_loss"};

// A task's features, and sums over its weights.
struct known {
    double (*features)[N_FEATURES]; // [n_choices]
    double all;                     // sum of squares of the weights
    double *rounded;                // [n_choices], sum of squares of rounding errors
};

static double square_sum(const float a[], const float b[], int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (b ? (double)b[i] : 0);
        sum += d * d;
    }
    return sum;
}

// Adds a weight to the sums; a float choice has no rounding error.
static enum msc_status add_weight(struct known *k, const struct msc_quantize_inputs *in,
                                  int32_t site, const struct msc_array *weight,
                                  const uint32_t choices[], uint32_t n_choices) {
    int64_t n = msc_array_n_elements(weight);
    k->all += square_sum(msc_array_data(weight), NULL, n);
    for (uint32_t c = 0; c < n_choices; c++) {
        const struct msc_quant *quant =
            msc_quantizer_quant(in->quantizer, site, (int32_t)choices[c]);
        struct msc_array *rounded = NULL;
        if (quant) {
            MSC_TRY(msc_fake_quantize_array(&rounded, weight, quant));
            k->rounded[c] += square_sum(msc_array_data(weight), msc_array_data(rounded), n);
            msc_array_release(rounded);
        }
    }
    return MSC_OK;
}

// The weight of a site. NULL if the site is an activation, or if the weight is not a float32
// constant.
static const struct msc_array *weight_of(const struct msc_quantize_inputs *in, int32_t site) {
    const struct msc_sites *sites = msc_quantizer_sites(in->quantizer);
    const struct msc_site *s = &sites->sites[site];
    int32_t tensor = sites->slots[s->slots[0]].tensor;
    const struct msc_array *data = msc_graph_tensor(in->host->graph, tensor)->data;
    bool is_known = s->kind == MSC_SITE_WEIGHT && data && msc_array_dtype(data) == MSC_DTYPE_F32;
    return is_known ? data : NULL;
}

// Sets the size of each choice: the sum of the cost's terms that depend on this task only.
static void fill_sizes(const struct known *k, const struct msc_space *space, size_t task) {
    const struct msc_cost *cost = msc_space_find_cost(space, "size_bytes");
    for (uint32_t c = 0; c < space->tasks[task].n_choices; c++) {
        k->features[c][SIZE_BYTES] = cost ? 0 : NAN;
        for (size_t i = 0; cost && i < cost->n_terms; i++) {
            const struct msc_cost_term *term = &cost->terms[i];
            if (term->n_factors == 1 && term->factors[0].task == task) {
                k->features[c][SIZE_BYTES] += term->scale * term->factors[0].by_choice[c];
            }
        }
    }
}

static void fill_rest(const struct known *k, const struct msc_quantizer *q,
                      const uint32_t choices[], uint32_t n_choices) {
    for (uint32_t c = 0; c < n_choices; c++) {
        const struct msc_choice *choice = msc_quantizer_choice(q, choices[c]);
        k->features[c][BITS] = choice->is_float ? MSC_QUANTIZE_FLOAT_BITS : choice->bits;
        k->features[c][GROUP_SIZE] = choice->group_size;
        k->features[c][WEIGHT_ERROR] = k->all > 0 ? k->rounded[c] / k->all : NAN;
        k->features[c][DISTILL_LOSS] = NAN;
    }
}

static enum msc_status make_room(struct known **out, struct msc_task tasks[], size_t n,
                                 struct msc_arena *arena) {
    struct known *known = msc_arena_array(arena, n, sizeof(known[0]));
    bool is_short = !known;
    for (size_t t = 0; !is_short && t < n; t++) {
        known[t].features =
            msc_arena_array(arena, tasks[t].n_choices, sizeof(known[t].features[0]));
        known[t].rounded = msc_arena_array(arena, tasks[t].n_choices, sizeof(double));
        is_short = !known[t].features || !known[t].rounded;
        tasks[t].choice_features = is_short ? NULL : known[t].features[0];
    }
    *out = known;
    return MSC_ALLOCATED(!is_short);
}

enum msc_status msc_quantize_add_choice_features(struct msc_quantize_space *s,
                                                 struct msc_task tasks[],
                                                 const struct msc_quantize_inputs *in,
                                                 struct msc_arena *arena) {
    struct msc_space *space = &s->space;
    struct known *known = NULL;
    MSC_TRY(make_room(&known, tasks, space->n_tasks, arena));
    for (int32_t i = 0; i < msc_quantizer_sites(in->quantizer)->n_sites; i++) {
        int32_t t = s->task_of_site[i];
        const struct msc_array *weight = t == MSC_NO_ID ? NULL : weight_of(in, i);
        if (weight) {
            MSC_TRY(
                add_weight(&known[t], in, i, weight, s->choices_of_task[t], tasks[t].n_choices));
        }
    }
    s->choice_features = msc_arena_array(arena, space->n_tasks + 1, sizeof(s->choice_features[0]));
    MSC_TRY(MSC_ALLOCATED(s->choice_features));
    for (size_t t = 0; t < space->n_tasks; t++) {
        s->choice_features[t] = known[t].features[0];
        fill_sizes(&known[t], space, t);
        fill_rest(&known[t], in->quantizer, s->choices_of_task[t], tasks[t].n_choices);
    }
    space->n_choice_features = N_FEATURES;
    space->choice_feature_names = names;
    return MSC_OK;
}

double msc_quantize_weight_error(const struct msc_quantize_space *s, size_t task, size_t choice) {
    return s->choice_features[task][choice * N_FEATURES + WEIGHT_ERROR];
}

void msc_quantize_set_alone(struct msc_quantize_space *s, const double losses[]) {
    double greatest = 0.0;
    for (size_t t = 0, at = 0; t < s->space.n_tasks; t++) {
        for (uint32_t c = 0; c < s->space.tasks[t].n_choices; c++, at++) {
            greatest = isfinite(losses[at]) ? fmax(greatest, losses[at]) : greatest;
        }
    }
    // A choice whose outputs are not finite is worse than all others.
    for (size_t t = 0, at = 0; t < s->space.n_tasks; t++) {
        for (uint32_t c = 0; c < s->space.tasks[t].n_choices; c++, at++) {
            s->choice_features[t][c * N_FEATURES + DISTILL_LOSS] =
                isfinite(losses[at]) ? losses[at] : 2.0 * greatest;
        }
    }
}
