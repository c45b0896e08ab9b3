// Arithmetic on dimensions that are numbers or symbolic expressions.
//
// Expressions are simplified when they are made: (x + 1) + 2 becomes x + 3, and repeated
// multiplications or divisions by numbers are merged in the same way. So the length after fifty
// strided convolutions is a short expression, and equal lengths usually have the same prim.
#include "graph/graph_internal.h"
#include "graph/infer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum dim_op {
    DIM_ADD,
    DIM_SUB,
    DIM_MUL,
    DIM_FLOOR_DIV,
    DIM_CEIL_DIV,
    DIM_FLOOR_MOD,
    DIM_MAX,
    DIM_MIN,
    DIM_OP_COUNT
};

static const char *const dim_op_names[DIM_OP_COUNT] = {
    "Add", "Sub", "Mul", "FloorDiv", "CeilDiv", "FloorMod", "Max", "Min",
};

static bool find_op(enum dim_op *out, const char *optype) {
    for (int op = 0; op < DIM_OP_COUNT; op++) {
        if (strcmp(dim_op_names[op], optype) == 0) {
            *out = (enum dim_op)op;
            return true;
        }
    }
    return false;
}

static struct msc_dim dim_number(int64_t value) {
    return (struct msc_dim){value, MSC_NO_ID};
}

static bool is_number(struct msc_dim d) {
    return d.prim == MSC_NO_ID;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// False if the operation overflows or divides by zero.
static bool dim_compute(int64_t *out, enum dim_op op, int64_t a, int64_t b) {
    bool divides = op == DIM_FLOOR_DIV || op == DIM_CEIL_DIV || op == DIM_FLOOR_MOD;
    if (divides && (b == 0 || (a == INT64_MIN && b == -1))) {
        return false;
    }
    switch (op) {
    case DIM_ADD:
        return !__builtin_add_overflow(a, b, out);
    case DIM_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case DIM_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case DIM_FLOOR_DIV:
        *out = floor_div(a, b);
        return true;
    case DIM_CEIL_DIV:
        *out = floor_div(a, b) + (a % b != 0);
        return true;
    case DIM_FLOOR_MOD:
        *out = a - floor_div(a, b) * b;
        return true;
    case DIM_MAX:
        *out = a > b ? a : b;
        return true;
    case DIM_MIN:
        *out = a < b ? a : b;
        return true;
    case DIM_OP_COUNT:
        break;
    }
    return false;
}

static enum msc_status dim_fail(const struct msc_graph *g, const char *what) {
    return MSC_FAIL(MSC_E_INVALID, "graph '%s': a dimension %s", g->name, what);
}

// Reads the value of an "Int" prim; false for any other prim.
static bool int_value(int64_t *out, const struct msc_graph *g, int32_t prim) {
    const struct msc_prim *p = g->prims[prim];
    if (strcmp(p->optype, "Int") != 0 || p->n_attrs != 1) {
        return false;
    }
    return sscanf(p->attrs[0].value, "%" SCNd64, out) == 1;
}

static enum msc_status to_prim(int32_t *out, struct msc_graph *g, struct msc_dim d) {
    if (!is_number(d)) {
        *out = d.prim;
        return MSC_OK;
    }
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, d.value);
    struct msc_attr attr = {"value", text};
    return msc_graph__add_prim(out, g, NULL, "Int", 0, NULL, 1, &attr);
}

static enum msc_status dim_make(struct msc_dim *out, struct msc_graph *g, enum dim_op op,
                                struct msc_dim a, struct msc_dim b) {
    int32_t parents[2];
    MSC_TRY(to_prim(&parents[0], g, a));
    MSC_TRY(to_prim(&parents[1], g, b));
    out->value = -1;
    return msc_graph__add_prim(&out->prim, g, NULL, dim_op_names[op], 2, parents, 0, NULL);
}

// Splits an expression `base op number`, for example x + 3, into `base` and *amount. For any other
// expression, the base is `d` and *amount is `neutral`.
static void dim_split(struct msc_dim *base, int64_t *amount, const struct msc_graph *g,
                      struct msc_dim d, enum dim_op op, int64_t neutral) {
    *base = d;
    *amount = neutral;
    const struct msc_prim *p = g->prims[d.prim];
    int64_t value;
    if (p->n_parents != 2 || !int_value(&value, g, p->parents[1])) {
        return;
    }
    if (strcmp(p->optype, dim_op_names[op]) == 0) {
        *base = (struct msc_dim){-1, p->parents[0]};
        *amount = value;
    } else if (op == DIM_ADD && strcmp(p->optype, "Sub") == 0 && value > INT64_MIN) {
        *base = (struct msc_dim){-1, p->parents[0]};
        *amount = -value;
    }
}

