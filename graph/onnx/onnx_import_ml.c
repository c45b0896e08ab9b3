// Translates the arithmetic operators of domain ai.onnx.ml, as converters of scikit-learn write
// them. Formulas: ONNX's specification of ai.onnx.ml, or ONNX Runtime's results if the
// specification is ambiguous. Tables, trees, strings and maps are not supported.
#include "graph/onnx/onnx_import_compose.h"

#include <float.h>
#include <math.h>
#include <string.h>

// A list attribute as a constant: [n], or a scalar if the list has one element.
static struct msc_value *make_list(struct msc_compose *c, const float values[], int n) {
    struct msc_array *array;
    struct msc_value *out = NULL;
    int64_t dim = n;
    if (c->status == MSC_OK) {
        c->status = msc_array_create_from(&array, MSC_DTYPE_F32, n == 1 ? 0 : 1, &dim, values);
    }
    if (c->status == MSC_OK) {
        c->status = msc_builder_constant(&out, &c->node->import->builder, "", array);
        msc_array_release(array);
    }
    return out;
}

static struct msc_value *as_float(struct msc_compose *c) {
    return msc_compose_cast(c, c->node->inputs[0], MSC_DTYPE_F32);
}

// (x - offset) * scale
static enum msc_status scaler(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    const float *offset, *scale;
    int n_offsets, n_scales;
    MSC_TRY(msc_onnx__floats(&offset, &n_offsets, n, "offset"));
    MSC_TRY(msc_onnx__floats(&scale, &n_scales, n, "scale"));
    if (n_offsets < 1 || n_scales < 1) {
        return MSC_FAIL(MSC_E_FORMAT, "offset or scale is missing");
    }
    struct msc_value *x =
        MSC_COMPOSE(&c, MSC_OP_SUBTRACT, as_float(&c), make_list(&c, offset, n_offsets));
    return MSC_COMPOSE_LAST(&c, MSC_OP_MULTIPLY, x, make_list(&c, scale, n_scales));
}

// Divides each row by its greatest element, the sum of absolute values, or the square root of the
// sum of squares. Rows whose divisor is 0 are not changed.
static enum msc_status normalizer(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    const char *norm;
    MSC_TRY(msc_onnx__text(&norm, n, "norm", "MAX"));
    struct msc_value *x = as_float(&c), *divisor;
    if (strcmp(norm, "MAX") == 0) {
        divisor = msc_compose_reduce(&c, MSC_OP_MAX, x, -1);
    } else if (strcmp(norm, "L1") == 0) {
        divisor = msc_compose_reduce(&c, MSC_OP_SUM, MSC_COMPOSE(&c, MSC_OP_ABS, x), -1);
    } else if (strcmp(norm, "L2") == 0) {
        divisor = MSC_COMPOSE(&c, MSC_OP_MULTIPLY, x, x);
        divisor = MSC_COMPOSE(&c, MSC_OP_SQRT, msc_compose_reduce(&c, MSC_OP_SUM, divisor, -1));
    } else {
        return MSC_FAIL(MSC_E_FORMAT, "norm is '%s', expected MAX, L1 or L2", norm);
    }
    struct msc_value *zero = msc_compose_scalar(&c, MSC_DTYPE_F32, 0.0);
    struct msc_value *one = msc_compose_scalar(&c, MSC_DTYPE_F32, 1.0);
    struct msc_value *is_zero = MSC_COMPOSE(&c, MSC_OP_EQUAL, divisor, zero);
    divisor = MSC_COMPOSE(&c, MSC_OP_WHERE, is_zero, one, divisor);
    return MSC_COMPOSE_LAST(&c, MSC_OP_DIVIDE, x, divisor);
}

static enum msc_status binarizer(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    float threshold;
    MSC_TRY(msc_onnx__float(&threshold, n, "threshold", 0.0f));
    enum msc_dtype dtype = msc_onnx__shape(n, n->inputs[0]).dtype;
    struct msc_value *limit = msc_compose_scalar(&c, dtype, threshold);
    struct msc_value *above = MSC_COMPOSE(&c, MSC_OP_GREATER, n->inputs[0], limit);
    msc_onnx__set(n, "dtype", msc_dtype_name(dtype));
    return MSC_COMPOSE_LAST(&c, MSC_OP_CAST, above);
}

