// Networks, trials and expected results for tests of plans and of the evaluator, as declared in
// eval_case.h.
#include "eval_case.h"

#include "base/alloc.h"
#include "data/npy.h"
#include "graph/passes/bind.h"
#include "graph/reference/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DIMS(...)                                                                                  \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

// ---- Building ---------------------------------------------------------------------------------

static struct msc_array *random_array(struct eval_case *c, int n_dims, const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    float *x = msc_array_data(a);
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        x[i] = (float)(msc_rng_double(&c->rng) * 2 - 1);
    }
    return a;
}

static int32_t add_weight(struct eval_case *c, const char *name, const char *layout, int n_dims,
                          const int64_t dims[]) {
    struct msc_array *a = random_array(c, n_dims, dims);
    int32_t tensor;
    assert_ok(msc_graph_add_weight(&tensor, c->g, name, NULL, layout, a));
    msc_array_release(a);
    return tensor;
}

static int32_t add_joint(struct eval_case *c, enum msc_op op, const char *name, int32_t a,
                         int32_t b, struct msc_weight_spec weight, const char *key,
                         const char *value) {
    const int32_t inputs[2] = {a, b};
    const struct msc_attr attr = {key, value};
    struct msc_joint_spec spec = {.op = op,
                                  .name = name,
                                  .n_inputs = b == MSC_NO_ID ? 1 : 2,
                                  .inputs = inputs,
                                  .n_weights = weight.role != NULL,
                                  .weights = &weight,
                                  .n_attrs = key != NULL,
                                  .attrs = &attr};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, c->g, &spec));
    return msc_graph_joint(c->g, joint)->outputs[0];
}

static int32_t add_conv(struct eval_case *c, const char *name, int32_t x, int64_t out,
                        int64_t channels) {
    char weight[32];
    snprintf(weight, sizeof(weight), "%s.w", name);
    int32_t w = add_weight(c, weight, "OIHW", 4, DIMS(out, channels, 3, 3));
    return add_joint(c, MSC_OP_CONV2D, name, x, MSC_NO_ID, (struct msc_weight_spec){"weight", w},
                     "padding", "1,1,1,1");
}

static int32_t add_unary(struct eval_case *c, enum msc_op op, const char *name, int32_t x) {
    return add_joint(c, op, name, x, MSC_NO_ID, (struct msc_weight_spec){0}, NULL, NULL);
}

static int32_t add_binary(struct eval_case *c, enum msc_op op, const char *name, int32_t x,
                          int32_t y) {
    return add_joint(c, op, name, x, y, (struct msc_weight_spec){0}, NULL, NULL);
}

static int32_t add_constant(struct eval_case *c, const char *name, int n_dims, const int64_t dims[],
                            float value) {
    char weight[32];
    int32_t tensor;
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        ((float *)msc_array_data(a))[i] = value + (float)i / 8;
    }
    snprintf(weight, sizeof(weight), "%s.value", name);
    assert_ok(msc_graph_add_weight(&tensor, c->g, weight, NULL, "", a));
    msc_array_release(a);
    struct msc_joint_spec spec = {.op = MSC_OP_CONSTANT,
                                  .name = name,
                                  .n_weights = 1,
                                  .weights = &(struct msc_weight_spec){"const", tensor}};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, c->g, &spec));
    return msc_graph_joint(c->g, joint)->outputs[0];
}

static int32_t open_graph(struct eval_case *c, int64_t channels, int64_t height, int64_t width) {
    int32_t input, batch, wide;
    memset(c, 0, sizeof(*c));
    msc_rng_seed(&c->rng, 7, 7);
    assert_ok(msc_graph_create(&c->g, "main"));
    assert_ok(msc_graph_add_symbol(&batch, c->g, "N"));
    assert_ok(msc_graph_add_symbol(&wide, c->g, "W"));
    const int64_t dims[4] = {-1, channels, height, width};
    const int32_t prims[4] = {batch, MSC_NO_ID, MSC_NO_ID, width < 0 ? wide : MSC_NO_ID};
    assert_ok(msc_graph_add_symbolic_input(&input, c->g, "x", "x", MSC_DTYPE_F32, "NCHW", 4, dims,
                                           prims));
    return input;
}

