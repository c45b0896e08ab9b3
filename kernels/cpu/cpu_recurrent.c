// LSTM, GRU and RNN layers in float32, with constant weights and the usual activations; the
// reference kernel runs all others. Each sum is added in the order of its terms, so results do not
// depend on the instruction set.
#include "kernels/cpu/cpu_recurrent.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "graph/reference/numeric.h"

#include <string.h>

enum {
    LANES = 16,
    VECTORS = 4,
    WIDTH = LANES * VECTORS, // columns of a panel
    MOST_ROWS = 4,           // rows multiplied together: their sums fit the registers
    CHUNK_ROWS = 64,         // input rows that are multiplied before the time steps that use them
};
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
// The same vector in memory of any alignment.
typedef float lanes_at
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

struct kernel {
    const struct msc_graph *graph;
    enum msc_op op;
    bool is_reverse, is_linear_before_reset;
    int64_t n_times, n_batches, n_inputs, n_hidden, n_gates, n_directions;
    int32_t n_outputs;
    int32_t tensors[3];             // weight, recurrence and bias; MSC_NO_ID: no bias
    int32_t slots[3];               // the step's weight slot of each tensor, or MSC_NO_ID
    struct msc_operand operands[7]; // used: 0 (input), 5 and 6 (initial states)
};

// Weights [depth, columns] as panels of WIDTH columns, which are padded with zeros.
struct panels {
    int64_t depth, n_panels;
    float *data; // [n_panels][depth][WIDTH]
};

// The packed weights of a direction. GRU has gates z and r in `recurrence`, and h in `candidate`.
struct direction {
    struct panels weight, recurrence, candidate;
    float *bias; // [n_gates * n_hidden] to be added to the products of the input
    float *late; // GRU: [n_hidden] to be added to the product of the state for gate h
};

struct packed {
    struct msc_arena arena;
    struct direction directions[2];
};

// ---- Preparing --------------------------------------------------------------------------------

static const struct msc_array *constant_of(const struct msc_graph *g, const struct msc_joint *joint,
                                           int position) {
    const struct msc_array *a = msc_lowering_constant(g, joint, position);
    return a && msc_array_dtype(a) == MSC_DTYPE_F32 ? a : NULL;
}

static bool has_text(const struct msc_joint *joint, const char *key) {
    const char *text = msc_joint_attr(joint, key);
    return text && text[0] != '\0';
}

static bool is_set(const struct msc_joint *joint, const char *key) {
    bool is_true = false;
    return msc_joint_attr_bool(joint, key, &is_true) && is_true;
}

bool msc_cpu_recurrent_accepts(const struct msc_graph *g, const struct msc_joint *joint) {
    int64_t layout;
    if (joint->op != MSC_OP_LSTM && joint->op != MSC_OP_GRU && joint->op != MSC_OP_RNN) {
        return false;
    }
    bool has_bias = msc_lowering_operand(g, joint, 3) != NULL;
    return msc_lowering_is_f32(g, joint) && msc_lowering_is_computed(g, joint, 0) &&
           constant_of(g, joint, 1) && constant_of(g, joint, 2) &&
           (!has_bias || constant_of(g, joint, 3)) && !msc_lowering_operand(g, joint, 4) &&
           !msc_lowering_operand(g, joint, 7) && msc_joint_attr_i64(joint, "layout", &layout) &&
           layout == 0 && !has_text(joint, "activations") && !has_text(joint, "clip") &&
           !is_set(joint, "input_forget");
}

static void cpu_recurrent_release(void *kernel) {
    msc_free(kernel);
}

