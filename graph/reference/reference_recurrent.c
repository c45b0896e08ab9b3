// Recurrent layers: RNN, GRU and LSTM as ONNX defines them, one or two directions.
//
// Operands: input [T, B, I], weight [D, G*H, I], recurrence [D, G*H, H], bias [D, 2*G*H], lengths
// [B], hidden [D, B, H], and for LSTM cell [D, B, H] and peephole [D, 3*H]. T is the number of time
// steps, B the batch size, I and H the sizes of input and state, G the number of gates, and D the
// number of directions. If `layout` is 1, the batch axis comes first: [B, T, I], [B, D, H].
// Arithmetic is in float32, except sums, which are in double.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"
#include "base/platform.h"

#include <math.h>
#include <string.h>

typedef double (*activation_fn)(double x, double alpha, double beta);

static double relu(double x, double alpha, double beta) {
    (void)alpha;
    (void)beta;
    return x > 0 ? x : 0;
}

static double tanh_of(double x, double alpha, double beta) {
    (void)alpha;
    (void)beta;
    return tanh(x);
}

static double sigmoid(double x, double alpha, double beta) {
    (void)alpha;
    (void)beta;
    return 1 / (1 + exp(-x));
}

static double affine(double x, double alpha, double beta) {
    return alpha * x + beta;
}

static double leaky_relu(double x, double alpha, double beta) {
    (void)beta;
    return x >= 0 ? x : alpha * x;
}

static double thresholded_relu(double x, double alpha, double beta) {
    (void)beta;
    return x > alpha ? x : 0;
}

static double scaled_tanh(double x, double alpha, double beta) {
    return alpha * tanh(beta * x);
}

