// Makes a graph of the joints of a match alone: with numbers for symbols, to compute it, or as the
// body of the joint that replaces the match.
#include "graph/rules/rules_internal.h"

#include "graph/infer.h"
#include "graph/passes/match_internal.h"

#include <string.h>

enum { FIRST_SYMBOL = 4, SYMBOL_STEP = 2, UNKNOWN_LENGTH = 3 };

// The rule's name of a tensor or, if the rule has none, that of the graph.
static const char *name_of(const struct rule_match *m, int32_t tensor) {
    for (int i = 0; i < m->rule->n_tensors; i++) {
        if (m->tensors[i] == tensor) {
            return m->rule->tensors[i].name;
        }
    }
    return m->graph->tensors[tensor]->tensor.name;
}

static bool is_taken(const struct rule_lone *s, const char *name) {
    const struct rule_match *m = s->match;
    for (int i = 0; i < m->rule->match.n; i++) {
        if (strcmp(m->graph->joints[m->joints[i]]->joint.name, name) == 0) {
            return true;
        }
    }
    return msc_graph__live_joint(s->builder.graph, name) != MSC_NO_ID;
}

// The length of an axis of an input: a number, or in a body also a symbol.
static enum msc_status set_length(struct rule_lone *s, struct msc_dim *out, struct msc_dim dim) {
    const struct msc_graph *g = s->match->graph;
    *out = (struct msc_dim){dim.value, MSC_NO_ID};
    if (dim.value >= 0) {
        return MSC_OK;
    }
    if (s->is_body) {
        return msc_graph_add_symbol(&out->prim, s->builder.graph, g->prims[dim.prim]->name);
    }
    out->value = msc_dim_evaluate(g, dim, s->symbols);
    out->value = out->value < 0 ? UNKNOWN_LENGTH : out->value;
    return MSC_OK;
}

// Adds an input. '_' is appended to its name until no other joint has the name.
static enum msc_status add_input(struct msc_value **out, struct rule_lone *s, const char *name,
                                 int32_t tensor) {
    const struct msc_tensor *t = &s->match->graph->tensors[tensor]->tensor;
    int64_t dims[MSC_MAX_DIMS];
    int32_t prims[MSC_MAX_DIMS], input;
    while (name != NULL && is_taken(s, name)) {
        name = msc_arena_printf(&s->builder.arena, "%s_", name);
    }
    MSC_TRY(MSC_ALLOCATED(name));
    for (int i = 0; i < t->n_dims; i++) {
        struct msc_dim length;
        MSC_TRY(set_length(s, &length, (struct msc_dim){t->dims[i], t->prims[i]}));
        dims[i] = length.value;
        prims[i] = length.prim;
    }
    MSC_TRY(msc_graph_add_symbolic_input(&input, s->builder.graph, name, name, t->dtype, t->layout,
                                         t->n_dims, dims, prims));
    return msc_builder_activation(out, &s->builder, name, input);
}

static enum msc_status add_constant(struct msc_value **out, struct rule_lone *s, int32_t tensor,
                                    int32_t weight, const struct msc_array *data) {
    const struct msc_tensor *t = &s->match->graph->tensors[weight]->tensor;
    MSC_TRY(msc_builder_constant(out, &s->builder, t->name, data));
    (*out)->layout = t->layout;
    int32_t constant; // a joint's operand that is not a weight is the output of a `constant`
    return tensor == weight ? MSC_OK : msc_builder_tensor(&constant, &s->builder, *out);
}

static enum msc_status find_value(struct msc_value **out, struct rule_lone *s, int32_t tensor) {
    int32_t weight;
    for (size_t i = 0; i < s->n; i++) {
        if (s->values[i].tensor == tensor) {
            *out = s->values[i].value;
            return MSC_OK;
        }
    }
    const struct msc_array *data = msc_match_constant(&weight, s->match->graph, tensor);
    if (data != NULL) {
        MSC_TRY(add_constant(out, s, tensor, weight, data));
    } else if (s->is_body) {
        return MSC_FAIL(MSC_E_INVALID,
                        "the joint that holds the match does not list its operand "
                        "'%s'",
                        name_of(s->match, tensor));
    } else {
        MSC_TRY(add_input(out, s, name_of(s->match, tensor), tensor));
    }
    s->values[s->n++] = (struct rule_lone_value){tensor, *out};
    return MSC_OK;
}

static enum msc_status copy_joint(struct rule_lone *s, int joint) {
    const struct msc_joint *j = &s->match->graph->joints[s->match->joints[joint]]->joint;
    struct msc_builder_copy copy;
    MSC_TRY(msc_builder_copy_joint(&copy, &s->builder, j));
    for (int32_t i = 0; i < j->n_operands; i++) {
        MSC_TRY(j->operands[i] == MSC_NO_ID ? MSC_OK
                                            : find_value(&copy.operands[i], s, j->operands[i]));
    }
    MSC_TRY(msc_builder_add(copy.outputs, &s->builder, &copy.joint));
    for (int32_t i = 0; i < j->n_outputs; i++) {
        s->values[s->n++] = (struct rule_lone_value){j->outputs[i], copy.outputs[i]};
    }
    const struct msc_graph *g = s->builder.graph;
    s->joints[joint] = g->joints[g->tensors[copy.outputs[0]->tensor]->tensor.producer]->joint.name;
    return MSC_OK;
}

