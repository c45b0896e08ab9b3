// The file's tensors and operators, and their form in the file. Numbers of fields are those of
// TensorFlow Lite's schema.fbs.
#include "graph/tflite/writer.h"

#include "base/file.h"
#include "graph/tflite/flatbuffer.h"
#include "graph/tflite/tflite.h"

#include <assert.h>
#include <string.h>

enum { SCHEMA_VERSION = 3, LAST_OLD_CODE = 127 };

static const struct msc_tflite_op_info ops[MSC_TFLITE_OP_COUNT] = {
#define MSC_TFLITE_OP(name, code, version, int8_version, options, activation)                      \
    [MSC_TFLITE_##name] = {code, version, int8_version, options, activation},
#include "graph/tflite/operators.def"
#undef MSC_TFLITE_OP
};

const struct msc_tflite_op_info *msc_tflite__info(enum msc_tflite_op op) {
    return &ops[op];
}

enum msc_status msc_tflite__add(int32_t *out, struct msc_tflite_writer *w,
                                const struct msc_tflite_tensor *t) {
    MSC_TRY(msc_grow(&w->tensors, &w->tensors_capacity, w->n_tensors + 1, sizeof(w->tensors[0])));
    w->tensors[w->n_tensors] = *t;
    *out = (int32_t)w->n_tensors++;
    return MSC_OK;
}

enum msc_status msc_tflite__quant(const struct msc_tflite_quant **out, struct msc_tflite_writer *w,
                                  float scale, int64_t zero_point) {
    struct msc_tflite_quant *q = msc_arena_alloc(&w->arena, sizeof(*q));
    float *scales = msc_arena_alloc(&w->arena, sizeof(*scales));
    int64_t *zero_points = msc_arena_alloc(&w->arena, sizeof(*zero_points));
    MSC_TRY(MSC_ALLOCATED(q && scales && zero_points));
    *scales = scale;
    *zero_points = zero_point;
    *q = (struct msc_tflite_quant){.n = 1, .scales = scales, .zero_points = zero_points};
    *out = q;
    return MSC_OK;
}

enum msc_status msc_tflite__integers(int32_t *out, struct msc_tflite_writer *w, int n,
                                     const int64_t values[]) {
    int32_t *data = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(data[0]));
    MSC_TRY(MSC_ALLOCATED(data));
    for (int i = 0; i < n; i++) {
        int64_t v = values[i] > INT32_MAX ? INT32_MAX : values[i];
        data[i] = (int32_t)(v < INT32_MIN ? INT32_MIN : v);
    }
    const struct msc_tflite_tensor t = {.name = "lengths",
                                        .dtype = MSC_DTYPE_I32,
                                        .n_dims = 1,
                                        .dims = {n},
                                        .data = data,
                                        .n_bytes = (size_t)n * sizeof(data[0])};
    return msc_tflite__add(out, w, &t);
}

enum msc_status msc_tflite__pairs(int32_t *out, struct msc_tflite_writer *w, int n,
                                  const int64_t pairs[]) {
    MSC_TRY(msc_tflite__integers(out, w, 2 * n, pairs));
    w->tensors[*out].n_dims = 2;
    w->tensors[*out].dims[0] = n;
    w->tensors[*out].dims[1] = 2;
    return MSC_OK;
}

enum msc_status msc_tflite__push(struct msc_tflite_writer *w,
                                 const struct msc_tflite_operator *op) {
    MSC_TRY(msc_grow(&w->operators, &w->operators_capacity, w->n_operators + 1,
                     sizeof(w->operators[0])));
    w->operators[w->n_operators++] = *op;
    return MSC_OK;
}

static struct msc_tflite_option *add_option(struct msc_tflite_operator *op, int field) {
    assert(op->n_options < MSC_TFLITE_MOST_OPTIONS);
    struct msc_tflite_option *o = &op->options[op->n_options++];
    *o = (struct msc_tflite_option){.field = field};
    return o;
}

void msc_tflite__byte(struct msc_tflite_operator *op, int field, int32_t value) {
    struct msc_tflite_option *o = add_option(op, field);
    o->type = MSC_TFLITE_BYTE;
    o->value = value;
}

