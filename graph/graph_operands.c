// Assigns a joint's inputs and weights to the roles of its operator.
#include "graph/graph_internal.h"
#include "graph/op_attrs.h"

#include <stdio.h>
#include <string.h>

const struct msc_attr *msc_graph__find_attr(const struct msc_attr attrs[], int32_t n,
                                            const char *key, size_t length) {
    for (int32_t i = 0; i < n; i++) {
        if (strncmp(attrs[i].key, key, length) == 0 && attrs[i].key[length] == '\0') {
            return &attrs[i];
        }
    }
    return NULL;
}

bool msc_graph__is_given_as_attr(const struct msc_attr attrs[], int32_t n,
                                 const struct msc_op_role *role) {
    const struct msc_attr *attr = msc_graph__find_attr(attrs, n, role->name, (size_t)role->length);
    return role->is_attribute && attr != NULL && (!role->is_optional || attr->value[0] != '\0');
}

// State while operands are assigned to the roles.
struct deal {
    struct msc_graph *g;
    const struct msc_joint_spec *spec;
    struct msc_graph_joint *joint;
    int32_t next_input;
    int32_t n_weights;
};

static enum msc_status check_operand(const struct deal *d, int32_t tensor, bool is_weight,
                                     const char *what) {
    const struct msc_graph *g = d->g;
    const char *name = d->joint->joint.name;
    if (tensor < 0 || tensor >= g->n_tensors) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s': %s is not a tensor of graph '%s'", name, what,
                        g->name);
    }
    const struct msc_graph_tensor *t = g->tensors[tensor];
    if ((t->tensor.producer == MSC_NO_ID) != is_weight) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s': %s is '%s', %s", name, what, t->tensor.name,
                        is_weight ? "a joint's output, expected a weight"
                                  : "a weight, expected a joint's output");
    }
    if (t->is_dead) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s': %s '%s' belongs to a removed joint", name, what,
                        t->tensor.name);
    }
    return MSC_OK;
}

static const struct msc_weight_spec *find_weight(const struct msc_joint_spec *spec,
                                                 const struct msc_op_role *role) {
    for (int32_t i = 0; i < spec->n_weights; i++) {
        const char *name = spec->weights[i].role;
        if (strncmp(name, role->name, (size_t)role->length) == 0 && name[role->length] == '\0') {
            return &spec->weights[i];
        }
    }
    return NULL;
}

// Kernels and targets find the channels of a weight by its layout. A weight that has none, as in a
// text written by hand, gets that of its role.
static void name_axes(struct deal *d, const struct msc_op_role *role, int32_t weight) {
    static const char name[] = "weight";
    struct msc_tensor *t = &d->g->tensors[weight]->tensor;
    if (t->layout[0] == '\0' && (size_t)role->length == strlen(name) &&
        strncmp(role->name, name, strlen(name)) == 0) {
        const char *layout = msc_graph__role_layout(d->spec->op, d->joint->joint.attrs,
                                                    d->joint->joint.n_attrs, name, strlen(name));
        t->layout = strlen(layout) == (size_t)t->n_dims ? layout : t->layout;
    }
}

static enum msc_status deal_weight(struct deal *d, int position, const struct msc_op_role *role,
                                   const struct msc_weight_spec *weight) {
    MSC_TRY(check_operand(d, weight->tensor, true, weight->role));
    d->joint->operands[position] = weight->tensor;
    name_axes(d, role, weight->tensor);
    char *copy = msc_arena_strndup(&d->g->arena, role->name, (size_t)role->length);
    MSC_TRY(MSC_ALLOCATED(copy));
    d->joint->weights[d->n_weights++].role = copy;
    return MSC_OK;
}

static enum msc_status deal_operand(struct deal *d, int position, const struct msc_op_role *role) {
    bool takes_weight = !role->is_attribute && strncmp(role->name, "input", 5) != 0;
    const struct msc_weight_spec *weight = takes_weight ? find_weight(d->spec, role) : NULL;
    if (weight != NULL) {
        return deal_weight(d, position, role, weight);
    }
    d->joint->operands[position] = MSC_NO_ID;
    bool is_given = msc_graph__is_given_as_attr(d->spec->attrs, d->spec->n_attrs, role);
    if (!is_given && d->next_input < d->spec->n_inputs) {
        int32_t tensor = d->spec->inputs[d->next_input++];
        if (tensor != MSC_NO_ID) {
            char what[32];
            snprintf(what, sizeof(what), "input %d", (int)(d->next_input - 1));
            MSC_TRY(check_operand(d, tensor, false, what));
            d->joint->operands[position] = tensor;
        }
    }
    if (d->joint->operands[position] == MSC_NO_ID && !role->is_optional && !is_given) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s' (%s) lacks its required operand '%.*s'",
                        d->joint->joint.name, msc_op_info(d->spec->op)->name, role->length,
                        role->name);
    }
    return MSC_OK;
}

