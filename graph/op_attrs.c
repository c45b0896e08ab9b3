// The attribute table: operator, key, form, default. Rows of one operator stand together, sorted
// by key, so that a joint's attributes are sorted when its defaults are written.
//
// Conventions that hold for all rows:
//   - Padding lists all begins, then all ends, in the order of the spatial axes: 2-D is top, left,
//     bottom, right; nn.pad has one begin and one end for every axis of its input.
//   - Axes may be negative, counting from the end. An empty axis list of a reduction or squeeze
//     means all axes (of length 1, for squeeze).
//   - A reduction's `keepdims` is false unless given; an ONNX importer always gives it.
//   - reshape: -1 is inferred, 0 copies the input's dimension unless `allowzero`.
//   - split: a single number counts equal sections, a list ("2,5", "2,") are the cut points; "" is
//     equal parts, one for each output. Given as an input, it holds the sizes of the parts.
//   - strided_slice: "" axes are 0, 1, 2, ...; "" strides are all 1.
//   - resize2d: exactly one of `size` and `scales` is given, for all axes of the input.
//   - clip: "" is no limit. shape_of: "" end is the rank.
//   - gelu: `approximate` is "none" (erf) or "tanh".
#include "graph/op_attrs.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

// clang-format off
// Families whose members differ in their number of axes alone.
#define CONV_ROWS(op, layout, kernel_layout, ones, zeros)                                          \
    {op, "data_layout", MSC_ATTR_TEXT, layout},                                                    \
    {op, "dilation", MSC_ATTR_INTS, ones},                                                         \
    {op, "groups", MSC_ATTR_INT, "1"},                                                             \
    {op, "kernel_layout", MSC_ATTR_TEXT, kernel_layout},                                           \
    {op, "out_dtype", MSC_ATTR_TEXT, "float32"},                                                   \
    {op, "out_layout", MSC_ATTR_TEXT, layout},                                                     \
    {op, "padding", MSC_ATTR_INTS, zeros},                                                         \
    {op, "strides", MSC_ATTR_INTS, ones}
#define POOL2D_ROWS(op)                                                                            \
    {op, "ceil_mode", MSC_ATTR_BOOL, "0"},                                                         \
    {op, "count_include_pad", MSC_ATTR_BOOL, "0"},                                                 \
    {op, "dilation", MSC_ATTR_INTS, "1,1"},                                                        \
    {op, "layout", MSC_ATTR_TEXT, "NCHW"},                                                         \
    {op, "out_layout", MSC_ATTR_TEXT, "NCHW"},                                                     \
    {op, "padding", MSC_ATTR_INTS, "0,0,0,0"},                                                     \
    {op, "pool_size", MSC_ATTR_INTS, NULL},                                                        \
    {op, "strides", MSC_ATTR_INTS, "1,1"}
// clang-format on

#define RESIZE_ROWS(op)                                                                            \
    {op, "axes", MSC_ATTR_INTS, MSC_ATTR_LEFT_OUT},                                                \
        {op, "coordinate_transformation_mode", MSC_ATTR_TEXT, "half_pixel"},                       \
        {op, "cubic_alpha", MSC_ATTR_FLOAT, "-0.75"}, {op, "cubic_exclude", MSC_ATTR_BOOL, "0"},   \
        {op, "extrapolation_value", MSC_ATTR_FLOAT, "0"},                                          \
        {op, "keep_aspect_ratio_policy", MSC_ATTR_TEXT, MSC_ATTR_LEFT_OUT},                        \
        {op, "layout", MSC_ATTR_TEXT, "NCHW"}, {op, "method", MSC_ATTR_TEXT, "linear"},            \
        {op, "out_dtype", MSC_ATTR_TEXT, "float32"}, {op, "roi", MSC_ATTR_FLOATS, ""},             \
        {op, "rounding_method", MSC_ATTR_TEXT, "round_prefer_floor"},                              \
        {op, "scales", MSC_ATTR_FLOATS, ""}, {                                                     \
        op, "size", MSC_ATTR_INTS, ""                                                              \
    }