void msc_tflite__int(struct msc_tflite_operator *op, int field, int64_t value) {
    struct msc_tflite_option *o = add_option(op, field);
    o->type = MSC_TFLITE_INT;
    o->value = (int32_t)value;
}

void msc_tflite__float(struct msc_tflite_operator *op, int field, float value) {
    struct msc_tflite_option *o = add_option(op, field);
    o->type = MSC_TFLITE_FLOAT;
    o->number = value;
}

// ---- Tensors ----------------------------------------------------------------------------------

// The value of TensorFlow Lite's TensorType; -1 if it has none.
static int8_t type_of(enum msc_dtype dtype) {
    switch (dtype) {
    case MSC_DTYPE_F32:
        return 0;
    case MSC_DTYPE_I32:
        return 2;
    case MSC_DTYPE_U8:
        return 3;
    case MSC_DTYPE_I64:
        return 4;
    case MSC_DTYPE_BOOL:
        return 6;
    case MSC_DTYPE_I8:
        return 9;
    default:
        return -1;
    }
}

static uint32_t put_i32s(struct msc_flat *f, const int32_t values[], size_t n) {
    return msc_flat_vector(f, values, n, sizeof(values[0]), sizeof(values[0]));
}

static uint32_t put_quant(struct msc_flat *f, const struct msc_tflite_quant *q) {
    size_t n = (size_t)q->n;
    uint32_t scales = msc_flat_vector(f, q->scales, n, sizeof(float), sizeof(float));
    uint32_t zeros = msc_flat_vector(f, q->zero_points, n, sizeof(int64_t), sizeof(int64_t));
    msc_flat_begin(f);
    msc_flat_put_ref(f, 2, scales);
    msc_flat_put_ref(f, 3, zeros);
    msc_flat_put_i32(f, 6, q->n > 1 ? q->axis : 0);
    return msc_flat_end(f);
}

// `buffer`: index among the model's buffers; 0 is the empty one.
static enum msc_status put_tensor(uint32_t *out, struct msc_flat *f,
                                  const struct msc_tflite_tensor *t, int32_t buffer) {
    int32_t shape[MSC_MAX_DIMS], signature[MSC_MAX_DIMS];
    bool is_open = false;
    int8_t type = type_of(t->dtype);
    if (type < 0) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "tensor %s has type %s, which cannot be written",
                        t->name, msc_dtype_name(t->dtype));
    }
    for (int i = 0; i < t->n_dims; i++) {
        signature[i] = (int32_t)t->dims[i];
        shape[i] = t->dims[i] < 0 ? 1 : signature[i];
        is_open = is_open || t->dims[i] < 0;
    }
    size_t n = (size_t)t->n_dims;
    uint32_t shape_ref = put_i32s(f, shape, n);
    uint32_t signature_ref = is_open ? put_i32s(f, signature, n) : 0;
    uint32_t name = msc_flat_string(f, t->name);
    uint32_t quant = t->quant != NULL ? put_quant(f, t->quant) : 0;
    msc_flat_begin(f);
    msc_flat_put_ref(f, 0, shape_ref);
    msc_flat_put_i32(f, 2, buffer);
    msc_flat_put_ref(f, 3, name);
    if (t->quant != NULL) {
        msc_flat_put_ref(f, 4, quant);
    }
    if (is_open) {
        msc_flat_put_ref(f, 7, signature_ref);
    }
    msc_flat_put_i8(f, 8, 1); // has_rank
    msc_flat_put_i8(f, 1, type);
    *out = msc_flat_end(f);
    return f->status;
}

static uint32_t put_buffer(struct msc_flat *f, const void *data, size_t n_bytes) {
    uint32_t bytes = n_bytes > 0 ? msc_flat_vector(f, data, n_bytes, 1, MSC_FLAT_WIDE) : 0;
    msc_flat_begin(f);
    if (n_bytes > 0) {
        msc_flat_put_ref(f, 0, bytes);
    }
    return msc_flat_end(f);
}

// ---- Operators --------------------------------------------------------------------------------

static uint32_t put_options(struct msc_flat *f, const struct msc_tflite_operator *op) {
    msc_flat_begin(f);
    for (int i = 0; i < op->n_options; i++) {
        const struct msc_tflite_option *o = &op->options[i];
        if (o->type == MSC_TFLITE_BYTE) {
            msc_flat_put_i8(f, o->field, (int8_t)o->value);
        } else if (o->type == MSC_TFLITE_INT) {
            msc_flat_put_i32(f, o->field, o->value);
        } else {
            msc_flat_put_f32(f, o->field, o->number);
        }
    }
    return msc_flat_end(f);
}

