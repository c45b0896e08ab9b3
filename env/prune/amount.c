// The cost of a network as a function of the number of units that each group keeps.
//
// The elements of a tensor and the multiply-accumulates of a joint are products of lengths, and
// lengths are sums over groups. At most two of the lengths depend on channels, so costs are
// polynomials of degree at most 2 in the numbers of units. The coefficients follow from the values
// with 0, 1 and 2 units. They are exact, because all values are integers below 2^53. The cost of
// the whole network is checked.
#include "base/alloc.h"
#include "env/prune/internal.h"
#include "graph/cost.h"
#include "graph/reshape.h"
#include "graph/wide.h"
#include "kernels/plan.h"

#include <string.h>

// An axis of a tensor that has channels of a group.
struct counted_axis {
    int32_t group;
    int axis;
    int32_t n; // number of indices that one unit occupies on the axis
};

struct msc_prune_counter {
    const struct msc_graph *g;
    const struct msc_channels *channels;
    int32_t *first; // [n_tensors + 1], start of each tensor's range in `axes`
    struct counted_axis *axes;
    int64_t (*dims)[MSC_MAX_DIMS]; // [n_tensors], lengths at n_kept; a symbol counts as 1
    int64_t (*rest)[MSC_MAX_DIMS]; // [n_tensors], the part of the lengths outside all groups
    int64_t *n_kept;               // [n_groups], the current point
    int32_t *groups;               // [n_groups], groups that the current function depends on
    int32_t n_groups;
    bool *is_listed; // [n_groups]
};

// ---- Lengths ----------------------------------------------------------------------------------

static enum msc_status list_axes(struct msc_prune_counter *c, struct msc_arena *arena) {
    int32_t n_tensors = msc_graph_n_tensors(c->g), n = 0;
    for (int32_t g = 0; g < c->channels->n_groups; g++) {
        n += c->channels->groups[g].n_axes;
    }
    c->axes = msc_arena_array(arena, (size_t)n + 1, sizeof(c->axes[0]));
    c->first = msc_arena_array(arena, (size_t)n_tensors + 2, sizeof(c->first[0]));
    MSC_TRY(MSC_ALLOCATED(c->axes && c->first));
    // The count of tensor t is stored at first[t + 2]. While `axes` is filled, first[t + 1]
    // advances from the start of tensor t's range to its end.
    for (int32_t g = 0; g < c->channels->n_groups; g++) {
        const struct msc_channel_group *group = &c->channels->groups[g];
        for (int32_t i = 0; i < group->n_axes; i++) {
            c->first[group->axes[i].tensor + 2]++;
        }
    }
    for (int32_t t = 2; t < n_tensors + 2; t++) {
        c->first[t] += c->first[t - 1];
    }
    for (int32_t g = 0; g < c->channels->n_groups; g++) {
        const struct msc_channel_group *group = &c->channels->groups[g];
        for (int32_t i = 0; i < group->n_axes; i++) {
            const struct msc_channel_axis *a = &group->axes[i];
            c->axes[c->first[a->tensor + 1]++] = (struct counted_axis){g, a->axis, a->n};
        }
    }
    return MSC_OK;
}

static enum msc_status list_lengths(struct msc_prune_counter *c, struct msc_arena *arena) {
    int32_t n_tensors = msc_graph_n_tensors(c->g);
    c->dims = msc_arena_array(arena, (size_t)n_tensors + 1, sizeof(c->dims[0]));
    c->rest = msc_arena_array(arena, (size_t)n_tensors + 1, sizeof(c->rest[0]));
    MSC_TRY(MSC_ALLOCATED(c->dims && c->rest));
    for (int32_t i = 0; i < n_tensors; i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, i);
        for (int k = 0; k < t->n_dims; k++) {
            int64_t period = msc_reshape_period(c->g, t, k);
            c->dims[i][k] = t->dims[k] < 0 && period == 0 ? 1 : period;
            c->rest[i][k] = c->dims[i][k];
        }
        for (int32_t k = c->first[i]; k < c->first[i + 1]; k++) {
            const struct counted_axis *a = &c->axes[k];
            c->rest[i][a->axis] -= (int64_t)a->n * c->channels->groups[a->group].n_units;
        }
    }
    return MSC_OK;
}

static void set_lengths(struct msc_prune_counter *c, int32_t tensor) {
    memcpy(c->dims[tensor], c->rest[tensor], sizeof(c->dims[tensor]));
    for (int32_t k = c->first[tensor]; k < c->first[tensor + 1]; k++) {
        const struct counted_axis *a = &c->axes[k];
        c->dims[tensor][a->axis] += a->n * c->n_kept[a->group];
    }
}

// ---- Functions --------------------------------------------------------------------------------

static void list_tensor(struct msc_prune_counter *c, int32_t tensor) {
    for (int32_t k = c->first[tensor]; k < c->first[tensor + 1]; k++) {
        int32_t group = c->axes[k].group;
        if (!c->is_listed[group]) {
            c->is_listed[group] = true;
            c->groups[c->n_groups++] = group;
        }
    }
}

