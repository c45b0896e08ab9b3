// Lists the parts that choices apply to (groups of channels and weights) with their cuts, and the
// consumers of channels.
#include "base/str.h"
#include "graph/wide.h"
#include "tools/pruner_internal.h"

#include <stdlib.h>

// ---- Cuts -------------------------------------------------------------------------------------

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The smallest unit count that makes every producing weight's channels a multiple of `round_to`;
// 1 if the group has fewer than two such steps.
static int64_t step_of(const struct msc_pruner *p, const struct msc_channel_group *group) {
    int64_t step = 1;
    for (int32_t i = 0; i < group->n_axes; i++) {
        int64_t to = p->options->round_to;
        int64_t n = to / common_divisor(to, group->axes[i].n);
        if (group->axes[i].roles & MSC_CHANNEL_MAKES) {
            step = step / common_divisor(step, n) * n;
        }
    }
    return group->n_units < 2 * step ? 1 : step;
}

// The multiple of `step` nearest to density * n_units, at most n_units; may be 0.
static int64_t nearest_count(const struct msc_channel_group *group, double density, int64_t step) {
    int64_t n = (int64_t)(density * (double)group->n_units / (double)step + 0.5) * step;
    return density >= 1 || n > group->n_units ? group->n_units : n;
}

static int32_t count_kept(const struct msc_pruner *p, const struct msc_channel_group *group,
                          double density) {
    int64_t step = step_of(p, group), n = nearest_count(group, density, step);
    return (int32_t)(n < step ? step : n);
}

enum msc_rounded msc_pruner__rounded(const struct msc_pruner *p, int32_t group, double density) {
    const struct msc_channel_group *of = &p->channels.groups[group];
    int64_t n = nearest_count(of, density, step_of(p, of));
    return n == 0                                                     ? MSC_ROUNDED_TO_NONE
           : density < 1 && count_kept(p, of, density) == of->n_units ? MSC_ROUNDED_TO_ALL
                                                                      : MSC_ROUNDED_TO_SOME;
}

static bool is_same_cut(const struct msc_pruner *p, const struct msc_prune_cut *cut, size_t choice,
                        int32_t n_kept, int32_t n_units) {
    const struct msc_prune_choice *choices = p->options->choices;
    const struct msc_prune_choice *a = &choices[cut->choice], *b = &choices[choice];
    return cut->n_kept == n_kept &&
           (n_kept == n_units || (a->criterion == b->criterion && a->sparsity.n == b->sparsity.n &&
                                  a->sparsity.m == b->sparsity.m));
}

static bool matches_any(const char *const patterns[], size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (msc_glob_match(patterns[i], name)) {
            return true;
        }
    }
    return false;
}

static bool is_asked_for(const struct msc_pruner_options *o, const char *name) {
    return (o->n_include == 0 || matches_any(o->include, o->n_include, name)) &&
           !matches_any(o->exclude, o->n_exclude, name);
}

// Adds the effect of a choice on a part, unless an equivalent cut exists.
static void add_cut(struct msc_pruner *p, struct msc_pruner_group *part, size_t choice,
                    const struct msc_prune_cut *made, int32_t n_all) {
    size_t cut = 0;
    while (cut < part->n_cuts && !is_same_cut(p, &part->cuts[cut], choice, made->n_kept, n_all)) {
        cut++;
    }
    if (cut == part->n_cuts) {
        part->cuts[part->n_cuts++] = *made;
    }
    part->cut_of[choice] = (uint32_t)cut;
}

static enum msc_status part_init(struct msc_pruner_group *part, struct msc_pruner *p) {
    size_t n = p->options->n_choices + 2;
    part->tensor = MSC_NO_ID;
    part->cuts = msc_arena_array(&p->arena, n, sizeof(part->cuts[0]));
    part->cut_of = msc_arena_array(&p->arena, n, sizeof(part->cut_of[0]));
    return MSC_ALLOCATED(part->cuts && part->cut_of);
}

// The cut that keeps a number nearest to n_kept. If two cuts are equally near, the cut that keeps
// more.
static uint32_t nearest_cut(const struct msc_pruner_group *part, int32_t n_kept) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < part->n_cuts; i++) {
        int64_t off = llabs((int64_t)part->cuts[i].n_kept - n_kept);
        int64_t least = llabs((int64_t)part->cuts[best].n_kept - n_kept);
        bool is_more = part->cuts[i].n_kept > part->cuts[best].n_kept;
        best = off < least || (off == least && is_more) ? i : best;
    }
    return best;
}

