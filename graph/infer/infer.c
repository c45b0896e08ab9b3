#include "graph/infer.h"

#include "graph/infer/infer_internal.h"

#include <string.h>

typedef enum msc_status (*infer_function)(const struct msc_infer *call);

// The functions that ops.def names, by operator. `input` has none.
#define msc_infer__none NULL
static const infer_function functions[MSC_OP_COUNT] = {
#define MSC_OP(id, name, onnx, hint, roles, channels, infer, kernel, folding, discontinuity)       \
    [MSC_OP_##id] = msc_infer__##infer,
#include "graph/ops.def"
#undef MSC_OP
};
#undef msc_infer__none

enum msc_status msc_infer(const struct msc_infer *call) {
    const struct msc_joint *j = call->joint;
    infer_function function = functions[j->op];
    if (function == NULL) {
        return msc_infer__fail(call,
                               "cannot infer outputs of this operator, which has no operands");
    }
    int n_outputs = msc_op_n_outputs(j->op);
    if (call->n_outputs > n_outputs) {
        return msc_infer__fail(call, "expected at most %d output%s, found %d", n_outputs,
                               n_outputs == 1 ? "" : "s", call->n_outputs);
    }
    return function(call);
}

// A weight's layout such as "OI" is dropped, because it does not apply to an activation. (The
// weight may be shared with a linear layer.)
enum msc_status msc_infer__constant(const struct msc_infer *call) {
    struct msc_infer_tensor *out = &call->outputs[0];
    msc_infer__copy_all(out, call->operands[0]);
    if (strpbrk(out->layout, "OI") != NULL) {
        out->layout[0] = '\0';
    }
    return MSC_OK;
}