static const struct msc_op_attr rows[] = {
    CONV_ROWS(MSC_OP_CONV1D, "NCW", "OIW", "1,", "0,0"),
    CONV_ROWS(MSC_OP_CONV2D, "NCHW", "OIHW", "1,1", "0,0,0,0"),
    CONV_ROWS(MSC_OP_CONV3D, "NCDHW", "OIDHW", "1,1,1", "0,0,0,0,0,0"),
    CONV_ROWS(MSC_OP_CONV1D_BIAS, "NCW", "OIW", "1,", "0,0"),
    CONV_ROWS(MSC_OP_CONV2D_BIAS, "NCHW", "OIHW", "1,1", "0,0,0,0"),
    CONV_ROWS(MSC_OP_CONV3D_BIAS, "NCDHW", "OIDHW", "1,1,1", "0,0,0,0,0,0"),
    {MSC_OP_CONV2D_TRANSPOSE, "data_layout", MSC_ATTR_TEXT, "NCHW"},
    {MSC_OP_CONV2D_TRANSPOSE, "dilation", MSC_ATTR_INTS, "1,1"},
    {MSC_OP_CONV2D_TRANSPOSE, "groups", MSC_ATTR_INT, "1"},
    {MSC_OP_CONV2D_TRANSPOSE, "kernel_layout", MSC_ATTR_TEXT, "IOHW"},
    {MSC_OP_CONV2D_TRANSPOSE, "out_dtype", MSC_ATTR_TEXT, "float32"},
    {MSC_OP_CONV2D_TRANSPOSE, "out_layout", MSC_ATTR_TEXT, "NCHW"},
    {MSC_OP_CONV2D_TRANSPOSE, "output_padding", MSC_ATTR_INTS, "0,0"},
    {MSC_OP_CONV2D_TRANSPOSE, "padding", MSC_ATTR_INTS, "0,0,0,0"},
    {MSC_OP_CONV2D_TRANSPOSE, "strides", MSC_ATTR_INTS, "1,1"},
    {MSC_OP_GEMM, "alpha", MSC_ATTR_FLOAT, "1"},
    {MSC_OP_GEMM, "beta", MSC_ATTR_FLOAT, "1"},
    {MSC_OP_GEMM, "trans_a", MSC_ATTR_BOOL, "0"},
    {MSC_OP_GEMM, "trans_b", MSC_ATTR_BOOL, "0"},
    POOL2D_ROWS(MSC_OP_MAX_POOL2D),
    POOL2D_ROWS(MSC_OP_AVG_POOL2D),
    {MSC_OP_GLOBAL_AVG_POOL, "layout", MSC_ATTR_TEXT, "NCHW"},
    {MSC_OP_GLOBAL_MAX_POOL, "layout", MSC_ATTR_TEXT, "NCHW"},
    RESIZE_ROWS(MSC_OP_RESIZE),
    RESIZE_ROWS(MSC_OP_RESIZE_ANTIALIAS),
    {MSC_OP_BATCH_NORM, "axis", MSC_ATTR_INT, "1"},
    {MSC_OP_BATCH_NORM, "center", MSC_ATTR_BOOL, "1"},
    {MSC_OP_BATCH_NORM, "epsilon", MSC_ATTR_FLOAT, "1e-05"},
    {MSC_OP_BATCH_NORM, "momentum", MSC_ATTR_FLOAT, "0.1"},
    {MSC_OP_BATCH_NORM, "scale", MSC_ATTR_BOOL, "1"},
    {MSC_OP_SOFTMAX, "axis", MSC_ATTR_INT, "-1"},
    {MSC_OP_LOG_SOFTMAX, "axis", MSC_ATTR_INT, "-1"},
    {MSC_OP_LEAKY_RELU, "alpha", MSC_ATTR_FLOAT, "0.01"},
    {MSC_OP_HARD_SIGMOID, "alpha", MSC_ATTR_FLOAT, "0.2"},
    {MSC_OP_HARD_SIGMOID, "beta", MSC_ATTR_FLOAT, "0.5"},
    {MSC_OP_ELU, "alpha", MSC_ATTR_FLOAT, "1"},
    {MSC_OP_GELU, "approximate", MSC_ATTR_TEXT, "none"},
    {MSC_OP_CLIP, "max", MSC_ATTR_FLOAT, ""},
    {MSC_OP_CLIP, "min", MSC_ATTR_FLOAT, ""},
    {MSC_OP_CAST, "dtype", MSC_ATTR_TEXT, NULL},
    {MSC_OP_MEAN, "axis", MSC_ATTR_INTS, ""},
    {MSC_OP_MEAN, "keepdims", MSC_ATTR_BOOL, "0"},
    {MSC_OP_SUM, "axis", MSC_ATTR_INTS, ""},
    {MSC_OP_SUM, "keepdims", MSC_ATTR_BOOL, "0"},
    {MSC_OP_MAX, "axis", MSC_ATTR_INTS, ""},
    {MSC_OP_MAX, "keepdims", MSC_ATTR_BOOL, "0"},
    {MSC_OP_MIN, "axis", MSC_ATTR_INTS, ""},
    {MSC_OP_MIN, "keepdims", MSC_ATTR_BOOL, "0"},
    {MSC_OP_ARGMAX, "axis", MSC_ATTR_INT, "0"},
    {MSC_OP_ARGMAX, "keepdims", MSC_ATTR_BOOL, "0"},
    {MSC_OP_ARGMAX, "select_last_index", MSC_ATTR_BOOL, "0"},
    {MSC_OP_SHAPE_OF, "end", MSC_ATTR_INT, ""},
    {MSC_OP_SHAPE_OF, "start", MSC_ATTR_INT, "0"},
    {MSC_OP_RESHAPE, "allowzero", MSC_ATTR_BOOL, "0"},
    {MSC_OP_RESHAPE, "shape", MSC_ATTR_INTS, NULL},
    {MSC_OP_FLATTEN, "axis", MSC_ATTR_INT, "1"},
    {MSC_OP_PERMUTE_DIMS, "axes", MSC_ATTR_INTS, NULL},
    {MSC_OP_EXPAND_DIMS, "axis", MSC_ATTR_INTS, NULL},
    {MSC_OP_SQUEEZE, "axis", MSC_ATTR_INTS, ""},
    {MSC_OP_CONCAT, "axis", MSC_ATTR_INT, "0"},
    {MSC_OP_SPLIT, "axis", MSC_ATTR_INT, "0"},
    {MSC_OP_SPLIT, "indices_or_sections", MSC_ATTR_INTS, ""},
    {MSC_OP_STRIDED_SLICE, "axes", MSC_ATTR_INTS, ""},
    {MSC_OP_STRIDED_SLICE, "begin", MSC_ATTR_INTS, NULL},
    {MSC_OP_STRIDED_SLICE, "end", MSC_ATTR_INTS, NULL},
    {MSC_OP_STRIDED_SLICE, "strides", MSC_ATTR_INTS, ""},
    {MSC_OP_PAD, "axes", MSC_ATTR_INTS, MSC_ATTR_LEFT_OUT},
    {MSC_OP_PAD, "pad_mode", MSC_ATTR_TEXT, "constant"},
    {MSC_OP_PAD, "pad_value", MSC_ATTR_FLOAT, "0"},
    {MSC_OP_PAD, "pad_width", MSC_ATTR_INTS, NULL},
    {MSC_OP_TAKE, "axis", MSC_ATTR_INT, "0"},
    {MSC_OP_BROADCAST_TO, "shape", MSC_ATTR_INTS, NULL},
    {MSC_OP_TILE, "repeats", MSC_ATTR_INTS, NULL},
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel)
#define MSC_ATTR(id, key, type, value) {MSC_OP_##id, key, MSC_ATTR_##type, value},
#include "graph/ops.def"
#undef MSC_OP
};
#undef CONV_ROWS
#undef POOL2D_ROWS
#undef RESIZE_ROWS