// The joint of the match with the lowest id above `id`, in topological order; -1 if there is none.
static int joint_after(const struct rule_match *m, int32_t id) {
    int next = -1;
    for (int i = 0; i < m->rule->match.n; i++) {
        if (m->joints[i] > id && (next < 0 || m->joints[i] < m->joints[next])) {
            next = i;
        }
    }
    return next;
}

static enum msc_status start(struct rule_lone *s) {
    const struct msc_graph *g = s->match->graph;
    size_t most = MSC_RULE_MOST_TENSORS; // operands of the joint that holds the match
    for (int i = 0; i < s->match->rule->match.n; i++) {
        const struct msc_joint *j = &g->joints[s->match->joints[i]]->joint;
        most += (size_t)j->n_operands + (size_t)j->n_outputs;
    }
    MSC_TRY(msc_graph_create(&s->builder.graph, s->is_body ? g->name : "match"));
    s->values = msc_arena_array(&s->builder.arena, most + 1, sizeof(s->values[0]));
    s->symbols = msc_arena_array(&s->builder.arena, (size_t)g->n_prims + 1, sizeof(int64_t));
    MSC_TRY(MSC_ALLOCATED(s->values && s->symbols));
    for (int32_t i = 0, n = 0; i < g->n_prims; i++) {
        bool is_symbol = g->prims[i]->n_parents == 0 && strcmp(g->prims[i]->optype, "shape") == 0;
        s->symbols[i] = is_symbol ? FIRST_SYMBOL + SYMBOL_STEP * n++ : -1;
    }
    return MSC_OK;
}

// Results first, then the outputs of joints that are kept, so that finalizing removes none of them.
static enum msc_status set_outputs(struct rule_lone *s) {
    const struct rule *rule = s->match->rule;
    int32_t ids[2 * MSC_RULE_MOST_TENSORS];
    int32_t n = 0;
    struct msc_value *v;
    for (int i = 0; i < rule->n_results; i++) {
        MSC_TRY(find_value(&v, s, s->match->tensors[rule->results[i].from]));
        ids[n++] = v->tensor;
    }
    for (int i = 0; i < rule->match.n; i++) {
        const struct msc_joint *j = &s->match->graph->joints[s->match->joints[i]]->joint;
        if (rule->match.items[i].is_kept && !rule->match.items[i].is_replaced) {
            MSC_TRY(find_value(&v, s, j->outputs[0]));
            ids[n++] = v->tensor;
        }
    }
    return msc_graph__set_outputs(s->builder.graph, n, ids);
}

// Copies the joints of the match in topological order.
static enum msc_status copy_joints(struct rule_lone *s) {
    const struct rule_match *m = s->match;
    for (int joint = joint_after(m, -1); joint >= 0; joint = joint_after(m, m->joints[joint])) {
        const struct msc_joint *j = &m->graph->joints[m->joints[joint]]->joint;
        if (s->is_body && j->n_graphs > 0) {
            return MSC_FAIL(MSC_E_INVALID, "'%s' has a body, so no joint can hold it", j->name);
        }
        MSC_TRY(copy_joint(s, joint));
    }
    return MSC_OK;
}

enum msc_status msc_rule__build_lone(struct rule_lone *s) {
    const struct rule_match *m = s->match;
    struct msc_value *v;
    MSC_TRY(start(s));
    MSC_TRY(copy_joints(s));
    for (int i = 0; i < m->rule->n_tensors; i++) {
        if (m->tensors[i] != MSC_NO_ID) {
            MSC_TRY(find_value(&v, s, m->tensors[i]));
            int32_t tensor = v->tensor != MSC_NO_ID ? v->tensor : v->weight;
            s->tensors[i] =
                tensor == MSC_NO_ID ? NULL : s->builder.graph->tensors[tensor]->tensor.name;
        }
    }
    MSC_TRY(set_outputs(s));
    return msc_graph_finalize(s->builder.graph);
}

enum msc_status msc_rule__build_body(struct rule_lone *s) {
    const struct rule *rule = s->match->rule;
    const struct rule_joint *j = &rule->replace.items[0];
    struct msc_value *v;
    s->is_body = true;
    MSC_TRY(start(s));
    s->builder.graph->notes.keeps_attr_order = s->match->graph->notes.keeps_attr_order;
    for (int i = 0; i < j->n_operands; i++) {
        if (j->operands[i].kind != RULE_TENSOR) {
            return MSC_FAIL(MSC_E_INVALID, "operands of '%s' must be tensors of the pattern",
                            j->name.text);
        }
        int32_t tensor = s->match->tensors[j->operands[i].tensor];
        MSC_TRY(add_input(&v, s, rule->tensors[j->operands[i].tensor].name, tensor));
        s->values[s->n++] = (struct rule_lone_value){tensor, v};
    }
    MSC_TRY(copy_joints(s));
    MSC_TRY(find_value(&v, s, s->match->tensors[rule->results[0].from]));
    MSC_TRY(msc_graph__set_outputs(s->builder.graph, 1, &v->tensor));
    return msc_graph_finalize(s->builder.graph);
}

void msc_rule__finish_lone(struct rule_lone *s) {
    msc_graph_destroy(s->builder.graph);
    msc_builder_finish(&s->builder);
}
