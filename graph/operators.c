#include "graph/operators_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "graph/external_internal.h"
#include "graph/graph_internal.h"
#include "graph/op_attrs.h"

#include <string.h>

struct msc_operators {
    int n_references;
    struct msc_operators_source *sources;
    size_t n_sources, sources_capacity;
    struct msc_operators_entry *entries;
    size_t n_entries, entries_capacity;
};

// ---- The set ----------------------------------------------------------------------------------

enum msc_status msc_operators_create(struct msc_operators **out) {
    *out = msc_alloc_zero(1, sizeof **out);
    MSC_TRY(MSC_ALLOCATED(*out));
    (*out)->n_references = 1;
    return MSC_OK;
}

static void close_source(const struct msc_operators_source *source) {
    if (source->close != NULL) {
        source->close(source->state);
    }
}

static enum msc_status add_entry(struct msc_operators *set, const struct msc_operator_def *def,
                                 bool infers) {
    const struct msc_operators_source *source = &set->sources[set->n_sources - 1];
    const struct msc_operators_entry *other = msc_operators__find(set, def->domain, def->op);
    if (other != NULL) {
        return MSC_FAIL(MSC_E_INVALID, "%s: %s also computes operator '%s' of domain '%s'",
                        source->name, other->source->name, def->op, def->domain);
    }
    MSC_TRY(msc_grow(&set->entries, &set->entries_capacity, set->n_entries + 1,
                     sizeof set->entries[0]));
    set->entries[set->n_entries++] = (struct msc_operators_entry){source, def, infers};
    return MSC_OK;
}

// Entries point to sources, so the sources must not move.
#define MOST_SOURCES 64

enum msc_status msc_operators_add(struct msc_operators *set,
                                  const struct msc_operators_source *source) {
    enum msc_status status =
        set->n_sources < MOST_SOURCES
            ? msc_grow(&set->sources, &set->sources_capacity, MOST_SOURCES, sizeof set->sources[0])
            : MSC_FAIL(MSC_E_INVALID, "%s: expected at most %d plug-ins", source->name,
                       MOST_SOURCES);
    if (status != MSC_OK) {
        close_source(source);
        return status;
    }
    set->sources[set->n_sources++] = *source;
    for (int i = 0; i < source->n_operators; i++) {
        bool infers = source->call != NULL ? source->infers[i] : source->operators[i].infer != NULL;
        MSC_TRY(add_entry(set, &source->operators[i], infers));
    }
    return MSC_OK;
}

struct msc_operators *msc_operators_retain(struct msc_operators *set) {
    if (set != NULL) {
        __atomic_fetch_add(&set->n_references, 1, __ATOMIC_RELAXED);
    }
    return set;
}

void msc_operators_release(struct msc_operators *set) {
    if (set == NULL || __atomic_sub_fetch(&set->n_references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (size_t i = 0; i < set->n_sources; i++) {
        close_source(&set->sources[i]);
    }
    msc_free(set->sources);
    msc_free(set->entries);
    msc_free(set);
}

const struct msc_operators_entry *msc_operators__find(const struct msc_operators *set,
                                                      const char *domain, const char *op) {
    for (size_t i = 0; set != NULL && i < set->n_entries; i++) {
        const struct msc_operator_def *def = set->entries[i].def;
        if (strcmp(def->domain, domain) == 0 && strcmp(def->op, op) == 0) {
            return &set->entries[i];
        }
    }
    return NULL;
}

const struct msc_operators_entry *msc_operators__find_joint(const struct msc_operators *set,
                                                            const struct msc_joint *j) {
    return msc_operators__find(set, msc_joint_attr(j, "domain"), msc_joint_attr(j, "op"));
}

static struct msc_hash identity_of(const struct msc_graph *g, struct msc_hash sum) {
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        const struct msc_operators_entry *e =
            j->op == MSC_OP_EXTERNAL ? msc_operators__find_joint(g->operators, j) : NULL;
        if (e != NULL) {
            sum = msc_hash_combine(sum, e->source->identity);
        }
        for (int32_t k = 0; k < j->n_graphs; k++) {
            sum = identity_of(j->graphs[k], sum);
        }
    }
    return sum;
}

struct msc_hash msc_operators__identity(const struct msc_graph *g) {
    return identity_of(g, (struct msc_hash){0});
}

// ---- Calls ------------------------------------------------------------------------------------

enum msc_status msc_operators__fail_absent(const struct msc_joint *j) {
    struct msc_str name = {0};
    msc_external_write_name(&name, j);
    enum msc_status status =
        MSC_FAIL(MSC_E_UNSUPPORTED,
                 "joint '%s' is the external operator %s, which no plug-in computes: give one "
                 "with --operators or \"operators\", or cut the model there with mscgym split",
                 j->name, msc_str_text(&name));
    msc_str_finish(&name);
    return status;
}

static enum msc_status read_attrs(struct msc_operator_call *call, const struct msc_joint *j,
                                  struct msc_arena *arena) {
    size_t prefix = strlen(MSC_EXTERNAL_ATTR);
    struct msc_operator_attr *attrs =
        msc_arena_array(arena, (size_t)j->n_attrs + 1, sizeof attrs[0]);
    MSC_TRY(MSC_ALLOCATED(attrs));
    call->attrs = attrs;
    for (int32_t i = 0; i < j->n_attrs; i++) {
        const char *value = j->attrs[i].value, *space = strchr(value, ' ');
        if (strncmp(j->attrs[i].key, MSC_EXTERNAL_ATTR, prefix) != 0) {
            continue;
        }
        if (space == NULL) {
            return MSC_FAIL(MSC_E_INVALID, "attribute %s is '%s', expected a type and a value",
                            j->attrs[i].key, value);
        }
        char *type = msc_arena_strndup(arena, value, (size_t)(space - value));
        MSC_TRY(MSC_ALLOCATED(type));
        attrs[call->n_attrs++] =
            (struct msc_operator_attr){j->attrs[i].key + prefix, type, space + 1};
    }
    return MSC_OK;
}

static enum msc_status call_source(const struct msc_operators_entry *entry, bool infers,
                                   const struct msc_operator_call *call) {
    if (entry->source->call != NULL) {
        return entry->source->call(entry->source->state, infers, call);
    }
    return infers ? entry->def->infer(call) : entry->def->compute(call);
}

enum msc_status msc_operators__call(const struct msc_operators_entry *entry, bool infers,
                                    struct msc_operator_call *call, const struct msc_joint *j) {
    struct msc_arena arena = {0};
    call->joint = j->name;
    call->domain = entry->def->domain;
    call->op = entry->def->op;
    if (!msc_joint_attr_i64(j, "version", &call->version)) {
        call->version = 1;
    }
    enum msc_status status = read_attrs(call, j, &arena);
    status = status == MSC_OK ? call_source(entry, infers, call) : status;
    msc_arena_finish(&arena);
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status, "%s: joint '%s' (%s)", entry->source->name,
                                                j->name, call->op);
}