const struct msc_op_attr *msc_op_attrs(enum msc_op op, int *n) {
    const struct msc_op_attr *first = NULL;
    *n = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            first = first == NULL ? &rows[i] : first;
            *n += 1;
        }
    }
    return first;
}

const struct msc_op_attr *msc_op_attr_find(enum msc_op op, const char *key) {
    int n;
    const struct msc_op_attr *attrs = msc_op_attrs(op, &n);
    for (int i = 0; i < n; i++) {
        if (strcmp(attrs[i].key, key) == 0) {
            return &attrs[i];
        }
    }
    return NULL;
}

// A list of one keeps its comma, which tells it from a number.
static void write_comma(struct msc_str *out, size_t i, size_t n) {
    if (i + 1 < n || n == 1) {
        msc_str_char(out, ',');
    }
}

void msc_attr_write_ints(struct msc_str *out, const int64_t values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        msc_str_i64(out, values[i]);
        write_comma(out, i, n);
    }
}

void msc_attr_write_floats(struct msc_str *out, const float values[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        msc_str_float(out, values[i]);
        write_comma(out, i, n);
    }
}

bool msc_attr_read_int(int64_t *out, const char *value) {
    return msc_parse_i64(out, value);
}

bool msc_attr_read_float(float *out, const char *value) {
    // Rounding to double first and then to float could be off by one unit; strtof rounds once.
    // Its dependence on the locale is ruled out by the first check, which reads the same text.
    double wide;
    if (!msc_parse_double(&wide, value)) {
        return false;
    }
    char *end;
    float narrow = strtof(value, &end);
    *out = *end == '\0' ? narrow : (float)wide;
    return true;
}