// Completes the cuts of a part from its allowed choices; made [n_all] has the effect of every
// choice. Choices for the other kind of part map to the cut that keeps most, and disallowed choices
// to the nearest cut.
static void end_cuts(struct msc_pruner *p, int32_t index, const struct msc_prune_cut made[],
                     bool is_sparse, int32_t n_all) {
    const struct msc_pruner_options *o = p->options;
    struct msc_pruner_group *part = &p->groups[index];
    const struct msc_prune_fixed *fixed =
        part->is_included ? msc_pruner__find_fixed(p, index) : NULL;
    uint64_t allowed = msc_pruner__allowed(p, index);
    for (size_t i = 0; i < o->n_choices; i++) {
        if (allowed >> i & 1) {
            add_cut(p, part, i, &made[i], n_all);
        }
    }
    for (size_t i = 0; i < o->n_choices; i++) {
        if (!(allowed >> i & 1)) {
            bool is_of_it = o->choices[i].is_sparse == is_sparse;
            part->cut_of[i] = nearest_cut(part, is_of_it ? made[i].n_kept : n_all);
        }
    }
    part->cuts[part->n_cuts] = (struct msc_prune_cut){.n_kept = n_all, .stored = 1};
    part->fixed_cut = part->n_cuts;
    part->is_included = part->is_included && part->n_cuts > 0 && !fixed;
    if (fixed && fixed->choice != MSC_NO_ID && made[fixed->choice].n_kept < n_all) {
        part->cuts[++part->fixed_cut] = made[fixed->choice];
    }
}

// Room for the effects of all choices on a part, for end_cuts.
static struct msc_prune_cut *make_room(struct msc_pruner *p) {
    return msc_arena_array(&p->arena, p->options->n_all + 1, sizeof(struct msc_prune_cut));
}

static enum msc_status list_group(struct msc_pruner *p, int32_t index) {
    const struct msc_pruner_options *o = p->options;
    const struct msc_channel_group *of = &p->channels.groups[index];
    struct msc_prune_cut *made = make_room(p);
    MSC_TRY(made ? part_init(&p->groups[index], p) : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    for (size_t i = 0; i < o->n_all; i++) {
        if (!o->choices[i].is_sparse) {
            made[i] = (struct msc_prune_cut){
                .choice = i, .n_kept = count_kept(p, of, o->choices[i].density), .stored = 1};
        }
    }
    p->groups[index].is_included = is_asked_for(o, of->name);
    end_cuts(p, index, made, false, of->n_units);
    return MSC_OK;
}

// Lists the groups, and leaves room for weights after them.
static enum msc_status list_groups(struct msc_pruner *p) {
    p->n_parts = p->channels.n_groups;
    p->groups = msc_arena_array(&p->arena, (size_t)(p->n_parts + p->sites.n_slots) + 1,
                                sizeof(p->groups[0]));
    MSC_TRY(MSC_ALLOCATED(p->groups));
    for (int32_t i = 0; i < p->channels.n_groups; i++) {
        MSC_TRY(list_group(p, i));
    }
    return MSC_OK;
}

// ---- Consumers --------------------------------------------------------------------------------

// The number of operands, in the whole graph, that are the tensor. The output of a `constant` joint
// counts as the tensor that the joint yields.
static int32_t count_uses(const struct msc_graph *g, int32_t tensor) {
    int32_t n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; j->op != MSC_OP_CONSTANT && k < j->n_operands; k++) {
            n += j->operands[k] != MSC_NO_ID && msc_graph_weight_of(g, j->operands[k]) == tensor;
        }
    }
    return n;
}

// The bias of a weight's joint, if nothing else reads it.
static int32_t find_bias(const struct msc_pruner *p, const struct msc_slot *weight) {
    const struct msc_sites *sites = &p->sites;
    for (int32_t i = sites->n_site_slots; i < sites->n_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->joint == weight->joint) {
            const struct msc_tensor *t = msc_graph_tensor(p->g, slot->tensor);
            bool is_own =
                t->data && t->dtype == MSC_DTYPE_F32 && count_uses(p->g, slot->tensor) == 1;
            return is_own ? i : MSC_NO_ID;
        }
    }
    return MSC_NO_ID;
}

static int32_t group_of_unit(const struct msc_pruner *p, int32_t unit) {
    int32_t g = 0;
    while (unit >= p->channels.groups[g].first_unit + p->channels.groups[g].n_units) {
        g++;
    }
    return g;
}

// Lists the groups along the consumer's axis, each once, in the order of their first index.
static enum msc_status list_read_groups(struct msc_pruner *p, struct msc_consumer *c) {
    int64_t n = msc_graph_tensor(p->g, c->tensor)->dims[c->axis];
    bool *is_listed = msc_arena_array(&p->arena, (size_t)p->channels.n_groups + 1, sizeof(bool));
    c->groups = msc_arena_array(&p->arena, (size_t)p->channels.n_groups + 1, sizeof(c->groups[0]));
    MSC_TRY(MSC_ALLOCATED(is_listed && c->groups));
    for (int64_t i = 0; i < n; i++) {
        int32_t unit = msc_channels_unit(&p->channels, c->tensor, c->axis, i);
        int32_t group = unit == MSC_NO_ID ? MSC_NO_ID : group_of_unit(p, unit);
        if (group != MSC_NO_ID && !is_listed[group]) {
            is_listed[group] = true;
            c->groups[c->n_groups++] = group;
        }
    }
    return MSC_OK;
}