// Quantisations for activations of about -2 to 3, and for weights with one scale per channel.
static void make_quants(struct eval_case *c, const struct msc_site_scheme *scheme) {
    static const int bits[EVAL_CHOICES] = {8, 4, 16};
    assert_ok(msc_sites_find(&c->sites, c->g, scheme));
    assert_true(c->sites.n_slots <= EVAL_MAX_SLOTS);
    for (int32_t s = 0; s < c->sites.n_site_slots; s++) {
        const struct msc_slot *slot = &c->sites.slots[s];
        bool is_weight = slot->kind == MSC_SITE_WEIGHT;
        for (int k = 0; k < EVAL_CHOICES; k++) {
            struct eval_quant *q = &c->quants[s][k];
            int32_t steps = (int32_t)1 << bits[k];
            struct msc_quant quant = {.bits = bits[k],
                                      .low = is_weight ? 1 - steps / 2 : 0,
                                      .high = is_weight ? steps / 2 - 1 : steps - 1,
                                      .axis = is_weight ? slot->channel_axis : -1,
                                      .n = 1,
                                      .scales = q->scales,
                                      .zero_points = q->zero_points};
            if (is_weight) {
                quant.n = (int32_t)msc_graph_tensor(c->g, slot->tensor)->dims[slot->channel_axis];
            }
            for (int32_t i = 0; i < quant.n; i++) {
                q->scales[i] = (is_weight ? 2.0f + (float)i / 7 : 5.0f) / (float)steps;
                q->zero_points[i] = is_weight ? 0 : steps * 2 / 5;
            }
            q->edit = msc_edit_quantize(quant);
        }
    }
}

static void finish_graph(struct eval_case *c, int32_t n, const int32_t outputs[],
                         const char *const wanted[]) {
    assert_ok(msc_graph_set_outputs(c->g, n, outputs));
    assert_ok(msc_graph_finalize(c->g));
    for (; wanted[c->n_wanted]; c->n_wanted++) {
        c->wanted[c->n_wanted] = msc_graph_find_tensor(c->g, wanted[c->n_wanted]);
        assert_int_not_equal(c->wanted[c->n_wanted], MSC_NO_ID);
    }
    make_quants(c, NULL);
}

static void make_dataset(struct eval_case *c, int64_t n_samples, int64_t batch) {
    const struct msc_tensor *x = msc_graph_tensor(c->g, msc_graph_input(c->g, 0));
    struct msc_input_spec spec = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 4, .is_batched = true};
    memcpy(spec.dims, x->dims, sizeof(spec.dims));
    struct msc_array *a = random_array(c, 4, DIMS(n_samples, x->dims[1], x->dims[2], x->dims[3]));
    assert_ok(msc_dataset_create(&c->data, &spec, &a, 1, NULL, batch));
    msc_array_release(a);
}

void eval_open_chain(struct eval_case *c, int64_t n_samples, int64_t batch) {
    eval_open_chain_of(c, 5, 5, n_samples, batch);
}

void eval_open_chain_of(struct eval_case *c, int64_t height, int64_t width, int64_t n_samples,
                        int64_t batch) {
    int32_t x = open_graph(c, 2, height, width);
    x = add_conv(c, "conv1", x, 3, 2);
    x = add_conv(c, "conv2", x, 4, 3);
    x = add_conv(c, "conv3", x, 2, 4);
    finish_graph(c, 1, &x, (const char *const[]){"conv3:0", NULL});
    make_dataset(c, n_samples, batch);
}

void eval_open_large(struct eval_case *c) {
    int32_t x = add_unary(c, MSC_OP_RELU, "relu", open_graph(c, 8, 512, 512));
    finish_graph(c, 1, &x, (const char *const[]){"relu:0", NULL});
    make_dataset(c, 1, 1);
}

