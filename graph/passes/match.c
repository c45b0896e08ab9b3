#include "graph/passes/match_internal.h"

#include "base/str.h"
#include "graph/op_attrs.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 64, MAX_ARGS = 4 };

// Relative tolerance for numbers, because exporters round constants to float32 or to seven digits.
#define TOLERANCE 2e-6

const struct msc_array *msc_match_constant(int32_t *weight, const struct msc_graph *g,
                                           int32_t tensor) {
    *weight = msc_graph_weight_of(g, tensor);
    return *weight == MSC_NO_ID ? NULL : g->tensors[*weight]->tensor.data;
}

bool msc_match_number(double *out, const struct msc_graph *g, int32_t tensor) {
    int32_t weight;
    const struct msc_array *data = msc_match_constant(&weight, g, tensor);
    if (data == NULL || msc_array_n_elements(data) != 1) {
        return false;
    }
    *out = msc_array_get_double(data, 0);
    return true;
}

static bool is_near(double a, double b) {
    return fabs(a - b) <= TOLERANCE * fabs(b);
}

// ---- Text -------------------------------------------------------------------------------------

static const char *skip_spaces(const char *p) {
    return p + strspn(p, " ");
}

static bool is_number_at(const char *p) {
    return (*p >= '0' && *p <= '9') || *p == '-';
}

static size_t word_length(const char *p) {
    return strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_.");
}

// Returns the comma or bracket that follows a pattern.
static const char *skip_pattern(const char *p) {
    int depth = 0;
    while (depth > 0 || (*p != ',' && *p != ')' && *p != '\0')) {
        depth += *p == '(' || *p == '[';
        depth -= *p == ')' || *p == ']';
        p++;
    }
    return p;
}

static void copy_text(char to[TEXT_BYTES], const char *from, size_t n) {
    assert(n < TEXT_BYTES);
    memcpy(to, from, n);
    to[n] = '\0';
}

// ---- Matching ---------------------------------------------------------------------------------

static bool match_at(struct msc_match *m, const char *p, int32_t tensor);

static bool bind_name(struct msc_match *m, const char *name, size_t length, int32_t tensor) {
    for (int i = 0; i < m->n_names; i++) {
        if (m->names[i].length == length && strncmp(m->names[i].name, name, length) == 0) {
            return m->names[i].tensor == tensor;
        }
    }
    assert(m->n_names < MSC_MATCH_MOST);
    m->names[m->n_names++] = (struct msc_match_name){name, length, tensor};
    return true;
}

// True if the attribute has this value. Numbers are compared by value: "6" equals "6.0". An absent
// attribute is empty.
static bool has_attr(const struct msc_joint *j, const char *key, const char *wanted) {
    const char *found = msc_joint_attr(j, key);
    double a, b;
    if (found == NULL) {
        return wanted[0] == '\0';
    }
    if (msc_parse_double(&a, found) && msc_parse_double(&b, wanted)) {
        return is_near(a, b);
    }
    return strcmp(found, wanted) == 0;
}

// Matches a list of attributes "[key=value key=value]" at *p, and moves *p past it.
static bool match_attrs(const struct msc_joint *j, const char **p) {
    bool fits = true;
    (*p)++;
    while (**p != ']') {
        char key[TEXT_BYTES], value[TEXT_BYTES];
        size_t n = strcspn(*p, "=");
        copy_text(key, *p, n);
        *p += n + 1;
        n = strcspn(*p, " ]");
        copy_text(value, *p, n);
        *p = skip_spaces(*p + n);
        fits = fits && has_attr(j, key, value);
    }
    (*p)++;
    return fits;
}

// Matches the joint's operands with a list of patterns. Operands beyond the list must be absent.
static bool match_operands(struct msc_match *m, const struct msc_joint *j, const char *p) {
    const char *args[MAX_ARGS];
    int n = 0;
    do {
        assert(n < MAX_ARGS);
        args[n] = skip_spaces(p + 1);
        p = skip_pattern(args[n++]);
    } while (*p == ',');
    for (int32_t i = 0; i < j->n_operands; i++) {
        if ((j->operands[i] != MSC_NO_ID) != (i < n)) {
            return false;
        }
    }
    bool may_turn = n == 2 && (j->op == MSC_OP_ADD || j->op == MSC_OP_MULTIPLY);
    const int n_names = m->n_names, n_joints = m->n_joints;
    for (int turn = 0; n <= j->n_operands && turn <= (int)may_turn; turn++) {
        bool fits = true;
        m->n_names = n_names;
        m->n_joints = n_joints;
        for (int i = 0; i < n && fits; i++) {
            fits = match_at(m, args[i], j->operands[turn == 0 ? i : n - 1 - i]);
        }
        if (fits) {
            return true;
        }
    }
    return false;
}

