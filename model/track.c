// Tracks the differences of two networks in parts. A part has as many tensors as fit in memory with
// all their batches: the first side's values are kept until the second side's are computed.
#include "model/track.h"

#include "base/alloc.h"
#include "kernels/engine/evaluator.h"
#include "model/model_internal.h"
#include "model/track_left.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

// Sums over the elements of one tensor in one batch.
struct sums {
    int64_t n;
    bool is_other_shape;
    double max_abs, abs, noise, yy, zz, yz;
};

struct tracking {
    const struct msc_track_side *sides;
    struct msc_track *track;
    struct msc_track_left left[2];
    int32_t *tensors[2]; // [n_rows] for each side
    uint64_t *bytes;     // [n_rows] size of the tensor in all batches together
    size_t n_batches;
    // The current part: rows [first, first + n).
    size_t first, n;
    struct msc_array **kept; // [n_batches * n]
    struct sums *sums;       // [n_batches * n]
};

// ---- Which tensors ------------------------------------------------------------------------------

static bool is_tracked(const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (t->producer == MSC_NO_ID || t->data || t->dtype != MSC_DTYPE_F32) {
        return false;
    }
    enum msc_op op = msc_graph_joint(g, t->producer)->op;
    return op != MSC_OP_INPUT && op != MSC_OP_CONSTANT;
}

static int32_t find_other(const struct tracking *t, int32_t tensor) {
    const struct msc_graph *one = t->sides[0].model->graph, *other = t->sides[1].model->graph;
    const struct msc_tensor *here = msc_graph_tensor(one, tensor);
    if (one == other) {
        return tensor;
    }
    int32_t found = here->alias[0] ? msc_graph_find_tensor(other, here->alias) : MSC_NO_ID;
    return found != MSC_NO_ID && is_tracked(other, found) ? found : MSC_NO_ID;
}

// Adds rows in the order of joints, which is topological.
static void pair_tensors(struct tracking *t) {
    const struct msc_graph *g = t->sides[0].model->graph;
    struct msc_track *track = t->track;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_outputs; k++) {
            int32_t tensor = j->outputs[k];
            int32_t other = is_tracked(g, tensor) ? find_other(t, tensor) : MSC_NO_ID;
            if (other != MSC_NO_ID) {
                track->rows[track->n_rows].tensor = tensor;
                t->tensors[0][track->n_rows] = tensor;
                t->tensors[1][track->n_rows] = other;
                track->n_rows++;
            }
        }
    }
}

// Drops the rows of tensors that are constant or empty on a side once the shapes are known.
static enum msc_status drop_rows(struct tracking *t, int side) {
    const struct msc_model *m = t->sides[side].model;
    struct msc_graph *bound = NULL;
    size_t n = 0;
    MSC_TRY(msc_model__bind_first(&bound, m, m->dataset));
    for (size_t i = 0; i < t->track->n_rows; i++) {
        const char *name = msc_graph_tensor(m->graph, t->tensors[side][i])->name;
        int32_t tensor = msc_graph_find_tensor(bound, name);
        if (tensor != MSC_NO_ID && msc_tensor_n_elements(msc_graph_tensor(bound, tensor)) != 0) {
            t->track->rows[n] = t->track->rows[i];
            t->tensors[0][n] = t->tensors[0][i];
            t->tensors[1][n++] = t->tensors[1][i];
        }
    }
    msc_graph_destroy(bound);
    t->track->n_rows = n;
    return MSC_OK;
}

// ---- Values -------------------------------------------------------------------------------------

static enum msc_status take_size(void *payload, size_t trial, size_t batch,
                                 const struct msc_view values[]) {
    struct tracking *t = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < t->n; i++) {
        t->bytes[t->first + i] =
            (uint64_t)msc_view_n_elements(&values[i]) * sizeof(float) * t->n_batches;
    }
    return MSC_OK;
}

