// Expands parameters that are given for only some axes to all axes of the input. Kernels and
// backends expect one value for each axis.
//
// The parameters are given for the axes in `axes`. For other axes, the width of a pad is 0, the
// scale of a resize is 1, and the size of a resize is the input's length. If a resize keeps the
// aspect ratio, its sizes and scales are computed here.
#include "graph/builder_internal.h"
#include "graph/op_attrs.h"

#include <math.h>
#include <string.h>

struct broadcast {
    struct msc_builder *b;
    struct msc_attr *attrs; // with room for two more attributes
    int32_t *n_attrs;
    int rank;
    int64_t dims[MSC_MAX_DIMS]; // -1: symbolic
    int n_axes;
    int axes[MSC_MAX_DIMS]; // [n_axes] counted from the front
};

static int find_attr(const struct broadcast *s, const char *key) {
    for (int32_t i = 0; i < *s->n_attrs; i++) {
        if (strcmp(s->attrs[i].key, key) == 0 && s->attrs[i].value[0] != '\0') {
            return i;
        }
    }
    return -1;
}

static const char *attr_text(const struct broadcast *s, const char *key) {
    int i = find_attr(s, key);
    return i < 0 ? "" : s->attrs[i].value;
}

static enum msc_status set_attr(struct broadcast *s, const char *key, const char *value) {
    MSC_TRY(MSC_ALLOCATED(value));
    int i = find_attr(s, key);
    if (i < 0) {
        i = 0;
        while (i < *s->n_attrs && strcmp(s->attrs[i].key, key) != 0) {
            i++;
        }
        *s->n_attrs += i == *s->n_attrs;
    }
    s->attrs[i] = (struct msc_attr){key, value};
    return MSC_OK;
}

static void drop_attr(struct broadcast *s, const char *key) {
    int i = find_attr(s, key);
    if (i >= 0) {
        s->attrs[i] = s->attrs[*s->n_attrs - 1];
        *s->n_attrs -= 1;
    }
}

static enum msc_status builder_broadcast_read_axes(struct broadcast *s) {
    int64_t axes[MSC_MAX_DIMS];
    s->n_axes = msc_attr_read_ints(axes, MSC_MAX_DIMS, attr_text(s, "axes"));
    bool is_given = s->n_axes != 0;
    if (!is_given) {
        s->n_axes = s->rank;
    }
    if (s->n_axes < 0 || s->n_axes > s->rank) {
        return MSC_FAIL(MSC_E_INVALID, "axes are '%s', expected a list of at most %d axes",
                        attr_text(s, "axes"), s->rank);
    }
    for (int i = 0; i < s->n_axes; i++) {
        int64_t axis = !is_given ? i : axes[i] < 0 ? axes[i] + s->rank : axes[i];
        if (axis < 0 || axis >= s->rank) {
            return MSC_FAIL(MSC_E_INVALID,
                            "axis %lld is out of range for a tensor with %d dimensions",
                            (long long)axis, s->rank);
        }
        s->axes[i] = (int)axis;
    }
    return MSC_OK;
}

static enum msc_status broadcast_pad(struct broadcast *s) {
    int64_t given[2 * MSC_MAX_DIMS], widths[2 * MSC_MAX_DIMS] = {0};
    if (find_attr(s, "axes") < 0 || find_attr(s, "pad_width") < 0) {
        return MSC_OK;
    }
    MSC_TRY(builder_broadcast_read_axes(s));
    int n = msc_attr_read_ints(given, 2 * MSC_MAX_DIMS, attr_text(s, "pad_width"));
    if (n != 2 * s->n_axes) {
        return MSC_FAIL(MSC_E_INVALID,
                        "pad_width has %d numbers for %d axes, expected two for each", n,
                        s->n_axes);
    }
    for (int i = 0; i < s->n_axes; i++) {
        widths[s->axes[i]] += given[i];
        widths[s->rank + s->axes[i]] += given[s->n_axes + i];
    }
    drop_attr(s, "axes");
    return set_attr(s, "pad_width", msc_builder_ints(s->b, widths, 2 * s->rank));
}

// Reads an attribute with `per_axis` floats for each axis; *is_there is false if it is absent.
static enum msc_status read_floats(float out[], bool *is_there, const struct broadcast *s,
                                   const char *key, int per_axis) {
    int n = msc_attr_read_floats(out, 2 * MSC_MAX_DIMS, attr_text(s, key));
    *is_there = n > 0;
    if (n != 0 && n != per_axis * s->n_axes) {
        return MSC_FAIL(MSC_E_INVALID, "attribute %s has %d numbers for %d axes", key, n,
                        s->n_axes);
    }
    return MSC_OK;
}

static enum msc_status broadcast_floats(struct broadcast *s, const char *key, int per_axis,
                                        const float otherwise[2]) {
    float given[2 * MSC_MAX_DIMS], all[2 * MSC_MAX_DIMS];
    bool is_there;
    MSC_TRY(read_floats(given, &is_there, s, key, per_axis));
    if (!is_there) {
        return MSC_OK;
    }
    for (int part = 0; part < per_axis; part++) {
        for (int d = 0; d < s->rank; d++) {
            all[part * s->rank + d] = otherwise[part];
        }
        for (int i = 0; i < s->n_axes; i++) {
            all[part * s->rank + s->axes[i]] = given[part * s->n_axes + i];
        }
    }
    return set_attr(s, key, msc_builder_floats(s->b, all, per_axis * s->rank));
}

