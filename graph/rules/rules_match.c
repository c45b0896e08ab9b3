// Finds the joints of a pattern in a graph, with backtracking: every order of the operands of
// commutative operators and every reader of a tensor is tried.
#include "graph/rules/rules_internal.h"

#include "base/str.h"
#include "graph/passes/match_internal.h"

#include <string.h>

#define NUMBER_TOLERANCE 2e-6 // relative; exporters round constants to float32 or seven digits
#define MOST_STEPS 200000     // candidates tried for one last joint

// Undoes a part of a match by restoring a copy of it.
struct bindings {
    int32_t tensors[MSC_RULE_MOST_TENSORS];
    const char *attrs[MSC_RULE_MOST_ATTRS];
};

static void save(struct bindings *b, const struct rule_match *m) {
    memcpy(b->tensors, m->tensors, sizeof(b->tensors));
    memcpy(b->attrs, m->attrs, sizeof(b->attrs));
}

static void restore(struct rule_match *m, const struct bindings *b) {
    memcpy(m->tensors, b->tensors, sizeof(b->tensors));
    memcpy(m->attrs, b->attrs, sizeof(b->attrs));
}

static bool is_commutative(enum msc_op op) {
    switch (op) {
    case MSC_OP_ADD:
    case MSC_OP_MULTIPLY:
    case MSC_OP_MAXIMUM:
    case MSC_OP_MINIMUM:
    case MSC_OP_EQUAL:
    case MSC_OP_LOGICAL_AND:
    case MSC_OP_LOGICAL_OR:
    case MSC_OP_LOGICAL_XOR:
    case MSC_OP_BITWISE_AND:
    case MSC_OP_BITWISE_OR:
    case MSC_OP_BITWISE_XOR:
        return true;
    default:
        return false;
    }
}

// ---- One joint --------------------------------------------------------------------------------

static bool bind_tensor(struct rule_match *m, int tensor, int32_t id) {
    if (m->tensors[tensor] == MSC_NO_ID) {
        m->tensors[tensor] = id;
    }
    return m->tensors[tensor] == id;
}

static bool match_operand(struct rule_match *m, const struct rule_operand *o, int32_t id) {
    double wanted, found;
    switch (o->kind) {
    case RULE_ABSENT:
        return id == MSC_NO_ID;
    case RULE_TENSOR:
        return id != MSC_NO_ID && bind_tensor(m, o->tensor, id);
    case RULE_SCALAR:
        return id != MSC_NO_ID && msc_rule__number(&wanted, o->value, m) &&
               msc_match_number(&found, m->graph, id) &&
               msc_rule__is_near(wanted, found, NUMBER_TOLERANCE);
    }
    return false;
}

static bool match_operands(struct rule_match *m, const struct rule_joint *p,
                           const struct msc_joint *j, bool is_turned) {
    const struct rule_operand absent = {.kind = RULE_ABSENT};
    int n = p->n_operands > j->n_operands ? p->n_operands : j->n_operands;
    for (int i = 0; i < n; i++) {
        int at = is_turned ? n - 1 - i : i;
        const struct rule_operand *o = i < p->n_operands ? &p->operands[i] : &absent;
        if (!match_operand(m, o, at < j->n_operands ? j->operands[at] : MSC_NO_ID)) {
            return false;
        }
    }
    return true;
}

static bool match_attrs(struct rule_match *m, const struct rule_joint *p,
                        const struct msc_joint *j) {
    for (int i = 0; i < p->n_attrs; i++) {
        const struct rule_attr *a = &p->attrs[i];
        const char *found = msc_joint_attr(j, a->key);
        const char *wanted = a->text != NULL ? a->text : m->attrs[a->variable];
        if (found == NULL ||
            (wanted != NULL && !msc_rule__are_near(found, wanted, NUMBER_TOLERANCE))) {
            return false;
        }
        if (wanted == NULL) {
            m->attrs[a->variable] = found;
        }
    }
    return true;
}

static bool is_taken(const struct rule_match *m, int32_t joint) {
    for (int i = 0; i < m->rule->match.n; i++) {
        if (m->joints[i] == joint) {
            return true;
        }
    }
    return false;
}

