// Reads rows of the table of kernel cases and builds graphs from them, as declared in
// kernel_cases.h.
#include "tests/kernels/kernel_cases.h"

#include "tests/joint_attrs.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct kernel_case kernel_cases[] = {
#define NAMED(name, op, attributes, operands, bound, readers)                                      \
    {name, MSC_OP_##op, attributes, operands, bound, readers},
#define CASE(op, attributes, operands, bound, readers)                                             \
    NAMED("", op, attributes, operands, bound, readers)
#include "tests/kernels/kernel_cases.def"
#include "tests/kernels/ops_cases.def"
#undef CASE
#undef NAMED
};
const size_t kernel_n_cases = sizeof(kernel_cases) / sizeof(kernel_cases[0]);

// ---- Readers ----------------------------------------------------------------------------------

bool kernel_case_has_reader(const struct kernel_case *k, const char *reader) {
    size_t n = strlen(reader);
    for (const char *word = k->readers; *word != '\0'; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        if (length == n && memcmp(word, reader, n) == 0) {
            return true;
        }
        word += length;
    }
    return false;
}

const struct kernel_case *kernel_case_next(const struct kernel_case *after, const char *reader) {
    const struct kernel_case *k = after ? after + 1 : kernel_cases;
    while (k < kernel_cases + kernel_n_cases && !kernel_case_has_reader(k, reader)) {
        k++;
    }
    bool has_row = k < kernel_cases + kernel_n_cases;
    assert(has_row || after); // a reader without any rows is misspelt
    return has_row ? k : NULL;
}

// ---- Rows without a bias ----------------------------------------------------------------------

static enum msc_op plain_op(enum msc_op op) {
    switch (op) {
    case MSC_OP_CONV1D_BIAS:
        return MSC_OP_CONV1D;
    case MSC_OP_CONV2D_BIAS:
        return MSC_OP_CONV2D;
    case MSC_OP_CONV3D_BIAS:
        return MSC_OP_CONV3D;
    case MSC_OP_LINEAR_BIAS:
        return MSC_OP_LINEAR;
    default:
        return op; // its bias is optional
    }
}

const struct kernel_case *kernel_case_drop_bias(struct kernel_plain *out,
                                                const struct kernel_case *row) {
    const char *bias = strstr(row->operands, "; bias");
    assert(bias && (size_t)(bias - row->operands) < sizeof(out->operands));
    snprintf(out->operands, sizeof(out->operands), "%.*s", (int)(bias - row->operands),
             row->operands);
    out->row = *row;
    out->row.op = plain_op(row->op);
    out->row.operands = out->operands;
    return &out->row;
}

// ---- Operands ---------------------------------------------------------------------------------

static void read_dims(struct kernel_operand *o, const char *text) {
    for (char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        assert(o->n_dims < MSC_MAX_DIMS);
        o->dims[o->n_dims++] = strtoll(text, &end, 10);
        assert(end != text && (*end == ',' || *end == '\0'));
    }
}

static void read_word(struct kernel_operand *o, const char *word) {
    const char *dots = strstr(word, "..");
    if (dots) {
        char low[16] = {0};
        memcpy(low, word, (size_t)(dots - word));
        o->has_range = true;
        o->low = strtof(low, NULL);
        o->high = strtof(dots + 2, NULL);
    } else if (isdigit((unsigned char)word[0])) {
        read_dims(o, word);
    } else if (strcmp(word, "const") == 0) {
        o->is_constant = true;
    } else if (strcmp(word, "last") == 0) {
        o->is_last = true;
    } else if (strncmp(word, "zero_point=", 11) == 0) {
        o->zero_point = (int32_t)strtol(word + 11, NULL, 10);
    } else if (msc_dtype_find(word) != MSC_DTYPE_NONE) {
        o->dtype = msc_dtype_find(word);
    } else if (isupper((unsigned char)word[0])) {
        snprintf(o->layout, sizeof(o->layout), "%s", word);
    } else if (strcmp(word, "()") != 0) {
        assert(islower((unsigned char)word[0]));
        snprintf(o->role, sizeof(o->role), "%s", word);
    }
}

int kernel_case_operands(struct kernel_operand out[KERNEL_MAX_OPERANDS],
                         const struct kernel_case *k) {
    int n = 0;
    for (const char *at = k->operands; *at != '\0'; n++) {
        assert(n < KERNEL_MAX_OPERANDS);
        out[n] = (struct kernel_operand){.dtype = MSC_DTYPE_F32};
        for (; *at != '\0' && *at != ';'; at += strspn(at, " ")) {
            char word[64] = {0};
            size_t length = strcspn(at, " ;");
            assert(length < sizeof(word));
            memcpy(word, at, length);
            read_word(&out[n], word);
            at += length;
        }
        at += strspn(at, "; ");
    }
    return n;
}

// ---- Graphs -----------------------------------------------------------------------------------

enum msc_status kernel_add_joint(int32_t *joint, struct msc_graph *g, enum msc_op op,
                                 int32_t n_inputs, const int32_t inputs[], const char *attributes,
                                 int32_t n_weights, const struct msc_weight_spec weights[]) {
    struct joint_attrs attrs;
    joint_attrs_read(&attrs, attributes);
    struct msc_joint_spec spec = {.op = op,
                                  .n_inputs = n_inputs,
                                  .inputs = inputs,
                                  .n_weights = n_weights,
                                  .weights = weights,
                                  .n_attrs = attrs.n,
                                  .attrs = attrs.rows};
    if (op == MSC_OP_SPLIT || op == MSC_OP_DYNAMIC_QUANTIZE) {
        spec.n_outputs = 3;
    } else if (op == MSC_OP_TOPK) {
        spec.n_outputs = 2;
    }
    return msc_graph_add_joint(joint, g, &spec);
}

