// Builds the small networks and samples declared in quantize_case.h.
#include "quantize_case.h"

#include "base/alloc.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"

#include <stdio.h>

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

struct msc_array *quantize_array(int n_dims, const int64_t dims[], uint64_t seed) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    float *x = msc_array_data(a);
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        int total = 0;
        for (int k = 0; k < 4; k++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            total += (int)(seed >> 48);
        }
        x[i] = (float)(total - 131070) / 32768.0f;
    }
    return a;
}

static int32_t add(struct msc_graph *g, enum msc_op op, const char *name, int32_t x, int32_t weight,
                   const char *padding) {
    struct msc_weight_spec w = {"weight", weight};
    struct msc_attr attr = {"padding", padding};
    struct msc_joint_spec spec = {.op = op,
                                  .name = name,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = weight != MSC_NO_ID,
                                  .weights = &w,
                                  .n_attrs = padding != NULL,
                                  .attrs = &attr};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

static int32_t add_weight(struct msc_graph *g, const char *name, const char *layout, int n_dims,
                          const int64_t dims[], uint64_t seed) {
    struct msc_array *a = quantize_array(n_dims, dims, seed);
    int32_t tensor;
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, layout, a));
    msc_array_release(a);
    return tensor;
}

static struct msc_graph *create_graph(int32_t *x, const char *name) {
    const int64_t dims[4] = {-1, 2, 6, 6};
    int32_t prims[4] = {0, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID};
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, name));
    assert_ok(msc_graph_add_symbol(&prims[0], g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(x, g, "x", "image", MSC_DTYPE_F32, "NCHW", 4, dims, prims));
    return g;
}

static void build(struct quantize_case *c) {
    int32_t x;
    struct msc_graph *g = create_graph(&x, "main");
    int32_t w1 = add_weight(g, "conv1.w", "OIHW", 4, DIMS(4, 2, 3, 3), 12);
    int32_t w2 = add_weight(g, "conv2.w", "OIHW", 4, DIMS(3, 4, 3, 3), 13);
    int32_t w3 = add_weight(g, "head.w", "OI", 2, DIMS(5, 3), 14);
    x = add(g, MSC_OP_CONV2D, "conv1", x, w1, "1,1,1,1");
    x = add(g, MSC_OP_RELU, "relu", x, MSC_NO_ID, NULL);
    x = add(g, MSC_OP_CONV2D, "conv2", x, w2, "1,1,1,1");
    x = add(g, MSC_OP_GLOBAL_AVG_POOL, "pool", x, MSC_NO_ID, NULL);
    x = add(g, MSC_OP_FLATTEN, "flat", x, MSC_NO_ID, NULL);
    x = add(g, MSC_OP_LINEAR, "head", x, w3, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    c->g = g;
}

static int32_t add_constant(struct msc_graph *g, const char *name, const char *layout, int n_dims,
                            const int64_t dims[], const float values[]) {
    struct msc_array *a;
    int32_t tensor;
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, n_dims, dims, values));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, layout, a));
    msc_array_release(a);
    return tensor;
}

// x -> conv
static struct msc_graph *begin_conv(int32_t *x, const float w[4], const float b[2]) {
    struct msc_graph *g = create_graph(x, "conv");
    const struct msc_weight_spec weights[] = {
        {"weight", add_constant(g, "w", "OIHW", 4, DIMS(2, 2, 1, 1), w)},
        {"bias", add_constant(g, "b", "O", 1, DIMS(2), b)}};
    const struct msc_joint_spec conv = {.op = MSC_OP_CONV2D_BIAS,
                                        .name = "conv",
                                        .n_inputs = 1,
                                        .inputs = x,
                                        .n_weights = 2,
                                        .weights = weights};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, g, &conv));
    *x = msc_graph_joint(g, joint)->outputs[0];
    return g;
}

static void end_conv(struct msc_graph *g, int32_t x) {
    static const float w2[] = {1, 0, 0, 1};
    int32_t weight = add_constant(g, "w2", "OIHW", 4, DIMS(2, 2, 1, 1), w2);
    x = add(g, MSC_OP_CONV2D, "conv2", x, weight, NULL);
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
}

struct msc_graph *quantize_make_activation(enum msc_op op, const float w[4], const float b[2]) {
    int32_t x;
    struct msc_graph *g = begin_conv(&x, w, b);
    end_conv(g, add(g, op, "act", x, MSC_NO_ID, NULL));
    return g;
}