static enum msc_status cpu_recurrent_prepare(void **out, struct msc_cpu_backend *b,
                                             const struct msc_plan *plan,
                                             const struct msc_step *step) {
    (void)b;
    const struct msc_step_joint *j = &step->joints[0];
    const struct msc_joint *joint = j->joint;
    struct kernel *k = msc_alloc_zero(1, sizeof(*k));
    MSC_TRY(MSC_ALLOCATED(k));
    const struct msc_tensor *x = msc_lowering_operand(plan->graph, joint, 0);
    const struct msc_array *w = msc_lowering_constant(plan->graph, joint, 1);
    const char *direction = msc_joint_attr(joint, "direction");
    *k = (struct kernel){.graph = plan->graph,
                         .op = joint->op,
                         .is_reverse = direction && strcmp(direction, "reverse") == 0,
                         .is_linear_before_reset = is_set(joint, "linear_before_reset"),
                         .n_times = x->dims[0],
                         .n_batches = x->dims[1],
                         .n_inputs = x->dims[2],
                         .n_directions = msc_array_dims(w)[0],
                         .n_outputs = step->n_outputs};
    k->n_gates = joint->op == MSC_OP_LSTM ? 4 : joint->op == MSC_OP_GRU ? 3 : 1;
    k->n_hidden = msc_array_dims(w)[1] / k->n_gates;
    for (int32_t i = 0; i < 3; i++) {
        bool is_there = i + 1 < j->n_operands && j->operands[i + 1].kind == MSC_OPERAND_WEIGHT;
        k->tensors[i] = is_there ? j->operands[i + 1].index : MSC_NO_ID;
        k->slots[i] = msc_step_weight_slot(step, i + 1);
    }
    for (int32_t i = 0; i < 7 && i < j->n_operands; i++) {
        k->operands[i] = j->operands[i];
    }
    *out = k;
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

// Packs rows of w [rows, depth] as columns of panels.
static enum msc_status pack(struct panels *out, struct msc_arena *arena, const float *w,
                            int64_t rows, int64_t depth) {
    out->depth = depth;
    out->n_panels = (rows + WIDTH - 1) / WIDTH;
    out->data = msc_arena_array(arena, (size_t)(out->n_panels * depth * WIDTH) + 1, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(out->data));
    for (int64_t r = 0; r < rows; r++) {
        float *column = out->data + r / WIDTH * depth * WIDTH + r % WIDTH;
        for (int64_t i = 0; i < depth; i++) {
            column[i * WIDTH] = w[r * depth + i];
        }
    }
    return MSC_OK;
}

static enum msc_status pack_direction(struct direction *out, struct msc_arena *arena,
                                      const struct kernel *k, const float *w, const float *r,
                                      const float *bias) {
    int64_t n = k->n_hidden, n_all = k->n_gates * n;
    bool is_gru = k->op == MSC_OP_GRU;
    int64_t n_first = is_gru ? 2 * n : n_all;
    MSC_TRY(pack(&out->weight, arena, w, n_all, k->n_inputs));
    MSC_TRY(pack(&out->recurrence, arena, r, n_first, n));
    MSC_TRY(is_gru ? pack(&out->candidate, arena, r + n_first * n, n, n) : MSC_OK);
    out->bias = msc_arena_array(arena, (size_t)n_all + 1, sizeof(float));
    out->late = msc_arena_array(arena, (size_t)n + 1, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(out->bias && out->late));
    for (int64_t i = 0; bias && i < n_all; i++) {
        out->bias[i] = bias[i] + (i < n_first ? bias[n_all + i] : 0.0f);
    }
    for (int64_t i = 0; bias && is_gru && i < n; i++) {
        out->late[i] = bias[n_all + n_first + i];
    }
    return MSC_OK;
}

static void cpu_recurrent_release_weights(void *weights) {
    struct packed *p = weights;
    if (p) {
        msc_arena_finish(&p->arena);
        msc_free(p);
    }
}

static enum msc_status pack_all(struct packed *p, const struct kernel *k,
                                struct msc_array *const edited[3]) {
    const float *data[3] = {NULL, NULL, NULL};
    int64_t n_all = k->n_gates * k->n_hidden;
    for (int i = 0; i < 3; i++) {
        if (k->tensors[i] != MSC_NO_ID) {
            const struct msc_array *own = msc_graph_tensor(k->graph, k->tensors[i])->data;
            data[i] = msc_array_data(edited[i] ? edited[i] : own);
        }
    }
    for (int64_t d = 0; d < k->n_directions; d++) {
        MSC_TRY(pack_direction(&p->directions[d], &p->arena, k, data[0] + d * n_all * k->n_inputs,
                               data[1] + d * n_all * k->n_hidden,
                               data[2] ? data[2] + d * 2 * n_all : NULL));
    }
    return MSC_OK;
}

static enum msc_status cpu_recurrent_weights(void *kernel, struct msc_cpu_backend *b,
                                             const struct msc_edit *const edits[], void **out,
                                             size_t *n_bytes) {
    (void)b;
    const struct kernel *k = kernel;
    struct msc_array *edited[3] = {NULL, NULL, NULL};
    struct packed *p = msc_alloc_zero(1, sizeof(*p));
    enum msc_status status = MSC_ALLOCATED(p);
    for (int i = 0; status == MSC_OK && i < 3; i++) {
        if (k->slots[i] != MSC_NO_ID && edits[k->slots[i]]) {
            status = msc_edit_apply(&edited[i], msc_graph_tensor(k->graph, k->tensors[i])->data,
                                    edits[k->slots[i]]);
        }
    }
    status = status == MSC_OK ? pack_all(p, k, edited) : status;
    for (int i = 0; i < 3; i++) {
        msc_array_release(edited[i]);
    }
    if (status != MSC_OK) {
        cpu_recurrent_release_weights(p);
        return status;
    }
    for (int64_t d = 0; d < k->n_directions; d++) {
        const struct direction *at = &p->directions[d];
        *n_bytes += sizeof(float) * WIDTH *
                    (size_t)(at->weight.n_panels * at->weight.depth +
                             at->recurrence.n_panels * at->recurrence.depth +
                             at->candidate.n_panels * at->candidate.depth);
    }
    *out = p;
    return MSC_OK;
}

// ---- Products ---------------------------------------------------------------------------------

// out[r][0 ... WIDTH - 1] = x[r] times a panel. The number of rows is a compile-time constant, so
// that the sums are in registers.
MSC_INLINE void multiply_rows(float *out, int64_t out_step, const float *x, int64_t x_step,
                              const float *panel, int64_t depth, int rows) {
    lanes sums[MOST_ROWS][VECTORS] = {{{0}}};
    for (int64_t i = 0; i < depth; i++) {
        const lanes_at *w = (const lanes_at *)(const void *)(panel + i * WIDTH);
        for (int r = 0; r < rows; r++) {
            for (int v = 0; v < VECTORS; v++) {
                sums[r][v] += x[r * x_step + i] * w[v];
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        lanes_at *to = (lanes_at *)(void *)(out + r * out_step);
        for (int v = 0; v < VECTORS; v++) {
            to[v] = sums[r][v];
        }
    }
}

// out[r] = x[r] times the panels; rows of `out` have room for whole panels.
MSC_SIMD static void multiply(float *out, int64_t out_step, const float *x, int64_t x_step,
                              int64_t n_rows, const struct panels *p) {
    for (int64_t k = 0; k < p->n_panels; k++) {
        const float *panel = p->data + k * p->depth * WIDTH;
        float *to = out + k * WIDTH;
        int64_t r = 0;
        for (; r + MOST_ROWS <= n_rows; r += MOST_ROWS) {
            multiply_rows(to + r * out_step, out_step, x + r * x_step, x_step, panel, p->depth,
                          MOST_ROWS);
        }
        for (; r < n_rows; r++) {
            multiply_rows(to + r * out_step, out_step, x + r * x_step, x_step, panel, p->depth, 1);
        }
    }
}

// ---- Steps ------------------------------------------------------------------------------------

// Scratch memory of a call. A row of gates has n_row elements, enough for whole panels.
struct work {
    float *in;           // [max (CHUNK_ROWS, n_batches)][n_row] products of the input
    float *gates;        // [n_batches][n_row]
    float *candidate;    // [n_batches][n_row]
    float *reset;        // [n_batches][n_hidden] GRU: state times reset gate
    float *h, *c, *tanh; // [n_batches][n_hidden]; tanh: [n_hidden]
    int64_t n_row;
};

MSC_SIMD static void add_to(float *restrict out, const float *restrict a, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += a[i];
    }
}

MSC_SIMD static void lstm_cell(float *restrict c, const float *restrict gates, int64_t n) {
    const float *in = gates, *forget = gates + 2 * n, *candidate = gates + 3 * n;
    for (int64_t i = 0; i < n; i++) {
        c[i] = forget[i] * c[i] + in[i] * candidate[i];
    }
}

MSC_SIMD static void multiply_each(float *restrict out, const float *restrict a,
                                   const float *restrict b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = a[i] * b[i];
    }
}

MSC_SIMD static void mix(float *restrict h, const float *restrict z, const float *restrict to,
                         int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        h[i] = (1.0f - z[i]) * to[i] + z[i] * h[i];
    }
}

