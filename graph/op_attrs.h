// Attributes of operators: the keys of each operator, their forms and defaults, and the text
// encoding of values.
//
// Every attribute is text, encoded as in MSC: integers in decimal; booleans "0" and "1"; lists
// joined with commas ("1,1"; one element "2,"; empty ""); floats in the shortest form that reads
// back to the same float; "" for none. A list can also be read from "2", without the comma.
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
    MSC_ATTR_TEXTS, // separated by commas
    MSC_ATTR_DTYPE, // the name of a type; a number in ONNX
};

#define MSC_ATTR_LEFT_OUT "?"

struct msc_op_attr {
    enum msc_op op;
    const char *key;
    enum msc_attr_type type;
    const char *value;      // the default; NULL: required; MSC_ATTR_LEFT_OUT: present only if given
    const char *onnx;       // its name in ONNX; "": ONNX has no equivalent
    const char *onnx_value; // value of a missing attribute in ONNX; NULL: the same default
};

// The operator's rows, sorted by key; *n is their number. Static data.
const struct msc_op_attr *msc_op_attrs(enum msc_op op, int *n);
// The row of one key, or NULL.
const struct msc_op_attr *msc_op_attr_find(enum msc_op op, const char *key);
// True if `value` has this form; "" is always valid.
bool msc_attr_is_valid(enum msc_attr_type type, const char *value);
const char *msc_attr_type_name(enum msc_attr_type type); // "a whole number", ...

void msc_attr_write_ints(struct msc_str *out, const int64_t values[], size_t n);
void msc_attr_write_floats(struct msc_str *out, const float values[], size_t n);

// Readers of one value's text; false (or -1) if it is "" or does not have that form.
bool msc_attr_read_int(int64_t *out, const char *value);
// Also reads "inf" and "-inf", which lists cannot contain.
bool msc_attr_read_float(float *out, const char *value);
bool msc_attr_read_bool(bool *out, const char *value);
// Reads at most `max` elements. Returns the length of the list (0 for ""), or -1.
int msc_attr_read_ints(int64_t out[], int max, const char *value);
int msc_attr_read_floats(float out[], int max, const char *value);

MSC_PUBLIC_END

#endif