static enum msc_status add_unary(int32_t *x, struct msc_graph *g, enum msc_op op,
                                 const char *attributes) {
    int32_t joint;
    MSC_TRY(kernel_add_joint(&joint, g, op, 1, x, attributes, 0, NULL));
    *x = msc_graph_joint(g, joint)->outputs[0];
    return MSC_OK;
}

static enum msc_status make_array(struct msc_array **out, const struct kernel_builder *b,
                                  const struct kernel_operand *o) {
    MSC_TRY(msc_array_create(out, MSC_DTYPE_F32, o->n_dims, o->dims));
    b->fill(b->payload, o, msc_array_data(*out), msc_array_n_elements(*out));
    return MSC_OK;
}

// Like make_array, in the operand's type.
static enum msc_status make_typed_array(struct msc_array **out, const struct kernel_builder *b,
                                        const struct kernel_operand *o) {
    struct msc_array *floats;
    MSC_TRY(make_array(&floats, b, o));
    float *x = msc_array_data(floats);
    for (int64_t i = 0; o->dtype != MSC_DTYPE_F32 && i < msc_array_n_elements(floats); i++) {
        x[i] = msc_dtype_is_float(o->dtype) ? x[i] : rintf(x[i]);
    }
    enum msc_status status = msc_array_convert(out, floats, o->dtype);
    msc_array_release(floats);
    return status;
}

static enum msc_status add_weight(int32_t *tensor, const struct kernel_builder *b,
                                  const struct kernel_operand *o) {
    struct msc_array *data;
    char name[24];
    MSC_TRY(make_typed_array(&data, b, o));
    snprintf(name, sizeof(name), "w%d", (int)msc_graph_n_tensors(b->graph));
    enum msc_status status = msc_graph_add_weight(tensor, b->graph, name, NULL, o->layout, data);
    msc_array_release(data);
    return status;
}

static enum msc_status add_constant(int32_t *x, const struct kernel_builder *b,
                                    const struct kernel_operand *o) {
    struct msc_weight_spec weight = {.role = "const"};
    int32_t joint;
    MSC_TRY(add_weight(&weight.tensor, b, o));
    MSC_TRY(kernel_add_joint(&joint, b->graph, MSC_OP_CONSTANT, 0, NULL, "", 1, &weight));
    *x = msc_graph_joint(b->graph, joint)->outputs[0];
    return MSC_OK;
}

static enum msc_status add_input(int32_t *x, struct kernel_builder *b,
                                 const struct kernel_operand *o) {
    char name[16], attribute[32];
    enum msc_dtype dtype = b->is_typed ? o->dtype : MSC_DTYPE_F32;
    struct msc_array *data;
    snprintf(name, sizeof(name), "x%d", b->n_inputs);
    MSC_TRY(msc_graph_add_input(x, b->graph, name, name, dtype, o->layout, o->n_dims, o->dims));
    MSC_TRY(b->is_typed ? make_typed_array(&data, b, o) : make_array(&data, b, o));
    b->inputs[b->n_inputs++] = data;
    if (o->dtype != dtype) {
        if (!msc_dtype_is_float(o->dtype)) {
            MSC_TRY(add_unary(x, b->graph, MSC_OP_ROUND, ""));
        }
        snprintf(attribute, sizeof(attribute), "dtype=%s", msc_dtype_name(o->dtype));
        return add_unary(x, b->graph, MSC_OP_CAST, attribute);
    }
    // A pool with windows of one element does not change the elements, but gives channels-last
    // layout.
    bool is_last = (o->is_last && !b->has_no_pools) || (b->is_last && o->n_dims == 4);
    return is_last ? add_unary(x, b->graph, MSC_OP_MAX_POOL2D, "pool_size=1,1") : MSC_OK;
}

enum msc_status kernel_case_build(int32_t *joint, struct kernel_builder *b,
                                  const struct kernel_case *k) {
    struct kernel_operand operands[KERNEL_MAX_OPERANDS];
    struct msc_weight_spec weights[KERNEL_MAX_OPERANDS];
    int32_t inputs[KERNEL_MAX_OPERANDS], n_inputs = 0, n_weights = 0;
    int n = kernel_case_operands(operands, k);
    for (int i = 0; i < n; i++) {
        const struct kernel_operand *o = &operands[i];
        if (o->role[0] != '\0') {
            struct msc_weight_spec *w = &weights[n_weights++];
            *w = (struct msc_weight_spec){.role = o->role};
            MSC_TRY(add_weight(&w->tensor, b, o));
        } else if (o->is_constant || (b->is_constant && i > 0)) {
            MSC_TRY(add_constant(&inputs[n_inputs++], b, o));
        } else {
            MSC_TRY(add_input(&inputs[n_inputs++], b, o));
        }
    }
    return kernel_add_joint(joint, b->graph, k->op, n_inputs, inputs, k->attributes, n_weights,
                            weights);
}
