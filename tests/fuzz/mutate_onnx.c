// Mutates inputs of fuzz_onnx and fuzz_run: changes parts of the parsed model, so that the result
// still parses and gets past the reader. Sometimes the bytes are left to libFuzzer's own mutations.
#include "base/rng.h"
#include "onnx.pb-c.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t n_bytes, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b,
                                 uint8_t *out, size_t max_bytes, unsigned seed);

static const int64_t wholes[] = {
    0,          1,         -1,        2,         3,         -2,        4,         5,
    7,          8,         -7,        16,        100,       255,       256,       INT32_MAX,
    INT32_MIN,  INT64_MAX, INT64_MIN, 1LL << 31, 1LL << 32, 1LL << 40, 1LL << 62, -(1LL << 33),
    1000000007, 65536};
static const float reals[] = {0.0f,  1.0f,   -1.0f,  0.5f,         2.0f,        1e-6f,
                              1e30f, 1e-30f, -1e30f, (float)1e300, 0.33333334f, 3.4e38f};

static size_t below(struct msc_rng *rng, size_t n) {
    return n == 0 ? 0 : (size_t)msc_rng_below(rng, n);
}

static int64_t any_whole(struct msc_rng *rng) {
    return wholes[below(rng, below(rng, 2) == 0 ? 12 : sizeof wholes / sizeof wholes[0])];
}

static float any_real(struct msc_rng *rng) {
    return reals[below(rng, sizeof reals / sizeof reals[0])];
}

// Replaces a text member; `text` may be NULL.
static void set_text(char **to, const char *text) {
    char *copy = strdup(text ? text : "");
    if (*to != protobuf_c_empty_string) {
        free(*to);
    }
    *to = copy;
}

// Extends an array of pointers by one; returns false if memory runs out.
static bool add_place(void *array, size_t *n) {
    void **old, **grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (*n + 1) * sizeof *grown);
    if (!grown) {
        return false;
    }
    grown[(*n)++] = NULL;
    memcpy(array, &grown, sizeof grown);
    return true;
}

// ---- Names ------------------------------------------------------------------------------------

// The name of a value of the graph, or "".
static const char *any_name(const Onnx__GraphProto *g, struct msc_rng *rng) {
    size_t which = below(rng, 8);
    if (which == 0) {
        return "";
    }
    if (which <= 2 && g->n_input > 0) {
        return g->input[below(rng, g->n_input)]->name;
    }
    if (which <= 4 && g->n_initializer > 0) {
        return g->initializer[below(rng, g->n_initializer)]->name;
    }
    const Onnx__NodeProto *n = g->n_node > 0 ? g->node[below(rng, g->n_node)] : NULL;
    return n && n->n_output > 0 ? n->output[below(rng, n->n_output)] : "";
}

static void change_inputs(Onnx__GraphProto *g, Onnx__NodeProto *n, struct msc_rng *rng) {
    if (n->n_input > 0 && below(rng, 4) > 0) {
        set_text(&n->input[below(rng, n->n_input)], any_name(g, rng));
    } else if (n->n_input > 1 && below(rng, 2) == 0) {
        n->n_input--;
        if (n->input[n->n_input] != protobuf_c_empty_string) {
            free(n->input[n->n_input]);
        }
    } else if (add_place(&n->input, &n->n_input)) {
        n->input[n->n_input - 1] = (char *)protobuf_c_empty_string;
        set_text(&n->input[n->n_input - 1], any_name(g, rng));
    }
}

static void change_output(Onnx__GraphProto *g, struct msc_rng *rng) {
    if (g->n_output > 0) {
        set_text(&g->output[below(rng, g->n_output)]->name, any_name(g, rng));
    }
}

// ---- Tensors ----------------------------------------------------------------------------------

// Changes one element. In raw data, changes 8, 4 or 1 bytes.
static void change_elements(Onnx__TensorProto *t, struct msc_rng *rng) {
    static const size_t widths[] = {8, 4, 1};
    size_t width = t->data_type == 7 ? 8 : widths[below(rng, 3)];
    int64_t whole = any_whole(rng);
    float real = any_real(rng);
    if (t->has_raw_data && t->raw_data.len >= width) {
        size_t at = below(rng, t->raw_data.len / width) * width;
        memcpy(t->raw_data.data + at, t->data_type == 1 ? (void *)&real : (void *)&whole,
               t->data_type == 1 ? (width < 4 ? width : 4) : width);
    } else if (t->n_int64_data > 0) {
        t->int64_data[below(rng, t->n_int64_data)] = whole;
    } else if (t->n_int32_data > 0) {
        t->int32_data[below(rng, t->n_int32_data)] = (int32_t)whole;
    } else if (t->n_float_data > 0) {
        t->float_data[below(rng, t->n_float_data)] = real;
    }
}

