// NonMaxSuppression: if boxes overlap too much, selects only the box with the best score.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

// Two opposite corners; `low` has the smaller coordinates.
struct box {
    double low[2], high[2], area;
};

struct candidate {
    double score;
    int64_t box;
};

struct boxes {
    const struct msc_view *scores;
    int64_t n_batches, n_classes, n;
    int64_t max_output; // per batch and class
    double iou_threshold, score_threshold;
    bool has_score_threshold;
    struct box *all;              // [n_batches][n]
    struct candidate *candidates; // [n]
};

static double scalar_operand(const struct msc_reference_call *call, int position,
                             double otherwise) {
    bool has =
        msc_reference__has(call, position) && msc_view_n_elements(&call->operands[position]) > 0;
    return has ? msc_reference__get_double_at(&call->operands[position], 0) : otherwise;
}

// Reads the maximum number of boxes as an integer, because exporters use INT64_MAX, which a double
// cannot hold.
static int64_t read_max_output(const struct msc_reference_call *call, int64_t n) {
    bool has = msc_reference__has(call, 2) && msc_view_n_elements(&call->operands[2]) > 0;
    int64_t most = has ? msc_reference__get_i64_at(&call->operands[2], 0) : 0;
    return most < 0 ? 0 : most < n ? most : n;
}

// Reads a box given by two corners, or by its centre and sizes.
static struct box read_box(const struct msc_view *v, int64_t index, bool is_centred) {
    struct box box;
    for (int i = 0; i < 2; i++) {
        double a = msc_reference__get_double_at(v, index * 4 + i);
        double b = msc_reference__get_double_at(v, index * 4 + i + 2);
        double first = is_centred ? a - b / 2 : a, second = is_centred ? a + b / 2 : b;
        box.low[i] = first < second ? first : second;
        box.high[i] = first < second ? second : first;
    }
    box.area = (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]);
    return box;
}

// Area of the intersection divided by the area of the union.
static double overlap(const struct box *a, const struct box *b) {
    double sides[2];
    for (int i = 0; i < 2; i++) {
        double low = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        double high = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        sides[i] = high > low ? high - low : 0;
    }
    double both = sides[0] * sides[1], all = a->area + b->area - both;
    return all > 0 ? both / all : 0;
}

// Orders by score, highest first, then by index; NaN comes last.
static int by_score(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    double p = isnan(x->score) ? -INFINITY : x->score, q = isnan(y->score) ? -INFINITY : y->score;
    if (p != q) {
        return p > q ? -1 : 1;
    }
    return (x->box > y->box) - (x->box < y->box);
}

static int64_t list_candidates(const struct boxes *b, int64_t first_score) {
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        double score = msc_reference__get_double_at(b->scores, first_score + i);
        if (!b->has_score_threshold || score > b->score_threshold) {
            b->candidates[n++] = (struct candidate){score, i};
        }
    }
    qsort(b->candidates, (size_t)n, sizeof(b->candidates[0]), by_score);
    return n;
}

// Appends the selected boxes of a batch and class to `out`, three numbers per box. Returns the
// number of boxes.
static int64_t select_boxes(int64_t *out, const struct boxes *b, int64_t batch, int64_t class) {
    const struct box *all = b->all + batch * b->n;
    int64_t n_candidates = list_candidates(b, (batch * b->n_classes + class) * b->n), n = 0;
    for (int64_t i = 0; i < n_candidates && n < b->max_output; i++) {
        int64_t box = b->candidates[i].box;
        bool is_free = true;
        for (int64_t k = 0; is_free && k < n; k++) {
            is_free = overlap(&all[out[3 * k + 2]], &all[box]) <= b->iou_threshold;
        }
        if (is_free) {
            out[3 * n] = batch;
            out[3 * n + 1] = class;
            out[3 * n + 2] = box;
            n++;
        }
    }
    return n;
}

static enum msc_status suppress(const struct msc_reference_call *call, struct boxes *b,
                                int64_t *selected) {
    bool is_centred;
    int64_t n = 0;
    MSC_TRY(msc_reference__get_bool(&is_centred, call, "center_point_box"));
    for (int64_t i = 0; i < b->n_batches * b->n; i++) {
        b->all[i] = read_box(&call->operands[0], i, is_centred);
    }
    for (int64_t i = 0; i < b->n_batches * b->n_classes; i++) {
        n += select_boxes(selected + 3 * n, b, i / b->n_classes, i % b->n_classes);
    }
    MSC_TRY(msc_reference__allocate(call, 0, 2, (const int64_t[]){n, 3}));
    for (int64_t i = 0; i < 3 * n; i++) {
        msc_reference__set_i64_at(&call->outputs[0], i, selected[i]);
    }
    return MSC_OK;
}

enum msc_status msc_reference__non_max_suppression(const struct msc_reference_call *call) {
    const struct msc_view *scores = &call->operands[1];
    struct boxes b = {.scores = scores,
                      .n_batches = scores->dims[0],
                      .n_classes = scores->dims[1],
                      .n = scores->dims[2]};
    b.max_output = read_max_output(call, b.n);
    b.iou_threshold = scalar_operand(call, 3, 0);
    b.has_score_threshold = msc_reference__has(call, 4);
    b.score_threshold = scalar_operand(call, 4, 0);
    size_t most = (size_t)(b.n_batches * b.n_classes * b.max_output);
    int64_t *selected = msc_alloc_zero(most * 3 + 1, sizeof(selected[0]));
    b.all = msc_alloc_zero((size_t)(b.n_batches * b.n) + 1, sizeof(b.all[0]));
    b.candidates = msc_alloc_zero((size_t)b.n + 1, sizeof(b.candidates[0]));
    enum msc_status status =
        selected && b.all && b.candidates
            ? suppress(call, &b, selected)
            : MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", call->joint->name);
    msc_free(selected);
    msc_free(b.all);
    msc_free(b.candidates);
    return status;
}