static void build_net(struct eval_case *c, int64_t width) {
    const struct msc_weight_spec none = {0};
    int32_t x = open_graph(c, 3, 6, width);
    int32_t stem = add_unary(c, MSC_OP_RELU, "stem_relu", add_conv(c, "stem", x, 4, 3));
    // Two convolutions and a residual addition.
    int32_t y = add_unary(c, MSC_OP_SIGMOID, "inner", add_conv(c, "conv1", stem, 4, 4));
    y = add_binary(c, MSC_OP_ADD, "residual", add_conv(c, "conv2", y, 4, 4), stem);
    // Hard swish, spelled out: y * clip(y + 3, 0, 6) / 6.
    int32_t wide = add_conv(c, "wide", y, 8, 4);
    int32_t three = add_constant(c, "three", 0, NULL, 3);
    int32_t h = add_binary(c, MSC_OP_ADD, "plus_three", wide, three);
    const struct msc_attr limits[] = {{"min", "0"}, {"max", "6"}};
    struct msc_joint_spec clip = {.op = MSC_OP_CLIP,
                                  .name = "clip",
                                  .n_inputs = 1,
                                  .inputs = &h,
                                  .n_attrs = 2,
                                  .attrs = limits};
    int32_t joint;
    assert_ok(msc_graph_add_joint(&joint, c->g, &clip));
    h = add_binary(c, MSC_OP_MULTIPLY, "gate", wide, msc_graph_joint(c->g, joint)->outputs[0]);
    h = add_binary(c, MSC_OP_DIVIDE, "swish", h, add_constant(c, "six", 0, NULL, 6));
    h = add_binary(c, MSC_OP_MULTIPLY, "scaled", h, add_constant(c, "gain", 3, DIMS(8, 1, 1), 1));
    // Split into two halves.
    const struct msc_attr halves[] = {{"indices_or_sections", "2"}, {"axis", "1"}};
    struct msc_joint_spec split = {.op = MSC_OP_SPLIT,
                                   .name = "split",
                                   .n_inputs = 1,
                                   .inputs = &h,
                                   .n_attrs = 2,
                                   .attrs = halves,
                                   .n_outputs = 2};
    assert_ok(msc_graph_add_joint(&joint, c->g, &split));
    const int32_t left = msc_graph_joint(c->g, joint)->outputs[0];
    const int32_t right = msc_graph_joint(c->g, joint)->outputs[1];
    // One half is pooled and goes through a linear layer. The other is multiplied by its own
    // transpose.
    int32_t flat =
        add_unary(c, MSC_OP_FLATTEN, "flat", add_unary(c, MSC_OP_GLOBAL_AVG_POOL, "pool", left));
    int32_t head =
        add_joint(c, MSC_OP_LINEAR, "head", flat, MSC_NO_ID,
                  (struct msc_weight_spec){"weight", add_weight(c, "head.w", "OI", 2, DIMS(5, 4))},
                  NULL, NULL);
    head = add_joint(c, MSC_OP_SOFTMAX, "softmax", head, MSC_NO_ID, none, "axis", "-1");
    int32_t swapped =
        add_joint(c, MSC_OP_PERMUTE_DIMS, "swapped", right, MSC_NO_ID, none, "axes", "0,1,3,2");
    int32_t product = add_binary(c, MSC_OP_MATMUL, "product", right, swapped);
    const int32_t outputs[] = {head, product};
    finish_graph(c, 2, outputs,
                 (const char *const[]){"softmax:0", "product:0", "plus_three:0", NULL});
}

void eval_open_net(struct eval_case *c, int64_t n_samples, int64_t batch) {
    build_net(c, 6);
    make_dataset(c, n_samples, batch);
}

void eval_open_widths(struct eval_case *c, const int64_t widths[], int64_t n_samples) {
    char folder[] = "/tmp/msc_widths_XXXXXX";
    char path[64];
    struct msc_dataset_options options = MSC_DATASET_OPTIONS_INIT;
    struct msc_array_list list = {0};
    struct msc_input_spec spec = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 4,
                                  .dims = {-1, 3, 6, -1},
                                  .is_batched = true};
    build_net(c, -1);
    for (int64_t i = 0; i < n_samples; i++) {
        char name[16];
        struct msc_array *a = random_array(c, 4, DIMS(1, 3, 6, widths[i]));
        snprintf(name, sizeof(name), "x/%d", (int)i);
        assert_ok(msc_array_list_add(&list, name, a));
        msc_array_release(a);
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/x.npz", folder);
    assert_ok(msc_npz_save(path, &list));
    msc_array_list_finish(&list);
    options.inputs = path;
    assert_ok(msc_dataset_load(&c->data, &options, &spec, 1));
    unlink(path);
    rmdir(folder);
}

