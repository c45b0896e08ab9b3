// Helpers of the channel tests, declared in channels_case.h.
#include "tests/graph/channels_case.h"

#include "base/alloc.h"
#include "graph/reference/reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_UNITS = 4096, MOST_OUTPUTS = 8, MOST_INPUTS = 4 };

// ---- Building ---------------------------------------------------------------------------------

struct net net_begin(uint64_t seed) {
    struct net n;
    assert_ok(msc_graph_create(&n.g, "net"));
    msc_rng_seed(&n.rng, seed, 0);
    return n;
}

static struct msc_array *random_array(struct msc_rng *rng, int n_dims, const int64_t dims[]) {
    struct msc_array *a;
    assert_ok(msc_array_create(&a, MSC_DTYPE_F32, n_dims, dims));
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        ((float *)msc_array_data(a))[i] = (float)(2 * msc_rng_double(rng) - 1);
    }
    return a;
}

int32_t net_weight(struct net *n, const char *name, const char *layout, int n_dims,
                   const int64_t dims[]) {
    int32_t tensor;
    struct msc_array *data = random_array(&n->rng, n_dims, dims);
    if (strstr(name, ".var") != NULL) {
        for (int64_t i = 0; i < msc_array_n_elements(data); i++) {
            float *x = &((float *)msc_array_data(data))[i];
            *x = *x * *x + 0.5f;
        }
    }
    assert_ok(msc_graph_add_weight(&tensor, n->g, name, NULL, layout, data));
    msc_array_release(data);
    return tensor;
}

int32_t net_indices(struct net *n, const char *name, int64_t count, const int64_t values[]) {
    int32_t tensor;
    struct msc_array *data;
    assert_ok(msc_array_create_from(&data, MSC_DTYPE_I64, 1, &count, values));
    assert_ok(msc_graph_add_weight(&tensor, n->g, name, NULL, "", data));
    msc_array_release(data);
    return tensor;
}

int32_t net_constant(struct net *n, const char *name, int n_dims, const int64_t dims[]) {
    char weight[64];
    snprintf(weight, sizeof weight, "%s.value", name);
    return add_joint(
        n->g, &(struct msc_joint_spec){.op = MSC_OP_CONSTANT,
                                       .name = name,
                                       .n_weights = 1,
                                       .weights = &(struct msc_weight_spec){
                                           "const", net_weight(n, weight, "", n_dims, dims)}});
}

int32_t net_unary(struct net *n, enum msc_op op, const char *name, int32_t x, const char *key,
                  const char *value, const char *other_key, const char *other_value) {
    const struct msc_attr attrs[] = {{key, value}, {other_key, other_value}};
    return add_joint(n->g, &(struct msc_joint_spec){.op = op,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .n_attrs = (key != NULL) + (other_key != NULL),
                                                    .attrs = attrs});
}

int32_t net_joint(struct net *n, enum msc_op op, const char *name, int32_t n_inputs,
                  const int32_t inputs[], const char *key, const char *value) {
    const struct msc_attr attr = {key, value};
    return add_joint(n->g, &(struct msc_joint_spec){.op = op,
                                                    .name = name,
                                                    .n_inputs = n_inputs,
                                                    .inputs = inputs,
                                                    .n_attrs = key != NULL,
                                                    .attrs = &attr});
}

static int64_t channels_of(const struct net *n, int32_t x, int axis) {
    const struct msc_tensor *t = msc_graph_tensor(n->g, x);
    return t->dims[axis < 0 ? t->n_dims + axis : axis];
}

int32_t net_conv(struct net *n, const char *name, int32_t x, int64_t out, int64_t kernel,
                 int64_t groups) {
    char weight[64], bias[64], group_text[24], padding[64];
    int64_t in = channels_of(n, x, 1), pad = kernel / 2;
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    snprintf(group_text, sizeof group_text, "%d", (int)groups);
    snprintf(padding, sizeof padding, "%d,%d,%d,%d", (int)pad, (int)pad, (int)pad, (int)pad);
    const struct msc_weight_spec weights[] = {
        {"weight", net_weight(n, weight, "OIHW", 4, DIMS(out, in / groups, kernel, kernel))},
        {"bias", net_weight(n, bias, "O", 1, &out)}};
    const struct msc_attr attrs[] = {{"groups", group_text}, {"padding", padding}};
    return add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_CONV2D_BIAS,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .n_weights = 2,
                                                    .weights = weights,
                                                    .n_attrs = 2,
                                                    .attrs = attrs});
}

