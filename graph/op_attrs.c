#include "graph/op_attrs.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The rows of each operator are contiguous.
static const struct msc_op_attr rows[] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)
#define MSC_ATTR_ROW(id, key, type, value, onnx, onnx_value)                                       \
    {MSC_OP_##id, key, MSC_ATTR_##type, value, onnx, onnx_value},
#include "graph/ops.def"
#undef MSC_OP
};

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

// A list of one element keeps its comma, which distinguishes it from a number.
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

// Reads an infinity as msc_str_float writes it.
static bool read_infinity(float *out, const char *value) {
    bool is_negative = value[0] == '-';
    if (strcmp(value + is_negative, "inf") != 0) {
        return false;
    }
    *out = is_negative ? -INFINITY : INFINITY;
    return true;
}

bool msc_attr_read_float(float *out, const char *value) {
    if (read_infinity(out, value)) {
        return true;
    }
    // strtof rounds once; rounding to double and then to float could be wrong in the last bit. If
    // the locale makes strtof stop early, the double is used.
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

enum { ELEMENT_BYTES = 64 }; // longest text of a number in a list, including the NUL

typedef bool (*read_element_fn)(void *out, const char *element);

static bool read_int_element(void *out, const char *element) {
    return msc_parse_i64(out, element);
}

// Rejects infinities: all lists of floats (scales and regions of a resize) are finite.
static bool read_float_element(void *out, const char *element) {
    float number;
    if (!msc_attr_read_float(&number, element) || isinf(number)) {
        return false;
    }
    memcpy(out, &number, sizeof(number));
    return true;
}

// Reads a list and writes its first `max` elements to `out`; an element of `out` has `size` bytes.
// Returns the length of the list, or -1 if an element is not a number.
static int op_attrs_read_list(void *out, size_t size, int max, const char *value,
                              read_element_fn read) {
    char element[ELEMENT_BYTES];
    union {
        int64_t integer;
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
    return op_attrs_read_list(out, sizeof(out[0]), max, value, read_int_element);
}

int msc_attr_read_floats(float out[], int max, const char *value) {
    return op_attrs_read_list(out, sizeof(out[0]), max, value, read_float_element);
}

bool msc_attr_is_valid(enum msc_attr_type type, const char *value) {
    int64_t integer;
    float real;
    if (value[0] == '\0') {
        return true;
    }
    switch (type) {
    case MSC_ATTR_INT:
        return msc_attr_read_int(&integer, value);
    case MSC_ATTR_BOOL:
        return strcmp(value, "0") == 0 || strcmp(value, "1") == 0;
    case MSC_ATTR_FLOAT:
        return msc_attr_read_float(&real, value);
    case MSC_ATTR_INTS:
        return msc_attr_read_ints(NULL, 0, value) >= 0;
    case MSC_ATTR_FLOATS:
        return msc_attr_read_floats(NULL, 0, value) >= 0;
    case MSC_ATTR_TEXT:
    case MSC_ATTR_TEXTS:
    case MSC_ATTR_DTYPE:
        return true;
    }
    return false;
}

const char *msc_attr_type_name(enum msc_attr_type type) {
    switch (type) {
    case MSC_ATTR_INT:
        return "an integer";
    case MSC_ATTR_FLOAT:
        return "a number";
    case MSC_ATTR_BOOL:
        return "0 or 1";
    case MSC_ATTR_INTS:
        return "integers separated by commas";
    case MSC_ATTR_FLOATS:
        return "numbers separated by commas";
    case MSC_ATTR_TEXT:
    case MSC_ATTR_TEXTS:
    case MSC_ATTR_DTYPE:
        return "text";
    }
    return "text";
}