static struct msc_consumer *find_consumer(const struct msc_pruner *p, const struct msc_slot *slot,
                                          int axis) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        struct msc_consumer *c = &p->consumers[i];
        if (c->is_weight && slot->kind == MSC_SITE_WEIGHT && c->tensor == slot->tensor &&
            c->axis == axis) {
            return c;
        }
    }
    return NULL;
}

static enum msc_status add_use(struct msc_consumer **out, struct msc_pruner *p, int32_t index,
                               int axis) {
    const struct msc_slot *slot = &p->sites.slots[index];
    struct msc_consumer *c = find_consumer(p, slot, axis);
    if (!c) {
        c = &p->consumers[p->n_consumers++];
        *c = (struct msc_consumer){.tensor = slot->tensor,
                                   .axis = axis,
                                   .is_weight = slot->kind == MSC_SITE_WEIGHT,
                                   .part = MSC_NO_ID,
                                   .bias_slot = MSC_NO_ID};
        c->slots = msc_arena_array(&p->arena, (size_t)p->sites.n_slots + 1, sizeof(c->slots[0]));
        MSC_TRY(MSC_ALLOCATED(c->slots));
        MSC_TRY(list_read_groups(p, c));
    }
    c->slots[c->n_slots++] = index;
    c->bias_slot = c->is_weight && c->n_slots == 1 ? find_bias(p, slot) : MSC_NO_ID;
    *out = c;
    return MSC_OK;
}

static enum msc_status list_consumers(struct msc_pruner *p) {
    size_t n = (size_t)p->channels.n_reads + (size_t)p->sites.n_slots;
    struct msc_consumer *c;
    p->consumers = msc_arena_array(&p->arena, n + 1, sizeof(p->consumers[0]));
    MSC_TRY(MSC_ALLOCATED(p->consumers));
    for (int32_t i = 0; i < p->channels.n_reads; i++) {
        MSC_TRY(add_use(&c, p, p->channels.reads[i].slot, p->channels.reads[i].axis));
    }
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        struct msc_pruner_group *group = &p->groups[g];
        group->consumers = msc_arena_array(&p->arena, n + 1, sizeof(group->consumers[0]));
        MSC_TRY(MSC_ALLOCATED(group->consumers));
        for (int32_t i = 0; i < p->n_consumers; i++) {
            for (int32_t k = 0; k < p->consumers[i].n_groups; k++) {
                if (p->consumers[i].groups[k] == g) {
                    group->consumers[group->n_consumers++] = i;
                }
            }
        }
    }
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

// The axis of input channels, if the slot is the weight of a convolution or linear layer with a
// layout that supports sparsity; else -1.
static int input_axis(const struct msc_pruner *p, const struct msc_slot *slot) {
    const struct msc_joint *j =
        slot->joint == MSC_NO_ID ? NULL : msc_graph_joint(p->g, slot->joint);
    const struct msc_tensor *t = msc_graph_tensor(p->g, slot->tensor);
    bool is_linear = j && (j->op == MSC_OP_LINEAR || j->op == MSC_OP_LINEAR_BIAS) && t->n_dims == 2;
    if (slot->kind != MSC_SITE_WEIGHT || slot->operand != 1 || !t->data ||
        t->dtype != MSC_DTYPE_F32 || slot->channel_axis < 0 ||
        (!is_linear && !msc_op_is_conv(j->op))) {
        return -1;
    }
    return slot->channel_axis == 0 ? 1 : is_linear ? 0 : -1;
}

// Do all uses have this input axis, and does nothing else read the tensor?
static bool may_be_sparse(const struct msc_pruner *p, int32_t tensor, int axis) {
    int32_t n = 0, n_consumers = 0;
    for (int32_t i = 0; i < p->sites.n_slots; i++) {
        if (p->sites.slots[i].tensor == tensor) {
            n++;
            if (input_axis(p, &p->sites.slots[i]) != axis) {
                return false;
            }
        }
    }
    for (int32_t i = 0; i < p->n_consumers; i++) {
        const struct msc_consumer *c = &p->consumers[i];
        bool is_it = c->is_weight && c->tensor == tensor;
        n_consumers += is_it;
        if (is_it && (c->axis != axis || c->n_slots != n)) {
            return false;
        }
    }
    return n_consumers <= 1 && count_uses(p->g, tensor) == n;
}