int32_t net_linear(struct net *n, const char *name, int32_t x, int64_t out) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    const struct msc_weight_spec weights[] = {
        {"weight", net_weight(n, weight, "OI", 2, DIMS(out, channels_of(n, x, -1)))},
        {"bias", net_weight(n, bias, "O", 1, &out)}};
    return add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_LINEAR_BIAS,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .n_weights = 2,
                                                    .weights = weights});
}

int32_t net_batch_norm(struct net *n, const char *name, int32_t x) {
    static const char *const roles[] = {"gamma", "beta", "mean", "var"};
    struct msc_weight_spec weights[4];
    int64_t channels = channels_of(n, x, 1);
    for (int i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s.%s", name, roles[i]);
        weights[i] = (struct msc_weight_spec){roles[i], net_weight(n, text, "O", 1, &channels)};
    }
    return add_joint(n->g, &(struct msc_joint_spec){.op = MSC_OP_BATCH_NORM,
                                                    .name = name,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .n_weights = 4,
                                                    .weights = weights});
}

void net_end(struct net *n, int32_t n_outputs, const int32_t outputs[]) {
    assert_ok(msc_graph_set_outputs(n->g, n_outputs, outputs));
    assert_ok(msc_graph_finalize(n->g));
}

// ---- Masked against pruned --------------------------------------------------------------------

struct masked {
    const struct msc_sites *sites;
    const struct msc_edit *const *edits;
};

static enum msc_status read_masked(void *payload, struct msc_array **out,
                                   const struct msc_joint *joint, int32_t operand,
                                   const struct msc_array *array) {
    const struct masked *m = payload;
    int32_t slot = msc_sites_find_slot(m->sites, joint->id, operand);
    const struct msc_edit *edit = slot == MSC_NO_ID ? NULL : m->edits[slot];
    if (edit == NULL) {
        *out = msc_array_retain(array);
        return MSC_OK;
    }
    return msc_edit_apply(out, array, edit);
}

static void run(struct msc_array *out[], const struct msc_graph *g, struct masked *masked) {
    int32_t given[MOST_INPUTS], wanted[MOST_OUTPUTS];
    struct msc_array *arrays[MOST_INPUTS];
    struct msc_rng rng;
    msc_rng_seed(&rng, 7, 0);
    size_t n_given = (size_t)msc_graph_n_inputs(g), n_wanted = (size_t)msc_graph_n_outputs(g);
    for (size_t i = 0; i < n_given; i++) {
        given[i] = msc_graph_input(g, (int32_t)i);
        const struct msc_tensor *t = msc_graph_tensor(g, given[i]);
        int64_t dims[MSC_MAX_DIMS];
        for (int d = 0; d < t->n_dims; d++) {
            dims[d] = t->dims[d] < 0 ? 2 : t->dims[d];
        }
        arrays[i] = random_array(&rng, t->n_dims, dims);
    }
    for (size_t i = 0; i < n_wanted; i++) {
        wanted[i] = msc_graph_output(g, (int32_t)i);
    }
    const struct msc_reference_run part = {.graph = g,
                                           .n_given = n_given,
                                           .given = given,
                                           .arrays = (const struct msc_array *const *)arrays,
                                           .n_wanted = n_wanted,
                                           .wanted = wanted,
                                           .read = masked != NULL ? read_masked : NULL,
                                           .payload = masked};
    assert_ok(msc_reference_run_part(out, &part));
    for (size_t i = 0; i < n_given; i++) {
        msc_array_release(arrays[i]);
    }
}

static void compare(const struct msc_array *a, const struct msc_array *b) {
    int64_t n = msc_array_n_elements(a);
    double most = 0;
    assert_int_equal(msc_array_n_dims(a), msc_array_n_dims(b));
    assert_int_equal(n, msc_array_n_elements(b));
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(msc_array_get_double(b, i)));
    }
    for (int64_t i = 0; i < n; i++) {
        double apart = fabs(msc_array_get_double(a, i) - msc_array_get_double(b, i));
        if (!(apart <= 1e-5 * most + 1e-30)) {
            print_error("element %d: masked %.9g, pruned %.9g\n", (int)i,
                        msc_array_get_double(a, i), msc_array_get_double(b, i));
            fail();
        }
    }
}

static void choose(bool is_gone[], const struct msc_channels *c, double density,
                   struct msc_rng *rng) {
    for (int32_t i = 0; i < c->n_groups; i++) {
        const struct msc_channel_group *group = &c->groups[i];
        int32_t kept = (int32_t)msc_rng_below(rng, (uint64_t)group->n_units);
        for (int32_t k = 0; k < group->n_units; k++) {
            is_gone[group->first_unit + k] = k != kept && msc_rng_double(rng) >= density;
        }
    }
}

