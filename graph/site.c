#include "graph/site.h"

#include "base/alloc.h"
#include "graph/requantised.h"

#include <string.h>

struct finder {
    const struct msc_graph *g;
    const struct msc_target *target;
    // [n_tensors] classes of tensors that share a scale (graph/requantised.h); NULL without a
    // target
    int32_t *class_of;
};

static bool is_recurrent(enum msc_op op) {
    return op == MSC_OP_RNN || op == MSC_OP_GRU || op == MSC_OP_LSTM;
}

// The axis along which `take` selects rows of a table; -1 if it is out of range.
static int table_axis(const struct msc_joint *j, const struct msc_tensor *table) {
    int64_t axis = 0;
    (void)msc_joint_attr_i64(j, "axis", &axis);
    axis += axis < 0 ? table->n_dims : 0;
    return axis >= 0 && axis < table->n_dims ? (int)axis : -1;
}

// True for a matrix product of two constants. It is itself constant, so quantising its operands
// gains nothing.
static bool is_constant_product(const struct msc_graph *g, const struct msc_joint *j) {
    return (j->op == MSC_OP_MATMUL || j->op == MSC_OP_GEMM) &&
           msc_graph_weight_of(g, j->operands[0]) != MSC_NO_ID &&
           msc_graph_weight_of(g, j->operands[1]) != MSC_NO_ID;
}

// The channel axis of a weight, or -1. Recurrent weights are [directions, gates * hidden, in]. A
// table's rows are its channels. If a transposed convolution has groups, axis O of its weight holds
// only the channels of one group. Scales would have to vary along axis I as well, so the weight has
// a single scale.
static int32_t site_channel_axis(const struct msc_joint *j, const struct msc_tensor *weight) {
    int64_t groups = 1;
    if (is_recurrent(j->op)) {
        return 1;
    }
    if (j->op == MSC_OP_TAKE) {
        return table_axis(j, weight);
    }
    if (j->op == MSC_OP_CONV2D_TRANSPOSE && msc_joint_attr_i64(j, "groups", &groups) &&
        groups != 1) {
        return -1;
    }
    return msc_tensor_axis(weight, 'O');
}

// The channel axis of an activation, or -1. Only the input of a depthwise convolution has one, and
// only without a target, because targets requantise with a single scale.
static int32_t activation_channel_axis(const struct finder *f, const struct msc_joint *j,
                                       int32_t operand) {
    const struct msc_graph *g = f->g;
    const struct msc_tensor *x = msc_graph_tensor(g, j->operands[operand]);
    int64_t groups = 1;
    bool is_depthwise = f->class_of == NULL && msc_op_is_conv(j->op) && operand == 0 &&
                        x->n_dims > 2 && msc_graph_weight_of(g, j->operands[1]) != MSC_NO_ID &&
                        msc_joint_attr_i64(j, "groups", &groups) && groups > 1 &&
                        x->dims[1] == groups;
    return is_depthwise ? 1 : -1;
}

// Sets the slot's group axes: the axes of the weight that the joint sums over. These are all axes
// after axis O if O is axis 0, else only axis 0. Operands of matrix products have no axis O.
static void find_group(struct msc_slot *slot, const struct msc_joint *j,
                       const struct msc_tensor *weight) {
    int out = msc_tensor_axis(weight, 'O');
    int last = weight->n_dims - 1;
    slot->group_axes = 1;
    slot->group_axis = 0;
    if (is_recurrent(j->op)) {
        slot->group_axis = 2;
    } else if (j->op == MSC_OP_TAKE) {
        slot->group_axis = last;
    } else if (out == 0 && last > 0) {
        slot->group_axis = 1;
        slot->group_axes = last;
    } else if (out < 0 && last > 0) {
        bool is_transposed = false;
        (void)msc_joint_attr_bool(j, slot->operand == 0 ? "trans_a" : "trans_b", &is_transposed);
        slot->group_axis = (slot->operand == 0) != is_transposed ? last : last - 1;
    }
}

