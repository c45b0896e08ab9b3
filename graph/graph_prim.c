// Prims: symbols and expressions of symbols. Equal expressions share one prim.
#include "graph/graph_internal.h"

#include <ctype.h>
#include <string.h>

static bool is_same(const struct msc_prim *p, const char *optype, int n_parents,
                    const int32_t parents[], int n_attrs, const struct msc_attr attrs[]) {
    if (strcmp(p->optype, optype) != 0 || p->n_parents != n_parents || p->n_attrs != n_attrs) {
        return false;
    }
    for (int i = 0; i < n_parents; i++) {
        if (p->parents[i] != parents[i]) {
            return false;
        }
    }
    for (int i = 0; i < n_attrs; i++) {
        if (strcmp(p->attrs[i].key, attrs[i].key) != 0 ||
            strcmp(p->attrs[i].value, attrs[i].value) != 0) {
            return false;
        }
    }
    return true;
}

static int32_t find_same(const struct msc_graph *g, const char *optype, int n_parents,
                         const int32_t parents[], int n_attrs, const struct msc_attr attrs[]) {
    for (int32_t i = 0; i < g->n_prims; i++) {
        if (is_same(g->prims[i], optype, n_parents, parents, n_attrs, attrs)) {
            return i;
        }
    }
    return MSC_NO_ID;
}

// A name such as "MUL_2": the operator and the number of prims, increased until the name is free.
static char *make_name(struct msc_graph *g, const char *optype) {
    for (int32_t n = g->n_prims;; n++) {
        char *name = msc_arena_printf(&g->arena, "%s_%d", optype, n);
        if (name == NULL) {
            return NULL;
        }
        for (char *c = name; *c != '\0'; c++) {
            *c = (char)toupper((unsigned char)*c);
        }
        if (msc_graph__names_find(&g->prim_names, name) == MSC_NO_ID) {
            return name;
        }
    }
}

static enum msc_status copy_attrs(struct msc_graph *g, struct msc_prim *p, int n,
                                  const struct msc_attr attrs[]) {
    struct msc_attr *copies = msc_arena_array(&g->arena, (size_t)n, sizeof(copies[0]));
    for (int i = 0; copies != NULL && i < n; i++) {
        copies[i].key = msc_arena_strdup(&g->arena, attrs[i].key);
        copies[i].value = msc_arena_strdup(&g->arena, attrs[i].value);
        MSC_TRY(MSC_ALLOCATED(copies[i].key && copies[i].value));
    }
    if (copies == NULL && n > 0) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    p->attrs = copies;
    p->n_attrs = n;
    return MSC_OK;
}

static enum msc_status push_prim(int32_t *out, struct msc_graph *g, char *name, const char *optype,
                                 int n_parents, const int32_t parents[], int n_attrs,
                                 const struct msc_attr attrs[]) {
    struct msc_prim *p = msc_arena_alloc(&g->arena, sizeof(*p));
    MSC_TRY(MSC_ALLOCATED(p && name));
    p->name = name;
    p->optype = msc_arena_strdup(&g->arena, optype);
    MSC_TRY(MSC_ALLOCATED(p->optype));
    p->n_parents = n_parents;
    for (int i = 0; i < 3; i++) {
        p->parents[i] = i < n_parents ? parents[i] : MSC_NO_ID;
    }
    MSC_TRY(copy_attrs(g, p, n_attrs, attrs));
    int32_t id = g->n_prims;
    MSC_TRY(msc_grow(&g->prims, &g->prims_capacity, (size_t)id + 1, sizeof(g->prims[0])));
    MSC_TRY(msc_graph__names_put(&g->prim_names, name, id));
    g->prims[id] = p;
    g->n_prims = id + 1;
    *out = id;
    return MSC_OK;
}

enum msc_status msc_graph__add_prim(int32_t *out, struct msc_graph *g, const char *name,
                                    const char *optype, int n_parents, const int32_t parents[],
                                    int n_attrs, const struct msc_attr attrs[]) {
    for (int i = 0; i < n_parents; i++) {
        if (n_parents > 3 || parents[i] < 0 || parents[i] >= g->n_prims) {
            return MSC_FAIL(MSC_E_INVALID, "graph '%s': prim %s has an invalid operand", g->name,
                            name == NULL ? optype : name);
        }
    }
    if (strcmp(optype, "shape") != 0) {
        int32_t same = find_same(g, optype, n_parents, parents, n_attrs, attrs);
        if (same != MSC_NO_ID) {
            *out = same;
            return MSC_OK;
        }
    }
    if (name != NULL && msc_graph__names_find(&g->prim_names, name) != MSC_NO_ID) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s' already has a prim '%s'", g->name, name);
    }
    char *copy = name == NULL ? make_name(g, optype) : msc_arena_strdup(&g->arena, name);
    return push_prim(out, g, copy, optype, n_parents, parents, n_attrs, attrs);
}

enum msc_status msc_graph_add_symbol(int32_t *prim, struct msc_graph *g, const char *name) {
    if (name == NULL || name[0] == '\0') {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': a symbol has no name", g->name);
    }
    *prim = msc_graph__names_find(&g->prim_names, name);
    if (*prim != MSC_NO_ID && strcmp(g->prims[*prim]->optype, "shape") == 0) {
        return MSC_OK;
    }
    return msc_graph__add_prim(prim, g, name, "shape", 0, NULL, 0, NULL);
}