static bool match_outputs(struct rule_match *m, int joint, const struct msc_joint *j) {
    const struct rule *rule = m->rule;
    for (int i = 0; i < rule->n_tensors; i++) {
        const struct rule_tensor *t = &rule->tensors[i];
        if (t->joint == joint && !t->is_new &&
            (t->output >= j->n_outputs || !bind_tensor(m, i, j->outputs[t->output]))) {
            return false;
        }
    }
    int n = rule->match.items[joint].n_outputs;
    return n == 0 || n == j->n_outputs;
}

static bool match_joint(struct rule_match *m, int joint, int32_t id, bool is_turned) {
    const struct rule_joint *p = &m->rule->match.items[joint];
    const struct msc_joint *j = &m->graph->joints[id]->joint;
    return j->op == p->op && !is_taken(m, id) &&
           (p->scope == NULL || msc_glob_match(p->scope, j->scope)) && match_outputs(m, joint, j) &&
           match_attrs(m, p, j) && match_operands(m, p, j, is_turned);
}

// ---- The whole match --------------------------------------------------------------------------

static bool is_result(const struct rule_match *m, int32_t tensor) {
    for (int i = 0; i < m->rule->n_results; i++) {
        if (m->tensors[m->rule->results[i].from] == tensor) {
            return true;
        }
    }
    return false;
}

// True if no joint outside the match reads an output of this joint, except outputs that are
// replaced.
static bool is_closed(const struct rule_match *m, int32_t joint) {
    const struct msc_joint *j = &m->graph->joints[joint]->joint;
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const struct msc_graph_tensor *t = m->graph->tensors[j->outputs[i]];
        bool is_free = is_result(m, j->outputs[i]) || !msc_graph_is_output(m->graph, j->outputs[i]);
        for (int32_t k = 0; is_free && k < t->n_consumers && !is_result(m, j->outputs[i]); k++) {
            is_free = is_taken(m, t->consumers[k]);
        }
        if (!is_free) {
            return false;
        }
    }
    return true;
}

// True if something reads a result, so that there is something to replace.
static bool has_reader(const struct rule_match *m) {
    for (int i = 0; i < m->rule->n_results; i++) {
        int32_t tensor = m->tensors[m->rule->results[i].from];
        if (m->graph->tensors[tensor]->n_consumers > 0 || msc_graph_is_output(m->graph, tensor)) {
            return true;
        }
    }
    return false;
}

// An output of the graph must keep its name, so another tensor can replace it only if it has no
// name of its own.
static bool keeps_names(const struct rule_match *m) {
    for (int i = 0; i < m->rule->n_results; i++) {
        const struct rule_result *r = &m->rule->results[i];
        int32_t to = m->rule->tensors[r->to].is_new ? MSC_NO_ID : m->tensors[r->to];
        if (to != MSC_NO_ID && msc_graph_is_output(m->graph, m->tensors[r->from])) {
            int32_t producer = m->graph->tensors[to]->tensor.producer;
            if (producer == MSC_NO_ID || msc_graph_is_output(m->graph, to) ||
                m->graph->joints[producer]->joint.op == MSC_OP_INPUT) {
                return false;
            }
        }
    }
    return true;
}

static int64_t last_joint(const struct rule_match *m) {
    int32_t last = 0;
    for (int i = 0; i < m->rule->match.n; i++) {
        last = m->joints[i] > last ? m->joints[i] : last;
    }
    return last;
}

// True if a joint outside the match depends on a result and is needed by the match: then the
// replacement would be part of a cycle. `depends` [n_joints] is scratch.
static bool has_way_around(const struct rule_match *m, bool depends[]) {
    for (int32_t id = 0; id <= last_joint(m); id++) {
        const struct msc_joint *j = &m->graph->joints[id]->joint;
        bool is_inside = is_taken(m, id);
        depends[id] = false;
        for (int32_t k = 0; k < j->n_operands; k++) {
            int32_t from = j->operands[k] == MSC_NO_ID
                               ? MSC_NO_ID
                               : m->graph->tensors[j->operands[k]]->tensor.producer;
            if (from != MSC_NO_ID) {
                depends[id] |= depends[from] || (!is_inside && is_result(m, j->operands[k]));
            }
        }
        if (is_inside && depends[id]) {
            return true;
        }
    }
    return false;
}

