// Writes network.c: a function that adds the joints of a graph, with the statements of builder.h.
#include "codegen/codegen_internal.h"

#include "base/alloc.h"
#include "base/str.h"
#include "graph/op_attrs.h"

#include <string.h>

#define JOINTS_IN_A_FUNCTION 40
#define MAX_BODIES 2

static const char *const op_names[] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = "MSC_OP_" #id,
#include "graph/ops.def"
#undef MSC_OP
};

static const char *const dtype_names[MSC_DTYPE_COUNT] = {
    [MSC_DTYPE_F32] = "F32",   [MSC_DTYPE_F16] = "F16", [MSC_DTYPE_BF16] = "BF16",
    [MSC_DTYPE_F64] = "F64",   [MSC_DTYPE_I8] = "I8",   [MSC_DTYPE_I16] = "I16",
    [MSC_DTYPE_I32] = "I32",   [MSC_DTYPE_I64] = "I64", [MSC_DTYPE_U8] = "U8",
    [MSC_DTYPE_U16] = "U16",   [MSC_DTYPE_U32] = "U32", [MSC_DTYPE_U64] = "U64",
    [MSC_DTYPE_BOOL] = "BOOL",
};

struct writer {
    struct msc_str *out;
    struct msc_arena arena;
    int n_bodies; // written so far
};

// A body of a joint: the function that builds it, and the prefix of its weights.
struct body {
    const char *function, *prefix;
};

// ---- Text -------------------------------------------------------------------------------------

static bool is_plain(char c) {
    return c >= ' ' && c <= '~';
}

// Writes a string literal. Other characters than ASCII's become octal escapes, which have three
// digits, so that a digit may follow.
static void write_literal(struct msc_str *out, const char *text) {
    msc_str_char(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        bool is_trigraph = c[0] == '?' && c > text && c[-1] == '?';
        if (*c == '"' || *c == '\\' || is_trigraph) {
            msc_str_char(out, '\\');
        }
        if (is_plain(*c)) {
            msc_str_char(out, *c);
        } else {
            msc_str_printf(out, "\\%03o", (unsigned)(unsigned char)*c);
        }
    }
    msc_str_char(out, '"');
}

// Writes a part of a comment. A backslash could continue the comment in the next line.
static void write_comment(struct msc_str *out, const char *text) {
    for (; *text != '\0'; text++) {
        msc_str_char(out, is_plain(*text) && *text != '\\' ? *text : '?');
    }
}

// Writes `    STATEMENT(b, "text", ...);`. The texts end with NULL.
static void write_statement(struct msc_str *out, const char *statement, const char *const texts[]) {
    msc_str_printf(out, "    %s(b", statement);
    for (; *texts != NULL; texts++) {
        msc_str_append(out, ", ");
        write_literal(out, *texts);
    }
    msc_str_append(out, ");\n");
}

static void write_type(struct msc_str *out, const struct msc_graph *g, const struct msc_tensor *t) {
    msc_str_char(out, '[');
    for (int i = 0; i < t->n_dims; i++) {
        msc_str_append(out, i > 0 ? ", " : "");
        if (t->prims[i] != MSC_NO_ID) {
            write_comment(out, msc_graph_prim(g, t->prims[i])->name);
        } else {
            msc_str_i64(out, t->dims[i]);
        }
    }
    msc_str_printf(out, "] %s", msc_dtype_name(t->dtype));
}

// ---- Joints -----------------------------------------------------------------------------------

static void write_aliases(struct msc_str *out, const struct msc_graph *g,
                          const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        const char *text = msc_graph_tensor(g, j->outputs[i])->alias;
        const char *by_default = j->op == MSC_OP_INPUT ? j->name : "";
        if (strcmp(text, by_default) != 0) {
            msc_str_printf(out, "    alias(b, %d, ", (int)i);
            write_literal(out, text);
            msc_str_append(out, ");\n");
        }
    }
}

