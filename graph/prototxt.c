// Writes a graph in the prototxt form that viewers of Caffe networks read: one layer for each
// joint. All entries of layer_param are sorted by key.
#include "graph/graph_internal.h"

#include "base/shown.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

// One entry of layer_param. Texts are quoted; numbers are not.
struct entry {
    const char *key;
    const char *text; // NULL: the value is `number`
    int32_t number;
};

struct entries {
    struct msc_arena arena;
    struct entry *list;
    size_t n;
    size_t capacity;
    bool failed;
};

static void add_entry(struct entries *e, const char *key, const char *text, int32_t number) {
    if (key == NULL || msc_grow(&e->list, &e->capacity, e->n + 1, sizeof(e->list[0])) != MSC_OK) {
        e->failed = true;
        return;
    }
    e->list[e->n++] = (struct entry){key, text, number};
}

static void add_tensor(struct entries *e, const char *key, const struct msc_graph *g,
                       int32_t tensor) {
    struct msc_str text = {0};
    msc_tensor_print(g, tensor, &text);
    const char *copy = msc_str_keep(&text, &e->arena);
    e->failed |= copy == NULL;
    add_entry(e, key, copy, 0);
}

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static void prototxt_collect(struct entries *e, const struct msc_graph *g,
                             const struct msc_joint *j) {
    add_entry(e, "idx", NULL, j->id);
    for (int32_t i = 0; i < j->n_inputs; i++) {
        add_tensor(e, msc_arena_printf(&e->arena, "input_%d", (int)i), g, j->inputs[i]);
    }
    for (int32_t i = 0; i < j->n_outputs; i++) {
        add_tensor(e, msc_arena_printf(&e->arena, "output_%d", (int)i), g, j->outputs[i]);
    }
    for (int32_t i = 0; i < j->n_weights; i++) {
        const struct msc_weight *w = &j->weights[i];
        add_tensor(e, msc_arena_printf(&e->arena, "param_%s", w->role), g, w->tensor);
    }
    for (int32_t i = 0; i < j->n_attrs; i++) {
        add_entry(e, j->attrs[i].key, j->attrs[i].value, 0);
    }
    if (strcmp(j->scope, msc_graph__default_scope(j->op)) != 0) {
        add_entry(e, "scope", j->scope, 0);
    }
    if (!e->failed) {
        qsort(e->list, e->n, sizeof(e->list[0]), compare_entries);
    }
}

// Writes a text in quotes, with C escapes.
void msc_graph__prototxt_text(struct msc_str *out, const char *text) {
    msc_str_char(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            msc_str_char(out, '\\');
            msc_str_char(out, *c);
        } else if ((unsigned char)*c < ' ') {
            msc_str_printf(out, "\\%03o", (unsigned)(unsigned char)*c);
        } else {
            msc_str_char(out, *c);
        }
    }
    msc_str_char(out, '"');
}

void msc_graph__prototxt_line(struct msc_str *out, const char *indent, const char *key,
                              const char *text) {
    msc_str_append(out, indent);
    msc_shown_append(out, key);
    msc_str_append(out, ": ");
    msc_graph__prototxt_text(out, text);
    msc_str_char(out, '\n');
}

static void write_type(struct msc_str *out, const char *optype) {
    msc_str_append(out, "  type: \"");
    for (const char *c = optype; *c != '\0'; c++) {
        msc_str_char(out, *c == '.' ? '_' : *c);
    }
    msc_str_append(out, "\"\n");
}

static void prototxt_write_joint(struct msc_str *out, const struct msc_graph *g,
                                 const struct msc_joint *j) {
    struct entries e = {0};
    prototxt_collect(&e, g, j);
    msc_str_append(out, "\nlayer {\n");
    msc_graph__prototxt_line(out, "  ", "name", j->name);
    write_type(out, msc_op_info(j->op)->name);
    msc_graph__prototxt_line(out, "  ", "top", j->name);
    for (int32_t i = 0; i < j->n_parents; i++) {
        msc_graph__prototxt_line(out, "  ", "bottom", g->joints[j->parents[i]]->joint.name);
    }
    msc_str_append(out, "  layer_param {\n");
    for (size_t i = 0; i < e.n; i++) {
        if (e.list[i].text != NULL) {
            msc_graph__prototxt_line(out, "    ", e.list[i].key, e.list[i].text);
        } else {
            msc_str_printf(out, "    %s: %d\n", e.list[i].key, (int)e.list[i].number);
        }
    }
    msc_str_append(out, "  }\n}");
    out->failed |= e.failed;
    msc_free(e.list);
    msc_arena_finish(&e.arena);
}

static void write_prim(struct msc_str *out, const struct msc_graph *g, int32_t prim) {
    const struct msc_prim *p = g->prims[prim];
    msc_str_append(out, "\nprim {\n");
    msc_graph__prototxt_line(out, "  ", "name", p->name);
    write_type(out, p->optype);
    for (int32_t i = 0; i < p->n_parents; i++) {
        msc_graph__prototxt_line(out, "  ", "bottom", g->prims[p->parents[i]]->name);
    }
    msc_str_append(out, "  prim_param {\n");
    for (int32_t i = 0; i < p->n_attrs; i++) {
        msc_graph__prototxt_line(out, "    ", p->attrs[i].key, p->attrs[i].value);
    }
    msc_str_append(out, "  }\n}");
}

void msc_graph_write_prototxt(const struct msc_graph *g, struct msc_str *out) {
    msc_str_append(out, "name: ");
    msc_graph__prototxt_text(out, g->name);
    for (int32_t i = 0; i < g->n_prims; i++) {
        write_prim(out, g, i);
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        prototxt_write_joint(out, g, &g->joints[i]->joint);
    }
}
