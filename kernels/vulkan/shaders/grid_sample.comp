// Samples x at positions given by a grid, over one to three spatial axes: the nearest element, or
// linear or cubic interpolation.
// Buffers: 0 = x [batch][channels][spatial]; 1 = grid [batch][points][axes] in [-1, 1], last axis
// first; 2 = y.
// Constants: 0 = lanes; 1 = repair; 2 = number of axes; 3 = method (0 nearest, 1 linear, 2 cubic);
// 4 = padding (0 zeros, 1 border, 2 reflection); 5 = align_corners; 6 = type of elements. Push:
// channels, points, lengths.
// Tile: lanes * per_lane outputs. Dispatched by vk_sample.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
#include "reach.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int N_AXES = 2;
layout(constant_id = 3) const uint METHOD = 1;
layout(constant_id = 4) const uint PADDING = 0;
layout(constant_id = 5) const bool ALIGNS = false;
layout(constant_id = 6) const uint TYPE = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Grid { uint grid[]; };
layout(binding = 2) writeonly buffer Words { uint y_words[]; };
layout(binding = 2) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; int channels; int points; int lengths[3];
};
READER(read_x, x)
READER(read_grid, grid)
WRITER(write_y, y_words, y_bytes)

float mirror(float v, float low, float high) {
    precise float range = high - low;
    if (range <= 0.0) {
        return low;
    }
    precise float d = abs(v - low);
    float turns = floor(divide(d, range));
    precise float rest = d - turns * range;
    precise float up = low + rest, down = high - rest;
    v = floor(turns * 0.5) * 2.0 == turns ? up : down;
    return v >= low ? v : low; // NaN, also from an infinite position, becomes the first element
}

float pad_coordinate(float v, int extent) {
    float low = ALIGNS ? 0.0 : -0.5, high = ALIGNS ? float(extent - 1) : float(extent) - 0.5;
    if (PADDING == 1) {
        return v > 0.0 ? min(v, float(extent - 1)) : 0.0; // NaN becomes 0
    }
    return PADDING == 2 && !(v >= low && v <= high) ? mirror(v, low, high) : v;
}

float element(int base, ivec3 at) {
    int place = 0;
    for (int a = 0; a < N_AXES; a++) {
        int i = at[a];
        if (i < 0 || i >= lengths[a]) {
            if (PADDING == 0) {
                return 0.0;
            }
            i = clamp(int(pad_coordinate(float(i), lengths[a])), 0, lengths[a] - 1);
        }
        place = place * lengths[a] + i;
    }
    return real(TYPE, read_x(TYPE, begin_of(0), uint(base + place)));
}

// The weight of tap k for a position at distance t after an element.
float weight(int k, float t) {
    precise float r = k == 0 ? 1.0 - t : t;
    if (METHOD == 2) {
        precise float d = k == 0 ? t + 1.0 : k == 1 ? t : k == 2 ? 1.0 - t : 2.0 - t;
        r = k == 0 || k == 3 ? ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0
                             : (1.25 * d - 2.25) * d * d + 1.0;
    }
    return METHOD == 0 ? 1.0 : r;
}

float sample_at(int base, vec3 v) {
    const int TAPS = METHOD == 0 ? 1 : METHOD == 1 ? 2 : 4;
    const int COUNT = N_AXES == 1 ? TAPS : N_AXES == 2 ? TAPS * TAPS : TAPS * TAPS * TAPS;
    precise float sum = 0.0;
    for (int i = 0; i < COUNT; i++) {
        ivec3 at = ivec3(0);
        precise float w = 1.0;
        int rest = i;
        for (int a = N_AXES - 1; a >= 0; a--) {
            float below = METHOD == 0 ? roundEven(v[a]) : floor(v[a]);
            int k = rest % TAPS;
            rest /= TAPS;
            at[a] = int(below) + k - (METHOD == 2 ? 1 : 0);
            w = w * weight(k, v[a] - below);
        }
        precise float part = w * element(base, at);
        sum = sum + part;
    }
    return sum;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(begin + e * gl_WorkGroupSize.x), area = 1;
        int point = i % points, image = i / points, batch = image / channels;
        vec3 v = vec3(0.0);
        for (int a = 0; a < N_AXES; a++) {
            uint place = uint((batch * points + point + 1) * N_AXES - 1 - a);
            float g = real(TYPE, read_grid(TYPE, begin_of(1), place));
            float extent = float(lengths[a]);
            precise float aligned = (g + 1.0) * 0.5 * (extent - 1.0);
            precise float other = ((g + 1.0) * extent - 1.0) * 0.5;
            v[a] = ALIGNS ? aligned : other;
            // For cubic interpolation, padding applies to each tap instead of the position.
            v[a] = METHOD == 2 ? v[a] : pad_coordinate(v[a], lengths[a]);
            v[a] = within_reach(v[a]);
            area *= lengths[a];
        }
        write_y(TYPE, begin_of(2), uint(i), bits_of_real(TYPE, sample_at(image * area, v)));
    }
}
