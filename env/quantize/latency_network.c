// Divides the network for latencies: finds the groups of joints, the sites that a group needs to
// run in integers, and the groups that write or read each site.
#include "env/quantize/latency.h"

#include "base/alloc.h"

struct finder {
    struct msc_latency_network *net;
    const struct msc_graph *g;
    const struct msc_sites *sites;
    const struct msc_target *target; // may be NULL
    struct msc_arena *arena;
};

const struct msc_quant *msc_latency_fixed_quant(const struct msc_site *site,
                                                const struct msc_edit *const fixed[]) {
    const struct msc_edit *edit = NULL; // a dynamic quantisation does not apply to all slots
    for (int32_t k = 0; k < site->n_slots && !edit; k++) {
        edit = fixed[site->slots[k]];
    }
    return msc_edit_quant(edit);
}

// ---- Sets of sites ----------------------------------------------------------------------------

// Adds a site to a condition. MSC_NO_ID makes the condition never true, because an operand without
// a site is never bytes.
static enum msc_status set_add(struct msc_site_set *set, int32_t site, struct msc_arena *arena) {
    int32_t at = set->n;
    set->is_never = set->is_never || site == MSC_NO_ID;
    while (at > 0 && set->sites[at - 1] > site) {
        at--;
    }
    if (site == MSC_NO_ID || (at > 0 && set->sites[at - 1] == site)) {
        return MSC_OK;
    }
    int32_t *sites = msc_arena_array(arena, (size_t)set->n + 1, sizeof(sites[0]));
    MSC_TRY(MSC_ALLOCATED(sites));
    for (int32_t i = 0; i <= set->n; i++) {
        sites[i] = i < at ? set->sites[i] : i == at ? site : set->sites[i - 1];
    }
    set->sites = sites;
    set->n++;
    return MSC_OK;
}

static enum msc_status set_add_all(struct msc_site_set *set, const struct msc_site_set *other,
                                   struct msc_arena *arena) {
    set->is_never = set->is_never || other->is_never;
    for (int32_t i = 0; i < other->n; i++) {
        MSC_TRY(set_add(set, other->sites[i], arena));
    }
    return MSC_OK;
}

// ---- Groups -----------------------------------------------------------------------------------

static enum msc_target_role role_of(const struct finder *f, const struct msc_joint *j) {
    return f->target ? msc_target_role(f->target, f->g, j) : MSC_TARGET_READS;
}

// The site that a joint reads an operand through, or MSC_NO_ID.
static int32_t operand_site(const struct finder *f, const struct msc_joint *j, int32_t operand) {
    int32_t slot = msc_sites_find_slot(f->sites, j->id, operand);
    return slot == MSC_NO_ID ? MSC_NO_ID : f->net->site_of_slot[slot];
}

static bool has_sites(const struct finder *f, const struct msc_joint *j) {
    for (int32_t k = 0; k < j->n_operands; k++) {
        if (operand_site(f, j, k) != MSC_NO_ID) {
            return true;
        }
    }
    return false;
}

// Whether the joint has no condition of its own for integers, so that it belongs to the group whose
// output it reads.
static bool follows(const struct finder *f, const struct msc_joint *j) {
    enum msc_target_role role = role_of(f, j);
    bool is_limit = role == MSC_TARGET_FLOAT || role == MSC_TARGET_SATURATES;
    return is_limit || !has_sites(f, j);
}

// The group of a joint. It is the group that writes the joint's first float operand, if this
// operand has no other consumer and no site. Otherwise the joint begins a group of its own.
static int32_t find_group(const struct finder *f, const struct msc_joint *j) {
    const int32_t *readers;
    if (!follows(f, j)) {
        return j->id;
    }
    for (int32_t k = 0; k < j->n_operands; k++) {
        int32_t t = j->operands[k];
        if (t == MSC_NO_ID || msc_graph_weight_of(f->g, t) != MSC_NO_ID ||
            !msc_dtype_is_float(msc_graph_tensor(f->g, t)->dtype)) {
            continue;
        }
        int32_t maker = msc_graph_producer(f->g, t);
        bool is_inside =
            f->net->site_of_tensor[t] == MSC_NO_ID && msc_graph_consumers(f->g, t, &readers) == 1 &&
            !msc_graph_is_output(f->g, t) && msc_graph_joint(f->g, maker)->op != MSC_OP_INPUT;
        return is_inside ? f->net->group_of[maker] : j->id;
    }
    return j->id;
}

