// Convolutions, also transposed ones, of one to three spatial axes, in any layout and groups: an
// element of the output is a sum over channels, then taps, in order; then the bias.
// Buffers: 0 x, 1 weight, 2 bias, 3 y, 4 numbers (window.glsl; behind the strides: channels of a
// group in and out, strides of the weight to the next output channel, input channel, group).
// Constants: 0 lanes, 2 is it transposed?, 3 is there a bias?, 4 type of elements.
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

// The input coordinate that tap k of output coordinate o reads, or -1.
int source(int a, int o, int k) {
    int step = at_axis(STEP, a), i;
    if (IS_TRANSPOSED) {
        i = o + at_axis(PAD, a) - k * at_axis(DILATION, a);
        if (i < 0 || i % step != 0) {
            return -1;
        }
        i /= step;
    } else {
        i = o * step - at_axis(PAD, a) + k * at_axis(DILATION, a);
    }
    return i < 0 || i >= at_axis(IN, a) ? -1 : i;
}

float convolve(Place p) {
    int in_channels = numbers[OTHERS + 5], out_channels = numbers[OTHERS + 6];
    int group = p.channel / out_channels;
    int from = p.batch * numbers[OTHERS + 1] + group * in_channels * numbers[OTHERS + 2];
    int w = group * numbers[OTHERS + 9] + p.channel % out_channels * numbers[OTHERS + 7];
    int taps = at_axis(KERNEL, 0) * at_axis(KERNEL, 1) * at_axis(KERNEL, 2);
    precise float sum = 0.0;
    for (int c = 0; c < in_channels; c++) {
        for (int t = 0; t < taps; t++) {
            int rest = t, at = from, tap = w;
            bool is_inside = true;
            for (int a = 2; a >= 0; a--) {
                int k = rest % at_axis(KERNEL, a), i = source(a, p.at[a], k);
                rest /= at_axis(KERNEL, a);
                is_inside = is_inside && i >= 0;
                at += i * at_axis(IN_STRIDES, a);
                tap += k * at_axis(KERNEL_STRIDES, a);
            }
            if (is_inside) {
                precise float part = real(TYPE, read_x(TYPE, begin_of(0), uint(at))) *
                                     real(TYPE, read_weight(TYPE, begin_of(1), uint(tap)));
                sum = sum + part;
            }
        }
        from += numbers[OTHERS + 2];
        w += numbers[OTHERS + 8];
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