static enum msc_status accept(bool *fits, struct rule_match *m) {
    *fits = false;
    for (int i = 0; i < m->rule->n_conditions; i++) {
        if (!msc_rule__is_true(m->rule->conditions[i], m)) {
            return MSC_OK;
        }
    }
    for (int i = 0; i < m->rule->match.n; i++) {
        if (!m->rule->match.items[i].is_kept && !is_closed(m, m->joints[i])) {
            return MSC_OK;
        }
    }
    if (!has_reader(m) || !keeps_names(m)) {
        return MSC_OK;
    }
    bool *depends = msc_alloc_zero((size_t)m->graph->n_joints, sizeof(bool));
    MSC_TRY(MSC_ALLOCATED(depends));
    *fits = !has_way_around(m, depends);
    msc_free(depends);
    return MSC_OK;
}

static enum msc_status match_from(bool *found, struct rule_match *m, int step);

static enum msc_status try_joint(bool *found, struct rule_match *m, int step, int32_t id) {
    const struct rule *rule = m->rule;
    int joint = rule->order[step];
    bool may_turn =
        is_commutative(rule->match.items[joint].op) && m->graph->joints[id]->joint.n_operands == 2;
    struct bindings before;
    save(&before, m);
    for (int turn = 0; turn <= (int)may_turn && !*found; turn++) {
        if (m->n_steps++ == MOST_STEPS) {
            return MSC_FAIL(MSC_E_INVALID,
                            "the pattern can match in too many ways at joint '%s'; order its "
                            "joints so that each reads one above, or name fewer commutative joints",
                            m->graph->joints[id]->joint.name);
        }
        if (match_joint(m, joint, id, turn == 1)) {
            m->joints[joint] = id;
            MSC_TRY(match_from(found, m, step + 1));
        }
        if (!*found) {
            m->joints[joint] = MSC_NO_ID;
            restore(m, &before);
        }
    }
    return MSC_OK;
}

// The tensor by which the joint is found: an output that is bound, or an operand.
static int32_t known_tensor(bool *is_output, const struct rule_match *m, int joint) {
    const struct rule_joint *p = &m->rule->match.items[joint];
    *is_output = true;
    for (int i = 0; i < m->rule->n_tensors; i++) {
        const struct rule_tensor *t = &m->rule->tensors[i];
        if (t->joint == joint && !t->is_new && m->tensors[i] != MSC_NO_ID) {
            return m->tensors[i];
        }
    }
    *is_output = false;
    for (int i = 0; i < p->n_operands; i++) {
        if (p->operands[i].kind == RULE_TENSOR && m->tensors[p->operands[i].tensor] != MSC_NO_ID) {
            return m->tensors[p->operands[i].tensor];
        }
    }
    return MSC_NO_ID;
}

static enum msc_status match_from(bool *found, struct rule_match *m, int step) {
    bool is_output;
    if (step == m->rule->match.n) {
        return accept(found, m);
    }
    int32_t tensor = known_tensor(&is_output, m, m->rule->order[step]);
    if (tensor == MSC_NO_ID) {
        return MSC_OK;
    }
    const struct msc_graph_tensor *t = m->graph->tensors[tensor];
    if (is_output) {
        return t->tensor.producer == MSC_NO_ID ? MSC_OK
                                               : try_joint(found, m, step, t->tensor.producer);
    }
    for (int32_t i = 0; i < t->n_consumers && !*found; i++) {
        MSC_TRY(try_joint(found, m, step, t->consumers[i]));
    }
    return MSC_OK;
}

enum msc_status msc_rule__match(bool *found, struct rule_match *m, const struct rule *rule,
                                const struct msc_graph *g, int32_t joint) {
    *found = false;
    if (g->joints[joint]->joint.op != rule->match.items[rule->order[0]].op) {
        return MSC_OK;
    }
    *m = (struct rule_match){.rule = rule, .graph = g};
    for (int i = 0; i < MSC_RULE_MOST_JOINTS; i++) {
        m->joints[i] = MSC_NO_ID;
    }
    for (int i = 0; i < MSC_RULE_MOST_TENSORS; i++) {
        m->tensors[i] = MSC_NO_ID;
    }
    return try_joint(found, m, 0, joint);
}