static uint32_t put_operator(struct msc_flat *f, const struct msc_tflite_operator *op,
                             int32_t code) {
    int32_t union_type = ops[op->op].options;
    uint32_t options = union_type > 0 ? put_options(f, op) : 0;
    uint32_t inputs = put_i32s(f, op->many != NULL ? op->many : op->inputs, op->n_inputs);
    uint32_t outputs = put_i32s(f, &op->output, 1);
    msc_flat_begin(f);
    msc_flat_put_i32(f, 0, code);
    msc_flat_put_ref(f, 1, inputs);
    msc_flat_put_ref(f, 2, outputs);
    if (union_type > 0) {
        msc_flat_put_ref(f, 4, options);
        msc_flat_put_i8(f, 3, (int8_t)union_type);
    }
    return msc_flat_end(f);
}

static uint32_t put_code(struct msc_flat *f, enum msc_tflite_op op, int32_t version) {
    int32_t code = ops[op].code;
    msc_flat_begin(f);
    msc_flat_put_i32(f, 2, version);
    msc_flat_put_i32(f, 3, code);
    msc_flat_put_i8(f, 0, (int8_t)(code < LAST_OLD_CODE ? code : LAST_OLD_CODE));
    return msc_flat_end(f);
}

// The codes of the operators that the model has, as they are numbered by first use.
struct codes {
    uint32_t refs[2 * MSC_TFLITE_OP_COUNT];
    size_t n;
    int32_t numbers[MSC_TFLITE_OP_COUNT][2]; // [op][is int8], 0: not used, else its number + 1
};

static int32_t take_code(struct codes *codes, struct msc_flat *f,
                         const struct msc_tflite_operator *op) {
    int32_t *number = &codes->numbers[op->op][op->is_integer];
    if (*number == 0) {
        const struct msc_tflite_op_info *info = &ops[op->op];
        codes->refs[codes->n++] =
            put_code(f, op->op, op->is_integer ? info->int8_version : info->version);
        *number = (int32_t)codes->n;
    }
    return *number - 1;
}

// ---- The model --------------------------------------------------------------------------------

struct parts {
    uint32_t *tensors, *operators, *buffers, *metadata, *names[2];
    size_t n_ends[2], n_buffers;
};

static enum msc_status allocate_parts(struct parts *p, struct msc_tflite_writer *w) {
    size_t n_metadata = w->options->n_metadata;
    p->tensors = msc_arena_array(&w->arena, w->n_tensors + 1, sizeof(uint32_t));
    p->operators = msc_arena_array(&w->arena, w->n_operators + 1, sizeof(uint32_t));
    p->buffers = msc_arena_array(&w->arena, w->n_tensors + n_metadata + 1, sizeof(uint32_t));
    p->metadata = msc_arena_array(&w->arena, n_metadata + 1, sizeof(uint32_t));
    for (int side = 0; side < 2; side++) {
        int32_t n = side == 0 ? msc_graph_n_inputs(w->g) : msc_graph_n_outputs(w->g);
        p->n_ends[side] = (size_t)n;
        p->names[side] = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(uint32_t));
    }
    return msc_arena_status(&w->arena);
}

static uint32_t put_name(struct msc_flat *f, const char *name, int32_t tensor) {
    uint32_t text = msc_flat_string(f, name);
    msc_flat_begin(f);
    msc_flat_put_ref(f, 0, text);
    msc_flat_put_i32(f, 1, tensor);
    return msc_flat_end(f);
}

// The signature: inputs and outputs by name.
static uint32_t put_signature(struct msc_flat *f, struct parts *p,
                              const struct msc_tflite_writer *w) {
    uint32_t maps[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < p->n_ends[side]; i++) {
            int32_t t = w->ends[side][i];
            p->names[side][i] = put_name(f, w->tensors[t].name, t);
        }
        maps[side] = msc_flat_refs(f, p->names[side], p->n_ends[side]);
    }
    uint32_t key = msc_flat_string(f, "serving_default");
    msc_flat_begin(f);
    msc_flat_put_ref(f, 0, maps[0]);
    msc_flat_put_ref(f, 1, maps[1]);
    msc_flat_put_ref(f, 2, key);
    msc_flat_put_i32(f, 4, 0);
    uint32_t signature = msc_flat_end(f);
    return msc_flat_refs(f, &signature, 1);
}

