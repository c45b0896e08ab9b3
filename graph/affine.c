#include "graph/affine.h"

#include <math.h>

bool msc_graph__is_between(const struct msc_graph *g, int32_t tensor) {
    const int32_t *readers;
    return tensor != MSC_NO_ID && msc_graph_weight_of(g, tensor) == MSC_NO_ID &&
           msc_dtype_is_float(msc_graph_tensor(g, tensor)->dtype) &&
           msc_graph_consumers(g, tensor, &readers) == 1 && !msc_graph_is_output(g, tensor);
}

bool msc_graph__read_number(double *out, const struct msc_graph *g, int32_t tensor) {
    int32_t weight = tensor == MSC_NO_ID ? MSC_NO_ID : msc_graph_weight_of(g, tensor);
    const struct msc_tensor *t = weight == MSC_NO_ID ? NULL : msc_graph_tensor(g, weight);
    if (t == NULL || t->data == NULL || t->dtype != MSC_DTYPE_F32 ||
        msc_array_n_elements(t->data) != 1) {
        return false;
    }
    *out = (double)*(const float *)msc_array_data(t->data);
    return isfinite(*out);
}

bool msc_graph__read_affine(struct msc_affine *out, const struct msc_graph *g,
                            const struct msc_joint *j) {
    bool is_sum = j->op == MSC_OP_ADD || j->op == MSC_OP_SUBTRACT;
    bool is_turned = j->op == MSC_OP_SUBTRACT || j->op == MSC_OP_DIVIDE;
    double number = 0;
    if ((!is_sum && j->op != MSC_OP_MULTIPLY && j->op != MSC_OP_DIVIDE) || j->n_operands != 2) {
        return false;
    }
    int constant = msc_graph__read_number(&number, g, j->operands[1]) ? 1 : 0;
    if (constant == 0 && (is_turned || !msc_graph__read_number(&number, g, j->operands[0]))) {
        return false;
    }
    int32_t x = j->operands[1 - constant];
    if (x == MSC_NO_ID || msc_graph_weight_of(g, x) != MSC_NO_ID ||
        msc_graph_tensor(g, j->operands[constant])->n_dims > msc_graph_tensor(g, x)->n_dims) {
        return false;
    }
    *out = (struct msc_affine){.activation = x, .factor = 1};
    if (is_sum) {
        out->shift = is_turned ? -number : number;
    } else {
        out->factor = is_turned ? 1 / number : number;
    }
    return isfinite(out->factor);
}

int32_t msc_graph__passed_on(const struct msc_graph *g, const struct msc_joint *j) {
    struct msc_affine a;
    return msc_graph__read_affine(&a, g, j) ? a.activation
           : j->n_operands > 0              ? j->operands[0]
                                            : MSC_NO_ID;
}
