// Resizes rows and columns with channels last: first along columns, then across rows. With a single
// tap the output is the element itself, otherwise the weighted sum of taps.
// Buffers: 0 = x [batch][rows][cols][channels]; 1 = y; 2 = taps of output rows, then of output
// columns: {n, 4 positions, 4 weights}. Constants: 0 = lanes.
// Tile: lanes * per_lane outputs. Dispatched by vk_window.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
layout(local_size_x_id = 0) in;
struct Taps { int n; int at[4]; float weights[4]; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer AllTaps { Taps taps[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; int channels; int in_rows; int in_cols; int out_rows; int out_cols;
};

float resize_row(int base, int col) {
    base += int(begin_of(0));
    int t = out_rows + col;
    if (taps[t].n == 1) {
        return x[base + taps[t].at[0] * channels];
    }
    precise float sum = taps[t].weights[0] * x[base + taps[t].at[0] * channels];
    for (int k = 1; k < taps[t].n; k++) {
        precise float part = taps[t].weights[k] * x[base + taps[t].at[k] * channels];
        sum = sum + part;
    }
    return sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint y0 = begin_of(1);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = begin + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        int c = int(i) % channels, at = int(i) / channels;
        int col = at % out_cols, row = at / out_cols % out_rows;
        int image = at / (out_cols * out_rows) * in_rows;
        precise float sum = resize_row((image + taps[row].at[0]) * in_cols * channels + c, col);
        if (taps[row].n > 1) {
            sum = taps[row].weights[0] * sum;
        }
        for (int k = 1; k < taps[row].n; k++) {
            precise float part = taps[row].weights[k] *
                resize_row((image + taps[row].at[k]) * in_cols * channels + c, col);
            sum = sum + part;
        }
        y[y0 + i] = sum;
    }
}