// Adds the sites of the joint's factors.
static enum msc_status need_factors(struct finder *f, const struct msc_joint *j,
                                    struct msc_site_set *set) {
    for (int32_t k = 0; k < j->n_operands; k++) {
        struct msc_op_role role;
        bool is_factor = j->operands[k] != MSC_NO_ID && msc_op_role(j->op, k, &role) &&
                         !role.is_attribute && !role.is_bias_slot;
        int32_t site = operand_site(f, j, k);
        // Without a target, a factor without a site adds no condition.
        if (is_factor && (f->target || site != MSC_NO_ID)) {
            MSC_TRY(set_add(set, site, f->arena));
        }
    }
    return MSC_OK;
}

static enum msc_status need_joint(struct finder *f, const struct msc_joint *j) {
    struct msc_site_set *set = &f->net->needed[f->net->group_of[j->id]];
    enum msc_target_role role = role_of(f, j);
    bool is_first = f->net->group_of[j->id] == j->id;
    if (is_first && role == MSC_TARGET_MOVES) {
        return set_add(set, operand_site(f, j, 0), f->arena);
    }
    if (is_first && msc_target_is_integer(role) && has_sites(f, j)) {
        return need_factors(f, j, set);
    }
    set->is_never = set->is_never || is_first;
    return MSC_OK;
}

// If the first joint of a group computes in integer arithmetic, the group also needs the output
// sites of all its joints, such as a convolution and the clip after it.
static enum msc_status need_outputs(struct finder *f, const struct msc_joint *j) {
    int32_t group = f->net->group_of[j->id];
    if (role_of(f, msc_graph_joint(f->g, group)) != MSC_TARGET_INTEGER) {
        return MSC_OK;
    }
    for (int32_t o = 0; o < j->n_outputs; o++) {
        int32_t site = f->net->site_of_tensor[j->outputs[o]];
        if (site != MSC_NO_ID) {
            MSC_TRY(set_add(&f->net->needed[group], site, f->arena));
        }
    }
    return MSC_OK;
}

// Whether the first joint of its group computes with a dynamic activation if its sites say so.
static bool can_be_dynamic(const struct finder *f, const struct msc_joint *j) {
    int32_t slot = msc_sites_find_slot(f->sites, j->id, 0);
    int32_t site = slot == MSC_NO_ID ? MSC_NO_ID : f->net->site_of_slot[slot];
    return f->net->group_of[j->id] == j->id && site != MSC_NO_ID &&
           f->sites->slots[slot].takes_dynamic && f->sites->sites[site].takes_dynamic;
}

// ---- Writers and readers of sites -------------------------------------------------------------

// Whether the joint only moves elements, and reads them from the site.
static bool moves_within(const struct finder *f, int32_t joint, int32_t site) {
    const struct msc_joint *j = msc_graph_joint(f->g, joint);
    return role_of(f, j) == MSC_TARGET_MOVES && operand_site(f, j, 0) == site;
}

static enum msc_status add_maker(struct finder *f, int32_t site, int32_t tensor) {
    struct msc_site_set *made = &f->net->made[site];
    int32_t maker = msc_graph_producer(f->g, tensor);
    if (moves_within(f, maker, site)) {
        return MSC_OK;
    }
    int32_t group = f->net->group_of[maker];
    if (f->net->maker[site] == MSC_NO_ID) {
        f->net->maker[site] = group;
    }
    // Without a target, no group requantises its outputs itself.
    made->is_never = made->is_never || !f->target;
    return set_add_all(made, &f->net->needed[group], f->arena);
}

static enum msc_status add_reader(struct finder *f, int32_t site, int32_t joint) {
    if (joint == MSC_NO_ID) { // an output of the model
        f->net->read[site].is_never = true;
        return MSC_OK;
    }
    if (moves_within(f, joint, site)) {
        return MSC_OK;
    }
    int32_t group = f->net->group_of[joint];
    if (f->net->reader[site] == MSC_NO_ID) {
        f->net->reader[site] = group;
    }
    return set_add_all(&f->net->read[site], &f->net->needed[group], f->arena);
}

