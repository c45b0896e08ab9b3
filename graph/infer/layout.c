// Computes the axis letters of a tensor after a joint that changes its shape.
#include "graph/infer/infer_internal.h"

#include <string.h>

void msc_infer__add_letter(char layout[MSC_MAX_DIMS + 4]) {
    static const char usual[] = "NCHWD";
    size_t n = strlen(layout);
    size_t first = 0;
    while (first < n && usual[first] != '\0' && strchr(layout, usual[first]) != NULL) {
        first++;
    }
    char letter = first == n && n < 5 ? usual[n] : 'A';
    while (strchr(layout, letter) != NULL) {
        letter++;
    }
    layout[n] = letter;
    layout[n + 1] = '\0';
}

void msc_infer_permute_layout(char out[MSC_MAX_DIMS + 4], const char *in, const int64_t axes[],
                              int n) {
    for (int i = 0; in[0] != '\0' && i < n; i++) {
        out[i] = in[axes[i]];
    }
    out[in[0] == '\0' ? 0 : n] = '\0';
}

// The letter for the axes first to last - 1 after they are merged: N if one of them is N, else the
// letter of the first axis that is longer than 1.
static char group_letter(const struct msc_infer_tensor *in, int first, int last) {
    char letter = '\0';
    for (int i = first; i < last; i++) {
        bool is_one = msc_infer__is_number(in->dims[i]) && in->dims[i].value == 1;
        if (in->layout[i] == 'N') {
            return 'N';
        }
        if (letter == '\0' && !is_one) {
            letter = in->layout[i];
        }
    }
    return letter == '\0' && first < last ? in->layout[first] : letter;
}

static bool is_suffix_equal(const struct msc_infer_tensor *a, int first_a,
                            const struct msc_infer_tensor *b, int first_b) {
    if (a->n_dims - first_a != b->n_dims - first_b) {
        return false;
    }
    for (int i = first_a; i < a->n_dims; i++) {
        if (!msc_infer__same_dim(a->dims[i], b->dims[first_b + i - first_a])) {
            return false;
        }
    }
    return true;
}

// Finds the fewest axes of `in` from i on, and of `out` from o on, whose lengths have the same
// product. False if there are none before a symbolic dimension or the last axis.
static bool match_group(int *last_in, int *last_out, const struct msc_infer_tensor *in, int i,
                        const struct msc_infer_tensor *out, int o) {
    if (msc_infer__same_dim(in->dims[i], out->dims[o])) {
        *last_in = i + 1;
        *last_out = o + 1;
        return true;
    }
    int64_t product_in = 1, product_out = 1;
    bool first = true;
    while (first || product_in != product_out) {
        bool takes_in = first || product_in < product_out;
        bool takes_out = first || product_out < product_in;
        first = false;
        if ((takes_in && (i == in->n_dims || !msc_infer__is_number(in->dims[i]))) ||
            (takes_out && (o == out->n_dims || !msc_infer__is_number(out->dims[o])))) {
            return false;
        }
        product_in *= takes_in ? in->dims[i++].value : 1;
        product_out *= takes_out ? out->dims[o++].value : 1;
        if (product_in <= 0 || product_out <= 0) {
            return false;
        }
    }
    *last_in = i;
    *last_out = o;
    return true;
}

// Finds the group if products do not match: either output axis o comes from several input axes, or
// input axis i becomes several output axes. The group ends where the remaining axes of both shapes
// are equal.
static void find_group(int *last_in, int *last_out, const struct msc_infer_tensor *in, int i,
                       const struct msc_infer_tensor *out, int o) {
    *last_out = o + 1;
    for (*last_in = in->n_dims; *last_in > i + 1 && *last_out < out->n_dims; (*last_in)--) {
        if (is_suffix_equal(out, *last_out, in, *last_in)) {
            return;
        }
    }
    for (int last = o + 1; i + 1 < in->n_dims && last < out->n_dims; last++) {
        if (is_suffix_equal(out, last, in, i + 1)) {
            *last_out = last;
            return;
        }
    }
}

// Moves the letter of an axis that was split into the axes [first, last). So far, axis `first` has
// the letter. If exactly one of the axes is symbolic, this axis gets the letter, because it is
// usually the batch.
static void move_letter(char layout[], char letter, const struct msc_infer_tensor *out, int first,
                        int last) {
    int symbolic = -1, n = 0;
    for (int i = first; i < last; i++) {
        if (!msc_infer__is_number(out->dims[i])) {
            symbolic = i;
            n++;
        }
    }
    if (n == 1 && letter != '\0' && layout[first] == letter) {
        layout[first] = layout[symbolic];
        layout[symbolic] = letter;
    }
}

// True if the ranks are equal and no known lengths differ.
static bool may_be_same(const struct msc_infer_tensor *in, const struct msc_infer_tensor *out) {
    bool is_same = in->n_dims == out->n_dims;
    for (int i = 0; is_same && i < in->n_dims; i++) {
        is_same = !msc_infer__is_number(in->dims[i]) || !msc_infer__is_number(out->dims[i]) ||
                  in->dims[i].value == out->dims[i].value;
    }
    return is_same;
}

// Appends the letter of an output axis that comes from no input axis. An axis of length 1 gets the
// letter of an input axis of length 1 that is not used yet: NCHW with C = 1, reshaped to [N,H,W,1],
// is NHWC.
static void add_new_letter(char layout[], const struct msc_infer_tensor *in, struct msc_dim dim) {
    for (int i = 0; msc_infer__is_number(dim) && dim.value == 1 && i < in->n_dims; i++) {
        bool is_one = msc_infer__is_number(in->dims[i]) && in->dims[i].value == 1;
        if (is_one && strchr(layout, in->layout[i]) == NULL) {
            size_t n = strlen(layout);
            layout[n] = in->layout[i];
            layout[n + 1] = '\0';
            return;
        }
    }
    char letter = 'A';
    while (strchr(layout, letter) != NULL || strchr(in->layout, letter) != NULL) {
        letter++;
    }
    size_t n = strlen(layout);
    layout[n] = letter;
    layout[n + 1] = '\0';
}

void msc_infer__reshape_layout(struct msc_infer_tensor *out, const struct msc_infer_tensor *in) {
    out->layout[0] = '\0';
    if (in->layout[0] == '\0' || out->n_dims == 0) {
        return;
    }
    if (may_be_same(in, out)) {
        memcpy(out->layout, in->layout, sizeof(out->layout));
        return;
    }
    char layout[MSC_MAX_DIMS + 4] = "";
    int i = 0, o = 0;
    while (o < out->n_dims) {
        int last_in, last_out, first = o;
        if (i >= in->n_dims || !match_group(&last_in, &last_out, in, i, out, o)) {
            find_group(&last_in, &last_out, in, i, out, o);
        }
        char letter = i < last_in ? group_letter(in, i, last_in) : '\0';
        if (letter == '\0' || strchr(layout, letter) != NULL) {
            add_new_letter(layout, in, out->dims[o]);
        } else {
            size_t n = strlen(layout);
            layout[n] = letter;
            layout[n + 1] = '\0';
        }
        for (o++; o < last_out; o++) {
            add_new_letter(layout, in, out->dims[o]);
        }
        if (last_in == i + 1) {
            move_letter(layout, letter, out, first, last_out);
        }
        i = last_in;
    }
    memcpy(out->layout, layout, sizeof(layout));
}