static enum msc_status add_number(struct msc_dim *out, struct msc_graph *g, struct msc_dim a,
                                  int64_t b) {
    struct msc_dim base;
    int64_t before, total;
    dim_split(&base, &before, g, a, DIM_ADD, 0);
    if (__builtin_add_overflow(before, b, &total) || total == INT64_MIN) {
        return dim_fail(g, "does not fit in 64 bits");
    }
    if (total == 0) {
        *out = base;
        return MSC_OK;
    }
    return total > 0 ? dim_make(out, g, DIM_ADD, base, dim_number(total))
                     : dim_make(out, g, DIM_SUB, base, dim_number(-total));
}

static enum msc_status multiply_number(struct msc_dim *out, struct msc_graph *g, struct msc_dim a,
                                       int64_t b) {
    struct msc_dim base;
    int64_t before, total;
    if (b == 0) {
        *out = dim_number(0);
        return MSC_OK;
    }
    dim_split(&base, &before, g, a, DIM_MUL, 1);
    if (__builtin_mul_overflow(before, b, &total)) {
        return dim_fail(g, "does not fit in 64 bits");
    }
    if (total == 1) {
        *out = base;
        return MSC_OK;
    }
    return dim_make(out, g, DIM_MUL, base, dim_number(total));
}

static enum msc_status divide_number(struct msc_dim *out, struct msc_graph *g, struct msc_dim a,
                                     int64_t b) {
    if (b == 0) {
        return dim_fail(g, "is divided by zero");
    }
    struct msc_dim base;
    int64_t before, total;
    if (b == 1) {
        *out = a;
        return MSC_OK;
    }
    dim_split(&base, &before, g, a, DIM_MUL, 1);
    if (before == INT64_MIN && b == -1) {
        return dim_fail(g, "does not fit in 64 bits");
    }
    if (before % b == 0) {
        return multiply_number(out, g, base, before / b);
    }
    // floor((floor(x / before) + added) / b) = floor((x + added * before) / (before * b)).
    int64_t added;
    dim_split(&base, &added, g, a, DIM_ADD, 0);
    dim_split(&base, &before, g, base, DIM_FLOOR_DIV, 1);
    if (before > 1 && b > 0 && !__builtin_mul_overflow(before, b, &total) &&
        !__builtin_mul_overflow(added, before, &added)) {
        MSC_TRY(add_number(&base, g, base, added));
        return dim_make(out, g, DIM_FLOOR_DIV, base, dim_number(total));
    }
    return dim_make(out, g, DIM_FLOOR_DIV, a, dim_number(b));
}

// Divides the product `a` by its factor `b`; false if `b` is not a factor of `a`.
static bool cancel_factor(struct msc_dim *out, const struct msc_graph *g, struct msc_dim a,
                          struct msc_dim b) {
    const struct msc_prim *p = g->prims[a.prim];
    int64_t value;
    if (a.prim == b.prim) {
        *out = dim_number(1);
        return true;
    }
    if (strcmp(p->optype, "Mul") != 0 || (p->parents[0] != b.prim && p->parents[1] != b.prim)) {
        return false;
    }
    int32_t other = p->parents[p->parents[0] == b.prim ? 1 : 0];
    *out = int_value(&value, g, other) ? dim_number(value) : (struct msc_dim){-1, other};
    return true;
}

static enum msc_status with_number(struct msc_dim *out, struct msc_graph *g, enum dim_op op,
                                   struct msc_dim a, int64_t b) {
    switch (op) {
    case DIM_ADD:
        return add_number(out, g, a, b);
    case DIM_SUB:
        return b == INT64_MIN ? dim_fail(g, "does not fit in 64 bits") : add_number(out, g, a, -b);
    case DIM_MUL:
        return multiply_number(out, g, a, b);
    case DIM_FLOOR_DIV:
        return divide_number(out, g, a, b);
    case DIM_FLOOR_MOD:
        if (b == 1) {
            *out = dim_number(0);
            return MSC_OK;
        }
        break;
    default:
        break;
    }
    return dim_make(out, g, op, a, dim_number(b));
}