// Changes the shape, and resizes small data to match it.
static void change_shape(Onnx__TensorProto *t, struct msc_rng *rng) {
    static const size_t widths[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8};
    size_t width = t->data_type >= 0 && t->data_type < 14 ? widths[t->data_type] : 1;
    if (t->n_dims == 0) {
        return;
    }
    t->dims[below(rng, t->n_dims)] = any_whole(rng);
    size_t n = width;
    for (size_t i = 0; i < t->n_dims; i++) {
        n = t->dims[i] < 0 || t->dims[i] > 64 || n > 4096 ? SIZE_MAX / 128 : n * (size_t)t->dims[i];
    }
    uint8_t *bytes = n > 4096 || !t->has_raw_data ? NULL : realloc(t->raw_data.data, n + 1);
    if (bytes) {
        if (n > t->raw_data.len) {
            memset(bytes + t->raw_data.len, 0, n - t->raw_data.len);
        }
        t->raw_data.data = bytes;
        t->raw_data.len = n;
    }
}

static void change_tensor(Onnx__TensorProto *t, struct msc_rng *rng) {
    switch (below(rng, 5)) {
    case 0:
        change_shape(t, rng);
        break;
    case 1:
        t->data_type = (int32_t)below(rng, 24);
        break;
    default:
        change_elements(t, rng);
    }
}

static void change_input_type(Onnx__ValueInfoProto *info, struct msc_rng *rng) {
    Onnx__TypeProto *type = info->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        return;
    }
    Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    if (!shape || shape->n_dim == 0 || below(rng, 4) == 0) {
        type->tensor_type->elem_type = (int32_t)below(rng, 24);
        return;
    }
    Onnx__TensorShapeProto__Dimension *d = shape->dim[below(rng, shape->n_dim)];
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        d->dim_param != protobuf_c_empty_string) {
        free(d->dim_param);
    }
    if (below(rng, 3) > 0) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = any_whole(rng);
    } else {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = strdup(below(rng, 2) == 0 ? "N" : "M");
    }
}

// ---- Nodes ------------------------------------------------------------------------------------

static void change_graph(Onnx__GraphProto *g, struct msc_rng *rng);

static void change_attribute(Onnx__AttributeProto *a, struct msc_rng *rng) {
    if (a->g) {
        change_graph(a->g, rng);
    } else if (a->t) {
        change_tensor(a->t, rng);
    } else if (a->n_ints > 0 && below(rng, 8) == 0) {
        a->n_ints--;
    } else if (a->n_ints > 0) {
        a->ints[below(rng, a->n_ints)] = any_whole(rng);
    } else if (a->n_floats > 0) {
        a->floats[below(rng, a->n_floats)] = any_real(rng);
    } else if (a->has_f) {
        a->f = any_real(rng);
    } else if (a->has_i) {
        a->i = any_whole(rng);
    } else if (a->has_s && a->s.len > 0) {
        a->s.data[below(rng, a->s.len)] = (uint8_t)below(rng, 256);
    }
}

static void remove_attribute(Onnx__NodeProto *n, struct msc_rng *rng) {
    size_t i = below(rng, n->n_attribute);
    onnx__attribute_proto__free_unpacked(n->attribute[i], NULL);
    n->attribute[i] = n->attribute[--n->n_attribute];
}

static void change_node(Onnx__GraphProto *g, Onnx__NodeProto *n, struct msc_rng *rng) {
    size_t which = below(rng, 8);
    if (which < 3 && n->n_attribute > 0) {
        change_attribute(n->attribute[below(rng, n->n_attribute)], rng);
    } else if (which == 3 && n->n_attribute > 0) {
        remove_attribute(n, rng);
    } else if (which == 4) {
        set_text(&n->op_type, g->node[below(rng, g->n_node)]->op_type);
    } else {
        change_inputs(g, n, rng);
    }
}

