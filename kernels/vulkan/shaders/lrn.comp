// x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta.
// Buffers: 0 = x [batch][channels][n_spatial]; 1 = y. Constants: 0 = lanes; 1 = repair; 2 = type of
// elements.
// Tile: lanes * per_lane elements. Dispatched by vk_norm.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
#include "numeric.glsl"
#include "power.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint TYPE = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Words { uint y_words[]; };
layout(binding = 1) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; int channels; int n_spatial; int size; float alpha; float beta; float bias;
};
READER(read_x, x)
WRITER(write_y, y_words, y_bytes)

float x_at(int i) {
    return real(TYPE, read_x(TYPE, begin_of(0), uint(i)));
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(begin + e * gl_WorkGroupSize.x), c = i / n_spatial % channels;
        int first = c - (size - 1) / 2;
        precise float sum = 0.0;
        for (int k = max(first, 0); k < min(first + size, channels); k++) {
            float v = x_at(i + (k - c) * n_spatial);
            sum = sum + v * v;
        }
        precise float base = bias + divide(alpha, float(size)) * sum;
        float result = divide(x_at(i), power_one(base, beta));
        write_y(TYPE, begin_of(1), uint(i), bits_of_real(TYPE, result));
    }
}
