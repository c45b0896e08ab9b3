// Losses of placements: combinations of variants run in mscgym's own kernels, delivered pieces in
// their backends, on all samples.
#include "base/file.h"
#include "base/file_hash.h"
#include "data/array_file.h"
#include "data/npy.h"
#include "env/loss.h"
#include "model/place_internal.h"

#include <math.h>
#include <string.h>

#define WORST_LOSS 1e30 // stands for NaN and infinity, which a table cannot hold

struct meter {
    const struct msc_graph *g;
    struct msc_place_table *p;
    const struct msc_place_options *o;
    struct msc_arena arena;
    struct msc_scratch scratch;
    const char *folder, *file;       // of pieces, and of their outputs
    struct msc_array_list reference; // outputs of the network; empty until they are needed
    int64_t n_left;                  // losses that may be measured
    bool is_cut_short;               // a loss was left unknown because of n_left
};

static enum msc_status run_pieces(struct msc_array_list *outputs, struct meter *m,
                                  const struct msc_pieces *pieces) {
    struct msc_model_options options = MSC_MODEL_OPTIONS_INIT;
    struct msc_pieces_run run = {
        .inputs = m->o->inputs, .output = m->file, .allow_plugins = true, .options = &options};
    options.device = "cpu";
    options.n_threads = m->o->n_threads;
    options.cancel = m->o->cancel;
    MSC_TRY(msc_file_remove(m->file));
    MSC_TRY(msc_pieces_run(pieces, &run));
    return msc_array_file_load(outputs, m->file);
}

static enum msc_status run_variants(struct msc_array_list *outputs, struct meter *m,
                                    const uint32_t variants[]) {
    struct msc_pieces *pieces = NULL;
    MSC_TRY(msc_file_make_folders(m->folder));
    MSC_TRY(msc_place__split_variants(&pieces, m->g, m->p, variants, m->o, m->folder));
    enum msc_status status = run_pieces(outputs, m, pieces);
    msc_pieces_close(pieces);
    return status;
}

static enum msc_status need_reference(struct meter *m) {
    const uint32_t network[MSC_PLACE_MOST_GROUPS] = {0};
    return m->reference.n > 0 ? MSC_OK : run_variants(&m->reference, m, network);
}

// The loss `mse` of one output (env/loss.h), the mean over the n samples.
static double mean_loss(const struct msc_array *y, const struct msc_array *z, int64_t n) {
    const struct msc_loss loss = {.kind = MSC_LOSS_MSE};
    int64_t size = msc_array_n_elements(y) / n;
    const struct msc_loss_shape shape = {.outer = 1, .axis = size, .inner = 1};
    const float *a = msc_array_data(y), *b = msc_array_data(z);
    double mean_square = msc_loss_sum_squares(a, n * size) / (double)msc_array_n_elements(y),
           sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += msc_loss_sample(&loss, &a[i * size], &b[i * size], shape, mean_square);
    }
    return fmin(sum / (double)n, WORST_LOSS); // also if it is NaN
}

static bool has_loss(const struct msc_array *y) {
    return msc_dtype_is_float(msc_array_dtype(y)) && msc_array_n_dims(y) > 0 &&
           msc_array_n_elements(y) > 0;
}

static enum msc_status output_loss(double *out, const struct msc_array *y,
                                   const struct msc_array *z) {
    struct msc_array *a = NULL, *b = NULL;
    MSC_TRY(msc_array_convert(&a, y, MSC_DTYPE_F32));
    enum msc_status status = msc_array_convert(&b, z, MSC_DTYPE_F32);
    if (status == MSC_OK) {
        *out = mean_loss(a, b, msc_array_dim(y, 0));
    }
    msc_array_release(a);
    msc_array_release(b);
    return status;
}

// The mean over the outputs that are floats.
static enum msc_status compare(double *out, const struct meter *m,
                               const struct msc_array_list *outputs) {
    double sum = 0.0, loss;
    size_t n = 0;
    for (size_t i = 0; i < m->reference.n; i++) {
        const char *name = m->reference.names[i];
        const struct msc_array *y = m->reference.arrays[i], *z = msc_array_list_find(outputs, name);
        if (!z || msc_array_dtype(z) != msc_array_dtype(y) ||
            msc_array_n_elements(z) != msc_array_n_elements(y)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: output %s of a variant has another type or number of elements on "
                            "the samples",
                            m->o->model, name);
        }
        if (has_loss(y)) {
            MSC_TRY(output_loss(&loss, y, z));
            sum += loss;
            n++;
        }
    }
    *out = sum / (double)n;
    return n > 0 ? MSC_OK
                 : MSC_FAIL(MSC_E_INVALID,
                            "%s: no output is a float, so no loss can be computed; leave out "
                            "--input and --loss-max",
                            m->o->model);
}