static enum msc_status find_neighbours(struct finder *f, int32_t site) {
    const struct msc_site *s = &f->sites->sites[site];
    f->net->maker[site] = MSC_NO_ID;
    f->net->reader[site] = MSC_NO_ID;
    for (int32_t i = 0; s->kind == MSC_SITE_ACTIVATION && i < s->n_slots; i++) {
        const struct msc_slot *slot = &f->sites->slots[s->slots[i]];
        if (msc_graph_weight_of(f->g, slot->tensor) == MSC_NO_ID) {
            MSC_TRY(add_maker(f, site, slot->tensor));
            MSC_TRY(add_reader(f, site, slot->joint));
        }
    }
    return MSC_OK;
}

// ---- All of it --------------------------------------------------------------------------------

static enum msc_status allocate(struct finder *f) {
    struct msc_latency_network *net = f->net;
    size_t n_joints = (size_t)msc_graph_n_joints(f->g) + 1;
    size_t n_tensors = (size_t)msc_graph_n_tensors(f->g) + 1;
    size_t n_slots = (size_t)f->sites->n_slots + 1, n_sites = (size_t)f->sites->n_sites + 1;
    net->group_of = msc_arena_array(f->arena, n_joints, sizeof(net->group_of[0]));
    net->needed = msc_arena_array(f->arena, n_joints, sizeof(net->needed[0]));
    net->site_of_slot = msc_arena_array(f->arena, n_slots, sizeof(int32_t));
    net->site_of_tensor = msc_arena_array(f->arena, n_tensors, sizeof(int32_t));
    net->made = msc_arena_array(f->arena, n_sites, sizeof(net->made[0]));
    net->read = msc_arena_array(f->arena, n_sites, sizeof(net->read[0]));
    net->takes_dynamic = msc_arena_array(f->arena, n_joints, sizeof(bool));
    net->maker = msc_arena_array(f->arena, n_sites, sizeof(int32_t));
    net->reader = msc_arena_array(f->arena, n_sites, sizeof(int32_t));
    bool has_room = net->group_of && net->needed && net->site_of_slot && net->site_of_tensor &&
                    net->made && net->read && net->takes_dynamic && net->maker && net->reader;
    for (size_t i = 0; has_room && i < n_slots; i++) {
        net->site_of_slot[i] = MSC_NO_ID;
    }
    for (size_t i = 0; has_room && i < n_tensors; i++) {
        net->site_of_tensor[i] = MSC_NO_ID;
    }
    return MSC_ALLOCATED(has_room);
}

static void map_sites(struct finder *f) {
    for (int32_t i = 0; i < f->sites->n_sites; i++) {
        const struct msc_site *s = &f->sites->sites[i];
        for (int32_t k = 0; k < s->n_slots; k++) {
            int32_t slot = s->slots[k];
            f->net->site_of_slot[slot] = i;
            if (s->kind == MSC_SITE_ACTIVATION) {
                f->net->site_of_tensor[f->sites->slots[slot].tensor] = i;
            }
        }
    }
}

enum msc_status msc_latency_network_find(struct msc_latency_network *out, const struct msc_graph *g,
                                         const struct msc_quantizer *q, struct msc_arena *arena) {
    const struct msc_sites *sites = msc_quantizer_sites(q);
    *out = (struct msc_latency_network){.graph = g, .sites = sites};
    struct finder f = {.net = out,
                       .g = out->graph,
                       .sites = sites,
                       .target = sites->scheme.target,
                       .arena = arena};
    MSC_TRY(allocate(&f));
    map_sites(&f);
    for (int32_t i = 0; i < msc_graph_n_joints(f.g); i++) {
        out->group_of[i] = find_group(&f, msc_graph_joint(f.g, i));
        MSC_TRY(need_joint(&f, msc_graph_joint(f.g, i)));
    }
    for (int32_t i = 0; i < msc_graph_n_joints(f.g); i++) {
        MSC_TRY(need_outputs(&f, msc_graph_joint(f.g, i)));
        out->takes_dynamic[i] = can_be_dynamic(&f, msc_graph_joint(f.g, i));
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        MSC_TRY(find_neighbours(&f, i));
    }
    return MSC_OK;
}