bool msc_attr_read_bool(bool *out, const char *value) {
    int64_t number;
    if (!msc_parse_i64(&number, value)) {
        return false;
    }
    *out = number != 0;
    return true;
}

enum { ELEMENT_BYTES = 64 }; // no number of a list is longer

typedef bool (*read_element_fn)(void *out, const char *element);

static bool read_int_element(void *out, const char *element) {
    return msc_parse_i64(out, element);
}

static bool read_float_element(void *out, const char *element) {
    return msc_attr_read_float(out, element);
}

// Writes the first `max` elements, each of `size` bytes, and returns how many there are; -1 when
// one is not a number.
static int read_list(void *out, size_t size, int max, const char *value, read_element_fn read) {
    char element[ELEMENT_BYTES];
    union {
        int64_t whole;
        float real;
    } number;
    int n = 0;
    for (; *value != '\0'; n++) {
        size_t length = strcspn(value, ",");
        if (length == 0 || length >= sizeof(element)) {
            return -1;
        }
        memcpy(element, value, length);
        element[length] = '\0';
        if (!read(&number, element)) {
            return -1;
        }
        if (n < max) {
            memcpy((char *)out + (size_t)n * size, &number, size);
        }
        value += length + (value[length] == ',');
    }
    return n;
}

int msc_attr_read_ints(int64_t out[], int max, const char *value) {
    return read_list(out, sizeof(out[0]), max, value, read_int_element);
}

int msc_attr_read_floats(float out[], int max, const char *value) {
    return read_list(out, sizeof(out[0]), max, value, read_float_element);
}

bool msc_attr_is_valid(enum msc_attr_type type, const char *value) {
    int64_t whole;
    float real;
    if (value[0] == '\0') {
        return true;
    }
    switch (type) {
    case MSC_ATTR_INT:
        return msc_attr_read_int(&whole, value);
    case MSC_ATTR_BOOL:
        return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    case MSC_ATTR_FLOAT:
        return msc_attr_read_float(&real, value);
    case MSC_ATTR_INTS:
        return msc_attr_read_ints(NULL, 0, value) >= 0;
    case MSC_ATTR_FLOATS:
        return msc_attr_read_floats(NULL, 0, value) >= 0;
    case MSC_ATTR_TEXT:
        return true;
    }
    return false;
}

const char *msc_attr_type_name(enum msc_attr_type type) {
    switch (type) {
    case MSC_ATTR_INT:
        return "a whole number";
    case MSC_ATTR_FLOAT:
        return "a number";
    case MSC_ATTR_BOOL:
        return "0 or 1";
    case MSC_ATTR_INTS:
        return "whole numbers with commas";
    case MSC_ATTR_FLOATS:
        return "numbers with commas";
    case MSC_ATTR_TEXT:
        return "text";
    }
    return "text";
}
