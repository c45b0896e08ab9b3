// Attributes of operators: the keys of each operator, with their types and defaults, and the
// encoding of values as text.
//
// Values are encoded as in MSC: integers in decimal; booleans as "0" and "1"; floats in the
// shortest form that reads back as the same float; lists with commas ("1,1"; one element: "2,";
// empty: ""); no value as "". A list of one element can also be read without its comma ("2").
//
//     struct msc_str text = {0};
//     msc_attr_write_ints(&text, strides, 2);                       // "2,2"
//     struct msc_attr attr = {"strides", msc_str_text(&text)};
//
// The rows of ops.def define the attributes that importers write and kernels read.
// msc_graph_add_joint fills in the defaults, so a joint in a graph always has every key of its
// operator, except parameters that are given as an input.
#ifndef MSC_GRAPH_OP_ATTRS_H
#define MSC_GRAPH_OP_ATTRS_H

#include "graph/op.h"

#include <stddef.h>
#include <stdint.h>

MSC_PUBLIC_BEGIN

struct msc_str;

enum msc_attr_type {
    MSC_ATTR_INT,
    MSC_ATTR_FLOAT,
    MSC_ATTR_BOOL,
    MSC_ATTR_INTS,
    MSC_ATTR_FLOATS,
    MSC_ATTR_TEXT,
    MSC_ATTR_TEXTS, // texts separated by commas
    MSC_ATTR_DTYPE, // name of an element type, which ONNX encodes as a number
};

#define MSC_ATTR_LEFT_OUT "?"

struct msc_op_attr {
    enum msc_op op;
    const char *key;
    enum msc_attr_type type;
    const char *value;      // default; NULL: required; MSC_ATTR_LEFT_OUT: absent unless given
    const char *onnx;       // the attribute's name in ONNX; "" if ONNX has no equivalent
    const char *onnx_value; // ONNX's default; NULL: the same as `value`
};

// The operator's rows, sorted by key; *n is their number. Static data.
const struct msc_op_attr *msc_op_attrs(enum msc_op op, int *n);
// The operator's row with this key, or NULL.
const struct msc_op_attr *msc_op_attr_find(enum msc_op op, const char *key);
// True if `value` encodes a value of this type; "" is always valid.
bool msc_attr_is_valid(enum msc_attr_type type, const char *value);
const char *msc_attr_type_name(enum msc_attr_type type); // for messages: "a whole number", ...

void msc_attr_write_ints(struct msc_str *out, const int64_t values[], size_t n);
void msc_attr_write_floats(struct msc_str *out, const float values[], size_t n);

// Decode a value. They return false (for lists: -1) if the text does not encode a value of the
// type.
bool msc_attr_read_int(int64_t *out, const char *value);
// Also reads "inf" and "-inf", which lists cannot contain.
bool msc_attr_read_float(float *out, const char *value);
bool msc_attr_read_bool(bool *out, const char *value);
// Read at most `max` elements. Return the length of the list (0 for ""), or -1.
int msc_attr_read_ints(int64_t out[], int max, const char *value);
int msc_attr_read_floats(float out[], int max, const char *value);

MSC_PUBLIC_END

#endif
