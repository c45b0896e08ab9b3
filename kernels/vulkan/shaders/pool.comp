// Max and average pools with channels last: y[n][i][j][c] over windows of x[n][.][.][c], with taps
// in the order of rows and columns. NaN is kept. A mean divides by the number of taps inside the
// image or, if padding counts, inside the image or the padding.
// Buffers: 0 = x; 1 = y; 2 = geometry (two axes). Constants: 0 = lanes; 1 = repair; 2 = whether it
// is max; 3 = whether padding counts.
// Tile: lanes * per_lane outputs. Dispatched by vk_window.c.
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
    ivec2 size_in, size_out, kernel, stride, dilation, pad_begin, pad_end;
};
layout(push_constant) uniform Push { uint n; uint per_lane; int channels; };

// The taps [begin, end) of a window beginning at `first` that are in [0, length).
ivec2 taps(ivec2 first, int a, int length) {
    int begin = first[a] < 0 ? (-first[a] + dilation[a] - 1) / dilation[a] : 0;
    int inside = first[a] >= length ? 0 : (length - 1 - first[a]) / dilation[a] + 1;
    return ivec2(begin, min(inside, kernel[a]));
}

int padded(ivec2 first, int a) {
    ivec2 t = taps(first + pad_begin, a, size_in[a] + pad_begin[a] + pad_end[a]);
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
        ivec2 o = ivec2(at / size_out.y % size_out.x, at % size_out.y);
        int image = at / (size_out.x * size_out.y) * size_in.x * size_in.y;
        ivec2 first = o * stride - pad_begin;
        ivec2 rows = taps(first, 0, size_in.x), cols = taps(first, 1, size_in.y);
        precise float result = IS_MAX ? uintBitsToFloat(0xff800000u) : 0.0;
        for (int r = rows.x; r < rows.y; r++) {
            for (int k = cols.x; k < cols.y; k++) {
                int row = first.x + r * dilation.x, col = first.y + k * dilation.y;
                float v = x[x0 + (image + row * size_in.y + col) * channels + c];
                result = IS_MAX ? (v > result || isnan(v) ? v : result) : result + v;
            }
        }
        if (!IS_MAX) {
            int count = COUNTS_PADDING ? padded(first, 0) * padded(first, 1)
                                       : max(rows.y - rows.x, 0) * max(cols.y - cols.x, 0);
            result = divide(result, float(count));
        }
        y[y0 + i] = result;
    }
}
