// Sums, means, maxima and minima: y[o] reduces the elements of x that share the indices of the kept
// dims, in the order of the reduced dims. NaN is kept.
// Buffers: 0 = x; 1 = y; 2 = dims {length, stride}: N_KEPT kept dims in the order of y, then
// N_REDUCED reduced dims.
// Constants: 0 = lanes; 1 = repair; 2 = kind (0 sum, 1 max, 2 min); 3 and 4 = numbers of kept and
// reduced dims.
// Tile: lanes * per_lane outputs. Dispatched by vk_reduce.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint KIND = 0;
layout(constant_id = 3) const int N_KEPT = 1;
layout(constant_id = 4) const int N_REDUCED = 1;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer Dims { ivec2 dims[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int count; float divisor; };

float combine(float a, float v) {
    precise float sum = a + v;
    return KIND == 0 ? sum : isnan(v) || (KIND == 1 ? v > a : v < a) ? v : a;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint x0 = begin_of(0), y0 = begin_of(1);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = begin + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        int rest = int(i), base = int(x0);
        for (int d = N_KEPT - 1; d >= 0; d--) {
            base += rest % dims[d].x * dims[d].y;
            rest /= dims[d].x;
        }
        float result = KIND == 0 ? 0.0 : uintBitsToFloat(KIND == 1 ? 0xff800000u : 0x7f800000u);
        for (int k = 0; k < count; k++) {
            int at = base;
            rest = k;
            for (int d = N_KEPT + N_REDUCED - 1; d >= N_KEPT; d--) {
                at += rest % dims[d].x * dims[d].y;
                rest /= dims[d].x;
            }
            result = combine(result, x[at]);
        }
        y[y0 + i] = divisor == 1.0 ? result : divide(result, divisor);
    }
}