static enum msc_status keep_batch(void *payload, size_t trial, size_t batch,
                                  const struct msc_view values[]) {
    struct tracking *t = payload;
    (void)trial;
    for (size_t i = 0; i < t->n; i++) {
        struct msc_array **kept = &t->kept[batch * t->n + i];
        msc_array_release(*kept);
        *kept = NULL;
        MSC_TRY(msc_array_create_from(kept, MSC_DTYPE_F32, values[i].n_dims, values[i].dims,
                                      values[i].data));
    }
    return MSC_OK;
}

// Equal numbers, or two NaN, do not differ. A pair with a number that is not finite counts only as
// a difference, not in the sums of squares.
static void add_element(void *sums, double y, double z) {
    struct sums *s = sums;
    bool is_same = y == z || (isnan(y) && isnan(z));
    double d = is_same ? 0.0 : fabs(y - z);
    s->max_abs = d > s->max_abs || isnan(d) ? (isnan(d) ? INFINITY : d) : s->max_abs;
    s->abs += isfinite(d) ? d : INFINITY;
    s->noise += isfinite(d) ? d * d : INFINITY;
    if (isfinite(y) && isfinite(z)) {
        s->yy += y * y;
        s->zz += z * z;
        s->yz += y * z;
    }
}

static void add_all(struct sums *s, const float y[], const float z[], int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        add_element(s, y[k], z[k]);
    }
    s->n = n;
}

// If channels were removed, compares the channels that both sides have.
static enum msc_status add_common(struct sums *s, const struct tracking *t, size_t row,
                                  const struct msc_array *kept, const struct msc_view *value) {
    const struct msc_track_shape sides[] = {
        {&t->left[0], t->tensors[0][row], msc_array_n_dims(kept), msc_array_dims(kept)},
        {&t->left[1], t->tensors[1][row], value->n_dims, value->dims}};
    struct msc_track_common common;
    bool has_any;
    MSC_TRY(msc_track__common_init(&common, &has_any, sides));
    s->is_other_shape = !has_any;
    if (has_any) {
        s->n = msc_dims_product(common.n_dims, common.n);
        msc_track__common_each(&common, msc_array_data(kept), value->data, add_element, s);
    }
    msc_track__common_finish(&common);
    return MSC_OK;
}

static enum msc_status compare_batch(void *payload, size_t trial, size_t batch,
                                     const struct msc_view values[]) {
    struct tracking *t = payload;
    (void)trial;
    for (size_t i = 0; i < t->n; i++) {
        const struct msc_array *kept = t->kept[batch * t->n + i];
        struct sums *s = &t->sums[batch * t->n + i];
        *s = (struct sums){.n = 0};
        if (t->left[0].is_gone || t->left[1].is_gone) {
            MSC_TRY(add_common(s, t, t->first + i, kept, &values[i]));
        } else if (msc_array_n_elements(kept) != msc_view_n_elements(&values[i])) {
            s->is_other_shape = true;
        } else {
            add_all(s, msc_array_data(kept), values[i].data, msc_array_n_elements(kept));
        }
    }
    return MSC_OK;
}

typedef enum msc_status (*take_batch)(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]);

// Runs one side for rows [first, first + n).
static enum msc_status run_side(struct tracking *t, int side, const struct msc_dataset *data,
                                take_batch take) {
    const struct msc_track_side *s = &t->sides[side];
    const struct msc_sink sink = {.batch = take, .payload = t};
    return msc_model__feed(s->model, s->strategy, data, t->tensors[side] + t->first, t->n, &sink);
}

static enum msc_status measure_sizes(struct tracking *t) {
    const struct msc_dataset *data = t->sides[0].model->dataset;
    struct msc_dataset *part;
    t->first = 0;
    t->n = t->track->n_rows;
    MSC_TRY(msc_dataset_create_part(&part, data, 0, msc_dataset_batch_samples(data, 0)));
    enum msc_status status = run_side(t, 0, part, take_size);
    msc_dataset_destroy(part);
    return status;
}

// ---- Parts --------------------------------------------------------------------------------------

