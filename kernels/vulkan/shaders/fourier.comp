// Fourier transforms along lines or frames: y[k] = sum over n of w[n] * x[n] * e^(-2 pi i k n /
// length). The inverse has a positive exponent and divides by the length. x is 0 after its end.
// Each invocation computes pairs of a real and an imaginary part.
// Buffers: 0 = x; 1 = window w; 2 = y; 3 = numbers: for each dim of y except the last {length,
// stride in x}, then the cosine and sine of 2 pi i / length for each i < length.
// Constants: 0 = lanes; 1 = repair; 2 = number of dims; 3 = the dim of k; 4 = whether elements of x
// are complex (pairs); 5 = whether it is the inverse; 6 = whether there is a window. Push: length,
// elements per line, their stride.
// Tile: lanes * per_lane pairs. Dispatched by vk_fourier.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 4
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int N_DIMS = 1;
layout(constant_id = 3) const int K_DIM = 0;
layout(constant_id = 4) const bool IS_COMPLEX = false;
layout(constant_id = 5) const bool IS_INVERSE = false;
layout(constant_id = 6) const bool HAS_WINDOW = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Window { float window[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };
layout(binding = 3) readonly buffer Numbers { ivec2 numbers[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; uint turn; uint available; uint stride;
};

vec2 transform(uint first, uint k) {
    precise vec2 sum = vec2(0.0);
    uint angle = 0;
    for (uint i = 0; i < turn && i < available; i++) {
        uint at = begin_of(0) + first + i * stride;
        float a = x[at], b = IS_COMPLEX ? x[at + 1] : 0.0;
        precise vec2 e = intBitsToFloat(numbers[N_DIMS + int(angle)]);
        e.y = IS_INVERSE ? e.y : -e.y;
        if (HAS_WINDOW) {
            e = e * window[begin_of(1) + i];
        }
        precise vec2 part = vec2(a * e.x - b * e.y, a * e.y + b * e.x);
        sum = sum + part;
        angle = (angle + k) % turn;
    }
    return IS_INVERSE ? vec2(divide(sum.x, float(turn)), divide(sum.y, float(turn))) : sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        uint i = begin + e * gl_WorkGroupSize.x, rest = i, first = 0, k = 0;
        for (int d = N_DIMS - 1; d >= 0; d--) {
            uint at = rest % uint(numbers[d].x);
            rest /= uint(numbers[d].x);
            first += at * uint(numbers[d].y);
            k = d == K_DIM ? at : k;
        }
        vec2 pair = transform(first, k);
        y[begin_of(2) + 2 * i] = pair.x;
        y[begin_of(2) + 2 * i + 1] = pair.y;
    }
}