static double hard_sigmoid(double x, double alpha, double beta) {
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double elu(double x, double alpha, double beta) {
    (void)beta;
    return x >= 0 ? x : alpha * expm1(x);
}

static double softsign(double x, double alpha, double beta) {
    (void)alpha;
    (void)beta;
    return x / (1 + fabs(x));
}

static double softplus(double x, double alpha, double beta) {
    (void)alpha;
    (void)beta;
    return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static const struct {
    const char *name;
    activation_fn fn;
    int n;             // number of parameters
    float alpha, beta; // defaults of the parameters
} activations[] = {
    {"Relu", relu, 0, 0, 0},
    {"Tanh", tanh_of, 0, 0, 0},
    {"Sigmoid", sigmoid, 0, 0, 0},
    {"Affine", affine, 2, 1, 0},
    {"LeakyRelu", leaky_relu, 1, 0.01f, 0},
    {"ThresholdedRelu", thresholded_relu, 1, 1, 0},
    {"ScaledTanh", scaled_tanh, 2, 1, 1},
    {"HardSigmoid", hard_sigmoid, 2, 0.2f, 0.5f},
    {"Elu", elu, 1, 1, 0},
    {"Softsign", softsign, 0, 0, 0},
    {"Softplus", softplus, 0, 0, 0},
};

struct activation {
    activation_fn fn;
    double alpha, beta;
};

enum {
    MOST_ACTIVATIONS = 6,
    LANES = 8, // fills the widest vector registers
    ROWS = 8,  // enough independent sums to hide the latency of an addition
};

struct layer {
    const struct msc_reference_call *call;
    enum msc_op op;
    int64_t n_times, n_batches, n_inputs, n_hidden, n_gates, n_directions;
    bool is_batch_first, is_reverse, is_linear_before_reset, couples_input_forget;
    float clip; // 0: no clipping
    struct activation activations[MOST_ACTIVATIONS];
    // Scratch memory of one direction.
    double *h, *c;     // [B, H]
    double *gates;     // [G, H] for one sample of the batch, like the next three
    double *recurrent; // [G, H] the state's contribution to the gates
    double *input;     // [I] at one time step
    double *reset;     // [H] GRU: the state times its reset gate
    double *biases;    // [2, G, H] biases of the input, then of the state
};

// ---- Reading ----------------------------------------------------------------------------------

static int n_activations(const struct layer *l) {
    return l->op == MSC_OP_LSTM ? 3 : l->op == MSC_OP_GRU ? 2 : 1;
}

static enum msc_status find_activation(int *out, const struct layer *l, const char *name,
                                       size_t length) {
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        if (strlen(activations[i].name) == length &&
            strncmp(activations[i].name, name, length) == 0) {
            *out = (int)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: activation '%.*s' is not supported",
                    l->call->joint->name, (int)length, name);
}

// Reads activation names joined with ','. Missing names are the operator's defaults. Parameters are
// assigned in order to the activations that have parameters.
static enum msc_status read_activations(struct layer *l) {
    const char *names = msc_reference__get_text(l->call, "activations");
    const char *usual = l->op == MSC_OP_RNN   ? "Tanh,Tanh"
                        : l->op == MSC_OP_GRU ? "Sigmoid,Tanh,Sigmoid,Tanh"
                                              : "Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh";
    float alphas[MOST_ACTIVATIONS], betas[MOST_ACTIVATIONS];
    int n_alphas, n_betas, next_alpha = 0, next_beta = 0;
    MSC_TRY(msc_reference__param_floats(alphas, &n_alphas, l->call, "activation_alpha", "",
                                        MOST_ACTIVATIONS));
    MSC_TRY(msc_reference__param_floats(betas, &n_betas, l->call, "activation_beta", "",
                                        MOST_ACTIVATIONS));
    names = names[0] == '\0' ? usual : names;
    for (int i = 0; i < n_activations(l) * (int)l->n_directions; i++) {
        size_t length = strcspn(names, ",");
        int row = 0;
        MSC_TRY(find_activation(&row, l, names, length));
        double alpha = (double)activations[row].alpha, beta = (double)activations[row].beta;
        if (activations[row].n > 0 && next_alpha < n_alphas) {
            alpha = (double)alphas[next_alpha++];
        }
        if (activations[row].n > 1 && next_beta < n_betas) {
            beta = (double)betas[next_beta++];
        }
        l->activations[i] = (struct activation){activations[row].fn, alpha, beta};
        names += length + (names[length] == ',');
    }
    return MSC_OK;
}

static enum msc_status layer_init(struct layer *l, const struct msc_reference_call *call) {
    const struct msc_view *x = &call->operands[0], *w = &call->operands[1];
    const struct msc_view *r = &call->operands[2];
    int64_t first;
    *l = (struct layer){.call = call, .op = call->joint->op};
    MSC_TRY(msc_reference__get_i64(&first, call, "layout"));
    l->is_batch_first = first != 0;
    l->n_times = x->dims[l->is_batch_first ? 1 : 0];
    l->n_batches = x->dims[l->is_batch_first ? 0 : 1];
    l->n_inputs = x->dims[2];
    l->n_directions = w->dims[0];
    l->n_hidden = r->dims[2];
    l->n_gates = l->n_hidden > 0 ? w->dims[1] / l->n_hidden : 0;
    l->is_reverse = strcmp(msc_reference__get_text(call, "direction"), "reverse") == 0;
    if (msc_reference__get_text(call, "clip")[0] != '\0') {
        MSC_TRY(msc_reference__get_float(&l->clip, call, "clip"));
    }
    if (l->op == MSC_OP_GRU) {
        MSC_TRY(msc_reference__get_bool(&l->is_linear_before_reset, call, "linear_before_reset"));
    }
    if (l->op == MSC_OP_LSTM) {
        MSC_TRY(msc_reference__get_bool(&l->couples_input_forget, call, "input_forget"));
    }
    return read_activations(l);
}

// ---- Computing --------------------------------------------------------------------------------

static double reference_recurrent_act(const struct layer *l, int direction, int which, double x) {
    const struct activation *a = &l->activations[direction * n_activations(l) + which];
    if (l->clip > 0) {
        double limit = (double)l->clip;
        x = x < -limit ? -limit : x > limit ? limit : x;
    }
    return a->fn(x, a->alpha, a->beta);
}

static void load_biases(struct layer *l, int direction) {
    int64_t n = 2 * l->n_gates * l->n_hidden;
    for (int64_t i = 0; i < n && msc_reference__has(l->call, 3); i++) {
        l->biases[i] = msc_reference__get_double_at(&l->call->operands[3], direction * n + i);
    }
}

// Dot products of a vector with ROWS rows of weights. Each sum is split over LANES lanes, in the
// same order on every machine.
MSC_SIMD static void dot_rows(double out[ROWS], const float *const rows[ROWS],
                              const double *restrict x, int64_t n) {
    double lanes[ROWS][LANES] = {{0}};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int r = 0; r < ROWS; r++) {
            for (int k = 0; k < LANES; k++) {
                lanes[r][k] += (double)rows[r][i + k] * x[i + k];
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int width = LANES / 2; width > 0; width /= 2) {
            for (int k = 0; k < width; k++) {
                lanes[r][k] += lanes[r][k + width];
            }
        }
        for (int64_t i = whole; i < n; i++) {
            lanes[r][0] += (double)rows[r][i] * x[i];
        }
        out[r] = lanes[r][0];
    }
}

// Dot products with any number of rows. The last block repeats the last row in its unused places.
static void dot_floats(double out[], const float w[], int64_t n_rows, const double x[], int64_t n) {
    for (int64_t r = 0; r < n_rows; r += ROWS) {
        const float *rows[ROWS];
        double sums[ROWS];
        for (int64_t k = 0; k < ROWS; k++) {
            rows[k] = w + (r + k < n_rows ? r + k : n_rows - 1) * n;
        }
        dot_rows(sums, rows, x, n);
        for (int64_t k = 0; k < ROWS && r + k < n_rows; k++) {
            out[r + k] = sums[k];
        }
    }
}

// Dot products of n numbers with each row of weights [n_rows, n], which start at element `at`.
static void reference_recurrent_dot(double out[], const struct msc_view *weights, int64_t at,
                                    int64_t n_rows, const double x[], int64_t n) {
    if (weights->dtype == MSC_DTYPE_F32) { // most models use float32
        dot_floats(out, (const float *)weights->data + at, n_rows, x, n);
        return;
    }
    for (int64_t r = 0; r < n_rows; r++) {
        out[r] = 0;
        for (int64_t i = 0; i < n; i++) {
            out[r] += msc_reference__get_double_at(weights, at + r * n + i) * x[i];
        }
    }
}

// gates = W x + Wb and recurrent = R h + Rb, for one sample of the batch at one time step.
static void sum_gates(struct layer *l, int direction, int64_t time, int64_t batch) {
    const struct msc_view *x = &l->call->operands[0], *w = &l->call->operands[1];
    const struct msc_view *r = &l->call->operands[2];
    int64_t rows = l->n_gates * l->n_hidden;
    int64_t from =
        (l->is_batch_first ? batch * l->n_times + time : time * l->n_batches + batch) * l->n_inputs;
    for (int64_t i = 0; i < l->n_inputs; i++) {
        l->input[i] = msc_reference__get_double_at(x, from + i);
    }
    reference_recurrent_dot(l->gates, w, direction * rows * l->n_inputs, rows, l->input,
                            l->n_inputs);
    reference_recurrent_dot(l->recurrent, r, direction * rows * l->n_hidden, rows,
                            l->h + batch * l->n_hidden, l->n_hidden);
    for (int64_t row = 0; row < rows; row++) {
        l->gates[row] += l->biases[row];
        l->recurrent[row] += l->biases[rows + row];
    }
}

static void step_rnn(struct layer *l, int direction, double h[]) {
    for (int64_t i = 0; i < l->n_hidden; i++) {
        h[i] = reference_recurrent_act(l, direction, 0, l->gates[i] + l->recurrent[i]);
    }
}

// Gates z, r, h. If linear_before_reset is not set, the reset gate is applied to the state before
// the state is multiplied by its weights.
static void step_gru(struct layer *l, int direction, double h[]) {
    const struct msc_view *w = &l->call->operands[2];
    int64_t n = l->n_hidden;
    double *z = l->gates, *r = l->gates + n;
    for (int64_t i = 0; i < 2 * n; i++) {
        l->gates[i] = reference_recurrent_act(l, direction, 0, l->gates[i] + l->recurrent[i]);
    }
    double *candidates = l->recurrent; // reuses the memory of gate z's recurrent sums
    double *states = l->recurrent + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        l->reset[i] = r[i] * h[i];
    }
    if (!l->is_linear_before_reset) {
        reference_recurrent_dot(states, w, (direction * 3 + 2) * n * n, n, l->reset, n);
    }
    for (int64_t i = 0; i < n; i++) {
        double state =
            l->is_linear_before_reset ? states[i] * r[i] : states[i] + l->biases[5 * n + i];
        candidates[i] = reference_recurrent_act(l, direction, 1, l->gates[2 * n + i] + state);
    }
    for (int64_t i = 0; i < n; i++) {
        h[i] = (1 - z[i]) * candidates[i] + z[i] * h[i];
    }
}

