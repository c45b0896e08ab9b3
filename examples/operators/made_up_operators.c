// Operators of the domain "made.up" as a shared library: Blur and Fold (make_model.py wrote a
// network with them).
//
//     cc -shared -fPIC $(pkg-config --cflags mscgym) -o made_up_operators.so made_up_operators.c
//     mscgym run made_up.onnx --operators ./made_up_operators.so --inputs made_up.npz -o out.npz
//
// The functions that it calls are in the program that loads it, so nothing is linked.
#include <mscgym/graph/operators.h>

#include <string.h>

static int64_t row_length(const struct msc_operator_tensor *t) {
    return t->n_dims > 0 ? t->dims[t->n_dims - 1] : 1;
}

// ---- Blur: (kernel[0] * x moved by `step` + kernel[1] * x) * gain, along the last axis ----------

static enum msc_status blur_infer(const struct msc_operator_call *call) {
    if (call->n_inputs != 2 || call->inputs[0].dtype != MSC_DTYPE_F32 ||
        msc_operator_n_elements(&call->inputs[1]) != 2) {
        return MSC_FAIL(MSC_E_INVALID, "expected a float32 tensor and a kernel of 2 numbers");
    }
    call->outputs[0] = call->inputs[0]; // also copies unknown lengths
    return MSC_OK;
}

static enum msc_status blur_compute(const struct msc_operator_call *call) {
    const float *x = call->inputs[0].data, *kernel = call->inputs[1].data;
    float *y = call->outputs[0].data, gain;
    int64_t step, n = row_length(&call->inputs[0]);
    MSC_TRY(msc_operator_int(&step, call, "step", 1));
    MSC_TRY(msc_operator_float(&gain, call, "gain", 1.0f));
    int64_t n_elements = msc_operator_n_elements(&call->inputs[0]);
    for (int64_t i = 0; i < n_elements; i++) {
        int64_t at = i % n, from = ((at - step) % n + n) % n;
        y[i] = (kernel[0] * x[i - at + from] + kernel[1] * x[i]) * gain;
    }
    return MSC_OK;
}

// ---- Fold: the halves of the last axis, added or subtracted, and the maximum of each row --------

static enum msc_status fold_infer(const struct msc_operator_call *call) {
    const struct msc_operator_tensor *x = &call->inputs[0];
    if (call->n_inputs != 1 || call->n_outputs != 2 || x->n_dims == 0 || row_length(x) % 2 != 0) {
        return MSC_FAIL(MSC_E_INVALID, "expected rows of an even length, and two outputs");
    }
    call->outputs[0] = *x;
    call->outputs[0].dims[x->n_dims - 1] /= 2;
    call->outputs[1] = *x;
    call->outputs[1].n_dims = x->n_dims - 1;
    return MSC_OK;
}

static enum msc_status fold_compute(const struct msc_operator_call *call) {
    const float *x = call->inputs[0].data;
    float *y = call->outputs[0].data, *most = call->outputs[1].data;
    const char *mode;
    int64_t n = row_length(&call->outputs[0]), n_rows = msc_operator_n_elements(&call->outputs[1]);
    MSC_TRY(msc_operator_text(&mode, call, "mode", "add"));
    float sign = strcmp(mode, "add") == 0 ? 1.0f : -1.0f;
    for (int64_t row = 0; row < n_rows; row++, x += 2 * n, y += n) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = x[i] + sign * x[n + i];
            most[row] = i == 0 || y[i] > most[row] ? y[i] : most[row];
        }
    }
    return MSC_OK;
}

static const struct msc_operator_def operators[] = {
    {.domain = "made.up", .op = "Blur", .infer = blur_infer, .compute = blur_compute},
    {.domain = "made.up", .op = "Fold", .infer = fold_infer, .compute = fold_compute},
};

static const struct msc_operators_def definition = {
    .abi = MSC_OPERATORS_ABI,
    .name = "made_up",
    .summary = "operators of the domain made.up",
    .n_operators = sizeof operators / sizeof operators[0],
    .operators = operators,
};

const struct msc_operators_def *const msc_operators_plugin = &definition;