// Gates are in the order i, o, f, c.
static void step_lstm(const struct work *w, int64_t n, int64_t batch, const float *in) {
    float *gates = w->gates + batch * w->n_row, *h = w->h + batch * n, *c = w->c + batch * n;
    add_to(gates, in, 4 * n);
    msc_sigmoid_run(gates, gates, 3 * n);
    msc_tanh_run(gates + 3 * n, gates + 3 * n, n);
    lstm_cell(c, gates, n);
    msc_tanh_run(w->tanh, c, n);
    multiply_each(h, gates + n, w->tanh, n);
}

static void step_rnn(const struct work *w, int64_t n, int64_t batch, const float *in) {
    float *gates = w->gates + batch * w->n_row;
    add_to(gates, in, n);
    msc_tanh_run(w->h + batch * n, gates, n);
}

// Gates are in the order z, r, h. All batches run together, because one product for gate h may need
// the reset states of all batches.
static void step_gru(const struct kernel *k, const struct direction *d, const struct work *w,
                     const float *in) {
    int64_t n = k->n_hidden;
    for (int64_t b = 0; b < k->n_batches; b++) {
        float *gates = w->gates + b * w->n_row;
        add_to(gates, in + b * w->n_row, 2 * n);
        msc_sigmoid_run(gates, gates, 2 * n);
        multiply_each(w->reset + b * n, gates + n, w->h + b * n, n);
    }
    multiply(w->candidate, w->n_row, k->is_linear_before_reset ? w->h : w->reset, n, k->n_batches,
             &d->candidate);
    for (int64_t b = 0; b < k->n_batches; b++) {
        float *gates = w->gates + b * w->n_row, *candidate = w->candidate + b * w->n_row;
        add_to(candidate, d->late, n);
        if (k->is_linear_before_reset) {
            multiply_each(w->tanh, gates + n, candidate, n);
            memcpy(candidate, w->tanh, (size_t)n * sizeof(float));
        }
        add_to(candidate, in + b * w->n_row + 2 * n, n);
        msc_tanh_run(candidate, candidate, n);
        mix(w->h + b * n, gates, candidate, n);
    }
}

