// Classes of indices that must be removed together, and the functions with which rules merge and
// freeze them.
#include "graph/channels/channels_internal.h"

#include <assert.h>

int32_t msc_channels__find_root(struct msc_channels_finder *f, int32_t node) {
    while (f->parents[node] != node) {
        f->parents[node] = f->parents[f->parents[node]];
        node = f->parents[node];
    }
    return node;
}

// Merges two classes. The smaller root remains, so that roots do not depend on the order of ties.
static void unite(struct msc_channels_finder *f, int32_t a, int32_t b) {
    a = msc_channels__find_root(f, a);
    b = msc_channels__find_root(f, b);
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    f->parents[high] = low;
    f->is_frozen[low] = f->is_frozen[low] || f->is_frozen[high];
}

static int32_t first_node(const struct msc_channels_finder *f, struct msc_axis a) {
    return f->first[a.tensor * MSC_MAX_DIMS + a.axis];
}

static int32_t node_of(const struct msc_channels_call *c, struct msc_axis a, int64_t i) {
    int32_t first = first_node(c->f, a);
    assert(first != MSC_NO_ID && i >= 0 && i < msc_channels__period(c, a));
    return first + (int32_t)i;
}

// ---- Calls from rules -------------------------------------------------------------------------

void msc_channels__tell(struct msc_channels_call *c, struct msc_axis a) {
    c->f->told[a.tensor * MSC_MAX_DIMS + a.axis] = c->j->id;
}

void msc_channels__tie(struct msc_channels_call *c, struct msc_axis a, int64_t i, struct msc_axis b,
                       int64_t k) {
    if (a.tensor == MSC_NO_ID || b.tensor == MSC_NO_ID) {
        return;
    }
    msc_channels__tell(c, a);
    msc_channels__tell(c, b);
    unite(c->f, node_of(c, a, i), node_of(c, b, k));
}

void msc_channels__freeze_index(struct msc_channels_call *c, struct msc_axis a, int64_t i) {
    msc_channels__tell(c, a);
    c->f->is_frozen[msc_channels__find_root(c->f, node_of(c, a, i))] = true;
}

void msc_channels__freeze(struct msc_channels_call *c, struct msc_axis a) {
    if (a.tensor == MSC_NO_ID) {
        return;
    }
    msc_channels__tell(c, a);
    for (int64_t i = 0; i < msc_channels__period(c, a); i++) {
        msc_channels__freeze_index(c, a, i);
    }
}

// Adds an operand only once, even if the rule is called twice.
void msc_channels__follow(struct msc_channels_call *c, struct msc_axis a, struct msc_axis of) {
    struct msc_channels_finder *f = c->f;
    msc_channels__tell(c, a);
    for (int32_t i = f->n_followers - 1; i >= 0 && f->followers[i].joint == c->j->id; i--) {
        if (f->followers[i].tensor == a.tensor) {
            return;
        }
    }
    f->followers[f->n_followers++] =
        (struct msc_channel_follower){c->j->id, a.tensor, a.axis, of.tensor, of.axis};
}

static bool is_shared(const struct msc_channels_call *c, struct msc_axis a) {
    return c->f->is_shared[a.tensor];
}

void msc_channels__tie_axes(struct msc_channels_call *c, struct msc_axis a, struct msc_axis b) {
    if (a.tensor == MSC_NO_ID || b.tensor == MSC_NO_ID) {
        return;
    }
    const struct msc_tensor *x = msc_graph_tensor(c->g, a.tensor);
    const struct msc_tensor *y = msc_graph_tensor(c->g, b.tensor);
    msc_channels__tell(c, a);
    msc_channels__tell(c, b);
    if (x->dims[a.axis] != y->dims[b.axis] || x->prims[a.axis] != y->prims[b.axis]) {
        msc_channels__freeze(c, a);
        msc_channels__freeze(c, b);
        return;
    }
    if (is_shared(c, a) || is_shared(c, b)) {
        msc_channels__follow(c, is_shared(c, a) ? a : b, is_shared(c, a) ? b : a);
        return;
    }
    for (int64_t i = 0; i < msc_channels__period(c, a); i++) {
        msc_channels__tie(c, a, i, b, i);
    }
}

bool msc_channels__is_frozen(const struct msc_channels_call *c, struct msc_axis a, int64_t i) {
    return c->f->is_frozen[msc_channels__find_root(c->f, node_of(c, a, i))];
}

bool msc_channels__has_free(const struct msc_channels_call *c, struct msc_axis a) {
    for (int64_t i = 0; i < msc_channels__period(c, a); i++) {
        if (!msc_channels__is_frozen(c, a, i)) {
            return true;
        }
    }
    return false;
}

