// Writes external joints (graph/external.h) as the nodes that they were imported from, and the body
// of a joint as a function.
#include "graph/onnx/onnx_export_internal.h"

#include "base/str.h"
#include "graph/external.h"
#include "graph/onnx/onnx_external.h"

#include <string.h>

enum msc_status msc_onnx__add_domain(struct msc_onnx_export *e, const char *domain,
                                     int64_t version) {
    for (size_t i = 0; i < e->n_domains; i++) {
        if (strcmp(e->domains[i]->domain, domain) == 0) {
            return e->domains[i]->version == version
                       ? MSC_OK
                       : MSC_FAIL(MSC_E_INVALID,
                                  "domain %s has version %lld here and %lld in another joint",
                                  domain, (long long)version, (long long)e->domains[i]->version);
        }
    }
    Onnx__OperatorSetIdProto *set = msc_arena_alloc(&e->arena, sizeof *set);
    char *copy = msc_arena_strdup(&e->arena, domain);
    MSC_TRY(MSC_ALLOCATED(set && copy));
    MSC_TRY(msc_grow(&e->domains, &e->domains_capacity, e->n_domains + 1, sizeof e->domains[0]));
    onnx__operator_set_id_proto__init(set);
    set->domain = copy;
    set->has_version = true;
    set->version = version;
    e->domains[e->n_domains++] = set;
    return MSC_OK;
}

// Adds the domains of a list such as "other.domain=2,third=1".
static enum msc_status add_imports(struct msc_onnx_export *e, const char *list) {
    while (list[0] != '\0') {
        size_t n = strcspn(list, ","), n_domain = strcspn(list, "=");
        char *domain = msc_arena_strndup(&e->arena, list, n);
        MSC_TRY(MSC_ALLOCATED(domain));
        int64_t version;
        if (n_domain >= n || !msc_parse_i64(&version, domain + n_domain + 1)) {
            return MSC_FAIL(MSC_E_INVALID, "attribute imports has '%s', expected DOMAIN=VERSION",
                            domain);
        }
        domain[n_domain] = '\0';
        MSC_TRY(msc_onnx__add_domain(e, domain, version));
        list += n + (list[n] == ',');
    }
    return MSC_OK;
}

// The names of captured values in the file that was imported, and in this one.
struct renaming {
    struct msc_onnx_joint *j;
    const char *captures;
    int32_t first; // operand that the first captured value is
};

// Gives a value that a graph in an attribute reads its name in this file.
static enum msc_status rename_value(void *payload, char **name) {
    struct renaming *r = payload;
    size_t length = strlen(*name);
    int32_t operand = r->first;
    for (const char *c = r->captures; c[0] != '\0'; operand++) {
        size_t n = strcspn(c, ",");
        if (n == length && strncmp(c, *name, n) == 0 && (size_t)operand < r->j->n_inputs) {
            *name = (char *)r->j->inputs[operand];
            return MSC_OK;
        }
        c += n + (c[n] == ',');
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "a graph in an attribute reads '%s', which attribute captures "
                    "does not list",
                    *name);
}

// Calls `visit` for the attributes of an external joint's node, as protobuf messages in the arena.
static enum msc_status
visit_attributes(const struct msc_joint *joint, struct msc_arena *arena,
                 enum msc_status (*visit)(void *payload, Onnx__AttributeProto *a), void *payload) {
    size_t prefix = strlen(MSC_EXTERNAL_ATTR);
    for (int32_t i = 0; i < joint->n_attrs; i++) {
        const struct msc_attr *attr = &joint->attrs[i];
        Onnx__AttributeProto *a;
        if (strncmp(attr->key, MSC_EXTERNAL_ATTR, prefix) == 0) {
            MSC_TRY(msc_onnx__attr_from_text(&a, attr->key + prefix, attr->value, arena));
            MSC_TRY(visit(payload, a));
        }
    }
    return MSC_OK;
}