static double peephole(const struct layer *l, int direction, int gate, int64_t i) {
    if (!msc_reference__has(l->call, 7)) {
        return 0;
    }
    return msc_reference__get_double_at(&l->call->operands[7],
                                        (direction * 3 + gate) * l->n_hidden + i);
}

// Gates are in the order i, o, f, c; peepholes in the order i, o, f.
static void step_lstm(struct layer *l, int direction, double h[], double c[]) {
    int64_t n = l->n_hidden;
    for (int64_t k = 0; k < n; k++) {
        double *g = l->gates, *s = l->recurrent;
        double in = reference_recurrent_act(l, direction, 0,
                                            g[k] + s[k] + peephole(l, direction, 0, k) * c[k]);
        double forget = reference_recurrent_act(
            l, direction, 0, g[2 * n + k] + s[2 * n + k] + peephole(l, direction, 2, k) * c[k]);
        double candidate = reference_recurrent_act(l, direction, 1, g[3 * n + k] + s[3 * n + k]);
        forget = l->couples_input_forget ? 1 - in : forget;
        c[k] = forget * c[k] + in * candidate;
        double out = reference_recurrent_act(
            l, direction, 0, g[n + k] + s[n + k] + peephole(l, direction, 1, k) * c[k]);
        h[k] = out * l->activations[direction * 3 + 2].fn(c[k],
                                                          l->activations[direction * 3 + 2].alpha,
                                                          l->activations[direction * 3 + 2].beta);
    }
}