static int32_t add_with_number(struct msc_graph *g, enum msc_op op, const char *name, int32_t x,
                               float number) {
    int32_t inputs[2] = {x}, joint;
    char of_number[32];
    snprintf(of_number, sizeof of_number, "%s.number", name);
    const struct msc_weight_spec value = {"const",
                                          add_constant(g, of_number, "O", 1, DIMS(1), &number)};
    const struct msc_joint_spec constant = {
        .op = MSC_OP_CONSTANT, .n_weights = 1, .weights = &value};
    assert_ok(msc_graph_add_joint(&joint, g, &constant));
    inputs[1] = msc_graph_joint(g, joint)->outputs[0];
    const struct msc_joint_spec spec = {.op = op, .name = name, .n_inputs = 2, .inputs = inputs};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

struct msc_graph *quantize_make_sum(const float w[4], const float b[2], float factor,
                                    float number) {
    int32_t x;
    struct msc_graph *g = begin_conv(&x, w, b);
    x = add_with_number(g, MSC_OP_MULTIPLY, "less", x, factor);
    end_conv(g, add_with_number(g, MSC_OP_ADD, "more", x, number));
    return g;
}

// Class labels: the classes that the float model predicts, except for two samples.
static struct msc_array *make_labels(int64_t n) {
    static const int64_t labels[QUANTIZE_SAMPLES] = {2, 2, 2, 3, 2, 2, 2, 3, 2, 2};
    struct msc_array *a;
    assert_true(n <= QUANTIZE_SAMPLES);
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_I64, 1, &n, labels));
    return a;
}

static void open_graph(struct quantize_case *c, int n_threads, int64_t batch,
                       struct msc_array *inputs, const char *target) {
    struct msc_input_spec spec = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 4,
                                  .dims = {-1, 2, 6, 6},
                                  .is_batched = true};
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_array *labels = make_labels(msc_array_dim(inputs, 0));
    assert_ok(msc_dataset_create(&c->data, &spec, &inputs, 1, labels, batch));
    msc_array_release(labels);
    options.n_threads = n_threads;
    assert_ok(msc_backend_open(&c->backend, "cpu", &options));
    o.backend = c->backend;
    o.target = msc_target_find(target);
    o.n_threads = n_threads;
    int32_t wanted = msc_graph_output(c->g, 0);
    assert_ok(msc_evaluator_create(&c->ev, c->g, c->data, &wanted, 1, &o));
}

void quantize_case_open_with(struct quantize_case *c, int n_threads, int64_t batch,
                             struct msc_array *inputs) {
    memset(c, 0, sizeof(*c));
    build(c);
    open_graph(c, n_threads, batch, inputs, "generic");
}

void quantize_case_open_graph(struct quantize_case *c, struct msc_graph *g, const char *target) {
    struct msc_array *x = quantize_array(4, DIMS(QUANTIZE_SAMPLES, 2, 6, 6), 11);
    quantize_case_open_graph_with(c, g, target, x);
    msc_array_release(x);
}

void quantize_case_open_graph_with(struct quantize_case *c, struct msc_graph *g, const char *target,
                                   struct msc_array *inputs) {
    memset(c, 0, sizeof(*c));
    c->g = g;
    open_graph(c, 1, QUANTIZE_SAMPLES, inputs, target);
}

void quantize_case_open(struct quantize_case *c, int n_threads, int64_t batch) {
    struct msc_array *x = quantize_array(4, DIMS(QUANTIZE_SAMPLES, 2, 6, 6), 11);
    quantize_case_open_with(c, n_threads, batch, x);
    msc_array_release(x);
}

void quantize_case_close(struct quantize_case *c) {
    msc_evaluator_destroy(c->ev);
    msc_backend_close(c->backend);
    msc_dataset_destroy(c->data);
    msc_graph_destroy(c->g);
}

enum msc_status quantize_create(struct msc_quantizer **out, const struct msc_graph *g,
                                const char *config) {
    struct msc_quantizer_options options;
    struct msc_arena arena = {0};
    cJSON *json;
    assert_ok(msc_json_parse(&json, config, strlen(config), "test"));
    enum msc_status status = msc_quantizer_read_options(&options, json, NULL, &arena);
    if (status == MSC_OK) {
        status = msc_quantizer_create(out, g, &options);
    }
    cJSON_Delete(json);
    msc_arena_finish(&arena);
    return status;
}