static enum msc_status reserve_name(void *payload, const char *name) {
    struct msc_onnx_export *e = payload;
    return msc_graph__names_find(&e->value_names, name) == MSC_NO_ID
               ? msc_graph__names_put(&e->value_names, name, 0)
               : MSC_OK;
}

static enum msc_status reserve_attribute(void *payload, Onnx__AttributeProto *a) {
    const struct msc_onnx_graph_visit visit = {.visit_own = reserve_name, .payload = payload};
    return msc_onnx__visit_graphs(&visit, a);
}

enum msc_status msc_onnx__keep_names_free(struct msc_onnx_export *e, const struct msc_graph *g) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        MSC_TRY(j->op == MSC_OP_EXTERNAL ? visit_attributes(j, &e->arena, reserve_attribute, e)
                                         : MSC_OK);
        for (int32_t k = 0; k < j->n_graphs; k++) {
            MSC_TRY(msc_onnx__keep_names_free(e, j->graphs[k]));
        }
    }
    return MSC_OK;
}

static enum msc_status put_attribute(void *payload, Onnx__AttributeProto *a) {
    struct renaming *r = payload;
    const struct msc_onnx_graph_visit visit = {.visit = rename_value, .payload = r};
    MSC_TRY(msc_onnx__visit_graphs(&visit, a));
    r->j->node->attribute[r->j->node->n_attribute++] = a;
    return MSC_OK;
}

static enum msc_status put_attributes(struct msc_onnx_joint *j, int32_t n_inputs) {
    const char *captures = msc_joint_attr(j->joint, "captures");
    struct renaming renaming = {j, captures == NULL ? "" : captures, n_inputs};
    j->node->attribute =
        msc_arena_array(&j->e->arena, (size_t)j->joint->n_attrs + 1, sizeof j->node->attribute[0]);
    MSC_TRY(MSC_ALLOCATED(j->node->attribute));
    return visit_attributes(j->joint, &j->e->arena, put_attribute, &renaming);
}

enum msc_status msc_onnx__describe_external(Onnx__ValueInfoProto ***out, size_t *n_out,
                                            struct msc_onnx_export *e) {
    const struct msc_graph *g = e->graph;
    int32_t *tensors = msc_arena_array(&e->arena, (size_t)g->n_tensors + 1, sizeof tensors[0]);
    int32_t n = 0;
    MSC_TRY(MSC_ALLOCATED(tensors));
    for (int32_t i = 0; i < g->n_tensors; i++) {
        int32_t producer = g->tensors[i]->tensor.producer;
        if (producer != MSC_NO_ID && g->joints[producer]->joint.op == MSC_OP_EXTERNAL &&
            !msc_graph_is_output(g, i)) {
            tensors[n++] = i;
        }
    }
    return msc_onnx__describe_all(out, n_out, e, tensors, n);
}

enum msc_status msc_onnx__write_external(struct msc_onnx_joint *j) {
    const char *domain = msc_joint_attr(j->joint, "domain");
    const char *imports = msc_joint_attr(j->joint, "imports");
    int32_t n_inputs = msc_external_n_inputs(j->joint);
    int64_t version;
    MSC_TRY(msc_onnx__add_own(j, j->inputs, (size_t)n_inputs));
    j->node->op_type = (char *)msc_joint_attr(j->joint, "op");
    if (domain != NULL && domain[0] != '\0') {
        j->node->domain = (char *)domain;
        MSC_TRY(msc_onnx__add_domain(j->e, domain,
                           msc_joint_attr_i64(j->joint, "version", &version) ? version : 1));
    }
    MSC_TRY(add_imports(j->e, imports == NULL ? "" : imports));
    if (j->joint->n_graphs > 0 && (domain == NULL || domain[0] == '\0')) {
        return MSC_FAIL(MSC_E_INVALID, "a joint with a body needs a domain of its own");
    }
    if (j->joint->n_graphs > 0) {
        Onnx__GraphProto *body;
        MSC_TRY(msc_onnx__write_held(&body, j));
        MSC_TRY(msc_onnx__add_function(j, body));
    }
    return put_attributes(j, n_inputs);
}
