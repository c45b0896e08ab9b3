// Normalisation over groups of channels: (x - mean) / sqrt(variance + epsilon) * gamma + beta, with
// gamma and beta by channel or by group. Each workgroup computes a group. Each of its L invocations
// adds every L-th element; the sums of the invocations are then added in order.
// Buffers: 0 = x; 1 = gamma; 2 = beta; 3 = y. Constants: 0 = lanes; 1 = repair; 2 = type of
// elements; 3 = whether gamma and beta are by channel; 4 = whether channels are last. Push:
// elements per group, per channel, groups per image, channels per group.
// Tile: a group. Dispatched by vk_norm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 4
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 32;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const bool IS_BY_CHANNEL = true;
layout(constant_id = 4) const bool IS_LAST = false;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Gamma { uint gamma[]; };
layout(binding = 2) readonly buffer Beta { uint beta[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; uint size; uint n_spatial; uint n_groups; uint channels; float epsilon;
};
READER(read_x, x)
READER(read_gamma, gamma)
READER(read_beta, beta)
WRITER(write_y, y_words, y_bytes)
shared float sums[LANES];

// Adds one number per invocation; every invocation gets the sum.
float add_up(float mine) {
    uint lane = gl_LocalInvocationID.x;
    barrier();
    sums[lane] = mine;
    barrier();
    precise float sum = 0.0;
    for (uint i = 0; i < LANES; i++) {
        sum = sum + sums[i];
    }
    return sum;
}

// The offset of element i of the group. With channels last, the channels of a position are
// neighbours.
uint place_of(uint group, uint i) {
    uint position = group / n_groups * n_spatial + i / channels;
    return IS_LAST ? (position * n_groups + group % n_groups) * channels + i % channels
                   : group * size + i;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint group = gl_WorkGroupID.x;
    precise float sum = 0.0, squares = 0.0;
    // Subtracts the first element, so that the mean of equal numbers is exact and their variance 0.
    float shift = real(TYPE, read_x(TYPE, begin_of(0), place_of(group, 0)));
    for (uint i = gl_LocalInvocationID.x; i < size; i += LANES) {
        precise float d = real(TYPE, read_x(TYPE, begin_of(0), place_of(group, i))) - shift;
        sum = sum + d;
    }
    precise float mean = shift + divide(add_up(sum), float(size));
    for (uint i = gl_LocalInvocationID.x; i < size; i += LANES) {
        precise float d = real(TYPE, read_x(TYPE, begin_of(0), place_of(group, i))) - mean;
        squares = squares + d * d;
    }
    float variance = divide(add_up(squares), float(size));
    precise float factor = divide(1.0, root(variance + epsilon));
    for (uint i = gl_LocalInvocationID.x; i < size; i += LANES) {
        uint g = group % n_groups, within = IS_LAST ? i % channels : i / n_spatial;
        uint c = IS_BY_CHANNEL ? g * channels + within : g;
        precise float d = real(TYPE, read_x(TYPE, begin_of(0), place_of(group, i))) - mean;
        d = d * factor * real(TYPE, read_gamma(TYPE, begin_of(1), c));
        d = d + real(TYPE, read_beta(TYPE, begin_of(2), c));
        write_y(TYPE, begin_of(3), place_of(group, i), bits_of_real(TYPE, d));
    }
}