static void sum_up(struct msc_track_row *row, const struct tracking *t, size_t i) {
    struct sums all = {0};
    for (size_t b = 0; b < t->n_batches; b++) {
        const struct sums *s = &t->sums[b * t->n + i];
        all.n += s->n;
        all.is_other_shape = all.is_other_shape || s->is_other_shape;
        all.max_abs = fmax(all.max_abs, s->max_abs);
        all.abs += s->abs;
        all.noise += s->noise;
        all.yy += s->yy;
        all.zz += s->zz;
        all.yz += s->yz;
    }
    double product = sqrt(all.yy) * sqrt(all.zz);
    bool is_known = all.n > 0 && !all.is_other_shape;
    row->n = is_known ? all.n : 0;
    row->max_abs = is_known ? all.max_abs : NAN;
    row->mean_abs = is_known ? all.abs / (double)all.n : NAN;
    row->snr_db = all.noise == 0.0 ? INFINITY : 10.0 * log10(all.yy / all.noise);
    row->snr_db = is_known ? row->snr_db : NAN;
    row->cosine = product > 0.0 ? all.yz / product : all.yy == all.zz;
    row->cosine = is_known ? row->cosine : NAN;
}

static void drop_part(struct tracking *t) {
    for (size_t i = 0; t->kept && i < t->n_batches * t->n; i++) {
        msc_array_release(t->kept[i]);
    }
    msc_free(t->kept);
    msc_free(t->sums);
    t->kept = NULL;
    t->sums = NULL;
}

static enum msc_status track_part(struct tracking *t) {
    t->kept = msc_alloc_zero(t->n_batches * t->n, sizeof t->kept[0]);
    t->sums = msc_alloc_zero(t->n_batches * t->n, sizeof t->sums[0]);
    MSC_TRY(MSC_ALLOCATED(t->kept && t->sums));
    MSC_TRY(run_side(t, 0, t->sides[0].model->dataset, keep_batch));
    MSC_TRY(run_side(t, 1, t->sides[1].model->dataset, compare_batch));
    for (size_t i = 0; i < t->n; i++) {
        sum_up(&t->track->rows[t->first + i], t, i);
    }
    return MSC_OK;
}

static enum msc_status track_all(struct tracking *t) {
    uint64_t most = t->sides[0].model->memory_bytes / 4; // the rest is for the evaluation
    MSC_TRY(measure_sizes(t));
    for (t->first = 0; t->first < t->track->n_rows; t->first += t->n) {
        uint64_t bytes = t->bytes[t->first];
        t->n = 1;
        while (t->first + t->n < t->track->n_rows && bytes + t->bytes[t->first + t->n] <= most) {
            bytes += t->bytes[t->first + t->n++];
        }
        enum msc_status status = track_part(t);
        drop_part(t);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// ---- The joint that causes the difference -------------------------------------------------------

double msc_track_fall(const struct msc_track_row *row) {
    return fmin(row->inputs_db, MSC_TRACK_CLEAN_DB) - row->snr_db;
}

// Fills inputs_db of the rows. `db` [n_tensors] receives the snr_db of each tensor; a tensor
// without a row has the least value among the inputs of the joint that computes it.
static void follow(struct tracking *t, double db[]) {
    const struct msc_graph *g = t->sides[0].model->graph;
    struct msc_track *track = t->track;
    size_t next = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        double inputs_db = INFINITY;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            inputs_db = j->inputs[k] == MSC_NO_ID ? inputs_db : fmin(inputs_db, db[j->inputs[k]]);
        }
        for (int32_t k = 0; k < j->n_outputs; k++) {
            db[j->outputs[k]] = inputs_db;
            if (next < track->n_rows && track->rows[next].tensor == j->outputs[k]) {
                struct msc_track_row *row = &track->rows[next++];
                row->inputs_db = inputs_db;
                db[j->outputs[k]] = row->n > 0 ? row->snr_db : inputs_db;
            }
        }
    }
}