// Sets the layout of rows as the joint multiplies them.
static void describe_rows(struct msc_consumer *c, const struct msc_pruner *p) {
    const struct msc_tensor *t = msc_graph_tensor(p->g, c->tensor);
    const struct msc_slot *slot = &p->sites.slots[c->slots[0]];
    int64_t groups = 1;
    (void)msc_joint_attr_i64(msc_graph_joint(p->g, slot->joint), "groups", &groups);
    c->n_row_groups = groups;
    c->n_columns = msc_array_n_elements(t->data) / t->dims[slot->channel_axis];
    c->n_taps = c->n_columns / t->dims[c->axis];
}

static enum msc_status add_weight(struct msc_pruner *p, struct msc_consumer *c) {
    const struct msc_pruner_options *o = p->options;
    int64_t n = msc_array_n_elements(msc_graph_tensor(p->g, c->tensor)->data);
    size_t bytes = msc_graph_own_bytes(p->g, c->tensor);
    struct msc_pruner_group *part = &p->groups[p->n_parts];
    struct msc_prune_cut *made = make_room(p);
    MSC_TRY(made ? part_init(part, p) : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    describe_rows(c, p);
    int64_t n_rows = n / c->n_columns / c->n_row_groups;
    for (size_t i = 0; i < o->n_choices; i++) {
        const struct msc_sparsity *s = &o->choices[i].sparsity;
        if (o->choices[i].is_sparse) {
            int64_t n_kept = c->n_row_groups *
                             msc_sparsity_count(s, n_rows, c->n_columns, c->n_columns / c->n_taps);
            made[i] = (struct msc_prune_cut){.choice = i,
                                             .n_kept = (int32_t)n_kept,
                                             .stored = msc_sparsity_bytes(s, n_kept, n, bytes) /
                                                       ((double)bytes * (double)n)};
        }
    }
    part->is_included = true;
    part->tensor = c->tensor;
    end_cuts(p, p->n_parts, made, true, (int32_t)n);
    c->part = p->n_parts++;
    c->groups[c->n_groups++] = c->part;
    return MSC_OK;
}

static bool has_sparse_choices(const struct msc_pruner_options *o) {
    bool has = false;
    for (size_t i = 0; i < o->n_choices; i++) {
        has = has || o->choices[i].is_sparse;
    }
    return has;
}

static enum msc_status list_weights(struct msc_pruner *p) {
    int32_t n_slots = has_sparse_choices(p->options) ? p->sites.n_slots : 0;
    for (int32_t i = 0; i < n_slots; i++) {
        const struct msc_slot *slot = &p->sites.slots[i];
        int axis = input_axis(p, slot);
        if (axis < 0 || !is_asked_for(p->options, msc_graph_tensor(p->g, slot->tensor)->name) ||
            !may_be_sparse(p, slot->tensor, axis)) {
            continue;
        }
        struct msc_consumer *c = find_consumer(p, slot, axis);
        bool reads_channels = c != NULL;
        for (int32_t k = i; !reads_channels && k < n_slots; k++) {
            if (p->sites.slots[k].tensor == slot->tensor) {
                MSC_TRY(add_use(&c, p, k, axis));
            }
        }
        if (c->part == MSC_NO_ID) {
            MSC_TRY(add_weight(p, c));
        }
    }
    return MSC_OK;
}

// ---- All parts --------------------------------------------------------------------------------

static enum msc_status nothing_can_go(const struct msc_pruner *p) {
    if (has_sparse_choices(p->options)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "no weight of a convolution or linear layer and no group of channels "
                        "can be pruned, or env.include and env.exclude leave none");
    }
    return MSC_FAIL(
        MSC_E_INVALID,
        p->channels.n_groups == 0 ? "no channel of the network can be pruned"
        : p->options->n_fixed > 0
            ? "env.fix, env.include and env.exclude leave no group of channels to search; "
              "mscgym graph --channels lists them"
            : "env.include and env.exclude leave no group of channels; "
              "mscgym graph --channels lists them");
}

enum msc_status msc_pruner__list_parts(struct msc_pruner *p) {
    bool has_any = false;
    MSC_TRY(msc_sites_find(&p->sites, p->g, p->options->scheme));
    MSC_TRY(msc_channels_find(&p->channels, p->g, &p->sites));
    MSC_TRY(list_groups(p));
    MSC_TRY(list_consumers(p));
    MSC_TRY(list_weights(p));
    MSC_TRY(msc_pruner__check_rules(p));
    for (int32_t i = 0; i < p->n_parts; i++) {
        has_any = has_any || p->groups[i].is_included;
    }
    return has_any ? MSC_OK : nothing_can_go(p);
}
