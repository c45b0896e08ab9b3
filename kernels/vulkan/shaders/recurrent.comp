// RNN, GRU and LSTM in float32. Each workgroup computes one direction of a batch item over all time
// steps. Each of its L invocations computes every L-th hidden unit. States are in shared memory.
// Buffers: 0 = x; 1 = weight; 2 = recurrence; 3 = bias; 4 = lengths as int32; 5 = hidden; 6 = cell;
// 7 = peephole; 8 … 8 + OUTPUTS - 1 = all hidden states, the last hidden state, the last cell; the
// last buffer = numbers: for each of two directions, three activations {number, alpha, beta}. HAS:
// bit i (3 … 7) is set if operand i is present; absent operands are not read.
// Constants: 0 = lanes; 1 = repair; 2 = kind (0 RNN, 1 GRU, 2 LSTM); 3 = hidden units; 4 = HAS;
// 5 = flags: 1 batches come first, 2 backwards, 4 linear before reset, 8 the forget gate is 1 -
// input gate.
// Push: times, batches, inputs, directions, clip (0: none). Dispatched by vk_recurrent.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS (9 + OUTPUTS)
#define ROW 0
#define HAS_POWER
#include "call.glsl"
#include "divide.glsl"
#include "numeric.glsl"
#include "power.glsl"
#include "ewise_ops.glsl"
#include "angles.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 32;
layout(constant_id = 2) const uint KIND = 0;
layout(constant_id = 3) const uint HIDDEN = 1;
layout(constant_id = 4) const uint HAS = 0;
layout(constant_id = 5) const uint FLAGS = 0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { float weight[]; };
layout(binding = 2) readonly buffer Recurrence { float recurrence[]; };
layout(binding = 3) readonly buffer Bias { float bias[]; };
layout(binding = 4) readonly buffer Lengths { int lengths[]; };
layout(binding = 5) readonly buffer Hidden { float hidden[]; };
layout(binding = 6) readonly buffer Cell { float cell[]; };
layout(binding = 7) readonly buffer Peephole { float peephole[]; };
layout(binding = 8) writeonly buffer Y { float y[]; };
#if OUTPUTS > 1
layout(binding = 9) writeonly buffer LastHidden { float last_hidden[]; };
#endif
#if OUTPUTS > 2
layout(binding = 10) writeonly buffer LastCell { float last_cell[]; };
#endif
layout(binding = 8 + OUTPUTS) readonly buffer Numbers { float activations[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; uint times; uint batches; uint inputs; uint directions; float clip;
};
const uint GATES = KIND == 0 ? 1 : KIND == 1 ? 3 : 4;
shared float state[HIDDEN], next[HIDDEN], more[HIDDEN]; // more: the cell of LSTM, or z of GRU
uint batch, direction;

float activate(uint which, float v) {
    uint at = 3 * (3 * direction + which);
    float p = activations[at + 1], q = activations[at + 2];
    precise float scaled = p * v + q, spread = q * v;
    switch (uint(activations[at])) {
    case 0: return v > 0.0 ? v : 0.0;
    case 1: return tanh_one(v);
    case 2: return sigmoid_one(v);
    case 3: return scaled;
    case 4: return v >= 0.0 ? v : p * v;
    case 5: return v > p ? v : 0.0;
    case 6: return p * tanh_one(spread);
    case 7: return limit(scaled, 0.0, 1.0);
    case 8: return v >= 0.0 ? v : p * expm1_one(v);
    case 9: return divide(v, 1.0 + abs(v));
    }
    return max(v, 0.0) + log1p_one(exp_one(-abs(v)));
}

float clipped(uint which, float v) {
    return activate(which, clip > 0.0 ? limit(v, -clip, clip) : v);
}

float bias_of(bool is_recurrent, uint gate, uint k) {
    uint rows = GATES * HIDDEN;
    uint at = direction * 2 * rows + (is_recurrent ? rows : 0) + gate * HIDDEN + k;
    return (HAS & 8u) != 0 ? bias[begin_of(3) + at] : 0.0;
}

// The weighted sum of the inputs of a gate of unit k.
float from_input(uint time, uint gate, uint k) {
    uint from = begin_of(0) + ((FLAGS & 1u) != 0 ? batch * times + time : time * batches + batch) * inputs;
    uint w = begin_of(1) + ((direction * GATES + gate) * HIDDEN + k) * inputs;
    precise float sum = 0.0;
    for (uint i = 0; i < inputs; i++) {
        sum = sum + weight[w + i] * x[from + i];
    }
    return sum + bias_of(false, gate, k);
}

float from_state(uint gate, uint k, bool is_reset) {
    uint r = begin_of(2) + ((direction * GATES + gate) * HIDDEN + k) * HIDDEN;
    precise float sum = 0.0;
    for (uint i = 0; i < HIDDEN; i++) {
        sum = sum + recurrence[r + i] * (is_reset ? next[i] : state[i]);
    }
    return sum + bias_of(true, gate, k);
}

float peep(uint gate, uint k, float c) {
    if ((HAS & 128u) == 0) {
        return 0.0;
    }
    precise float product = peephole[begin_of(7) + (direction * 3 + gate) * HIDDEN + k] * c;
    return product;
}

float both(uint time, uint gate, uint k) {
    precise float sum = from_input(time, gate, k) + from_state(gate, k, false);
    return sum;
}

void step_lstm(uint time, uint k) {
    float c = more[k];
    precise float in_sum = both(time, 0, k) + peep(0, k, c);
    precise float forget_sum = both(time, 2, k) + peep(2, k, c);
    float in_gate = clipped(0, in_sum), forget = clipped(0, forget_sum);
    float candidate = clipped(1, both(time, 3, k));
    forget = (FLAGS & 8u) != 0 ? 1.0 - in_gate : forget;
    precise float kept = forget * c + in_gate * candidate;
    precise float out_sum = both(time, 1, k) + peep(1, k, kept);
    more[k] = kept;
    next[k] = clipped(0, out_sum) * activate(2, kept);
}

float mixed(float z, float candidate, float before) {
    precise float mix = (1.0 - z) * candidate + z * before;
    return mix;
}

// Computes the next state with the gates z (update) and r (reset). Without linear before reset,
// computes only z and r * state; step_all then computes the next state.
void step_gru(uint time, uint k) {
    float z = clipped(0, both(time, 0, k)), r = clipped(0, both(time, 1, k));
    more[k] = z;
    if ((FLAGS & 4u) == 0) {
        next[k] = r * state[k];
        return;
    }
    precise float sum = from_input(time, 2, k) + from_state(2, k, false) * r;
    next[k] = mixed(z, clipped(1, sum), state[k]);
}

void step_all(uint time) {
    for (uint k = gl_LocalInvocationID.x; k < HIDDEN; k += LANES) {
        if (KIND == 2) {
            step_lstm(time, k);
        } else if (KIND == 1) {
            step_gru(time, k);
        } else {
            next[k] = clipped(0, both(time, 0, k));
        }
    }
    barrier();
    for (uint k = gl_LocalInvocationID.x; k < HIDDEN; k += LANES) {
        if (KIND == 1 && (FLAGS & 4u) == 0) {
            precise float sum = from_input(time, 2, k) + from_state(2, k, true);
            state[k] = mixed(more[k], clipped(1, sum), state[k]);
        } else {
            state[k] = next[k];
        }
    }
    barrier();
}

uint state_at(uint k) {
    return (FLAGS & 1u) != 0 ? (batch * directions + direction) * HIDDEN + k
                             : (direction * batches + batch) * HIDDEN + k;
}

void store(uint time, bool is_behind) {
    uint first = (FLAGS & 1u) != 0 ? ((batch * times + time) * directions + direction) * HIDDEN
                                   : ((time * directions + direction) * batches + batch) * HIDDEN;
    for (uint k = gl_LocalInvocationID.x; k < HIDDEN; k += LANES) {
        y[begin_of(8) + first + k] = is_behind ? 0.0 : state[k];
    }
}

void main() {
    find_call(gl_WorkGroupID.z);
    batch = gl_WorkGroupID.x % batches;
    direction = gl_WorkGroupID.x / batches;
    int last = (HAS & 16u) != 0 ? clamp(lengths[begin_of(4) + batch], 0, int(times)) : int(times);
    bool is_backward = direction == 1 || (FLAGS & 2u) != 0;
    for (uint k = gl_LocalInvocationID.x; k < HIDDEN; k += LANES) {
        state[k] = (HAS & 32u) != 0 ? hidden[begin_of(5) + state_at(k)] : 0.0;
        more[k] = (HAS & 64u) != 0 ? cell[begin_of(6) + state_at(k)] : 0.0;
    }
    barrier();
    for (uint t = 0; t < times; t++) {
        bool is_behind = int(t) >= last;
        uint time = is_backward && !is_behind ? uint(last - 1) - t : t;
        if (!is_behind) {
            step_all(time);
        }
        store(time, is_behind);
    }
    for (uint k = gl_LocalInvocationID.x; k < HIDDEN; k += LANES) {
#if OUTPUTS > 1
        last_hidden[begin_of(9) + state_at(k)] = state[k];
#endif
#if OUTPUTS > 2
        last_cell[begin_of(10) + state_at(k)] = more[k];
#endif
    }
}