int msc_graph__count_operands(const struct msc_joint_spec *spec) {
    struct msc_op_role role;
    int n = 0;
    while (msc_op_role(spec->op, n, &role)) {
        if (role.is_repeated && n >= spec->n_inputs && n > 0) {
            break;
        }
        n++;
    }
    return n;
}

// Drops attributes whose parameter is given as an input.
static void drop_attrs_given_as_inputs(struct msc_graph_joint *j) {
    struct msc_attr *attrs = (struct msc_attr *)j->joint.attrs;
    for (int32_t i = 0; i < j->joint.n_operands; i++) {
        struct msc_op_role role;
        if (j->operands[i] == MSC_NO_ID || !msc_op_role(j->joint.op, i, &role) ||
            !role.is_attribute) {
            continue;
        }
        int32_t kept = 0;
        for (int32_t k = 0; k < j->joint.n_attrs; k++) {
            bool is_role = strncmp(attrs[k].key, role.name, (size_t)role.length) == 0 &&
                           attrs[k].key[role.length] == '\0';
            if (!is_role) {
                attrs[kept++] = attrs[k];
            }
        }
        j->joint.n_attrs = kept;
    }
}

static enum msc_status deal_all(struct deal *d) {
    for (int32_t i = 0; i < d->joint->joint.n_operands; i++) {
        struct msc_op_role role;
        msc_op_role(d->spec->op, i, &role);
        MSC_TRY(deal_operand(d, i, &role));
    }
    const char *name = d->joint->joint.name;
    const char *optype = msc_op_info(d->spec->op)->name;
    if (d->next_input != d->spec->n_inputs) {
        return MSC_FAIL(MSC_E_INVALID, "joint '%s' (%s) expects %d inputs, found %d", name, optype,
                        (int)d->next_input, (int)d->spec->n_inputs);
    }
    if (d->n_weights != d->spec->n_weights) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint '%s' (%s) has %d weights, but only %d of them fit a role", name,
                        optype, (int)d->spec->n_weights, (int)d->n_weights);
    }
    return MSC_OK;
}

// Checks that each required attribute is given, as an attribute or as an input.
static enum msc_status check_required_attrs(const struct msc_graph_joint *j) {
    int n_rows;
    const struct msc_op_attr *rows = msc_op_attrs(j->joint.op, &n_rows);
    for (int i = 0; i < n_rows; i++) {
        bool is_there = msc_joint_attr(&j->joint, rows[i].key) != NULL ||
                        msc_joint_operand(&j->joint, rows[i].key) >= 0;
        if (rows[i].value == NULL && !is_there) {
            return MSC_FAIL(MSC_E_INVALID, "joint '%s' (%s) lacks its required attribute %s",
                            j->joint.name, msc_op_info(j->joint.op)->name, rows[i].key);
        }
    }
    return MSC_OK;
}

enum msc_status msc_graph__deal_operands(struct msc_graph_joint *joint, struct msc_graph *g,
                                         const struct msc_joint_spec *spec) {
    struct deal d = {.g = g, .spec = spec, .joint = joint};
    MSC_TRY(deal_all(&d));
    drop_attrs_given_as_inputs(joint);
    return check_required_attrs(joint);
}

void msc_graph_visit_inputs(const struct msc_graph *g, const struct msc_joint *j,
                            void (*visit)(void *payload, int32_t tensor), void *payload) {
    int n_absent = 0;
    for (int32_t i = 0; i < j->n_operands; i++) {
        int32_t tensor = j->operands[i];
        struct msc_op_role role;
        msc_op_role(j->op, i, &role);
        if (tensor == MSC_NO_ID) {
            n_absent += !msc_graph__is_given_as_attr(j->attrs, j->n_attrs, &role);
        } else if (g->tensors[tensor]->tensor.producer != MSC_NO_ID) {
            for (; n_absent > 0; n_absent--) {
                visit(payload, MSC_NO_ID);
            }
            visit(payload, tensor);
        }
    }
}

const char *msc_graph__role_layout(enum msc_op op, const struct msc_attr attrs[], int32_t n,
                                   const char *role, size_t length) {
    static const char key[] = "kernel_layout";
    if (length == 6 && strncmp(role, "weight", 6) == 0) {
        const struct msc_attr *attr = msc_graph__find_attr(attrs, n, key, strlen(key));
        const struct msc_op_attr *row = msc_op_attr_find(op, key);
        bool is_linear = op == MSC_OP_LINEAR || op == MSC_OP_LINEAR_BIAS;
        return attr != NULL && attr->value[0] != '\0' ? attr->value
               : row != NULL                          ? row->value
               : is_linear                            ? "OI"
                                                      : "";
    }
    return strncmp(role, "indices", 7) == 0 ? "" : "O";
}
