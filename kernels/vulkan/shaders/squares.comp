// The sum of (y - z)^2 over the n elements of each sample, in double, with the bits of
// msc_squares_sum (kernels/backend.h): element i is added to sum i % 8, in the order of i.
// Buffers: 0 = y [samples][n] float; 1 = z [samples][n] float; 2 = sums of all calls, double: those
// of this call begin at number `word 0`. Constants: 0 = lanes, a multiple of 8.
// Tile: lanes / 8 samples; each lane computes one of the eight sums of a sample. Dispatched by
// vk_compare.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 1
#include "call.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer Z { float z[]; };
layout(binding = 2) writeonly buffer Sums { double sums[]; };
layout(push_constant) uniform Push { uint n_samples; uint n; };

const uint PARTS = 8, AHEAD = 4; // elements of a lane that are read before they are added
shared double parts[gl_WorkGroupSize.x];

double add(double sum, float a, float b) {
    precise double d = double(a) - double(b);
    precise double square = d * d;
    precise double more = sum + square;
    return more;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint lane = gl_LocalInvocationID.x, part = lane % PARTS;
    uint one = (gl_WorkGroupID.x * gl_WorkGroupSize.x + lane) / PARTS;
    uint at_y = begin_of(0) + one * n, at_z = begin_of(1) + one * n;
    uint i = part, end = one < n_samples ? n : 0;
    double sum = 0.0;
    for (; i + PARTS * (AHEAD - 1) < end; i += PARTS * AHEAD) {
        float a[AHEAD], b[AHEAD];
        for (uint k = 0; k < AHEAD; k++) {
            a[k] = y[at_y + i + PARTS * k];
            b[k] = z[at_z + i + PARTS * k];
        }
        for (uint k = 0; k < AHEAD; k++) {
            sum = add(sum, a[k], b[k]);
        }
    }
    for (; i < end; i += PARTS) {
        sum = add(sum, y[at_y + i], z[at_z + i]);
    }
    parts[lane] = sum;
    barrier();
    if (part == 0 && one < n_samples) {
        precise double p = parts[lane] + parts[lane + 1], q = parts[lane + 2] + parts[lane + 3];
        precise double r = parts[lane + 4] + parts[lane + 5], s = parts[lane + 6] + parts[lane + 7];
        precise double left = p + q, right = r + s;
        precise double all = left + right;
        sums[begin_of(2) / 2 + word(0) + one] = all;
    }
}