static void write_input(struct writer *w, const struct msc_graph *g, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(g, tensor);
    const struct msc_joint *j = msc_graph_joint(g, t->producer);
    msc_str_append(w->out, "\n    begin_input(b, ");
    write_literal(w->out, j->name);
    msc_str_printf(w->out, ", MSC_DTYPE_%s, ", dtype_names[t->dtype]);
    write_literal(w->out, t->layout);
    msc_str_append(w->out, ");\n");
    for (int i = 0; i < t->n_dims; i++) {
        if (t->prims[i] != MSC_NO_ID) {
            const char *symbol = msc_graph_prim(g, t->prims[i])->name;
            write_statement(w->out, "open_length", (const char *const[]){symbol, NULL});
        } else {
            msc_str_printf(w->out, "    length(b, %lld);\n", (long long)t->dims[i]);
        }
    }
    write_aliases(w->out, g, j);
}

// What the visit of a joint's inputs needs.
struct inputs {
    struct msc_str *out;
    const struct msc_graph *g;
};

static void write_read(void *payload, int32_t tensor) {
    const struct inputs *i = payload;
    if (tensor == MSC_NO_ID) {
        msc_str_append(i->out, "    reads(b, NULL);\n");
    } else {
        const char *name = msc_graph_tensor(i->g, tensor)->name;
        write_statement(i->out, "reads", (const char *const[]){name, NULL});
    }
}

static void write_attributes(struct msc_str *out, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_attrs; i++) {
        const struct msc_attr *a = &j->attrs[i];
        const struct msc_op_attr *row = msc_op_attr_find(j->op, a->key);
        if (row == NULL || row->value == NULL || strcmp(row->value, a->value) != 0) {
            write_statement(out, "attribute", (const char *const[]){a->key, a->value, NULL});
        }
    }
}

static void write_weights(struct msc_str *out, const struct msc_graph *g,
                          const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_weights; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, j->weights[i].tensor);
        write_statement(out, "weight",
                        (const char *const[]){j->weights[i].role, t->name, t->layout, NULL});
    }
}

static void write_bodies(struct msc_str *out, const struct msc_joint *j,
                         const struct body bodies[]) {
    for (int32_t i = 0; i < j->n_graphs; i++) {
        msc_str_append(out, "    body(b, ");
        write_literal(out, msc_graph_name(j->graphs[i]));
        msc_str_append(out, ", ");
        write_literal(out, bodies[i].prefix);
        msc_str_printf(out, ", %s);\n", bodies[i].function);
    }
}

static void write_joint(struct writer *w, const struct msc_graph *g, const struct msc_joint *j,
                        const struct body bodies[]) {
    struct msc_str *out = w->out;
    msc_str_append(out, "\n    // ");
    for (int32_t i = 0; i < j->n_outputs; i++) {
        msc_str_append(out, i > 0 ? ", " : "");
        write_type(out, g, msc_graph_tensor(g, j->outputs[i]));
    }
    msc_str_printf(out, "\n    begin_joint(b, %s, ", op_names[j->op]);
    write_literal(out, j->name);
    msc_str_append(out, ");\n");
    msc_graph_visit_inputs(g, j, write_read, &(struct inputs){out, g});
    write_weights(out, g, j);
    write_attributes(out, j);
    write_bodies(out, j, bodies);
    if (j->n_outputs != 1) {
        msc_str_printf(out, "    outputs(b, %d);\n", (int)j->n_outputs);
    }
    write_aliases(out, g, j);
    const char *by_default = j->op == MSC_OP_CONSTANT ? "" : "block";
    if (strcmp(j->scope, by_default) != 0) {
        write_statement(out, "scope", (const char *const[]){j->scope, NULL});
    }
}

// ---- Graphs -----------------------------------------------------------------------------------

static enum msc_status write_graph(struct writer *w, const char **function,
                                   const struct msc_graph *g, const char *prefix);

// Writes the functions of all bodies, which come before the function that uses them. bodies
// [n_joints * MAX_BODIES] receives them.
static enum msc_status write_all_bodies(struct writer *w, struct body bodies[],
                                        const struct msc_graph *g, const char *prefix) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_graphs; k++) {
            struct body *body = &bodies[i * MAX_BODIES + k];
            body->prefix = msc_graph_body_prefix(&w->arena, prefix, j->op, j->name, k);
            MSC_TRY(MSC_ALLOCATED(body->prefix));
            MSC_TRY(write_graph(w, &body->function, j->graphs[k], body->prefix));
        }
    }
    return MSC_OK;
}