static enum msc_status between_symbols(struct msc_dim *out, struct msc_graph *g, enum dim_op op,
                                       struct msc_dim a, struct msc_dim b) {
    if (op == DIM_SUB && a.prim == b.prim) {
        *out = dim_number(0);
        return MSC_OK;
    }
    if ((op == DIM_MAX || op == DIM_MIN) && a.prim == b.prim) {
        *out = a;
        return MSC_OK;
    }
    if (op == DIM_FLOOR_DIV && cancel_factor(out, g, a, b)) {
        return MSC_OK;
    }
    bool commutes = op == DIM_ADD || op == DIM_MUL || op == DIM_MAX || op == DIM_MIN;
    if (commutes && a.prim > b.prim) {
        return dim_make(out, g, op, b, a);
    }
    return dim_make(out, g, op, a, b);
}

enum msc_status msc_dim_binary(struct msc_dim *out, struct msc_graph *g, const char *optype,
                               struct msc_dim a, struct msc_dim b) {
    enum dim_op op;
    if (!find_op(&op, optype)) {
        return MSC_FAIL(MSC_E_INVALID, "graph '%s': '%s' is not an operation on dimensions",
                        g->name, optype);
    }
    if (is_number(a) && is_number(b)) {
        *out = dim_number(0);
        return dim_compute(&out->value, op, a.value, b.value)
                   ? MSC_OK
                   : dim_fail(g, "overflows or is divided by zero");
    }
    if (op == DIM_CEIL_DIV && is_number(b) && b.value > 0) {
        MSC_TRY(msc_dim_binary(&a, g, "Add", a, dim_number(b.value - 1)));
        return msc_dim_binary(out, g, "FloorDiv", a, b);
    }
    if (op == DIM_CEIL_DIV) {
        // ceil(a / b) = -floor(-a / b), because prims have no CeilDiv.
        MSC_TRY(msc_dim_binary(&a, g, "Sub", dim_number(0), a));
        MSC_TRY(msc_dim_binary(&a, g, "FloorDiv", a, b));
        return msc_dim_binary(out, g, "Sub", dim_number(0), a);
    }
    bool commutes = op == DIM_ADD || op == DIM_MUL || op == DIM_MAX || op == DIM_MIN;
    if (is_number(a) && commutes) {
        struct msc_dim swap = a;
        a = b;
        b = swap;
    }
    if (is_number(b)) {
        return with_number(out, g, op, a, b.value);
    }
    return is_number(a) ? dim_make(out, g, op, a, b) : between_symbols(out, g, op, a, b);
}

// Computes a prim from the values of its parents; false if one of these values is unknown.
static bool evaluate_prim(int64_t *out, const struct msc_graph *g, int32_t prim,
                          const int64_t values[], const bool known[]) {
    const struct msc_prim *p = g->prims[prim];
    enum dim_op op;
    if (int_value(out, g, prim)) {
        return true;
    }
    if (p->n_parents != 2 || !find_op(&op, p->optype) || !known[p->parents[0]] ||
        !known[p->parents[1]]) {
        return false;
    }
    return dim_compute(out, op, values[p->parents[0]], values[p->parents[1]]);
}

int64_t msc_dim_evaluate(const struct msc_graph *g, struct msc_dim dim, const int64_t symbols[]) {
    if (is_number(dim)) {
        return dim.value;
    }
    if (g->prims[dim.prim]->n_parents == 0 && symbols[dim.prim] >= 0) {
        return symbols[dim.prim];
    }
    // Parents have smaller ids than their children, so one pass in ascending order suffices.
    size_t n = (size_t)dim.prim + 1;
    int64_t *values = msc_alloc_zero(n, sizeof(values[0]));
    bool *known = msc_alloc_zero(n, sizeof(known[0]));
    int64_t result = -1;
    for (size_t i = 0; values != NULL && known != NULL && i < n; i++) {
        if (g->prims[i]->n_parents == 0 && symbols[i] >= 0) {
            values[i] = symbols[i];
            known[i] = true;
        } else {
            known[i] = evaluate_prim(&values[i], g, (int32_t)i, values, known);
        }
    }
    if (known != NULL && known[n - 1] && values[n - 1] >= 0) {
        result = values[n - 1];
    }
    msc_free(values);
    msc_free(known);
    return result;
}