// Replaces elements that equal a number, which may be NaN.
static enum msc_status imputer(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value *x = n->inputs[0], *is_missing, *imputed = NULL;
    if (msc_dtype_is_integer(msc_onnx__shape(n, x).dtype)) {
        const int64_t *values;
        int64_t replaced;
        int count;
        MSC_TRY(msc_onnx__int(&replaced, n, "replaced_value_int64", 0));
        MSC_TRY(msc_onnx__ints(&values, &count, n, "imputed_value_int64s"));
        imputed = count < 1 ? NULL : msc_compose_ints(&c, values, count);
        is_missing = MSC_COMPOSE(&c, MSC_OP_EQUAL, x,
                                 msc_compose_scalar(&c, MSC_DTYPE_I64, (double)replaced));
    } else {
        const float *values;
        float replaced;
        int count;
        MSC_TRY(msc_onnx__float(&replaced, n, "replaced_value_float", 0.0f));
        MSC_TRY(msc_onnx__floats(&values, &count, n, "imputed_value_floats"));
        imputed = count < 1 ? NULL : make_list(&c, values, count);
        is_missing = isnan(replaced) ? MSC_COMPOSE(&c, MSC_OP_ISNAN, x)
                                     : MSC_COMPOSE(&c, MSC_OP_EQUAL, x,
                                                   msc_compose_scalar(&c, MSC_DTYPE_F32, replaced));
    }
    MSC_TRY(c.status);
    if (imputed == NULL) {
        return MSC_FAIL(MSC_E_FORMAT, "imputed values of the input's type are missing");
    }
    return MSC_COMPOSE_LAST(&c, MSC_OP_WHERE, is_missing, imputed, x);
}

// Takes elements of the last axis. An input of one dimension is first made a row, [1, n].
static enum msc_status feature_extractor(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    int64_t all = -1;
    struct msc_value *indices = msc_compose_reshape(&c, n->inputs[1], &all, 1), *x = n->inputs[0];
    if (msc_onnx__shape(n, x).n_dims == 1) {
        x = msc_compose_unsqueeze(&c, x, 0);
    }
    msc_onnx__set_int(n, "axis", -1);
    return MSC_COMPOSE_LAST(&c, MSC_OP_TAKE, x, indices);
}

static enum msc_status feature_vectorizer(struct msc_onnx_node *n) {
    struct msc_compose c = {.node = n};
    struct msc_value **parts =
        msc_arena_array(&n->import->builder.arena, (size_t)n->n_inputs, sizeof parts[0]);
    MSC_TRY(MSC_ALLOCATED(parts));
    for (int i = 0; i < n->n_inputs; i++) {
        parts[i] = msc_compose_cast(&c, n->inputs[i], MSC_DTYPE_F32);
        if (msc_compose_shape(&c, parts[i]).n_dims == 1) {
            parts[i] = msc_compose_unsqueeze(&c, parts[i], 0);
        }
    }
    msc_onnx__set_int(n, "axis", 1);
    return msc_compose_last(&c, MSC_OP_CONCAT, parts, n->n_inputs);
}

// ---- Linear models ----------------------------------------------------------------------------

// The weight is [n_rows, width]: a row of coefficients for each result.
struct linear {
    struct msc_compose c;
    int64_t n_rows;
    const char *transform; // attribute post_transform, the function applied to the results
    struct msc_value *results;
};

static struct msc_value *make_weight(struct linear *l, const char *attribute, int n_dims,
                                     const int64_t dims[], const float values[]) {
    struct msc_builder *b = &l->c.node->import->builder;
    const char *joint = msc_onnx__joint_name(l->c.node);
    const char *name =
        joint == NULL ? attribute : msc_arena_printf(&b->arena, "%s/%s", joint, attribute);
    struct msc_array *array;
    struct msc_value *out = NULL;
    if (l->c.status == MSC_OK) {
        l->c.status = MSC_ALLOCATED(name);
    }
    if (l->c.status == MSC_OK) {
        l->c.status = msc_array_create_from(&array, MSC_DTYPE_F32, n_dims, dims, values);
    }
    if (l->c.status == MSC_OK) {
        l->c.status = msc_builder_constant(&out, b, name, array);
        msc_array_release(array);
    }
    return out;
}

static enum msc_status add_linear(struct linear *l) {
    struct msc_onnx_node *n = l->c.node;
    const float *coefficients, *intercepts;
    int n_coefficients, n_intercepts;
    MSC_TRY(msc_onnx__floats(&coefficients, &n_coefficients, n, "coefficients"));
    MSC_TRY(msc_onnx__floats(&intercepts, &n_intercepts, n, "intercepts"));
    MSC_TRY(msc_onnx__text(&l->transform, n, "post_transform", "NONE"));
    struct msc_onnx_shape shape = msc_onnx__shape(n, n->inputs[0]);
    int64_t width = shape.n_dims == 2 ? shape.dims[1] : -1;
    if (width < 0 && l->n_rows > 0) {
        width = n_coefficients / l->n_rows;
    }
    l->n_rows = l->n_rows == 0 && width > 0 ? n_coefficients / width : l->n_rows;
    bool has_bias = n_intercepts > 0;
    if (width < 1 || l->n_rows < 1 || l->n_rows * width != n_coefficients ||
        (has_bias && n_intercepts != l->n_rows)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "found %d coefficients and %d intercepts for an input of width %lld, "
                        "expected a row of coefficients and an intercept for each result",
                        n_coefficients, n_intercepts < 0 ? 0 : n_intercepts, (long long)width);
    }
    struct msc_value *operands[3] = {as_float(&l->c)};
    operands[1] = make_weight(l, "coefficients", 2, (int64_t[]){l->n_rows, width}, coefficients);
    operands[2] = has_bias ? make_weight(l, "intercepts", 1, &l->n_rows, intercepts) : NULL;
    MSC_TRY(l->c.status);
    operands[1]->layout = "OI";
    l->results = msc_compose_joint(&l->c, has_bias ? MSC_OP_LINEAR_BIAS : MSC_OP_LINEAR, operands,
                                   has_bias ? 3 : 2);
    return l->c.status;
}

