// Checks a rule on a match: computes the joints of the match and those of the replacement by the
// reference kernels, on random inputs, and compares the results.
#include "graph/rules/rules_internal.h"

#include "base/rng.h"
#include "graph/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Floats of draw `i` are uniform within -ranges[i] and ranges[i]. The seed of the draw is i + 1.
static const double ranges[] = {2, 8, 0.5};
enum { MOST_INTEGER = 3 };

// The same match in a copy of the graph of its joints.
static enum msc_status translate(struct rule_match *out, const struct rule_lone *s,
                                 const struct msc_graph *g) {
    const struct rule *rule = s->match->rule;
    bool fits = true;
    *out = *s->match;
    out->graph = g;
    for (int i = 0; i < rule->match.n; i++) {
        out->joints[i] = msc_graph__live_joint(g, s->joints[i]);
        fits = fits && out->joints[i] != MSC_NO_ID;
    }
    for (int i = 0; i < rule->n_tensors; i++) {
        if (s->match->tensors[i] != MSC_NO_ID) {
            out->tensors[i] =
                s->tensors[i] == NULL ? MSC_NO_ID : msc_graph__live_tensor(g, s->tensors[i]);
            fits = fits && out->tensors[i] != MSC_NO_ID;
        }
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID, "its joints cannot be computed apart from the graph");
}

// ---- Comparison -------------------------------------------------------------------------------

struct comparison {
    const struct rule_match *match;
    const struct msc_graph *left, *right;
    size_t n_inputs, n_outputs;
    struct msc_array **inputs, **left_out, **right_out;
    int draw;
    int64_t n_finite; // elements of results, over all draws
};

static enum msc_status fill_input(struct msc_array **out, const struct msc_tensor *t, int draw,
                                  uint64_t stream) {
    struct msc_rng rng;
    struct msc_array *wide;
    bool is_float = msc_dtype_is_float(t->dtype);
    MSC_TRY(msc_array_create(&wide, MSC_DTYPE_F64, t->n_dims, t->dims));
    double *x = msc_array_data(wide);
    msc_rng_seed(&rng, (uint64_t)draw + 1, stream);
    for (int64_t i = 0; i < msc_array_n_elements(wide); i++) {
        x[i] = is_float
                   ? (2 * msc_rng_double(&rng) - 1) * ranges[draw]
                   : (double)msc_rng_below(&rng, t->dtype == MSC_DTYPE_BOOL ? 2 : MOST_INTEGER + 1);
    }
    enum msc_status status = msc_array_convert(out, wide, t->dtype);
    msc_array_release(wide);
    return status;
}

static enum msc_status run_side(struct msc_array *out[], const struct comparison *c,
                                const struct msc_graph *g) {
    int32_t *wanted = msc_alloc_zero(c->n_outputs, sizeof(wanted[0]));
    MSC_TRY(MSC_ALLOCATED(wanted));
    for (size_t i = 0; i < c->n_outputs; i++) {
        wanted[i] = msc_graph_output(g, (int32_t)i);
    }
    enum msc_status status = msc_reference_run_graph(
        out, g, (const struct msc_array *const *)c->inputs, wanted, c->n_outputs, NULL);
    msc_free(wanted);
    return status;
}

static double tolerance_of(const struct rule *rule, enum msc_dtype dtype) {
    double usual = dtype == MSC_DTYPE_F16      ? 2e-3
                   : dtype == MSC_DTYPE_BF16   ? 1.6e-2
                   : msc_dtype_is_float(dtype) ? 1e-5
                                               : 0;
    return rule->tolerance > 0 && usual > 0 ? rule->tolerance : usual;
}

static double difference(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) ? 0 : isnan(a - b) ? INFINITY : fabs(a - b);
}

static bool have_equal_types(const struct msc_array *a, const struct msc_array *b) {
    int n = msc_array_n_dims(a);
    return msc_array_dtype(a) == msc_array_dtype(b) && n == msc_array_n_dims(b) &&
           memcmp(msc_array_dims(a), msc_array_dims(b), (size_t)n * sizeof(int64_t)) == 0;
}

static enum msc_status keep_example(struct msc_array_list *list, const struct comparison *c) {
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < c->n_inputs; i++) {
        int32_t input = msc_graph_input(c->left, (int32_t)i);
        status = msc_array_list_add(list, msc_graph_tensor(c->left, input)->alias, c->inputs[i]);
    }
    for (size_t i = 0; status == MSC_OK && i < (size_t)c->match->rule->n_results; i++) {
        const struct rule *rule = c->match->rule;
        const char *name = rule->tensors[rule->results[i].from].name;
        struct msc_arena arena = {0};
        const char *left = msc_arena_printf(&arena, "match.%s", name);
        const char *right = msc_arena_printf(&arena, "replace.%s", name);
        status = msc_arena_status(&arena);
        status = status == MSC_OK ? msc_array_list_add(list, left, c->left_out[i]) : status;
        status = status == MSC_OK ? msc_array_list_add(list, right, c->right_out[i]) : status;
        msc_arena_finish(&arena);
    }
    return status;
}