static void swap_nodes(Onnx__GraphProto *g, struct msc_rng *rng) {
    size_t a = below(rng, g->n_node), b = below(rng, g->n_node);
    Onnx__NodeProto *node = g->node[a];
    g->node[a] = g->node[b];
    g->node[b] = node;
}

static void change_graph(Onnx__GraphProto *g, struct msc_rng *rng) {
    size_t which = below(rng, 16);
    if (which < 3 && g->n_initializer > 0) {
        change_tensor(g->initializer[below(rng, g->n_initializer)], rng);
    } else if (which < 6 && g->n_input > 0) {
        change_input_type(g->input[below(rng, g->n_input)], rng);
    } else if (which == 6) {
        change_output(g, rng);
    } else if (which == 7 && g->n_node > 1) {
        swap_nodes(g, rng);
    } else if (g->n_node > 0) {
        change_node(g, g->node[below(rng, g->n_node)], rng);
    }
}

// ---- Models -----------------------------------------------------------------------------------

static Onnx__ModelProto *read_model(const uint8_t *data, size_t n_bytes) {
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, n_bytes, data);
    if (m && (!m->graph || m->graph->n_node == 0)) {
        onnx__model_proto__free_unpacked(m, NULL);
        m = NULL;
    }
    return m;
}

// Writes the model to `out` and frees it. Returns 0 if the model exceeds max_bytes.
static size_t write_model(uint8_t *out, size_t max_bytes, Onnx__ModelProto *m) {
    size_t n = onnx__model_proto__get_packed_size(m);
    n = n <= max_bytes ? onnx__model_proto__pack(m, out) : 0;
    onnx__model_proto__free_unpacked(m, NULL);
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n_bytes, size_t max_bytes, unsigned seed) {
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 0);
    Onnx__ModelProto *m = below(&rng, 5) == 0 ? NULL : read_model(data, n_bytes);
    if (!m) {
        return LLVMFuzzerMutate(data, n_bytes, max_bytes);
    }
    if (below(&rng, 16) == 0 && m->n_opset_import > 0) {
        m->opset_import[0]->version = 1 + (int64_t)below(&rng, 22);
    }
    for (size_t n = 1 + below(&rng, 3); n > 0; n--) {
        change_graph(m->graph, &rng);
    }
    size_t n = write_model(data, max_bytes, m);
    return n > 0 ? n : n_bytes;
}

// Copies a node of the second model into the first, with the second's initialisers under new names.
// The node's other inputs are values of the first model.
static void take_node(Onnx__GraphProto *to, Onnx__GraphProto *from, struct msc_rng *rng) {
    size_t i = below(rng, from->n_node);
    Onnx__NodeProto *node = from->node[i];
    if (!add_place(&to->node, &to->n_node)) {
        return;
    }
    to->node[to->n_node - 1] = node;
    from->node[i] = from->node[--from->n_node];
    for (size_t k = 0; k < node->n_input; k++) {
        bool is_there = false;
        for (size_t t = 0; t < from->n_initializer && !is_there; t++) {
            const char *name = from->initializer[t]->name;
            if (name && strcmp(name, node->input[k]) == 0 &&
                add_place(&to->initializer, &to->n_initializer)) {
                to->initializer[to->n_initializer - 1] = from->initializer[t];
                from->initializer[t] = from->initializer[--from->n_initializer];
                is_there = true;
            }
        }
        if (!is_there && node->input[k][0] != '\0') {
            set_text(&node->input[k], any_name(to, rng));
        }
    }
    if (to->n_output > 0 && node->n_output > 0) {
        set_text(&node->output[0], "taken");
        set_text(&to->output[0]->name, "taken");
    }
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b,
                                 uint8_t *out, size_t max_bytes, unsigned seed) {
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 0);
    Onnx__ModelProto *to = read_model(a, n_a), *from = read_model(b, n_b);
    size_t n = 0;
    if (to && from) {
        take_node(to->graph, from->graph, &rng);
        n = write_model(out, max_bytes, to);
        to = NULL;
    }
    if (to) {
        onnx__model_proto__free_unpacked(to, NULL);
    }
    if (from) {
        onnx__model_proto__free_unpacked(from, NULL);
    }
    return n;
}