// True if the joint only passes an input of the graph to an output. Such an output is not a slot.
static bool is_repeated_input(const struct msc_graph *g, const struct msc_joint *j) {
    if (j->op != MSC_OP_IDENTITY || !msc_graph_is_output(g, j->outputs[0])) {
        return false;
    }
    int32_t producer = msc_graph_tensor(g, j->operands[0])->producer;
    return producer != MSC_NO_ID && msc_graph_joint(g, producer)->op == MSC_OP_INPUT;
}

// True if the operand is a slot. If there is a target, it decides for activations. The operator
// table decides in all other cases.
static bool is_slot(const struct finder *f, const struct msc_joint *j,
                    const struct msc_op_role *role, int32_t tensor, bool is_weight) {
    if (f->class_of != NULL && !is_weight) {
        return f->class_of[tensor] != MSC_NO_ID && !msc_op_has_trait(j->op, MSC_TRAIT_SHAPE) &&
               !is_repeated_input(f->g, j);
    }
    bool is_marked = role->is_slot || (is_weight && role->is_weight_slot);
    return is_marked && !is_constant_product(f->g, j) && !msc_graph__has_stored_factor(f->g, j);
}

// True if the slot is the activation of a product with a constant matrix that the target can
// quantise dynamically.
static bool takes_dynamic(const struct finder *f, const struct msc_joint *j, int32_t operand) {
    int32_t weight = operand == 0 && msc_target_takes_dynamic(f->target, j->op)
                         ? msc_graph_weight_of(f->g, j->operands[1])
                         : MSC_NO_ID;
    return weight != MSC_NO_ID && msc_graph_tensor(f->g, weight)->n_dims == 2;
}

static bool make_slot(struct msc_slot *slot, const struct finder *f, const struct msc_joint *j,
                      int32_t operand) {
    const struct msc_graph *g = f->g;
    struct msc_op_role role;
    if (!msc_op_role(j->op, operand, &role) || j->operands[operand] == MSC_NO_ID) {
        return false;
    }
    int32_t weight = msc_graph_weight_of(g, j->operands[operand]);
    int32_t tensor = weight == MSC_NO_ID ? j->operands[operand] : weight;
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    if (!msc_dtype_is_float(t->dtype) || !is_slot(f, j, &role, tensor, weight != MSC_NO_ID)) {
        return false;
    }
    *slot = (struct msc_slot){
        .joint = j->id,
        .operand = operand,
        .tensor = tensor,
        .kind = weight == MSC_NO_ID ? MSC_SITE_ACTIVATION : MSC_SITE_WEIGHT,
        .channel_axis =
            weight == MSC_NO_ID ? activation_channel_axis(f, j, operand) : site_channel_axis(j, t),
        .group_axis = -1,
        .takes_dynamic = weight == MSC_NO_ID && takes_dynamic(f, j, operand),
    };
    if (weight != MSC_NO_ID) {
        find_group(slot, j, t);
    }
    return true;
}

static bool make_bias_slot(struct msc_slot *slot, const struct finder *f, const struct msc_joint *j,
                           int32_t operand) {
    const struct msc_graph *g = f->g;
    struct msc_op_role role;
    if (!msc_op_role(j->op, operand, &role) || !role.is_bias_slot ||
        j->operands[operand] == MSC_NO_ID) {
        return false;
    }
    int32_t bias = msc_graph_weight_of(g, j->operands[operand]);
    const struct msc_tensor *t = bias == MSC_NO_ID ? NULL : msc_graph_tensor(g, bias);
    if (t == NULL || !msc_dtype_is_float(t->dtype)) {
        return false;
    }
    *slot = (struct msc_slot){.joint = j->id,
                              .operand = operand,
                              .tensor = bias,
                              .kind = MSC_SITE_BIAS,
                              .channel_axis = t->n_dims - 1,
                              .group_axis = -1};
    return true;
}

typedef bool (*make_slot_fn)(struct msc_slot *slot, const struct finder *f,
                             const struct msc_joint *j, int32_t operand);

// Counts the slots that `make` produces, and lists them if `slots` is not NULL.
static int32_t list_slots(struct msc_slot *slots, const struct finder *f, make_slot_fn make) {
    int32_t n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(f->g); i++) {
        const struct msc_joint *j = msc_graph_joint(f->g, i);
        for (int32_t k = 0; k < j->n_operands; k++) {
            struct msc_slot slot;
            if (make(&slot, f, j, k)) {
                if (slots != NULL) {
                    slots[n] = slot;
                }
                n++;
            }
        }
    }
    return n;
}

