// Draws joints for fuzz_kernels, as declared in kernel_joints.h.
#include "tests/fuzz/kernel_joints.h"

#include "base/str.h"

#include <stdio.h>

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

int kernel_below(struct kernel_draw *d, int n) {
    int byte = d->at < d->n ? d->data[d->at++] : 0;
    return byte % n;
}

static int64_t length_of(struct kernel_draw *d) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20, 24, 33, 48, 65};
    return lengths[kernel_below(d, N(lengths))];
}

static const struct msc_tensor *tensor_of(const struct kernel_draw *d, int32_t y) {
    return msc_graph_tensor(d->c->g, y);
}

static int64_t n_elements(int n_dims, const int64_t dims[]) {
    int64_t n = msc_dims_product(n_dims, dims);
    return n < 0 ? INT64_MAX : n;
}

static bool is_small(int n_dims, const int64_t dims[]) {
    return n_elements(n_dims, dims) < KERNEL_MAX_ELEMENTS;
}

static bool has_room(const struct kernel_draw *d) {
    return d->c->n_inputs < CPU_CASE_MAX;
}

int32_t kernel_input(struct kernel_draw *d) {
    static const char *const layouts[] = {"", "", "NC", "NCW", "NCHW", "NCDHW"};
    static const int ranks[] = {4, 4, 3, 5, 2, 4};
    int n_dims = ranks[kernel_below(d, N(ranks))];
    int64_t dims[5] = {1 + kernel_below(d, 3)};
    for (int i = 1; i < n_dims; i++) {
        dims[i] = length_of(d);
    }
    for (int i = 1; i < n_dims && !is_small(n_dims, dims); i++) {
        dims[i] = dims[i] % 5 + 1;
    }
    return cpu_input(d->c, layouts[n_dims], n_dims, dims);
}

static int32_t unary(struct kernel_draw *d, enum msc_op op, int32_t y, const char *attributes) {
    return cpu_joint(d->c, op, 1, &y, attributes, MSC_NO_ID, MSC_NO_ID);
}