// ---- Attributes -------------------------------------------------------------------------------

// The attribute's value; NULL if the node lacks it.
static enum msc_status find_value(const char **out, const struct msc_operator_call *call,
                                  const char *name, const char *type) {
    *out = NULL;
    for (int i = 0; i < call->n_attrs; i++) {
        if (strcmp(call->attrs[i].name, name) == 0) {
            *out = call->attrs[i].value;
            return strcmp(call->attrs[i].type, type) == 0
                       ? MSC_OK
                       : MSC_FAIL(MSC_E_INVALID, "attribute %s is of type %s, expected %s", name,
                                  call->attrs[i].type, type);
        }
    }
    return MSC_OK;
}

static enum msc_status fail_value(const char *name, const char *value, const char *type) {
    return MSC_FAIL(MSC_E_INVALID, "attribute %s is '%s', expected %s", name, value, type);
}

enum msc_status msc_operator_int(int64_t *out, const struct msc_operator_call *call,
                                 const char *name, int64_t otherwise) {
    const char *value;
    MSC_TRY(find_value(&value, call, name, "int"));
    *out = otherwise;
    return value == NULL || msc_attr_read_int(out, value) ? MSC_OK
                                                          : fail_value(name, value, "an integer");
}

enum msc_status msc_operator_float(float *out, const struct msc_operator_call *call,
                                   const char *name, float otherwise) {
    const char *value;
    MSC_TRY(find_value(&value, call, name, "float"));
    *out = otherwise;
    return value == NULL || msc_attr_read_float(out, value) ? MSC_OK
                                                            : fail_value(name, value, "a number");
}

enum msc_status msc_operator_text(const char **out, const struct msc_operator_call *call,
                                  const char *name, const char *otherwise) {
    const char *value;
    MSC_TRY(find_value(&value, call, name, "string"));
    *out = value == NULL ? otherwise : value;
    return MSC_OK;
}

enum msc_status msc_operator_ints(int64_t out[], int *n, const struct msc_operator_call *call,
                                  const char *name, int max) {
    const char *value;
    MSC_TRY(find_value(&value, call, name, "ints"));
    *n = value == NULL ? -1 : msc_attr_read_ints(out, max, value);
    return value == NULL || *n >= 0 ? MSC_OK : fail_value(name, value, "integers");
}

enum msc_status msc_operator_floats(float out[], int *n, const struct msc_operator_call *call,
                                    const char *name, int max) {
    const char *value;
    MSC_TRY(find_value(&value, call, name, "floats"));
    *n = value == NULL ? -1 : msc_attr_read_floats(out, max, value);
    return value == NULL || *n >= 0 ? MSC_OK : fail_value(name, value, "numbers");
}

int64_t msc_operator_n_elements(const struct msc_operator_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            return -1;
        }
        n *= t->dims[i];
    }
    return n;
}