static uint32_t put_subgraph(struct msc_flat *f, struct parts *p,
                             const struct msc_tflite_writer *w) {
    uint32_t tensors = msc_flat_refs(f, p->tensors, w->n_tensors);
    uint32_t operators = msc_flat_refs(f, p->operators, w->n_operators);
    uint32_t inputs = put_i32s(f, w->ends[0], p->n_ends[0]);
    uint32_t outputs = put_i32s(f, w->ends[1], p->n_ends[1]);
    uint32_t name = msc_flat_string(f, msc_graph_name(w->g));
    msc_flat_begin(f);
    msc_flat_put_ref(f, 0, tensors);
    msc_flat_put_ref(f, 1, inputs);
    msc_flat_put_ref(f, 2, outputs);
    msc_flat_put_ref(f, 3, operators);
    msc_flat_put_ref(f, 4, name);
    uint32_t subgraph = msc_flat_end(f);
    return msc_flat_refs(f, &subgraph, 1);
}

static enum msc_status put_contents(struct msc_flat *f, struct parts *p, struct codes *codes,
                                    struct msc_tflite_writer *w) {
    p->buffers[p->n_buffers++] = put_buffer(f, NULL, 0);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct msc_tflite_tensor *t = &w->tensors[i];
        int32_t buffer = t->data != NULL ? (int32_t)p->n_buffers : 0;
        if (buffer > 0) {
            p->buffers[p->n_buffers++] = put_buffer(f, t->data, t->n_bytes);
        }
        MSC_TRY(put_tensor(&p->tensors[i], f, t, buffer));
    }
    for (size_t i = 0; i < w->options->n_metadata; i++) {
        const char *const *pair = w->options->metadata[i];
        int32_t buffer = (int32_t)p->n_buffers;
        p->buffers[p->n_buffers++] = put_buffer(f, pair[1], strlen(pair[1]));
        p->metadata[i] = put_name(f, pair[0], buffer);
    }
    for (size_t i = 0; i < w->n_operators; i++) {
        int32_t code = take_code(codes, f, &w->operators[i]);
        p->operators[i] = put_operator(f, &w->operators[i], code);
    }
    return f->status;
}

static enum msc_status put_model(struct msc_flat *f, struct msc_tflite_writer *w) {
    struct parts p = {0};
    struct codes codes = {.n = 0};
    MSC_TRY(allocate_parts(&p, w));
    MSC_TRY(put_contents(f, &p, &codes, w));
    uint32_t code_refs = msc_flat_refs(f, codes.refs, codes.n);
    uint32_t subgraphs = put_subgraph(f, &p, w);
    uint32_t signatures = put_signature(f, &p, w);
    uint32_t metadata = msc_flat_refs(f, p.metadata, w->options->n_metadata);
    uint32_t buffers = msc_flat_refs(f, p.buffers, p.n_buffers);
    uint32_t description = msc_flat_string(f, "mscgym");
    msc_flat_begin(f);
    msc_flat_put_i32(f, 0, SCHEMA_VERSION);
    msc_flat_put_ref(f, 1, code_refs);
    msc_flat_put_ref(f, 2, subgraphs);
    msc_flat_put_ref(f, 3, description);
    msc_flat_put_ref(f, 4, buffers);
    msc_flat_put_ref(f, 6, metadata);
    msc_flat_put_ref(f, 7, signatures);
    msc_flat_finish(f, msc_flat_end(f), MSC_TFLITE_IDENTIFIER);
    return f->status;
}

enum msc_status msc_tflite__write(struct msc_tflite_writer *w, const char *path) {
    struct msc_flat f = {0};
    enum msc_status status = put_model(&f, w);
    if (status == MSC_OK) {
        status = msc_file_write(path, (const char *)f.bytes + f.capacity - f.n_bytes, f.n_bytes);
    }
    msc_flat_free(&f);
    return status;
}
