// Adds up the products of digits, which are groups of bits of the input's integers
// (kernels/lowering/digits.h), and turns the sums into outputs:
//   stage 0: sums = int(product) << shift
//   stage 1: sums += int(product) << shift
//   stage 2: sum += integer bias, y = t * float(sum), y += bias, each rounded once
// with t = x_scale * scales[c] (or x_scale if there are no scales) and c = i mod channels. The row
// holds x_scale.
// Buffers: 0 = product and y [n] float; 1 = sums [n] int; 2 = tail as in conv.glsl, [4][channels].
// Constants: 0 = lanes; 2 = stage; 3 = the bias (enum msc_vk_bias).
// Tile: lanes * per_lane elements. Dispatched by vk_quantize.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 1
#include "call.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint STAGE = 0;
layout(constant_id = 3) const uint BIAS = 0; // 1: a float, 2: an integer
layout(binding = 0) buffer Product { float product[]; };
layout(binding = 1) buffer Sums { int sums[]; };
layout(binding = 2) readonly buffer Tail { float tail[]; };
layout(binding = 2) readonly buffer IntegerTail { int integer_tail[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; uint channels; int shift; uint n_scales;
};

void main() {
    find_call(gl_WorkGroupID.z);
    float x_scale = number(0);
    uint product0 = begin_of(0), sums0 = begin_of(1), tail0 = begin_of(2);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        if (STAGE == 2) {
            uint c = i % channels;
            precise float t = n_scales == 0 ? x_scale : x_scale * tail[tail0 + c];
            int sum = sums[sums0 + i];
            if (BIAS == 2) {
                sum += integer_tail[tail0 + 3 * channels + c];
            }
            precise float y = t * float(sum);
            if (BIAS == 1) {
                y = y + tail[tail0 + channels + c];
            }
            product[product0 + i] = y;
        } else {
            int part = int(product[product0 + i]) << shift;
            sums[sums0 + i] = STAGE == 0 ? part : sums[sums0 + i] + part;
        }
    }
}