// Draws n numbers from `least` to least + limit - 1 and writes "a,b,c"; a list of one ends with a
// comma.
static void draw_list(struct kernel_draw *d, struct msc_str *out, int64_t values[], int n,
                      int least, int limit) {
    for (int i = 0; i < n; i++) {
        values[i] = least + kernel_below(d, limit);
        msc_str_printf(out, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
    }
    msc_str_append(out, n == 1 ? "," : "");
}

// ---- Windows ----------------------------------------------------------------------------------

struct window {
    int n; // number of axes
    int64_t kernel[3], strides[3], dilation[3], padding[6];
    struct msc_str text; // the attributes as text
};

static void draw_window(struct kernel_draw *d, struct window *w, int n, const char *kernel_key) {
    w->n = n;
    if (kernel_key) {
        msc_str_printf(&w->text, "%s=", kernel_key);
    }
    struct msc_str kernel = {0};
    draw_list(d, &kernel, w->kernel, n, 1, 5);
    if (kernel_key) {
        msc_str_append(&w->text, msc_str_text(&kernel));
        msc_str_char(&w->text, ';');
    }
    msc_str_finish(&kernel);
    msc_str_append(&w->text, "strides=");
    draw_list(d, &w->text, w->strides, n, 1, 4);
    msc_str_append(&w->text, ";dilation=");
    draw_list(d, &w->text, w->dilation, n, 1, 3);
    msc_str_append(&w->text, ";padding=");
    draw_list(d, &w->text, w->padding, 2 * n, 0, 4);
}

// Computes the lengths of the output; returns false if one would be below 1.
static bool slide(const struct window *w, const int64_t size[], int64_t out[]) {
    for (int i = 0; i < w->n; i++) {
        int64_t span = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t whole = size[i] + w->padding[i] + w->padding[w->n + i];
        if (whole < span) {
            return false;
        }
        out[i] = (whole - span) / w->strides[i] + 1;
    }
    return true;
}

// Returns false if a pool's padding is as large as its window, because some windows would then
// contain only padding.
static bool covers_padding(const struct window *w) {
    for (int i = 0; i < 2 * w->n; i++) {
        if (w->padding[i] >= w->kernel[i % w->n]) {
            return false;
        }
    }
    return true;
}

static int32_t draw_pool(struct kernel_draw *d, int32_t y) {
    static const enum msc_op ops[2][3] = {
        {MSC_OP_MAX_POOL1D, MSC_OP_MAX_POOL2D, MSC_OP_MAX_POOL3D},
        {MSC_OP_AVG_POOL1D, MSC_OP_AVG_POOL2D, MSC_OP_AVG_POOL3D}};
    const struct msc_tensor *t = tensor_of(d, y);
    struct window w = {.n = 0};
    int64_t out[3];
    int n = t->n_dims - 2, is_mean = kernel_below(d, 2);
    if (n < 1 || n > 3) {
        return y;
    }
    draw_window(d, &w, n, "pool_size");
    msc_str_printf(&w.text, ";ceil_mode=%d", kernel_below(d, 2));
    if (is_mean) {
        msc_str_printf(&w.text, ";count_include_pad=%d", kernel_below(d, 2));
    }
    if (covers_padding(&w) && slide(&w, t->dims + 2, out)) {
        y = unary(d, ops[is_mean][n - 1], y, msc_str_text(&w.text));
        // No kernel computes the mean of a 3-D window in the reference's order of sums.
        d->is_close |= is_mean == 1 && n == 3;
    }
    msc_str_finish(&w.text);
    return y;
}

// ---- Convolutions and products ----------------------------------------------------------------

static int64_t draw_groups(struct kernel_draw *d, int64_t channels) {
    static const int64_t groups[] = {1, 1, 2, 3, 4, 0};
    int64_t g = groups[kernel_below(d, N(groups))];
    g = g == 0 ? channels : g;
    return channels % g == 0 ? g : 1;
}

static int32_t draw_conv(struct kernel_draw *d, int32_t y) {
    static const enum msc_op ops[2][3] = {
        {MSC_OP_CONV1D, MSC_OP_CONV2D, MSC_OP_CONV3D},
        {MSC_OP_CONV1D_BIAS, MSC_OP_CONV2D_BIAS, MSC_OP_CONV3D_BIAS}};
    static const char *const layouts[] = {"OIW", "OIHW", "OIDHW"};
    const struct msc_tensor *t = tensor_of(d, y);
    struct window w = {.n = 0};
    int64_t out[5] = {t->dims[0]}, w_dims[5];
    int n = t->n_dims - 2;
    if (n < 1 || n > 3) {
        return y;
    }
    int64_t groups = draw_groups(d, t->dims[1]);
    out[1] = w_dims[0] = groups * (groups > 8 ? 1 + kernel_below(d, 2) : length_of(d));
    w_dims[1] = t->dims[1] / groups;
    draw_window(d, &w, n, NULL);
    memcpy(w_dims + 2, w.kernel, sizeof(int64_t) * (size_t)n);
    msc_str_printf(&w.text, ";groups=%lld", (long long)groups);
    bool fits =
        slide(&w, t->dims + 2, out + 2) && is_small(n + 2, out) &&
        (double)n_elements(n + 2, out) * (double)n_elements(n + 1, w_dims + 1) < KERNEL_MAX_MACS;
    if (fits) {
        bool has_bias = kernel_below(d, 2) == 1;
        int32_t weight = cpu_weight(d->c, layouts[n - 1], n + 2, w_dims);
        int32_t bias = has_bias ? cpu_weight(d->c, "O", 1, w_dims) : MSC_NO_ID;
        y = cpu_joint(d->c, ops[has_bias][n - 1], 1, &y, msc_str_text(&w.text), weight, bias);
    }
    msc_str_finish(&w.text);
    return y;
}

static int32_t draw_transposed(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    struct window w = {.n = 0};
    int64_t out[4] = {t->dims[0]}, w_dims[4], more[2];
    if (t->n_dims != 4) {
        return y;
    }
    int64_t groups = draw_groups(d, t->dims[1]);
    w_dims[0] = t->dims[1];
    w_dims[1] = groups > 8 ? 1 : length_of(d);
    out[1] = w_dims[1] * groups;
    draw_window(d, &w, 2, NULL);
    memcpy(w_dims + 2, w.kernel, sizeof w.kernel[0] * 2);
    msc_str_printf(&w.text, ";groups=%lld;output_padding=", (long long)groups);
    draw_list(d, &w.text, more, 2, 0, 2);
    bool fits = true, is_plain = false;
    for (int i = 0; i < 2; i++) {
        out[2 + i] = (t->dims[2 + i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 +
                     more[i] - w.padding[i] - w.padding[2 + i];
        fits = fits && out[2 + i] > 0 && (more[i] < w.strides[i] || more[i] < w.dilation[i]);
        // If output_padding is at least the padding at the end plus the stride, only the reference
        // has a kernel, and only for floats.
        is_plain = is_plain || w.padding[2 + i] - more[i] + w.strides[i] <= 0;
    }
    fits = fits && is_small(4, out) &&
           (double)n_elements(4, t->dims) * (double)n_elements(3, w_dims + 1) < KERNEL_MAX_MACS;
    if (fits) {
        int32_t weight = cpu_weight(d->c, "IOHW", 4, w_dims);
        int32_t bias = kernel_below(d, 2) ? cpu_weight(d->c, "O", 1, out + 1) : MSC_NO_ID;
        y = cpu_joint(d->c, MSC_OP_CONV2D_TRANSPOSE, 1, &y, msc_str_text(&w.text), weight, bias);
        d->is_close |= is_plain;
    }
    msc_str_finish(&w.text);
    return y;
}

static int32_t draw_linear(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    int64_t out = length_of(d);
    // The reference has no integer kernel for a linear layer of a vector.
    int64_t in = t->n_dims > 1 ? t->dims[t->n_dims - 1] : 0;
    if (in == 0 || n_elements(t->n_dims, t->dims) / in * out >= KERNEL_MAX_ELEMENTS) {
        return y;
    }
    int32_t w = kernel_below(d, 2) ? cpu_weight(d->c, "IO", 2, DIMS(in, out))
                                   : cpu_weight(d->c, "OI", 2, DIMS(out, in));
    bool has_bias = kernel_below(d, 2) == 1;
    int32_t bias = has_bias ? cpu_weight(d->c, "O", 1, &out) : MSC_NO_ID;
    return cpu_joint(d->c, has_bias ? MSC_OP_LINEAR_BIAS : MSC_OP_LINEAR, 1, &y, "", w, bias);
}

// A product with an input or a constant on either side, with broadcast batches.
static int32_t draw_product(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    int64_t dims[MSC_MAX_DIMS], length = length_of(d);
    int n = t->n_dims;
    bool is_right = kernel_below(d, 2) == 1, is_constant = kernel_below(d, 2) == 1;
    if (n < 2 || !has_room(d) ||
        n_elements(n, t->dims) / t->dims[is_right ? n - 2 : n - 1] * length >=
            KERNEL_MAX_ELEMENTS) {
        return y;
    }
    for (int i = 0; i < n - 2; i++) {
        dims[i] = kernel_below(d, 2) ? 1 : t->dims[i];
    }
    dims[n - 2] = is_right ? length : t->dims[n - 1];
    dims[n - 1] = is_right ? t->dims[n - 2] : length;
    // Number of batch axes that the other operand lacks.
    int skip = kernel_below(d, 2) ? 0 : n - 2;
    if (!is_small(n, dims)) {
        return y;
    }
    int32_t other = is_constant ? cpu_constant(d->c, n - skip, dims + skip, NULL)
                                : cpu_input(d->c, "", n - skip, dims + skip);
    return cpu_joint(d->c, MSC_OP_MATMUL, 2, is_right ? IDS(other, y) : IDS(y, other), "",
                     MSC_NO_ID, MSC_NO_ID);
}

int32_t kernel_anchor(struct kernel_draw *d, int32_t y) {
    static int32_t (*const anchors[])(struct kernel_draw *, int32_t) = {
        draw_conv, draw_conv, draw_linear, draw_product, draw_transposed};
    return anchors[kernel_below(d, N(anchors))](d, y);
}

// ---- Element-wise -----------------------------------------------------------------------------

static const struct {
    enum msc_op op;
    const char *attributes;
} smooth[] =
    {
        {MSC_OP_RELU, ""},
        {MSC_OP_CLIP, "min=-0.5;max=1.25"},
        {MSC_OP_SIGMOID, ""},
        {MSC_OP_TANH, ""},
        {MSC_OP_HARD_SWISH, ""},
        {MSC_OP_HARD_SIGMOID, "alpha=0.3;beta=0.4"},
        {MSC_OP_LEAKY_RELU, "alpha=0.1"},
        {MSC_OP_ELU, "alpha=1.5"},
        {MSC_OP_GELU, ""},
        {MSC_OP_GELU, "approximate=tanh"},
        {MSC_OP_ABS, ""},
        {MSC_OP_NEGATIVE, ""},
        {MSC_OP_CLIP, "min=0"},
        {MSC_OP_IDENTITY, ""},
},
  sharp[] = {
      {MSC_OP_EXP, ""},   {MSC_OP_LOG, ""},        {MSC_OP_SQRT, ""}, {MSC_OP_ERF, ""},
      {MSC_OP_FLOOR, ""}, {MSC_OP_RECIPROCAL, ""}, {MSC_OP_CEIL, ""}, {MSC_OP_ROUND, ""},
};

static int32_t draw_unary(struct kernel_draw *d, int32_t y) {
    int k = kernel_below(d, N(smooth) + (d->is_close ? 0 : N(sharp)));
    return k < N(smooth) ? unary(d, smooth[k].op, y, smooth[k].attributes)
                         : unary(d, sharp[k - N(smooth)].op, y, sharp[k - N(smooth)].attributes);
}

static int32_t draw_binary(struct kernel_draw *d, int32_t y) {
    static const enum msc_op ops[] = {MSC_OP_ADD,     MSC_OP_MULTIPLY, MSC_OP_SUBTRACT,
                                      MSC_OP_MAXIMUM, MSC_OP_MINIMUM,  MSC_OP_DIVIDE};
    const struct msc_tensor *t = tensor_of(d, y);
    int64_t dims[MSC_MAX_DIMS];
    int n = t->n_dims;
    enum msc_op op = ops[kernel_below(d, N(ops) - (d->is_close ? 1 : 0))];
    if (!has_room(d)) {
        return y;
    }
    for (int i = 0; i < n; i++) {
        dims[i] = kernel_below(d, 2) ? 1 : t->dims[i];
    }
    int skip = kernel_below(d, 2) ? kernel_below(d, n + 1) : 0;
    int32_t other = kernel_below(d, 2) ? cpu_constant(d->c, n - skip, dims + skip, NULL)
                                       : cpu_input(d->c, "", n - skip, dims + skip);
    return cpu_joint(d->c, op, 2, kernel_below(d, 2) ? IDS(other, y) : IDS(y, other), "", MSC_NO_ID,
                     MSC_NO_ID);
}

// Combines y with its sigmoid, so y has two consumers.
static int32_t draw_gate(struct kernel_draw *d, int32_t y) {
    int32_t gate = unary(d, MSC_OP_SIGMOID, y, "");
    return cpu_joint(d->c, kernel_below(d, 2) ? MSC_OP_ADD : MSC_OP_MULTIPLY, 2, IDS(y, gate), "",
                     MSC_NO_ID, MSC_NO_ID);
}

// ---- Moving data ------------------------------------------------------------------------------

static int32_t draw_permute(struct kernel_draw *d, int32_t y) {
    struct msc_str text = {0};
    int axes[MSC_MAX_DIMS], n = tensor_of(d, y)->n_dims;
    for (int i = 0; i < n; i++) {
        axes[i] = i;
    }
    msc_str_append(&text, "axes=");
    for (int i = 0; i < n; i++) {
        int k = i + kernel_below(d, n - i), axis = axes[k];
        axes[k] = axes[i];
        msc_str_printf(&text, "%s%d", i > 0 ? "," : "", axis);
    }
    msc_str_append(&text, n == 1 ? "," : "");
    y = n > 0 ? unary(d, MSC_OP_PERMUTE_DIMS, y, msc_str_text(&text)) : y;
    msc_str_finish(&text);
    return y;
}

static int32_t draw_slice(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    char text[128];
    if (t->n_dims == 0) {
        return y;
    }
    int axis = kernel_below(d, t->n_dims), stride = 1 + kernel_below(d, 3);
    int length = (int)t->dims[axis], first = kernel_below(d, length);
    int last = first + kernel_below(d, length - first);
    if (kernel_below(d, 2)) {
        snprintf(text, sizeof text, "begin=%d,;end=%d,;axes=%d,;strides=%d,", first, last + 1, axis,
                 stride);
    } else {
        snprintf(text, sizeof text, "begin=%d,;end=%d,;axes=%d,;strides=%d,", last,
                 first - 1 - (first == 0 ? length : 0), axis, -stride);
    }
    return unary(d, MSC_OP_STRIDED_SLICE, y, text);
}

static int32_t draw_concat(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    int64_t dims[MSC_MAX_DIMS];
    char text[32];
    int n = t->n_dims, axis = n > 0 ? kernel_below(d, n) : 0;
    if (n == 0 || !has_room(d) || !is_small(n, t->dims)) {
        return y;
    }
    memcpy(dims, t->dims, sizeof dims);
    dims[axis] = 1 + kernel_below(d, 5);
    int32_t other =
        kernel_below(d, 2) ? cpu_constant(d->c, n, dims, NULL) : cpu_input(d->c, "", n, dims);
    snprintf(text, sizeof text, "axis=%d", axis);
    return kernel_below(d, 2)
               ? cpu_joint(d->c, MSC_OP_CONCAT, 3, IDS(y, other, y), text, MSC_NO_ID, MSC_NO_ID)
               : cpu_joint(d->c, MSC_OP_CONCAT, 2, IDS(other, y), text, MSC_NO_ID, MSC_NO_ID);
}

static int32_t draw_pad(struct kernel_draw *d, int32_t y) {
    static const char *const modes[] = {";pad_value=1.5", "", ";pad_mode=reflect",
                                        ";pad_mode=edge"};
    const struct msc_tensor *t = tensor_of(d, y);
    struct msc_str text = {0};
    int mode = kernel_below(d, N(modes));
    int64_t width[2 * MSC_MAX_DIMS], dims[MSC_MAX_DIMS];
    int n = t->n_dims;
    bool fits = n > 0;
    msc_str_append(&text, "pad_width=");
    draw_list(d, &text, width, 2 * n, 0, 4);
    msc_str_append(&text, modes[mode]);
    for (int i = 0; i < n; i++) {
        dims[i] = t->dims[i] + width[i] + width[n + i];
        fits = fits && (mode != 2 || (width[i] < t->dims[i] && width[n + i] < t->dims[i]));
    }
    y = fits && is_small(n, dims) ? unary(d, MSC_OP_PAD, y, msc_str_text(&text)) : y;
    msc_str_finish(&text);
    return y;
}

static int32_t draw_reshape(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    struct msc_str text = {0};
    int n = t->n_dims;
    if (n < 2) {
        return y;
    }
    int k = kernel_below(d, n - 1); // axes k and k + 1 are merged
    msc_str_append(&text, "shape=");
    for (int i = 0; i < n; i++) {
        if (i != k + 1) {
            int64_t length = i == k ? t->dims[i] * t->dims[i + 1] : t->dims[i];
            msc_str_printf(&text, "%s%lld", i > 0 ? "," : "", (long long)length);
        }
    }
    msc_str_append(&text, n == 2 ? "," : "");
    y = unary(d, MSC_OP_RESHAPE, y, msc_str_text(&text));
    msc_str_finish(&text);
    return y;
}

static int32_t draw_blocks(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    char text[48];
    int size = 2 + kernel_below(d, 3);
    if (t->n_dims == 4 && t->dims[1] % (size * size) == 0) {
        snprintf(text, sizeof text, "blocksize=%d;mode=%s", size,
                 kernel_below(d, 2) ? "CRD" : "DCR");
        return unary(d, MSC_OP_DEPTH_TO_SPACE, y, text);
    }
    if (t->n_dims == 4 && t->dims[2] % size == 0 && t->dims[3] % size == 0) {
        snprintf(text, sizeof text, "blocksize=%d;mode=%s", size,
                 kernel_below(d, 2) ? "CRD" : "DCR");
        return unary(d, MSC_OP_SPACE_TO_DEPTH, y, text);
    }
    return y;
}

static int32_t draw_split(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    char text[64];
    int axis = t->n_dims > 0 ? kernel_below(d, t->n_dims) : 0;
    if (t->n_dims == 0 || t->dims[axis] < 3) {
        return y;
    }
    int first = 1 + kernel_below(d, (int)t->dims[axis] - 2);
    int second = first + 1 + kernel_below(d, (int)t->dims[axis] - first - 1);
    snprintf(text, sizeof text, "axis=%d;indices_or_sections=%d,%d", axis, first, second);
    y = unary(d, MSC_OP_SPLIT, y, text);
    const struct msc_joint *j = msc_graph_joint(d->c->g, msc_graph_tensor(d->c->g, y)->producer);
    return j->outputs[kernel_below(d, 3)];
}

// ---- Layers -----------------------------------------------------------------------------------

static int32_t draw_reduction(struct kernel_draw *d, int32_t y) {
    static const enum msc_op ops[] = {MSC_OP_MAX, MSC_OP_MIN, MSC_OP_MEAN, MSC_OP_SUM};
    const struct msc_tensor *t = tensor_of(d, y);
    struct msc_str text = {0};
    int k = kernel_below(d, N(ops)), n = 0;
    msc_str_append(&text, "axis=");
    for (int i = 0; i < t->n_dims; i++) {
        if (kernel_below(d, 2)) {
            msc_str_printf(&text, "%s%d", n > 0 ? "," : "", i);
            n++;
        }
    }
    msc_str_append(&text, n == 1 ? "," : "");
    msc_str_printf(&text, ";keepdims=%d", kernel_below(d, 2));
    y = unary(d, ops[k], y, msc_str_text(&text));
    d->is_close |= k >= 2;
    msc_str_finish(&text);
    return y;
}

static int32_t draw_softmax(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    char text[32];
    if (t->n_dims == 0 || d->is_close) { // powers of large sums would magnify the differences
        return y;
    }
    snprintf(text, sizeof text, "axis=%d", kernel_below(d, t->n_dims));
    d->is_close = true;
    return unary(d, kernel_below(d, 2) ? MSC_OP_LOG_SOFTMAX : MSC_OP_SOFTMAX, y, text);
}

static int32_t draw_norm(struct kernel_draw *d, int32_t y) {
    const struct msc_tensor *t = tensor_of(d, y);
    int n = t->n_dims, kind = kernel_below(d, 2);
    if (n < 3) {
        return y;
    }
    const int64_t *dims = kind ? &t->dims[n - 1] : &t->dims[1];
    struct msc_weight_spec weights[] = {{"gamma", cpu_weight(d->c, kind ? "" : "O", 1, dims)},
                                        {"beta", cpu_weight(d->c, kind ? "" : "O", 1, dims)}};
    d->is_close = true;
    return cpu_joint_weights(d->c, kind ? MSC_OP_LAYER_NORM : MSC_OP_INSTANCE_NORM, 1, &y,
                             "epsilon=0.01", 2, weights);
}

static int32_t draw_global(struct kernel_draw *d, int32_t y) {
    bool is_mean = kernel_below(d, 2) == 1;
    if (tensor_of(d, y)->n_dims != 4) {
        return y;
    }
    d->is_close |= is_mean;
    return unary(d, is_mean ? MSC_OP_GLOBAL_AVG_POOL : MSC_OP_GLOBAL_MAX_POOL, y, "");
}

static int32_t draw_resize(struct kernel_draw *d, int32_t y) {
    static const char *const kinds[] = {
        "method=nearest_neighbor;coordinate_transformation_mode=asymmetric;rounding_method=floor",
        "method=linear",
        "method=nearest_neighbor",
        "method=linear;coordinate_transformation_mode=align_corners",
        "method=cubic",
    };
    const struct msc_tensor *t = tensor_of(d, y);
    char text[192];
    int kind = kernel_below(d, N(kinds)), height = 1 + kernel_below(d, 20),
        width = 1 + kernel_below(d, 20);
    if (t->n_dims != 4 || t->dims[0] * t->dims[1] * height * width >= KERNEL_MAX_ELEMENTS) {
        return y;
    }
    snprintf(text, sizeof text, "%s;size=%d,%d,%d,%d", kinds[kind], (int)t->dims[0],
             (int)t->dims[1], height, width);
    return unary(d, MSC_OP_RESIZE, y, text);
}

int32_t kernel_joint(struct kernel_draw *d, int32_t y) {
    static int32_t (*const joints[])(struct kernel_draw *, int32_t) = {
        draw_unary,  draw_binary, draw_gate,      draw_pool,    draw_permute, draw_slice,
        draw_concat, draw_pad,    draw_reshape,   draw_blocks,  draw_split,   draw_resize,
        draw_global, draw_norm,   draw_reduction, draw_softmax, draw_unary,   draw_binary,
    };
    return joints[kernel_below(d, N(joints))](d, y);
}