static double value_at(struct msc_prune_counter *c, const struct msc_prune_counted *of) {
    const struct msc_joint *j = of->joint;
    if (!j) {
        set_lengths(c, of->tensor);
        return of->has_axis ? (double)c->dims[of->tensor][of->axis]
                            : (double)msc_dims_product(msc_graph_tensor(c->g, of->tensor)->n_dims,
                                                       c->dims[of->tensor]);
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            set_lengths(c, j->operands[i]);
        }
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        set_lengths(c, j->outputs[i]);
    }
    struct msc_product products[2];
    int n = msc_joint_products_of(products, c->g, j, (const int64_t(*)[MSC_MAX_DIMS])c->dims);
    return of->product < n ? products[of->product].macs : 0;
}

// The value with one more unit of group `a` and, if given, one more of group `b` (which may be
// `a`).
static double value_with(struct msc_prune_counter *c, const struct msc_prune_counted *of, int32_t a,
                         int32_t b) {
    c->n_kept[a]++;
    if (b != MSC_NO_ID) {
        c->n_kept[b]++;
    }
    double value = value_at(c, of);
    c->n_kept[a]--;
    if (b != MSC_NO_ID) {
        c->n_kept[b]--;
    }
    return value;
}

static void list_groups_of(struct msc_prune_counter *c, const struct msc_prune_counted *of) {
    c->n_groups = 0;
    if (!of->joint) {
        list_tensor(c, of->tensor);
    }
    for (int32_t i = 0; of->joint && i < of->joint->n_operands; i++) {
        if (of->joint->operands[i] != MSC_NO_ID) {
            list_tensor(c, of->joint->operands[i]);
        }
    }
    for (int32_t i = 0; of->joint && i < of->joint->n_outputs; i++) {
        list_tensor(c, of->joint->outputs[i]);
    }
    for (int32_t i = 0; i < c->n_groups; i++) {
        c->is_listed[c->groups[i]] = false;
    }
}

static double whole_value(struct msc_prune_counter *c, const struct msc_prune_counted *of) {
    for (int32_t i = 0; i < c->n_groups; i++) {
        c->n_kept[c->groups[i]] = c->channels->groups[c->groups[i]].n_units;
    }
    double value = value_at(c, of);
    for (int32_t i = 0; i < c->n_groups; i++) {
        c->n_kept[c->groups[i]] = 0;
    }
    return value;
}

static enum msc_status give(double scale, int n, int32_t a, int32_t b, msc_prune_take take,
                            void *payload) {
    const struct msc_prune_monomial m = {.scale = scale, .n = n, .groups = {a, b}};
    return scale == 0 ? MSC_OK : take(payload, &m);
}

enum msc_status msc_prune_env__each_monomial(struct msc_prune_counter *c,
                                             const struct msc_prune_counted *of,
                                             msc_prune_take take, void *payload) {
    list_groups_of(c, of);
    double none = value_at(c, of);
    MSC_TRY(give(none, 0, MSC_NO_ID, MSC_NO_ID, take, payload));
    for (int32_t i = 0; i < c->n_groups; i++) {
        int32_t a = c->groups[i];
        double one = value_with(c, of, a, MSC_NO_ID);
        double two = value_with(c, of, a, a);
        double square = (two - 2 * one + none) / 2;
        MSC_TRY(give(square, 2, a, a, take, payload));
        MSC_TRY(give(one - none - square, 1, a, MSC_NO_ID, take, payload));
        for (int32_t k = 0; k < i; k++) {
            int32_t b = c->groups[k];
            double both = value_with(c, of, a, b) - one - value_with(c, of, b, MSC_NO_ID) + none;
            MSC_TRY(give(both, 2, a < b ? a : b, a < b ? b : a, take, payload));
        }
    }
    return MSC_OK;
}

double msc_prune_env__whole_value(struct msc_prune_counter *c, const struct msc_prune_counted *of) {
    list_groups_of(c, of);
    return whole_value(c, of);
}

// An amount under construction, to which `scale` times a counted function is added.
struct adding {
    struct msc_prune_amount *out;
    double scale;
};

static enum msc_status add_monomial(void *payload, const struct msc_prune_monomial *m) {
    const struct adding *a = payload;
    double *to = m->n == 0   ? &a->out->constant
                 : m->n == 1 ? &a->out->linear[m->groups[0]]
                             : &a->out->square[(int64_t)m->groups[0] * a->out->n + m->groups[1]];
    *to += a->scale * m->scale;
    return MSC_OK;
}

static enum msc_status add_function(struct msc_prune_amount *out, struct msc_prune_counter *c,
                                    const struct msc_prune_counted *of, double scale) {
    struct adding adding = {out, scale};
    return msc_prune_env__each_monomial(c, of, add_monomial, &adding);
}

double msc_prune_env__amount(const struct msc_prune_amount *a, const int32_t n_kept[]) {
    double sum = a->constant;
    for (int32_t i = 0; i < a->n; i++) {
        sum += a->linear[i] * n_kept[i];
        for (int32_t k = i; k < a->n; k++) {
            sum += a->square[(int64_t)i * a->n + k] * n_kept[i] * n_kept[k];
        }
    }
    return sum;
}