static void run_step(const struct kernel *k, const struct direction *d, const struct work *w,
                     const float *in) {
    multiply(w->gates, w->n_row, w->h, k->n_hidden, k->n_batches, &d->recurrence);
    if (k->op == MSC_OP_GRU) {
        step_gru(k, d, w, in);
        return;
    }
    for (int64_t b = 0; b < k->n_batches; b++) {
        (k->op == MSC_OP_LSTM ? step_lstm : step_rnn)(w, k->n_hidden, b, in + b * w->n_row);
    }
}

// ---- Running ----------------------------------------------------------------------------------

static const float *operand_data(const struct kernel *k, const struct msc_call *call, int i) {
    switch (k->operands[i].kind) {
    case MSC_OPERAND_INPUT:
        return call->inputs[k->operands[i].index].data;
    case MSC_OPERAND_WEIGHT:
        return msc_array_data(msc_graph_tensor(k->graph, k->operands[i].index)->data);
    default:
        return NULL;
    }
}

// Sets a state to its first value: operand i, or zeros.
static void begin_state(float *state, const struct kernel *k, const struct msc_call *call, int i,
                        int64_t direction) {
    const float *first = operand_data(k, call, i);
    size_t n = (size_t)(k->n_batches * k->n_hidden);
    if (first) {
        memcpy(state, first + (size_t)direction * n, n * sizeof(float));
    } else {
        memset(state, 0, n * sizeof(float));
    }
}