// Scales all axes by the same factor. If `is_smaller`, this is the largest factor that makes no
// axis longer than requested. Otherwise it is the smallest factor that makes no axis shorter than
// requested.
static enum msc_status keep_aspect(struct broadcast *s, int64_t sizes[], bool is_smaller) {
    float scale = 0, scales[MSC_MAX_DIMS];
    for (int i = 0; i < s->n_axes; i++) {
        float own = (float)sizes[s->axes[i]] / (float)s->dims[s->axes[i]];
        scale = i == 0 || (is_smaller ? own < scale : own > scale) ? own : scale;
    }
    for (int d = 0; d < s->rank; d++) {
        scales[d] = 1.0f;
    }
    for (int i = 0; i < s->n_axes; i++) {
        int d = s->axes[i];
        float size = floorf(scale * (float)s->dims[d] + 0.5f);
        if (!(size < 1e12f)) {
            return MSC_FAIL(MSC_E_INVALID, "axis %d of length %lld cannot become %g times as long",
                            d, (long long)s->dims[d], (double)scale);
        }
        sizes[d] = (int64_t)size;
        scales[d] = scale;
    }
    return set_attr(s, "scales", msc_builder_floats(s->b, scales, s->rank));
}

static enum msc_status broadcast_sizes(bool *done, struct broadcast *s) {
    int64_t given[MSC_MAX_DIMS], sizes[MSC_MAX_DIMS];
    const char *policy = attr_text(s, "keep_aspect_ratio_policy");
    int n = msc_attr_read_ints(given, MSC_MAX_DIMS, attr_text(s, "size"));
    *done = true;
    if (n == 0) {
        return MSC_OK;
    }
    if (n != s->n_axes) {
        return MSC_FAIL(MSC_E_INVALID, "attribute size has %d numbers for %d axes", n, s->n_axes);
    }
    for (int d = 0; d < s->rank; d++) {
        sizes[d] = s->dims[d];
    }
    for (int i = 0; i < n; i++) {
        *done = *done && (s->dims[s->axes[i]] > 0 || policy[0] == '\0');
        sizes[s->axes[i]] = given[i];
    }
    for (int d = 0; d < s->rank; d++) {
        *done = *done && sizes[d] >= 0;
    }
    if (!*done) { // a length of the input is still unknown
        return MSC_OK;
    }
    if (policy[0] != '\0') {
        MSC_TRY(keep_aspect(s, sizes, strcmp(policy, "not_larger") == 0));
    }
    return set_attr(s, "size", msc_builder_ints(s->b, sizes, s->rank));
}

static enum msc_status broadcast_resize(struct broadcast *s) {
    bool has_axes = find_attr(s, "axes") >= 0;
    bool has_policy = find_attr(s, "keep_aspect_ratio_policy") >= 0;
    bool has_list = find_attr(s, "size") >= 0 || find_attr(s, "scales") >= 0;
    bool done;
    if ((!has_axes && !has_policy) || !has_list) {
        return MSC_OK;
    }
    MSC_TRY(builder_broadcast_read_axes(s));
    int n_roi = msc_attr_read_floats(NULL, 0, attr_text(s, "roi"));
    if (n_roi == 2 * s->n_axes && s->n_axes != s->rank) {
        MSC_TRY(broadcast_floats(s, "roi", 2, (const float[]){0.0f, 1.0f}));
    }
    if (find_attr(s, "scales") >= 0) {
        MSC_TRY(broadcast_floats(s, "scales", 1, (const float[]){1.0f, 1.0f}));
    }
    MSC_TRY(broadcast_sizes(&done, s));
    if (done) {
        drop_attr(s, "axes");
        drop_attr(s, "keep_aspect_ratio_policy");
    }
    return MSC_OK;
}

enum msc_status msc_builder__broadcast(struct msc_builder *b, enum msc_op op,
                                       struct msc_attr attrs[], int32_t *n_attrs,
                                       const struct msc_value *x) {
    struct broadcast s = {.b = b, .attrs = attrs, .n_attrs = n_attrs};
    bool is_resize = op == MSC_OP_RESIZE || op == MSC_OP_RESIZE_ANTIALIAS;
    if ((op != MSC_OP_PAD && !is_resize) || x == NULL) {
        return MSC_OK;
    }
    if (x->tensor != MSC_NO_ID) {
        const struct msc_tensor *t = &b->graph->tensors[x->tensor]->tensor;
        s.rank = t->n_dims;
        memcpy(s.dims, t->dims, sizeof(s.dims));
    } else if (x->constant != NULL) {
        s.rank = msc_array_n_dims(x->constant);
        memcpy(s.dims, msc_array_dims(x->constant), (size_t)s.rank * sizeof(s.dims[0]));
    }
    return is_resize ? broadcast_resize(&s) : broadcast_pad(&s);
}