// Like list_slots, but for outputs of the graph.
static int32_t list_outputs(struct msc_slot *slots, const struct finder *f) {
    int32_t n = 0;
    for (int32_t i = 0; f->class_of != NULL && i < msc_graph_n_outputs(f->g); i++) {
        int32_t tensor = msc_graph_output(f->g, i);
        const struct msc_joint *j = msc_graph_joint(f->g, msc_graph_tensor(f->g, tensor)->producer);
        if (f->class_of[tensor] == MSC_NO_ID || is_repeated_input(f->g, j)) {
            continue;
        }
        if (slots != NULL) {
            slots[n] = (struct msc_slot){.joint = MSC_NO_ID,
                                         .operand = i,
                                         .tensor = tensor,
                                         .kind = MSC_SITE_ACTIVATION,
                                         .channel_axis = -1,
                                         .group_axis = -1};
        }
        n++;
    }
    return n;
}

// True if both slots belong to one site. If a joint reads a tensor more than once, all these uses
// belong to one site, because sites are named after tensor and joint.
static bool is_same_site(const struct finder *f, const struct msc_slot *a, const struct msc_slot *b,
                         bool by_use) {
    if (f->class_of != NULL && a->kind == MSC_SITE_ACTIVATION && b->kind == a->kind) {
        return f->class_of[a->tensor] == f->class_of[b->tensor];
    }
    bool is_shared = a->kind == MSC_SITE_WEIGHT || !by_use || a->joint == b->joint;
    return a->tensor == b->tensor && is_shared;
}

static enum msc_status name_site(struct msc_site *site, const struct msc_slot *slot,
                                 const struct msc_graph *g, bool by_use, struct msc_arena *arena) {
    const char *tensor = msc_graph_tensor(g, slot->tensor)->name;
    if (by_use && slot->kind == MSC_SITE_ACTIVATION) {
        const char *joint = msc_graph_joint(g, slot->joint)->name;
        site->name = msc_arena_printf(arena, "%s-c-%s", tensor, joint);
    } else {
        site->name = msc_arena_strdup(arena, tensor);
    }
    return MSC_ALLOCATED(site->name);
}

// Decides whether a site can be quantised dynamically (struct msc_site).
static void find_dynamic(struct msc_site *site, const struct msc_sites *sites,
                         const struct msc_graph *g) {
    bool has_other = false;
    for (int32_t k = 0; k < site->n_slots; k++) {
        const struct msc_slot *slot = &sites->slots[site->slots[k]];
        struct msc_op_role role = {0};
        bool is_product = slot->joint != MSC_NO_ID &&
                          msc_op_role(msc_graph_joint(g, slot->joint)->op, slot->operand, &role) &&
                          role.is_slot;
        site->takes_dynamic = site->takes_dynamic || slot->takes_dynamic;
        has_other = has_other || (is_product && !slot->takes_dynamic);
    }
    site->takes_dynamic = site->takes_dynamic && !has_other;
}

static enum msc_status group_slots(struct msc_sites *sites, const struct finder *f,
                                   struct msc_arena *arena) {
    bool by_use = sites->scheme.by_use;
    size_t n = (size_t)sites->n_site_slots;
    sites->sites = msc_arena_array(arena, n, sizeof(sites->sites[0]));
    bool *is_taken = msc_arena_array(arena, n, sizeof(is_taken[0]));
    int32_t *indices = msc_arena_array(arena, n, sizeof(indices[0]));
    MSC_TRY(MSC_ALLOCATED(sites->sites && is_taken && indices));
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        if (is_taken[i]) {
            continue;
        }
        const struct msc_slot *first = &sites->slots[i];
        struct msc_site *site = &sites->sites[sites->n_sites++];
        site->kind = first->kind;
        site->tensor = first->tensor;
        site->channel_axis = first->channel_axis;
        site->group_axis = first->group_axis;
        site->group_axes = first->group_axes;
        site->slots = indices;
        MSC_TRY(name_site(site, first, f->g, by_use, arena));
        for (int32_t k = i; k < sites->n_site_slots; k++) {
            const struct msc_slot *slot = &sites->slots[k];
            if (is_taken[k] || !is_same_site(f, first, slot, by_use)) {
                continue;
            }
            is_taken[k] = true;
            *indices++ = k;
            site->n_slots++;
            // If the slots have different channel axes, the site has no channel axis.
            site->channel_axis = slot->channel_axis == site->channel_axis ? site->channel_axis : -1;
        }
        find_dynamic(site, sites, f->g);
    }
    return MSC_OK;
}