// The operator of the transform. Also sets the attributes that its joint needs.
static enum msc_status find_transform(enum msc_op *op, struct linear *l) {
    if (strcmp(l->transform, "SOFTMAX") == 0) {
        msc_onnx__set_int(l->c.node, "axis", -1);
        *op = MSC_OP_SOFTMAX;
    } else if (strcmp(l->transform, "LOGISTIC") == 0) {
        *op = MSC_OP_SIGMOID;
    } else if (strcmp(l->transform, "NONE") == 0) {
        *op = MSC_OP_IDENTITY;
    } else {
        return MSC_ONNX_UNSUPPORTED("post_transform '%s' is not supported, expected NONE, SOFTMAX "
                                    "or LOGISTIC",
                                    l->transform);
    }
    return MSC_OK;
}

static enum msc_status linear_regressor(struct msc_onnx_node *n) {
    struct linear l = {.c = {.node = n}};
    enum msc_op op = MSC_OP_IDENTITY;
    MSC_TRY(msc_onnx__int(&l.n_rows, n, "targets", 1));
    MSC_TRY(add_linear(&l));
    MSC_TRY(find_transform(&op, &l));
    return MSC_COMPOSE_LAST(&l.c, op, l.results);
}

// Makes two columns of the results s of a single row: the first is `sum` - s, the second s.
static struct msc_value *oppose(struct linear *l, double sum) {
    struct msc_value *total = msc_compose_scalar(&l->c, MSC_DTYPE_F32, sum);
    struct msc_value *other = MSC_COMPOSE(&l->c, MSC_OP_SUBTRACT, total, l->results);
    return msc_compose_concat(&l->c, other, l->results, 1);
}

// Output 0 is the label of the greatest score, output 1 has the scores. With two labels there may
// be a single row: its result s selects the second label if s > 0. The scores are then 1 - s and s,
// or sigmoid(-s) and sigmoid(s) if the transform is LOGISTIC.
static enum msc_status linear_classifier(struct msc_onnx_node *n) {
    struct linear l = {.c = {.node = n}};
    struct msc_compose *c = &l.c;
    const int64_t *labels;
    int n_labels;
    enum msc_op op = MSC_OP_IDENTITY;
    if (msc_onnx__attribute(n, "classlabels_strings") != NULL) {
        return MSC_ONNX_UNSUPPORTED(
            "the labels are strings; convert the classifier with integer labels");
    }
    MSC_TRY(msc_onnx__ints(&labels, &n_labels, n, "classlabels_ints"));
    MSC_TRY(add_linear(&l));
    bool is_binary = l.n_rows == 1 && n_labels == 2;
    if (!is_binary && (l.n_rows < 2 || l.n_rows != n_labels)) {
        return MSC_ONNX_UNSUPPORTED(
            "found %lld rows of coefficients for %d labels, expected a row for each label, or one "
            "row for 2 labels",
            (long long)l.n_rows, n_labels < 0 ? 0 : n_labels);
    }
    struct msc_value *ranked = is_binary ? oppose(&l, 0.0) : l.results;
    struct msc_value *scores = ranked;
    if (is_binary && strcmp(l.transform, "LOGISTIC") != 0) {
        scores = oppose(&l, 1.0);
    } else {
        MSC_TRY(find_transform(&op, &l));
        scores = MSC_COMPOSE(c, op, scores);
    }
    msc_compose_extra(c, 1, scores);
    msc_onnx__set_int(n, "axis", 1);
    msc_onnx__set_bool(n, "keepdims", false);
    struct msc_value *index = MSC_COMPOSE(c, MSC_OP_ARGMAX, ranked);
    msc_onnx__set_int(n, "axis", 0);
    return MSC_COMPOSE_LAST(c, MSC_OP_TAKE, msc_compose_ints(c, labels, n_labels), index);
}

bool msc_onnx__find_ml_rule(struct msc_onnx_rule *out, const char *op_type) {
    static const struct msc_onnx_rule rules[] = {
        {"ArrayFeatureExtractor", feature_extractor, MSC_OP_TAKE, 2, 2},
        {"Binarizer", binarizer, MSC_OP_CAST, 1, 1},
        {"FeatureVectorizer", feature_vectorizer, MSC_OP_CONCAT, 1, -1},
        {"Imputer", imputer, MSC_OP_WHERE, 1, 1},
        {"LinearClassifier", linear_classifier, MSC_OP_TAKE, 1, 1},
        {"LinearRegressor", linear_regressor, MSC_OP_IDENTITY, 1, 1},
        {"Normalizer", normalizer, MSC_OP_DIVIDE, 1, 1},
        {"Scaler", scaler, MSC_OP_MULTIPLY, 1, 1},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].onnx, op_type) == 0) {
            *out = rules[i];
            return true;
        }
    }
    return false;
}