static bool match_op(struct msc_match *m, const char *p, size_t length, int32_t tensor) {
    const struct msc_tensor *t = &m->graph->tensors[tensor]->tensor;
    char name[TEXT_BYTES];
    enum msc_op op;
    copy_text(name, p, length);
    bool is_known = msc_op_find(&op, name);
    assert(is_known);
    if (!is_known || t->producer == MSC_NO_ID || t->producer >= m->n_old || t->output != 0) {
        return false;
    }
    const struct msc_joint *j = &m->graph->joints[t->producer]->joint;
    p += length;
    if (m->graph->joints[t->producer]->is_dead || j->op != op || j->n_outputs != 1 ||
        (*p == '[' && !match_attrs(j, &p))) {
        return false;
    }
    assert(m->n_joints < MSC_MATCH_MOST);
    m->joints[m->n_joints++] = t->producer;
    return match_operands(m, j, p);
}

static bool match_number(const struct msc_match *m, const char *p, int32_t tensor) {
    char text[TEXT_BYTES];
    double wanted, found;
    copy_text(text, p, strcspn(p, " ,)"));
    return msc_match_number(&found, m->graph, tensor) && msc_parse_double(&wanted, text) &&
           is_near(found, wanted);
}

static bool match_at(struct msc_match *m, const char *p, int32_t tensor) {
    int32_t weight;
    if (is_number_at(p)) {
        return match_number(m, p, tensor);
    }
    if (*p == '$') {
        return msc_match_constant(&weight, m->graph, tensor) != NULL &&
               bind_name(m, p + 1, word_length(p + 1), tensor);
    }
    size_t length = word_length(p);
    if (p[length] == ':') {
        return bind_name(m, p, length, tensor) && match_at(m, p + length + 1, tensor);
    }
    if (p[length] == '(' || p[length] == '[') {
        return match_op(m, p, length, tensor);
    }
    return bind_name(m, p, length, tensor);
}

static bool holds_joint(const struct msc_match *m, int32_t joint) {
    for (int i = 0; i < m->n_joints; i++) {
        if (m->joints[i] == joint) {
            return true;
        }
    }
    return false;
}

// True if the match can be replaced: except for the first joint, no joint's output is read outside
// the match or is an output of the graph.
static bool is_closed(const struct msc_match *m) {
    for (int i = 1; i < m->n_joints; i++) {
        int32_t output = m->graph->joints[m->joints[i]]->outputs[0];
        const struct msc_graph_tensor *t = m->graph->tensors[output];
        for (int32_t k = 0; k < t->n_consumers; k++) {
            if (!holds_joint(m, t->consumers[k])) {
                return false;
            }
        }
        for (int32_t k = 0; k < m->graph->n_outputs; k++) {
            if (m->graph->outputs[k] == output) {
                return false;
            }
        }
    }
    return true;
}

bool msc_match(struct msc_match *m, const struct msc_graph *g, int32_t n_old, const char *pattern,
               int32_t tensor) {
    *m = (struct msc_match){.graph = g, .n_old = n_old};
    return match_at(m, pattern, tensor) && is_closed(m);
}

int32_t msc_match_tensor(const struct msc_match *m, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < m->n_names; i++) {
        if (m->names[i].length == length && strncmp(m->names[i].name, name, length) == 0) {
            return m->names[i].tensor;
        }
    }
    return MSC_NO_ID;
}

const struct msc_joint *msc_match_joint(const struct msc_match *m, const char *name) {
    int32_t tensor = msc_match_tensor(m, name);
    assert(tensor != MSC_NO_ID);
    return &m->graph->joints[m->graph->tensors[tensor]->tensor.producer]->joint;
}