// ---- States and outputs -----------------------------------------------------------------------

// Offset of element i of batch `batch` in a tensor of states.
static int64_t state_at(const struct layer *l, int direction, int64_t batch, int64_t i) {
    return l->is_batch_first ? (batch * l->n_directions + direction) * l->n_hidden + i
                             : (direction * l->n_batches + batch) * l->n_hidden + i;
}

static void load_state(double state[], const struct layer *l, int position, int direction) {
    for (int64_t i = 0; i < l->n_batches * l->n_hidden; i++) {
        int64_t at = state_at(l, direction, i / l->n_hidden, i % l->n_hidden);
        state[i] = msc_reference__has(l->call, position)
                       ? msc_reference__get_double_at(&l->call->operands[position], at)
                       : 0;
    }
}

static void store_state(const struct layer *l, int output, int direction, const double state[]) {
    for (int64_t i = 0; output < l->call->n_outputs && i < l->n_batches * l->n_hidden; i++) {
        int64_t at = state_at(l, direction, i / l->n_hidden, i % l->n_hidden);
        msc_reference__set_double_at(&l->call->outputs[output], at, state[i]);
    }
}

static void store_step(const struct layer *l, int direction, int64_t time, int64_t batch,
                       const double h[]) {
    int64_t first =
        l->is_batch_first
            ? ((batch * l->n_times + time) * l->n_directions + direction) * l->n_hidden
            : ((time * l->n_directions + direction) * l->n_batches + batch) * l->n_hidden;
    for (int64_t i = 0; i < l->n_hidden; i++) {
        msc_reference__set_double_at(&l->call->outputs[0], first + i, h != NULL ? h[i] : 0);
    }
}

static int64_t length_of(const struct layer *l, int64_t batch) {
    if (!msc_reference__has(l->call, 4)) {
        return l->n_times;
    }
    int64_t length = msc_reference__get_i64_at(&l->call->operands[4], batch);
    return length < 0 ? 0 : length < l->n_times ? length : l->n_times;
}

static void run_batch(struct layer *l, int direction, int64_t batch) {
    double *h = l->h + batch * l->n_hidden, *c = l->c + batch * l->n_hidden;
    int64_t length = length_of(l, batch);
    bool is_backward = direction == 1 || l->is_reverse;
    for (int64_t t = 0; t < l->n_times; t++) {
        if (t >= length) { // beyond the end of a shorter sequence
            store_step(l, direction, t, batch, NULL);
            continue;
        }
        int64_t time = is_backward ? length - 1 - t : t;
        sum_gates(l, direction, time, batch);
        if (l->op == MSC_OP_RNN) {
            step_rnn(l, direction, h);
        } else if (l->op == MSC_OP_GRU) {
            step_gru(l, direction, h);
        } else {
            step_lstm(l, direction, h, c);
        }
        store_step(l, direction, time, batch, h);
    }
}

enum msc_status msc_reference__recurrent(const struct msc_reference_call *call) {
    struct layer l;
    MSC_TRY(layer_init(&l, call));
    size_t n_state = (size_t)(l.n_batches * l.n_hidden), n_gates = (size_t)(l.n_gates * l.n_hidden);
    double *memory = msc_alloc_zero(
        2 * n_state + 4 * n_gates + (size_t)(l.n_inputs + l.n_hidden) + 1, sizeof(memory[0]));
    MSC_TRY(MSC_ALLOCATED(memory));
    l.h = memory;
    l.c = memory + n_state;
    l.gates = memory + 2 * n_state;
    l.recurrent = l.gates + n_gates;
    l.input = l.recurrent + n_gates;
    l.reset = l.input + l.n_inputs;
    l.biases = l.reset + l.n_hidden;
    for (int direction = 0; direction < l.n_directions; direction++) {
        load_state(l.h, &l, 5, direction);
        load_state(l.c, &l, 6, direction);
        load_biases(&l, direction);
        for (int64_t batch = 0; batch < l.n_batches; batch++) {
            run_batch(&l, direction, batch);
        }
        store_state(&l, 1, direction, l.h);
        store_state(&l, 2, direction, l.c);
    }
    msc_free(memory);
    return MSC_OK;
}