static enum msc_status compare_output(struct comparison *c, size_t i) {
    const struct msc_array *a = c->left_out[i], *b = c->right_out[i];
    const struct rule *rule = c->match->rule;
    const char *name = i < (size_t)rule->n_results ? rule->tensors[rule->results[i].from].name
                                                   : "a joint that is kept";
    if (!have_equal_types(a, b)) {
        char expected[MSC_DIMS_TEXT_BYTES], found[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID, "it replaces '%s', %s%s, by %s%s", name,
                        msc_dtype_name(msc_array_dtype(a)),
                        msc_dims_format(expected, msc_array_n_dims(a), msc_array_dims(a)),
                        msc_dtype_name(msc_array_dtype(b)),
                        msc_dims_format(found, msc_array_n_dims(b), msc_array_dims(b)));
    }
    double largest = 0, scale = 1;
    int64_t where = 0;
    for (int64_t k = 0; k < msc_array_n_elements(a); k++) {
        double x = msc_array_get_double(a, k), d = difference(x, msc_array_get_double(b, k));
        scale = isfinite(x) && fabs(x) > scale ? fabs(x) : scale;
        c->n_finite += i < (size_t)rule->n_results && isfinite(x);
        where = d > largest ? k : where;
        largest = d > largest ? d : largest;
    }
    double tolerance = tolerance_of(rule, msc_array_dtype(a));
    return largest <= tolerance * scale
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "element %lld of '%s' is %.7g in place of %.7g on random inputs of seed "
                          "%d (difference %.3g, allowed %.3g)",
                          (long long)where, name, msc_array_get_double(b, where),
                          msc_array_get_double(a, where), c->draw + 1, largest, tolerance * scale);
}

static void release_all(struct msc_array *arrays[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        msc_array_release(arrays[i]);
        arrays[i] = NULL;
    }
}

static enum msc_status compare_draw(struct comparison *c, struct msc_array_list *example) {
    for (size_t i = 0; i < c->n_inputs; i++) {
        const struct msc_tensor *t =
            msc_graph_tensor(c->left, msc_graph_input(c->left, (int32_t)i));
        MSC_TRY(fill_input(&c->inputs[i], t, c->draw, i));
    }
    MSC_TRY(run_side(c->left_out, c, c->left));
    MSC_TRY(run_side(c->right_out, c, c->right));
    for (size_t i = 0; i < c->n_outputs; i++) {
        enum msc_status status = compare_output(c, i);
        if (status == MSC_E_INVALID && example != NULL) {
            struct msc_arena arena = {0};
            const char *why = msc_arena_strdup(&arena, msc_status_message());
            enum msc_status kept = why == NULL ? MSC_E_NOMEM : keep_example(example, c);
            status = kept == MSC_OK ? msc_status_restore(status, why) : kept;
            msc_arena_finish(&arena);
        }
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status compare_sides(const struct rule_match *m, const struct msc_graph *left,
                                     const struct msc_graph *right,
                                     struct msc_array_list *example) {
    struct comparison c = {.match = m,
                           .left = left,
                           .right = right,
                           .n_inputs = (size_t)msc_graph_n_inputs(left),
                           .n_outputs = (size_t)msc_graph_n_outputs(left)};
    enum msc_status status = MSC_OK;
    c.inputs = msc_alloc_zero(c.n_inputs + 2 * c.n_outputs, sizeof(c.inputs[0]));
    MSC_TRY(MSC_ALLOCATED(c.inputs));
    c.left_out = c.inputs + c.n_inputs;
    c.right_out = c.left_out + c.n_outputs;
    for (; status == MSC_OK && c.draw < (int)(sizeof(ranges) / sizeof(ranges[0])); c.draw++) {
        status = compare_draw(&c, example);
        release_all(c.inputs, c.n_inputs + 2 * c.n_outputs);
    }
    msc_free(c.inputs);
    return status != MSC_OK || c.n_finite > 0
               ? status
               : MSC_FAIL(MSC_E_INVALID, "it cannot be checked, because no result is finite on "
                                         "random inputs");
}

// ---- The check --------------------------------------------------------------------------------

// True if an equal match of the rule was checked before; else remembers this match.
static enum msc_status remember(bool *is_known, struct rule_checks *checks,
                                const struct rule_match *m, const struct msc_graph *g) {
    struct msc_hash h = msc_hash_combine(msc_graph_hash(g), msc_graph_weights_hash(g));
    h = msc_hash_add_text(h, m->rule->name);
    for (size_t i = 0; i < checks->n; i++) {
        if (msc_hash_equal(checks->seen[i], h)) {
            *is_known = true;
            return MSC_OK;
        }
    }
    *is_known = false;
    MSC_TRY(msc_grow(&checks->seen, &checks->capacity, checks->n + 1, sizeof(h)));
    checks->seen[checks->n++] = h;
    return MSC_OK;
}

static enum msc_status check_match(struct rule_checks *checks, struct rule_lone *s) {
    struct msc_graph *right = NULL;
    struct rule_match match;
    bool is_known, done = false;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_rule__build_lone(s));
    MSC_TRY_OUT(remember(&is_known, checks, s->match, s->builder.graph));
    if (is_known) {
        goto out;
    }
    MSC_TRY_OUT(msc_graph_clone(&right, s->builder.graph));
    MSC_TRY_OUT(translate(&match, s, right));
    MSC_TRY_OUT(msc_rule__replace(&done, right, &match));
    if (done) {
        status = compare_sides(s->match, s->builder.graph, right, checks->counterexample);
    }
out:
    msc_graph_destroy(right);
    return status;
}

enum msc_status msc_rule__check(struct rule_checks *checks, const struct rule_match *m) {
    struct rule_lone s = {.match = m};
    enum msc_status status = check_match(checks, &s);
    msc_rule__finish_lone(&s);
    return status;
}