static void find_worst(struct msc_track *track) {
    double most = -INFINITY;
    track->worst = track->n_rows;
    for (size_t i = 0; i < track->n_rows; i++) {
        const struct msc_track_row *row = &track->rows[i];
        if (row->n > 0 && row->snr_db < INFINITY && msc_track_fall(row) > most) {
            most = msc_track_fall(row);
            track->worst = i;
        }
    }
}

static enum msc_status trace(struct tracking *t) {
    size_t n = (size_t)msc_graph_n_tensors(t->sides[0].model->graph);
    double *db = msc_alloc_zero(n + 1, sizeof *db);
    MSC_TRY(MSC_ALLOCATED(db));
    for (size_t i = 0; i < n; i++) {
        db[i] = INFINITY;
    }
    follow(t, db);
    msc_free(db);
    find_worst(t->track);
    return MSC_OK;
}

// ---- Tracking -----------------------------------------------------------------------------------

static enum msc_status check_sides(const struct msc_track_side sides[2]) {
    const struct msc_dataset *a = sides[0].model->dataset, *b = sides[1].model->dataset;
    if (!a || !b) {
        return MSC_FAIL(MSC_E_STATE, "%s: no samples are loaded", sides[a ? 1 : 0].model->path);
    }
    if (msc_dataset_n_samples(a) != msc_dataset_n_samples(b) ||
        msc_dataset_n_batches(a) != msc_dataset_n_batches(b)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s runs %" PRId64 " samples in %zu batches, but %s %" PRId64 " in %zu",
                        sides[0].model->path, msc_dataset_n_samples(a), msc_dataset_n_batches(a),
                        sides[1].model->path, msc_dataset_n_samples(b), msc_dataset_n_batches(b));
    }
    return MSC_OK;
}

enum msc_status msc_track_make(struct msc_track **out, const struct msc_track_side sides[2]) {
    struct tracking t = {.sides = sides};
    enum msc_status status = MSC_OK;
    MSC_TRY(check_sides(sides));
    for (int k = 0; k < 2; k++) {
        msc_model__settle_memory(sides[k].model);
    }
    size_t n = (size_t)msc_graph_n_tensors(sides[0].model->graph) + 1;
    t.n_batches = msc_dataset_n_batches(sides[0].model->dataset);
    t.track = msc_alloc_zero(1, sizeof *t.track);
    t.tensors[0] = msc_alloc_zero(n, sizeof *t.tensors[0]);
    t.tensors[1] = msc_alloc_zero(n, sizeof *t.tensors[1]);
    t.bytes = msc_alloc_zero(n, sizeof *t.bytes);
    if (!t.track || !t.tensors[0] || !t.tensors[1] || !t.bytes ||
        !(t.track->rows = msc_alloc_zero(n, sizeof *t.track->rows))) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        goto out;
    }
    t.track->n_samples = msc_dataset_n_samples(sides[0].model->dataset);
    for (int k = 0; k < 2; k++) {
        MSC_TRY_OUT(msc_track__left_init(&t.left[k], &sides[k]));
    }
    pair_tensors(&t);
    for (int k = 0; k < 2; k++) {
        MSC_TRY_OUT(drop_rows(&t, k));
    }
    if (t.track->n_rows == 0) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "%s: no tensor that depends on the samples has the same name in %s",
                          sides[0].model->path, sides[1].model->path);
        goto out;
    }
    MSC_TRY_OUT(track_all(&t));
    MSC_TRY_OUT(trace(&t));
    *out = t.track;
    t.track = NULL;
out:
    msc_track__left_finish(&t.left[0]);
    msc_track__left_finish(&t.left[1]);
    msc_track_destroy(t.track);
    msc_free(t.tensors[0]);
    msc_free(t.tensors[1]);
    msc_free(t.bytes);
    return status;
}

void msc_track_destroy(struct msc_track *track) {
    if (track) {
        msc_free(track->rows);
        msc_free(track);
    }
}
