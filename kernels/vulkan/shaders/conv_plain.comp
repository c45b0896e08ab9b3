// Convolutions of one to three spatial axes, also transposed, in any layout and with groups. An
// output element is a sum over channels and, within each, over taps, in order; the bias is added
// last.
// Buffers: 0 = x; 1 = weight; 2 = bias; 3 = y; 4 = numbers (window.glsl, taps.glsl).
// Constants: 0 = lanes; 2 = whether it is transposed; 3 = whether there is a bias; 4 = type of
// elements.
// Tile: lanes * per_lane outputs. Dispatched by vk_plain.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 5
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool IS_TRANSPOSED = false;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(constant_id = 4) const uint TYPE = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Weight { uint weight[]; };
layout(binding = 2) readonly buffer Bias { uint bias[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 4) readonly buffer Numbers { int numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };
READER(read_x, x)
READER(read_weight, weight)
READER(read_bias, bias)
WRITER(write_y, y_words, y_bytes)
#include "window.glsl"
#include "taps.glsl"

float convolve(Place p) {
    int n_taps = count_taps();
    ivec2 channel = begin_taps(p);
    precise float sum = 0.0;
    for (int c = 0; c < numbers[OTHERS + 5]; c++) {
        for (int t = 0; t < n_taps; t++) {
            ivec2 at = channel;
            if (find_tap(p, t, at)) {
                precise float part = real(TYPE, read_x(TYPE, begin_of(0), uint(at.x))) *
                                     real(TYPE, read_weight(TYPE, begin_of(1), uint(at.y)));
                sum = sum + part;
            }
        }
        channel += channel_step();
    }
    if (HAS_BIAS) {
        sum = sum + real(TYPE, read_bias(TYPE, begin_of(2), uint(p.channel)));
    }
    return sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        Place p = place_of(first + e * gl_WorkGroupSize.x);
        write_y(TYPE, begin_of(3), uint(p.to), bits_of_real(TYPE, convolve(p)));
    }
}
