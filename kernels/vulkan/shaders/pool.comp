// Max and average pools with channels last: y[n][h][i][j][c] over windows of x[n][.][.][.][c], with
// taps in the order of planes, rows and columns. NaN is kept. A mean divides by the number of taps
// inside the image or, if padding counts, inside the image or the padding.
// Buffers: 0 = x; 1 = y; 2 = geometry (three axes). Constants: 0 = lanes; 1 = repair; 2 = whether
// it is max; 3 = whether padding counts. Tile: lanes * per_lane outputs. Dispatched by vk_window.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const bool IS_MAX = false;
layout(constant_id = 3) const bool COUNTS_PADDING = false;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer Geometry {
    int size_in[3], size_out[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
};
layout(push_constant) uniform Push { uint n; uint per_lane; int channels; };

// The taps [begin, end) of a window beginning at `first` that are in [0, length).
ivec2 taps(int first, int a, int length) {
    int begin = first < 0 ? (-first + dilation[a] - 1) / dilation[a] : 0;
    int inside = first >= length ? 0 : (length - 1 - first) / dilation[a] + 1;
    return ivec2(begin, min(inside, kernel[a]));
}

int padded(int first, int a) {
    ivec2 t = taps(first + pad_begin[a], a, size_in[a] + pad_begin[a] + pad_end[a]);
    return max(t.y - t.x, 0);
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
        int c = int(i) % channels, at = int(i) / channels;
        ivec3 first, begins, ends;
        for (int a = 2; a >= 0; a--) {
            first[a] = at % size_out[a] * stride[a] - pad_begin[a];
            at /= size_out[a];
            ivec2 range = taps(first[a], a, size_in[a]);
            begins[a] = range.x;
            ends[a] = range.y;
        }
        precise float result = IS_MAX ? uintBitsToFloat(0xff800000u) : 0.0;
        for (int p = begins.x; p < ends.x; p++) {
            int plane = at * size_in[0] + first.x + p * dilation[0];
            for (int r = begins.y; r < ends.y; r++) {
                int row = plane * size_in[1] + first.y + r * dilation[1];
                for (int k = begins.z; k < ends.z; k++) {
                    int col = row * size_in[2] + first.z + k * dilation[2];
                    float v = x[x0 + col * channels + c];
                    result = IS_MAX ? (v > result || isnan(v) ? v : result) : result + v;
                }
            }
        }
        if (!IS_MAX) {
            int count = 1;
            for (int a = 0; a < 3; a++) {
                count *= COUNTS_PADDING ? padded(first[a], a) : max(ends[a] - begins[a], 0);
            }
            result = divide(result, float(count));
        }
        y[y0 + i] = result;
    }
}