static enum msc_status list_all(struct msc_sites *out, const struct finder *f) {
    struct msc_arena *arena = out->storage;
    int32_t n_operands = list_slots(NULL, f, make_slot);
    out->n_site_slots = n_operands + list_outputs(NULL, f);
    out->n_slots = out->n_site_slots + list_slots(NULL, f, make_bias_slot);
    out->slots = msc_arena_array(arena, (size_t)out->n_slots, sizeof(out->slots[0]));
    MSC_TRY(MSC_ALLOCATED(out->slots));
    list_slots(out->slots, f, make_slot);
    list_outputs(out->slots + n_operands, f);
    list_slots(out->slots + out->n_site_slots, f, make_bias_slot);
    return group_slots(out, f, arena);
}

static enum msc_status find_sites(struct msc_sites *out, const struct msc_graph *g) {
    struct msc_arena scratch = {0};
    struct finder f = {.g = g, .target = out->scheme.target};
    enum msc_status status = MSC_OK;
    if (f.target != NULL) {
        size_t n = (size_t)msc_graph_n_tensors(g);
        f.class_of = msc_arena_array(&scratch, n + 1, sizeof(f.class_of[0]));
        status = f.class_of == NULL
                     ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                     : msc_graph__find_requantised(f.class_of, g, f.target, &scratch);
    }
    status = status == MSC_OK ? list_all(out, &f) : status;
    msc_arena_finish(&scratch);
    return status;
}

enum msc_status msc_sites_find(struct msc_sites *out, const struct msc_graph *g,
                               const struct msc_site_scheme *scheme) {
    *out = (struct msc_sites){.storage = msc_alloc_zero(1, sizeof(struct msc_arena))};
    MSC_TRY(MSC_ALLOCATED(out->storage));
    if (scheme != NULL) {
        out->scheme = *scheme;
        bool has_roles = scheme->target != NULL && scheme->target->requantises;
        out->scheme.target = has_roles ? scheme->target : NULL;
    }
    enum msc_status status = find_sites(out, g);
    if (status != MSC_OK) {
        msc_sites_finish(out);
    }
    return status;
}

void msc_sites_finish(struct msc_sites *sites) {
    if (sites->storage != NULL) {
        msc_arena_finish(sites->storage);
        msc_free(sites->storage);
    }
    *sites = (struct msc_sites){0};
}

int32_t msc_sites_find_name(const struct msc_sites *sites, const char *name) {
    for (int32_t i = 0; i < sites->n_sites; i++) {
        if (strcmp(sites->sites[i].name, name) == 0) {
            return i;
        }
    }
    return MSC_NO_ID;
}

// Finds a slot by binary search. Searches slots from index `low` to index `end` - 1.
static int32_t find_between(const struct msc_sites *sites, int32_t joint, int32_t operand,
                            int32_t low, int32_t end) {
    int32_t high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const struct msc_slot *slot = &sites->slots[middle];
        // Ids are compared as unsigned numbers, so that slots of outputs (MSC_NO_ID) come last.
        uint32_t here = (uint32_t)slot->joint, wanted = (uint32_t)joint;
        bool is_before = here < wanted || (here == wanted && slot->operand < operand);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    bool is_found =
        low < end && sites->slots[low].joint == joint && sites->slots[low].operand == operand;
    return is_found ? low : MSC_NO_ID;
}

int32_t msc_sites_find_slot(const struct msc_sites *sites, int32_t joint, int32_t operand) {
    int32_t slot = find_between(sites, joint, operand, 0, sites->n_site_slots);
    return slot != MSC_NO_ID
               ? slot
               : find_between(sites, joint, operand, sites->n_site_slots, sites->n_slots);
}