static enum msc_status measure(double *out, void *payload, const uint32_t variants[]) {
    struct meter *m = payload;
    struct msc_array_list outputs = {0};
    *out = NAN;
    if (m->n_left == 0) {
        m->is_cut_short = true;
        return MSC_OK;
    }
    m->n_left--;
    MSC_TRY(need_reference(m));
    enum msc_status status = run_variants(&outputs, m, variants);
    status = status == MSC_OK ? compare(out, m, &outputs) : status;
    msc_array_list_finish(&outputs);
    if (status == MSC_OK) {
        msc_log(m->o->log, MSC_LOG_INFO, "placement: loss %zu: %.4g", m->p->n_losses, *out);
    }
    return status;
}

// Losses of other samples than these do not count.
static enum msc_status take_samples(struct meter *m) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash hash;
    MSC_TRY(msc_file_hash(&hash, m->o->inputs));
    msc_hash_format(text, hash);
    if (m->p->samples && strcmp(m->p->samples, text) != 0) {
        m->p->n_losses = 0;
    }
    m->p->samples = msc_arena_strdup(&m->p->arena, text);
    return MSC_ALLOCATED(m->p->samples);
}

static enum msc_status meter_init(struct meter *m) {
    if (!m->o->inputs) {
        return MSC_OK;
    }
    MSC_TRY(take_samples(m));
    int64_t n = (int64_t)m->p->n_losses;
    m->n_left = n < m->o->most_losses ? m->o->most_losses - n : 0;
    MSC_TRY(msc_scratch_make(&m->scratch, &m->arena));
    m->folder = msc_path_join(&m->arena, m->scratch.path, "pieces");
    m->file = msc_path_join(&m->arena, m->scratch.path, "outputs.npz");
    return MSC_ALLOCATED(m->folder && m->file);
}

static void meter_finish(struct meter *m) {
    msc_array_list_finish(&m->reference);
    msc_scratch_remove(&m->scratch);
    msc_arena_finish(&m->arena);
}

enum msc_status msc_place_find(double *us, bool *is_cut_short, const struct msc_graph *g,
                               struct msc_place_table *p, uint32_t choices[],
                               const struct msc_place_options *o) {
    struct meter m = {.g = g, .p = p, .o = o};
    const struct msc_place_bound bound = {.most = o->most_loss, .measure = measure, .payload = &m};
    enum msc_status status = meter_init(&m);
    status = status == MSC_OK ? msc_place_table_best_within(us, p, &bound, choices) : status;
    *is_cut_short = m.is_cut_short;
    meter_finish(&m);
    return status;
}

enum msc_status msc_place_losses(double of_variants[], double *of_point, const struct msc_graph *g,
                                 struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o) {
    struct meter m = {.g = g, .p = p, .o = o};
    const struct msc_place_bound bound = {.measure = measure, .payload = &m};
    uint32_t variants[MSC_PLACE_MOST_GROUPS];
    enum msc_status status = meter_init(&m);
    m.n_left = o->inputs ? (int64_t)p->n_variants : 0;
    for (size_t v = 0; v < p->n_variants && status == MSC_OK; v++) {
        for (size_t i = 0; i < p->n_groups; i++) {
            variants[i] = (uint32_t)v;
        }
        status = msc_place_table_loss(&of_variants[v], p, &bound, variants);
    }
    msc_place_table_variants(variants, p, choices);
    status = status == MSC_OK ? msc_place_table_loss(of_point, p, &bound, variants) : status;
    meter_finish(&m);
    return status;
}

enum msc_status msc_place_delivered_loss(double *loss, const struct msc_graph *g,
                                         struct msc_place_table *p, const struct msc_pieces *pieces,
                                         const struct msc_place_options *o) {
    struct meter m = {.g = g, .p = p, .o = o};
    struct msc_array_list outputs = {0};
    enum msc_status status = meter_init(&m);
    status = status == MSC_OK ? need_reference(&m) : status;
    status = status == MSC_OK ? run_pieces(&outputs, &m, pieces) : status;
    status = status == MSC_OK ? compare(loss, &m, &outputs) : status;
    msc_array_list_finish(&outputs);
    meter_finish(&m);
    return status;
}
