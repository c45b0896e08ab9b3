// Softmax (or its logarithm) along one axis: e / sum(e) with e = exp(x - max), summed in order.
// Buffers: 0 = x [outer][n][inner]; 1 = y. Constants: 0 = lanes; 1 = repair; 2 = whether it is
// log-softmax.
// Each invocation computes per_lane rows, and lanes run along `inner`. With BY_GROUP, each
// workgroup computes a row whose `inner` is 1: lanes run along the row, and one lane adds up the
// exponentials. Dispatched by vk_reduce.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "numeric.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool IS_LOG = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint n_rows; uint n; uint inner; uint per_lane; };


float exponent(uint at, float top) {
    precise float d = x[at] - top;
    return d;
}

void put(uint at, float value, float sum, float rest) {
    precise float less = value - rest;
    y[at] = IS_LOG ? less : divide(value, sum);
}

#if defined(BY_GROUP)
const uint LANES = gl_WorkGroupSize.x;
shared float values[LANES];
shared float total;

void main() {
    find_call(gl_WorkGroupID.z);
    uint lane = gl_LocalInvocationID.x;
    uint from = begin_of(0) + gl_WorkGroupID.x * n, to = begin_of(1) + gl_WorkGroupID.x * n;
    float top = uintBitsToFloat(0xff800000u);
    for (uint i = lane; i < n; i += LANES) {
        float v = x[from + i];
        top = v > top ? v : top;
    }
    values[lane] = top;
    barrier();
    for (uint i = 0; i < LANES; i++) {
        top = values[i] > top ? values[i] : top;
    }
    precise float sum = 0.0;
    for (uint first = 0; first < n; first += LANES) {
        barrier(); // all invocations have read the previous values
        if (first + lane < n) {
            float d = exponent(from + first + lane, top), e = exp_one(d);
            y[to + first + lane] = IS_LOG ? d : e;
            values[lane] = e;
        }
        barrier();
        for (uint i = 0; lane == 0 && i < min(LANES, n - first); i++) {
            sum = sum + values[i];
        }
    }
    if (lane == 0) {
        total = sum;
    }
    barrier();
    float rest = IS_LOG ? log_one(total) : 0.0;
    for (uint i = lane; i < n; i += LANES) {
        put(to + i, y[to + i], total, rest);
    }
}
#else
void softmax(uint row) {
    uint base = row / inner * n * inner + row % inner;
    uint from = begin_of(0) + base, to = begin_of(1) + base;
    float top = uintBitsToFloat(0xff800000u);
    for (uint i = 0; i < n; i++) {
        float v = x[from + i * inner];
        top = v > top ? v : top;
    }
    precise float sum = 0.0;
    for (uint i = 0; i < n; i++) {
        float d = exponent(from + i * inner, top), e = exp_one(d);
        sum = sum + e;
        y[to + i * inner] = IS_LOG ? d : e;
    }
    float rest = IS_LOG ? log_one(sum) : 0.0;
    for (uint i = 0; i < n; i++) {
        put(to + i * inner, y[to + i * inner], sum, rest);
    }
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n_rows; e++) {
        softmax(first + e * gl_WorkGroupSize.x);
    }
}
#endif