// Checks that the pruned graph's weights have as many elements as the cost says.
static void check_cost(const struct msc_graph *g, const struct msc_graph *small,
                       const struct msc_channels *c, const bool is_gone[]) {
    struct msc_channel_cost cost;
    double n = 0;
    assert_ok(msc_channels_cost(&cost, c, g, is_gone));
    for (int32_t i = 0; i < msc_graph_n_tensors(small); i++) {
        const struct msc_tensor *t = msc_graph_tensor(small, i);
        bool is_weight = t->producer == MSC_NO_ID && msc_dtype_is_float(t->dtype);
        n += is_weight ? (double)msc_tensor_n_elements(t) : 0;
    }
    assert_true(cost.parameters == n);
}

static void check_one(const struct msc_graph *g, const struct msc_sites *sites,
                      const struct msc_channels *c, const bool is_gone[]) {
    struct msc_channel_masks masks;
    struct msc_graph *small;
    struct msc_array *whole[MOST_OUTPUTS], *pruned[MOST_OUTPUTS];
    assert_ok(msc_channels_mask(&masks, c, g, sites, is_gone));
    assert_ok(msc_graph_prune(&small, g, c, is_gone, NULL));
    for (int32_t i = 0; i < masks.n; i++) {
        assert_ok(msc_edit_check(&masks.masks[i], g, &sites->slots[masks.slots[i]]));
    }
    run(whole, g, &(struct masked){sites, masks.edits});
    run(pruned, small, NULL);
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        compare(whole[i], pruned[i]);
        msc_array_release(whole[i]);
        msc_array_release(pruned[i]);
    }
    check_cost(g, small, c, is_gone);
    msc_channel_masks_finish(&masks);
    msc_graph_destroy(small);
}

void check_masked_and_pruned(const struct msc_graph *g, uint64_t seed) {
    static const double densities[] = {0.9, 0.7, 0.5, 0};
    static bool is_gone[MOST_UNITS];
    struct msc_sites sites;
    struct msc_channels channels;
    struct msc_graph *same;
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 1);
    assert_ok(msc_sites_find(&sites, g, NULL));
    assert_ok(msc_channels_find(&channels, g, &sites));
    assert_true(channels.n_units <= MOST_UNITS);
    memset(is_gone, 0, sizeof(is_gone));
    assert_ok(msc_graph_prune(&same, g, &channels, is_gone, NULL));
    assert_true(msc_graph_equal(g, same, true));
    msc_graph_destroy(same);
    for (size_t i = 0; i < sizeof(densities) / sizeof(densities[0]); i++) {
        choose(is_gone, &channels, densities[i], &rng);
        check_one(g, &sites, &channels, is_gone);
    }
    msc_channels_finish(&channels);
    msc_sites_finish(&sites);
}

// ---- Units compared with a table --------------------------------------------------------------

static void check_row(int32_t letters[128], const struct msc_graph *g, const struct msc_channels *c,
                      const struct channels_row *row) {
    int32_t tensor = msc_graph_find_tensor(g, row->tensor);
    if (tensor == MSC_NO_ID) {
        print_error("no tensor %s\n", row->tensor);
        fail();
    }
    int64_t n = msc_graph_tensor(g, tensor)->dims[row->axis];
    assert_int_equal(n, (int64_t)strlen(row->units));
    for (int64_t i = 0; i < n; i++) {
        int letter = row->units[i];
        int32_t unit = msc_channels_unit(c, tensor, row->axis, i), *known = &letters[letter];
        bool fits = letter == '-' ? unit == MSC_NO_ID
                                  : unit != MSC_NO_ID && (*known == MSC_NO_ID || *known == unit);
        for (int k = 0; fits && letter != '-' && k < 128; k++) {
            fits = k == letter || letters[k] != unit;
        }
        if (!fits) {
            print_error("%s, axis %d, index %d is of unit %d, expected '%c' of %s\n", row->tensor,
                        row->axis, (int)i, (int)unit, letter, row->units);
            fail();
        }
        *known = letter == '-' ? MSC_NO_ID : unit;
    }
}

void check_channels(struct net *n, int32_t n_units, const struct channels_row rows[]) {
    int32_t letters[128];
    struct msc_sites sites;
    struct msc_channels channels;
    memset(letters, 0xff, sizeof(letters));
    assert_ok(msc_sites_find(&sites, n->g, NULL));
    assert_ok(msc_channels_find(&channels, n->g, &sites));
    for (int i = 0; rows[i].tensor != NULL; i++) {
        check_row(letters, n->g, &channels, &rows[i]);
    }
    assert_int_equal(channels.n_units, n_units);
    msc_channels_finish(&channels);
    msc_sites_finish(&sites);
    check_masked_and_pruned(n->g, 3);
    msc_graph_destroy(n->g);
}