// ---- The network ------------------------------------------------------------------------------

static enum msc_status amount_init(struct msc_prune_amount *out, int32_t n,
                                   struct msc_arena *arena) {
    *out = (struct msc_prune_amount){.n = n};
    out->linear = msc_arena_array(arena, (size_t)n + 1, sizeof(out->linear[0]));
    out->square = msc_arena_array(arena, (size_t)n * (size_t)n + 1, sizeof(out->square[0]));
    return MSC_ALLOCATED(out->linear && out->square);
}

static enum msc_status counter_init(struct msc_prune_counter *c, const struct msc_prune_inputs *in,
                                    struct msc_arena *arena) {
    *c = (struct msc_prune_counter){.g = in->graph, .channels = msc_pruner_channels(in->pruner)};
    size_t n = (size_t)c->channels->n_groups + 1;
    c->n_kept = msc_arena_array(arena, n, sizeof(c->n_kept[0]));
    c->groups = msc_arena_array(arena, n, sizeof(c->groups[0]));
    c->is_listed = msc_arena_array(arena, n, sizeof(c->is_listed[0]));
    MSC_TRY(MSC_ALLOCATED(c->n_kept && c->groups && c->is_listed));
    MSC_TRY(list_axes(c, arena));
    return list_lengths(c, arena);
}

static enum msc_status check_amount(const struct msc_prune_amount *a,
                                    const struct msc_prune_counter *c, double expected,
                                    const char *what, struct msc_arena *arena) {
    int32_t *n_kept = msc_arena_array(arena, (size_t)a->n + 1, sizeof(n_kept[0]));
    MSC_TRY(MSC_ALLOCATED(n_kept));
    for (int32_t i = 0; i < a->n; i++) {
        n_kept[i] = c->channels->groups[i].n_units;
    }
    double found = msc_prune_env__amount(a, n_kept);
    double difference = found > expected ? found - expected : expected - found;
    return difference <= 1e-9 * expected
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED,
                          "the %s of the network are not a quadratic function of the numbers of "
                          "channels: found %.17g, expected %.17g",
                          what, found, expected);
}

static enum msc_status count_bytes(struct msc_prune_amount *out, struct msc_prune_counter *c,
                                   struct msc_arena *arena) {
    double whole = 0;
    for (int32_t i = 0; i < msc_graph_n_tensors(c->g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(c->g, i);
        if (t->data) {
            struct msc_prune_counted of = {.tensor = i};
            double bytes = (double)msc_graph_own_bytes(c->g, i);
            MSC_TRY(add_function(out, c, &of, bytes));
            whole += bytes * msc_prune_env__whole_value(c, &of);
        }
    }
    return check_amount(out, c, whole, "bytes", arena);
}

// MACs of a joint's product for one sample, with the shapes of the plan. The chunks of a sequence
// are equal, so the first one is counted for all of them.
static double bound_macs(const struct msc_prune_inputs *in, const char *name, int product) {
    const struct msc_graph *g = in->plan->graph;
    struct msc_product products[2];
    double macs = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        if (in->plan->parts[i] == 0 && strcmp(j->name, name) == 0) {
            macs += product < msc_joint_products(products, g, j) ? products[product].macs : 0;
        }
    }
    return macs * in->plan->n_parts / in->n_samples;
}

static enum msc_status count_macs(struct msc_prune_amount *out, struct msc_prune_counter *c,
                                  const struct msc_prune_inputs *in, struct msc_arena *arena) {
    double whole = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        struct msc_prune_counted of = {.joint = msc_graph_joint(c->g, i)};
        for (; of.product < 2; of.product++) {
            double full = msc_prune_env__whole_value(c, &of);
            if (full > 0) {
                // Symbolic dimensions scale all terms by the same factor.
                double macs = bound_macs(in, of.joint->name, of.product);
                MSC_TRY(add_function(out, c, &of, macs / full));
                whole += macs;
            }
        }
    }
    return check_amount(out, c, whole, "multiply-accumulates", arena);
}

enum msc_status msc_prune_env__counter(struct msc_prune_counter **out,
                                       const struct msc_prune_inputs *in, struct msc_arena *arena) {
    *out = msc_arena_alloc(arena, sizeof(**out));
    return *out ? counter_init(*out, in, arena) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

enum msc_status msc_prune_env__count(struct msc_prune_amount *n_bytes,
                                     struct msc_prune_amount *macs,
                                     const struct msc_prune_inputs *in, struct msc_arena *arena) {
    struct msc_prune_counter c;
    MSC_TRY(counter_init(&c, in, arena));
    MSC_TRY(amount_init(n_bytes, c.channels->n_groups, arena));
    MSC_TRY(amount_init(macs, c.channels->n_groups, arena));
    MSC_TRY(count_bytes(n_bytes, &c, arena));
    return count_macs(macs, &c, in, arena);
}