void msc_channels__forget(struct msc_channels_call *c, struct msc_axis a) {
    for (int64_t i = 0; i < msc_channels__period(c, a); i++) {
        c->f->places[msc_channels__find_root(c->f, node_of(c, a, i))] = -1;
    }
}

bool msc_channels__is_one(struct msc_channels_call *c, struct msc_axis a, int64_t i,
                          int64_t place) {
    int64_t *known = &c->f->places[msc_channels__find_root(c->f, node_of(c, a, i))];
    *known = *known < 0 ? place : *known;
    return *known == place;
}

static void freeze_tensor(struct msc_channels_call *c, int32_t tensor, bool is_all) {
    const struct msc_tensor *t = msc_graph_tensor(c->g, tensor);
    for (int i = 0; i < t->n_dims; i++) {
        if (is_all || c->f->told[tensor * MSC_MAX_DIMS + i] != c->j->id) {
            msc_channels__freeze(c, (struct msc_axis){tensor, i});
        }
    }
}

static void freeze_operands(struct msc_channels_call *c, bool is_all) {
    for (int32_t i = 0; i < c->j->n_operands; i++) {
        if (c->j->operands[i] != MSC_NO_ID) {
            freeze_tensor(c, c->j->operands[i], is_all);
        }
    }
    for (int32_t i = 0; i < c->j->n_outputs; i++) {
        freeze_tensor(c, c->j->outputs[i], is_all);
    }
}

void msc_channels__freeze_all(struct msc_channels_call *c) {
    freeze_operands(c, true);
}

void msc_channels__freeze_rest(struct msc_channels_call *c) {
    freeze_operands(c, false);
}

// ---- Roles of weights, and slots for masks ----------------------------------------------------

void msc_channels__set_role(struct msc_channels_call *c, int32_t operand, int axis,
                            enum msc_channel_role role) {
    int32_t weight =
        msc_channels__has(c, operand) ? msc_graph_weight_of(c->g, c->j->operands[operand]) : -1;
    if (weight >= 0) {
        c->f->roles[weight * MSC_MAX_DIMS + axis] |= (uint8_t)role;
    }
}

// The slot to which masks of the operand apply; MSC_NO_ID if the operand cannot be masked.
// *is_weight is set to true if the slot holds a weight.
static int32_t find_slot(bool *is_weight, const struct msc_channels_call *c, int32_t operand) {
    int32_t slot = msc_sites_find_slot(c->f->sites, c->j->id, operand);
    bool is_float = slot != MSC_NO_ID && msc_channels__operand(c, operand)->dtype == MSC_DTYPE_F32;
    *is_weight = is_float && c->f->sites->slots[slot].kind == MSC_SITE_WEIGHT;
    return is_float ? slot : MSC_NO_ID;
}

void msc_channels__read(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other) {
    bool is_weight, is_other_weight;
    int32_t slot = find_slot(&is_weight, c, a), other_slot = find_slot(&is_other_weight, c, b);
    bool takes_other = slot == MSC_NO_ID || (is_other_weight && !is_weight);
    msc_channels__set_role(c, a, axis, MSC_CHANNEL_READS);
    msc_channels__set_role(c, b, other, MSC_CHANNEL_READS);
    bool is_known = msc_channels__length(c, msc_channels__in(c, a, axis)) >= 0;
    if (!is_known || (takes_other && other_slot == MSC_NO_ID)) { // no slot can be masked
        msc_channels__freeze(c, msc_channels__in(c, a, axis));
        msc_channels__freeze(c, msc_channels__in(c, b, other));
        return;
    }
    c->f->reads[c->f->n_reads++] =
        (struct msc_channel_read){takes_other ? other_slot : slot, takes_other ? other : axis};
}

void msc_channels__sum(struct msc_channels_call *c, int32_t a, int axis, int32_t b, int other) {
    msc_channels__tie_axes(c, msc_channels__in(c, a, axis), msc_channels__in(c, b, other));
    msc_channels__read(c, a, axis, b, other);
}

// ---- Choices ----------------------------------------------------------------------------------

int msc_channels__choose(struct msc_channels_call *c, const struct msc_axis choices[], int n) {
    struct msc_channels_finder *f = c->f;
    for (int k = f->n_refused[c->j->id]; k < n; k++) {
        if (choices[k].tensor != MSC_NO_ID && msc_channels__has_free(c, choices[k])) {
            f->chosen[c->j->id] = k;
            f->freed[c->j->id] = choices[k];
            return k;
        }
    }
    return MSC_NO_ID;
}