void eval_set_target(struct eval_case *c, const char *name) {
    const struct msc_site_scheme scheme = {.target = msc_target_find(name)};
    assert_non_null(scheme.target);
    msc_sites_finish(&c->sites);
    make_quants(c, &scheme);
}

void eval_close(struct eval_case *c) {
    msc_dataset_destroy(c->data);
    msc_sites_finish(&c->sites);
    msc_graph_destroy(c->g);
}

// ---- Trials -----------------------------------------------------------------------------------

void eval_draw_edits(const struct eval_case *c, uint64_t number, struct eval_edits *out) {
    struct msc_rng rng;
    memset(out, 0, sizeof(*out));
    msc_rng_seed(&rng, number, 99);
    for (int32_t s = 0; s < c->sites.n_site_slots && number > 0; s++) {
        uint64_t choice = msc_rng_below(&rng, EVAL_CHOICES + 1);
        out->edits[s] = choice < EVAL_CHOICES ? &c->quants[s][choice].edit : NULL;
    }
    for (int32_t i = 0; c->sites.scheme.target && i < c->sites.n_sites; i++) {
        const struct msc_site *site = &c->sites.sites[i];
        for (int32_t k = 1; k < site->n_slots; k++) {
            out->edits[site->slots[k]] = out->edits[site->slots[0]];
        }
    }
}

int32_t eval_slot(const struct eval_case *c, const char *joint, int32_t operand) {
    int32_t slot = msc_sites_find_slot(&c->sites, msc_graph_find_joint(c->g, joint), operand);
    assert_int_not_equal(slot, MSC_NO_ID);
    return slot;
}

static void begin(void *payload, size_t trial) {
    struct eval_results *r = payload;
    r->begins[trial]++;
    memset(r->is_handed[trial], 0, sizeof(r->is_handed[trial]));
}

static enum msc_status record(void *payload, size_t trial, size_t batch,
                              const struct msc_view values[]) {
    struct eval_results *r = payload;
    if ((int)trial == r->failing_trial && batch == 1) {
        return MSC_FAIL(MSC_E_INVALID, "the sink wants none of it");
    }
    assert_false(r->is_handed[trial][batch]);
    r->is_handed[trial][batch] = true;
    for (size_t i = 0; i < r->c->n_wanted; i++) {
        struct msc_array **at = &r->values[trial][batch][i];
        msc_array_release(*at);
        assert_int_equal(values[i].layout, MSC_LAYOUT_NCHW);
        MSC_TRY(msc_array_create_from(at, values[i].dtype, values[i].n_dims, values[i].dims,
                                      values[i].data));
    }
    return MSC_OK;
}

static void count_end(void *payload, size_t trial) {
    struct eval_results *r = payload;
    r->ends[trial]++;
}

void eval_results_init(struct eval_results *r, const struct eval_case *c) {
    memset(r, 0, sizeof(*r));
    r->c = c;
    r->failing_trial = -1;
    r->sink = (struct msc_sink){.begin = begin, .batch = record, .end = count_end, .payload = r};
}

void eval_results_finish(struct eval_results *r) {
    for (int t = 0; t < EVAL_MAX_TRIALS; t++) {
        for (int b = 0; b < EVAL_MAX_BATCHES; b++) {
            for (int i = 0; i < EVAL_MAX_WANTED; i++) {
                msc_array_release(r->values[t][b][i]);
                r->values[t][b][i] = NULL;
            }
        }
        r->begins[t] = r->ends[t] = 0;
        memset(r->is_handed[t], 0, sizeof(r->is_handed[t]));
    }
}

enum msc_status eval_run(struct msc_evaluator *ev, struct eval_results *r,
                         const struct eval_edits edits[], struct msc_eval_trial trials[],
                         size_t n) {
    for (size_t t = 0; t < n; t++) {
        trials[t].edits = edits[t].edits;
    }
    return msc_evaluator_run(ev, trials, n, &r->sink, 0);
}

// ---- Expected results, joint by joint ---------------------------------------------------------