// Writes the joints, and begins another function after each JOINTS_IN_A_FUNCTION of them. Returns
// the number of functions.
static int write_joints(struct writer *w, const struct msc_graph *g, const char *function,
                        const struct body bodies[]) {
    int n_joints = 0, n_parts = 1;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        if (j->op == MSC_OP_INPUT) {
            continue;
        }
        if (n_joints > 0 && n_joints % JOINTS_IN_A_FUNCTION == 0) {
            n_parts++;
            msc_str_printf(w->out, "}\n\nstatic void %s_%d(struct builder *b) {", function,
                           n_parts);
        }
        write_joint(w, g, j, &bodies[i * MAX_BODIES]);
        n_joints++;
    }
    return n_parts;
}

static bool has_parts(const struct msc_graph *g) {
    return msc_graph_n_joints(g) - msc_graph_n_inputs(g) > JOINTS_IN_A_FUNCTION;
}

// Writes the functions of a graph. *function is the name of the one that adds all of it.
static enum msc_status write_graph(struct writer *w, const char **function,
                                   const struct msc_graph *g, const char *prefix) {
    size_t n = (size_t)msc_graph_n_joints(g) * MAX_BODIES;
    struct body *bodies = msc_arena_array(&w->arena, n + 1, sizeof bodies[0]);
    MSC_TRY(MSC_ALLOCATED(bodies));
    MSC_TRY(write_all_bodies(w, bodies, g, prefix));
    *function = prefix[0] == '\0' ? "build_network"
                                  : msc_arena_printf(&w->arena, "build_body%d", w->n_bodies++);
    MSC_TRY(MSC_ALLOCATED(*function));
    msc_str_printf(w->out, "static void %s%s(struct builder *b) {", *function,
                   has_parts(g) ? "_1" : "");
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        write_input(w, g, msc_graph_input(g, i));
    }
    int n_parts = write_joints(w, g, *function, bodies);
    if (has_parts(g)) {
        msc_str_printf(w->out, "}\n\nstatic void %s(struct builder *b) {\n", *function);
        for (int i = 1; i <= n_parts; i++) {
            msc_str_printf(w->out, "    %s_%d(b);\n", *function, i);
        }
    } else {
        msc_str_char(w->out, '\n');
    }
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        const char *name = msc_graph_tensor(g, msc_graph_output(g, i))->name;
        write_statement(w->out, "result", (const char *const[]){name, NULL});
    }
    msc_str_append(w->out, "}\n\n");
    return MSC_OK;
}

// Writes a member of the struct in the last lines.
static void write_member(struct msc_str *out, const char *member, const char *text) {
    msc_str_printf(out, "    .%s = ", member);
    if (text != NULL) {
        write_literal(out, text);
    } else {
        msc_str_append(out, "NULL");
    }
    msc_str_append(out, ",\n");
}

enum msc_status msc_codegen__network(struct msc_str *out,
                                     const struct msc_codegen_network *network) {
    struct writer w = {.out = out};
    const char *function = "";
    msc_str_append(out, "// The network of ");
    write_comment(out, network->model);
    msc_str_append(out, ", written by `mscgym codegen`. A comment has the shapes and types\n"
                        "// of the outputs of the joint below it.\n#include \"builder.h\"\n\n");
    enum msc_status status = write_graph(&w, &function, network->graph, "");
    msc_str_append(out, "const struct network network = {\n");
    write_member(out, "name", network->name);
    msc_str_printf(out, "    .build = %s,\n", function);
    write_member(out, "strategy", network->strategy);
    write_member(out, "numerics", network->numerics);
    msc_str_append(out, "    .tolerance = ");
    msc_str_double(out, network->tolerance);
    msc_str_append(out, ",\n};\n");
    msc_arena_finish(&w.arena);
    return status == MSC_OK ? msc_str_status(out) : status;
}
