// Deformable convolution of images: each tap reads at a position moved by an offset, interpolates
// between four elements, and optionally multiplies by a mask. A place is an output position.
// Buffers: 0 = x; 1 = weight [out][in per group][rows][columns]; 2 = offsets [batch][offset groups
// * taps * 2][places]; 3 = bias; 4 = mask [batch][offset groups * taps][places]; 5 = y;
// 6 = numbers: channels, rows and columns of x, then of y; rows and columns of the window; input
// channels per group, output channels per group, channels per offset group; offset groups; strides,
// dilations, paddings (two each).
// Constants: 0 = lanes; 2 = whether there is a bias; 3 = whether there is a mask.
// Tile: lanes * per_lane outputs. Dispatched by vk_image.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 7
#define ROW 0
#include "call.glsl"
#include "reach.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool HAS_BIAS = false;
layout(constant_id = 3) const bool HAS_MASK = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weight { float weight[]; };
layout(binding = 2) readonly buffer Offsets { float offsets[]; };
layout(binding = 3) readonly buffer Bias { float bias[]; };
layout(binding = 4) readonly buffer Mask { float mask[]; };
layout(binding = 5) writeonly buffer Y { float y[]; };
layout(binding = 6) readonly buffer Numbers {
    int in_channels, in_rows, in_columns, out_channels, out_rows, out_columns;
    int window_rows, window_columns, group_in, group_out, offset_channels, offset_groups;
    int steps[2], dilations[2], pads[2];
};
layout(push_constant) uniform Push { uint n; uint per_lane; };

// Bilinear interpolation; elements outside are 0.
float sample_at(int plane, float row, float column) {
    row = within_reach(row);
    column = within_reach(column);
    float low[2] = float[2](floor(row), floor(column));
    precise float sum = 0.0;
    for (int i = 0; i < 4; i++) {
        int r = int(low[0]) + i / 2, c = int(low[1]) + i % 2;
        precise float down = row - low[0], across = column - low[1];
        precise float w = (i / 2 == 1 ? down : 1.0 - down) * (i % 2 == 1 ? across : 1.0 - across);
        if (r >= 0 && r < in_rows && c >= 0 && c < in_columns) {
            precise float part = w * x[begin_of(0) + (plane * in_rows + r) * in_columns + c];
            sum = sum + part;
        }
    }
    return sum;
}

float convolve(int batch, int channel, ivec2 at) {
    int taps = window_rows * window_columns, area = out_rows * out_columns;
    int place = at.x * out_columns + at.y;
    precise float sum = 0.0;
    for (int c = 0; c < group_in; c++) {
        int from = channel / group_out * group_in + c;
        int group = batch * offset_groups + from / offset_channels;
        for (int tap = 0; tap < taps; tap++) {
            float position[2];
            for (int a = 0; a < 2; a++) {
                int k = a == 0 ? tap / window_columns : tap % window_columns;
                int whole_place = at[a] * steps[a] - pads[a] + k * dilations[a];
                precise float v = float(whole_place) +
                    offsets[begin_of(2) + ((group * taps + tap) * 2 + a) * area + place];
                position[a] = v;
            }
            precise float value =
                sample_at(batch * in_channels + from, position[0], position[1]);
            if (HAS_MASK) {
                value = value * mask[begin_of(4) + (group * taps + tap) * area + place];
            }
            value = value * weight[begin_of(1) + (channel * group_in + c) * taps + tap];
            sum = sum + value;
        }
    }
    if (HAS_BIAS) {
        sum = sum + bias[begin_of(3) + channel];
    }
    return sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(first + e * gl_WorkGroupSize.x), rest = i / out_columns;
        ivec2 at = ivec2(rest % out_rows, i % out_columns);
        rest /= out_rows;
        y[begin_of(5) + i] = convolve(rest / out_channels, rest % out_channels, at);
    }
}