static void walk_joint(const struct eval_case *c, const struct msc_graph *g,
                       const struct msc_sites *sites, const struct eval_edits *edits,
                       const struct msc_joint *j, struct msc_array *values[]) {
    struct msc_array *owned[4] = {NULL};
    struct msc_view operands[4], outputs[4];
    (void)c;
    assert_true(j->n_operands <= 4 && j->n_outputs <= 4);
    for (int32_t i = 0; i < j->n_operands; i++) {
        int32_t slot = msc_sites_find_slot(sites, j->id, i);
        operands[i] = (struct msc_view){.dtype = MSC_DTYPE_NONE};
        if (j->operands[i] == MSC_NO_ID) {
            continue;
        }
        const struct msc_array *a = values[j->operands[i]];
        if (slot != MSC_NO_ID && edits->edits[slot]) {
            assert_ok(msc_edit_apply(&owned[i], a, edits->edits[slot]));
            a = owned[i];
        }
        operands[i] = msc_view_of_array(a);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, j->outputs[i]);
        assert_ok(msc_array_create(&values[j->outputs[i]], t->dtype, t->n_dims, t->dims));
        outputs[i] = msc_view_of_array(values[j->outputs[i]]);
    }
    struct msc_reference_call call = {.graph = g,
                                      .joint = j,
                                      .n_operands = j->n_operands,
                                      .operands = operands,
                                      .n_outputs = j->n_outputs,
                                      .outputs = outputs};
    assert_ok(msc_reference_find(j->op)(&call));
    for (int32_t i = 0; i < j->n_operands; i++) {
        msc_array_release(owned[i]);
    }
}

// With a target, the edit under which all consumers read a tensor; else NULL.
static const struct msc_edit *edit_of_tensor(const struct msc_sites *sites,
                                             const struct eval_edits *edits, int32_t tensor) {
    for (int32_t s = 0; sites->scheme.target && s < sites->n_site_slots; s++) {
        if (sites->slots[s].tensor == tensor) {
            return edits->edits[s];
        }
    }
    return NULL;
}

static void walk(const struct eval_case *c, size_t batch, const struct eval_edits *edits,
                 struct msc_array *out[]) {
    const struct msc_array *x = msc_dataset_batch(c->data, batch, 0);
    struct msc_input_shape shape = {.n_dims = msc_array_n_dims(x)};
    struct msc_sites sites;
    struct msc_graph *g;
    memcpy(shape.dims, msc_array_dims(x), sizeof(int64_t) * (size_t)shape.n_dims);
    assert_ok(msc_graph_bind_shapes(&g, c->g, &shape, 1));
    assert_ok(msc_sites_find(&sites, g, &c->sites.scheme));
    struct msc_array **values = msc_alloc_zero((size_t)msc_graph_n_tensors(g), sizeof(values[0]));
    values[msc_graph_input(g, 0)] = msc_array_retain(x);
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        values[i] = t->data ? msc_array_retain(t->data) : values[i];
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        if (j->op == MSC_OP_CONSTANT) {
            values[j->outputs[0]] = msc_array_retain(values[j->operands[0]]);
        } else if (j->op != MSC_OP_INPUT) {
            walk_joint(c, g, &sites, edits, j, values);
        }
    }
    for (size_t i = 0; i < c->n_wanted; i++) {
        const char *name = msc_graph_tensor(c->g, c->wanted[i])->name;
        int32_t tensor = msc_graph_find_tensor(g, name);
        const struct msc_edit *edit = edit_of_tensor(&sites, edits, tensor);
        if (edit) {
            assert_ok(msc_edit_apply(&out[i], values[tensor], edit));
        } else {
            out[i] = msc_array_retain(values[tensor]);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        msc_array_release(values[i]);
    }
    msc_free(values);
    msc_sites_finish(&sites);
    msc_graph_destroy(g);
}

void eval_check(const struct eval_case *c, const struct eval_results *r, size_t trial,
                const struct eval_edits *edits) {
    for (size_t b = 0; b < msc_dataset_n_batches(c->data); b++) {
        struct msc_array *expected[EVAL_MAX_WANTED];
        walk(c, b, edits, expected);
        for (size_t i = 0; i < c->n_wanted; i++) {
            const struct msc_array *found = r->values[trial][b][i];
            assert_non_null(found);
            assert_int_equal(msc_array_n_bytes(found), msc_array_n_bytes(expected[i]));
            assert_memory_equal(msc_array_data(found), msc_array_data(expected[i]),
                                msc_array_n_bytes(found));
            msc_array_release(expected[i]);
        }
    }
}