static void end_state(const struct kernel *k, const struct msc_call *call, int output,
                      int64_t direction, const float *state) {
    size_t n = (size_t)(k->n_batches * k->n_hidden);
    float *out = call->outputs[output].data;
    memcpy(out + (size_t)direction * n, state, n * sizeof(float));
}

static void multiply_input(const struct kernel *k, const struct direction *d, const struct work *w,
                           const float *x, int64_t n_rows) {
    multiply(w->in, w->n_row, x, k->n_inputs, n_rows, &d->weight);
    for (int64_t r = 0; r < n_rows; r++) {
        add_to(w->in + r * w->n_row, d->bias, k->n_gates * k->n_hidden);
    }
}

static void run_direction(const struct kernel *k, const struct msc_call *call, const struct work *w,
                          int64_t direction) {
    const struct direction *d = &((const struct packed *)call->weights)->directions[direction];
    const float *x = operand_data(k, call, 0);
    int64_t n_batches = k->n_batches, n_state = n_batches * k->n_hidden;
    int64_t most = n_batches < CHUNK_ROWS ? CHUNK_ROWS / n_batches : 1; // time steps per chunk
    bool is_backward = direction == 1 || k->is_reverse;
    for (int64_t at = 0; at < k->n_times; at += most) {
        int64_t n = k->n_times - at < most ? k->n_times - at : most;
        int64_t first = is_backward ? k->n_times - at - n : at;
        multiply_input(k, d, w, x + first * n_batches * k->n_inputs, n * n_batches);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = is_backward ? n - 1 - i : i;
            float *out = call->outputs[0].data;
            run_step(k, d, w, w->in + row * n_batches * w->n_row);
            memcpy(out + ((first + row) * k->n_directions + direction) * n_state, w->h,
                   (size_t)n_state * sizeof(float));
        }
    }
}

static enum msc_status cpu_recurrent_run(void *kernel, struct msc_cpu_backend *b,
                                         const struct msc_call *call, int thread) {
    const struct kernel *k = kernel;
    struct work w = {.n_row = (k->n_gates * k->n_hidden + WIDTH - 1) / WIDTH * WIDTH + WIDTH};
    int64_t n_batches = k->n_batches, n_state = n_batches * k->n_hidden;
    int64_t n_in = (n_batches < CHUNK_ROWS ? CHUNK_ROWS : n_batches) * w.n_row;
    int64_t n_gates = n_batches * w.n_row;
    void *memory;
    MSC_TRY(msc_cpu_get_scratch(&memory, b, thread,
                                (size_t)(n_in + 2 * n_gates + 3 * n_state + k->n_hidden) *
                                    sizeof(float)));
    w.in = memory;
    w.gates = w.in + n_in;
    w.candidate = w.gates + n_gates;
    w.reset = w.candidate + n_gates;
    w.h = w.reset + n_state;
    w.c = w.h + n_state;
    w.tanh = w.c + n_state;
    for (int64_t d = 0; d < k->n_directions; d++) {
        begin_state(w.h, k, call, 5, d);
        begin_state(w.c, k, call, 6, d);
        run_direction(k, call, &w, d);
        for (int i = 1; i < k->n_outputs; i++) {
            end_state(k, call, i, d, i == 1 ? w.h : w.c);
        }
    }
    return MSC_OK;
}

const struct msc_cpu_family msc_cpu_recurrent = {
    .prepare = cpu_recurrent_prepare,
    .release = cpu_recurrent_release,
    .run = cpu_recurrent_run,
    .weights = cpu_recurrent_weights,
    .release_weights = cpu_recurrent_release_weights,
};
