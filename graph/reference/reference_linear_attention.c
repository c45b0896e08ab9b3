// Linear attention as ONNX defines it. Each head has a state, a matrix. Every time step multiplies
// the state by a decay and adds the product of key and value. The output is the product of the
// query and the state.
//
// Operands: query [B, T, Hq*K], key [B, T, H*K], value [B, T, H*V], state [B, H, K, V], decay
// [B, T, H*K] or [B, T, H], beta [B, T, H] or [B, T, 1]. Outputs: [B, T, Hq*V] and the new state.
// Groups of Hq / H query heads share a state. The state is float32; sums are in double.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct attention {
    const struct msc_reference_call *call;
    int64_t n_batches, length, query_heads, heads, key_size, value_size;
    bool has_decay, has_beta;
    float scale;
    float *state;  // [key_size, value_size] of one head
    double *value; // [value_size] the value that the step multiplies by the key and adds
};

static enum msc_status init(struct attention *a, const struct msc_reference_call *call) {
    *a = (struct attention){
        .call = call,
        .n_batches = call->operands[0].dims[0],
        .length = call->operands[0].dims[1],
        .has_decay = msc_reference__has(call, 4),
        .has_beta = msc_reference__has(call, 5),
    };
    MSC_TRY(msc_reference__get_i64(&a->query_heads, call, "q_num_heads"));
    MSC_TRY(msc_reference__get_i64(&a->heads, call, "kv_num_heads"));
    MSC_TRY(msc_reference__get_float(&a->scale, call, "scale"));
    a->key_size = call->operands[1].dims[2] / a->heads;
    a->value_size = call->operands[2].dims[2] / a->heads;
    a->scale = a->scale == 0.0f ? 1.0f / sqrtf((float)a->key_size) : a->scale;
    size_t n = (size_t)(a->key_size * a->value_size);
    a->state = msc_alloc_zero(n + 1, sizeof(a->state[0]));
    a->value = msc_alloc_zero((size_t)a->value_size + 1, sizeof(a->value[0]));
    return MSC_ALLOCATED(a->state && a->value);
}

// Element `i` of operand `operand` for head `head` of `heads` at a time step.
static float element(const struct attention *a, int operand, int64_t step, int64_t heads,
                     int64_t head, int64_t i) {
    const struct msc_view *v = &a->call->operands[operand];
    int64_t width = v->dims[2], size = width / heads;
    return (float)msc_reference__get_double_at(v, step * width + head * size + (size == 1 ? 0 : i));
}

// Multiplies row k of the state by e^decay.
static void decay_state(const struct attention *a, int64_t step, int64_t head) {
    for (int64_t k = 0; a->has_decay && k < a->key_size; k++) {
        float factor = expf(element(a, 4, step, a->heads, head, k));
        for (int64_t i = 0; i < a->value_size; i++) {
            a->state[k * a->value_size + i] *= factor;
        }
    }
}

// Adds the product of key and value to the state. With beta, the value is first reduced by the
// product of key and state, then multiplied by beta (delta rule).
static void extend_state(const struct attention *a, int64_t step, int64_t head) {
    bool is_shared = a->has_beta && a->call->operands[5].dims[2] == 1;
    float beta = !a->has_beta ? 1.0f
                 : is_shared  ? element(a, 5, step, 1, 0, 0)
                              : element(a, 5, step, a->heads, head, 0);
    for (int64_t i = 0; i < a->value_size; i++) {
        double known = 0;
        for (int64_t k = 0; a->has_beta && k < a->key_size; k++) {
            known += (double)a->state[k * a->value_size + i] *
                     (double)element(a, 1, step, a->heads, head, k);
        }
        a->value[i] = (double)beta * ((double)element(a, 2, step, a->heads, head, i) - known);
    }
    for (int64_t k = 0; k < a->key_size; k++) {
        double key = (double)element(a, 1, step, a->heads, head, k);
        for (int64_t i = 0; i < a->value_size; i++) {
            float *s = &a->state[k * a->value_size + i];
            *s = (float)((double)*s + key * a->value[i]);
        }
    }
}

// The outputs of the query heads that share the state.
static void read_state(const struct attention *a, int64_t step, int64_t head) {
    int64_t group = a->query_heads / a->heads;
    for (int64_t q = head * group; q < (head + 1) * group; q++) {
        for (int64_t i = 0; i < a->value_size; i++) {
            double sum = 0;
            for (int64_t k = 0; k < a->key_size; k++) {
                sum += (double)a->state[k * a->value_size + i] *
                       (double)element(a, 0, step, a->query_heads, q, k);
            }
            msc_reference__set_double_at(&a->call->outputs[0],
                                         (step * a->query_heads + q) * a->value_size + i,
                                         (double)a->scale * sum);
        }
    }
}

static void run_head(const struct attention *a, int64_t batch, int64_t head) {
    int64_t n = a->key_size * a->value_size, at = (batch * a->heads + head) * n;
    for (int64_t i = 0; i < n; i++) {
        bool is_given = msc_reference__has(a->call, 3);
        a->state[i] =
            is_given ? (float)msc_reference__get_double_at(&a->call->operands[3], at + i) : 0.0f;
    }
    for (int64_t t = 0; t < a->length; t++) {
        int64_t step = batch * a->length + t;
        decay_state(a, step, head);
        extend_state(a, step, head);
        read_state(a, step, head);
    }
    for (int64_t i = 0; a->call->n_outputs > 1 && i < n; i++) {
        msc_reference__set_double_at(&a->call->outputs[1], at + i, (double)a->state[i]);
    }
}

enum msc_status msc_reference__linear_attention(const struct msc_reference_call *call) {
    struct attention a;
    enum msc_status status = init(&a, call);
    for (int64_t i = 0; status == MSC_OK && i < a.n_batches * a.heads; i++) {
        run_head(&a, i / a.heads, i % a.heads);
    }
    msc_free(a.state);
    msc_free(a.value);
    return status;
}
