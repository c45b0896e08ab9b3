// Regions of images pooled to grids of bins: a bin is the mean, or the greatest, of samples at
// regular places in it, each a bilinear mean of four elements (for the greatest: the greatest of
// their weighted values).
// Buffers: 0 x [images][channels][rows][columns], 1 regions [n][x1, y1, x2, y2], 2 images of
// regions, 3 y [n][channels][bins down][bins across]. Constants: 0 lanes, 1 repair, 2 type of
// buffer 2, 3 the greatest?, 4 type of other elements. Push: channels, images, lengths {across,
// down} of x and of y, samples of a bin along an axis (0: one for each element), scale, shift.
// Tile: lanes * per_lane outputs. Dispatched by vk_sample.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 4
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint INDEX_TYPE = 0;
layout(constant_id = 3) const bool IS_MAX = false;
layout(constant_id = 4) const uint TYPE = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Regions { uint regions[]; };
layout(binding = 2) readonly buffer Images { uint images[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; int channels; int n_images; ivec2 extent; ivec2 bins; int sampling;
    float scale; float shift;
};
READER(read_x, x)
READER(read_region, regions)
READER(read_image, images)
WRITER(write_y, y_words, y_bytes)

float element(int i) {
    return real(TYPE, read_x(TYPE, begin_of(0), uint(i)));
}

float corner(int i) {
    return real(TYPE, read_region(TYPE, begin_of(1), uint(i)));
}

// Along one axis: the elements around a place, and how far behind the first it lies.
void neighbours(float v, int extent, out int low, out int high, out float t) {
    float at = max(v, 0.0);
    low = int(at);
    high = low + 1;
    if (low >= extent - 1) {
        low = extent - 1;
        high = low;
        at = float(low);
    }
    precise float d = at - float(low);
    t = d;
}

float sample_at(int base, vec2 v) {
    if (v.x < -1.0 || v.y < -1.0 || v.x > float(extent.x) || v.y > float(extent.y)) {
        return 0.0;
    }
    ivec2 low, high;
    vec2 t;
    neighbours(v.x, extent.x, low.x, high.x, t.x);
    neighbours(v.y, extent.y, low.y, high.y, t.y);
    precise float sum = 0.0;
    float most = uintBitsToFloat(0xff800000u);
    for (int i = 0; i < 4; i++) {
        int row = i > 1 ? high.y : low.y, column = (i & 1) == 1 ? high.x : low.x;
        precise float wy = i > 1 ? t.y : 1.0 - t.y, wx = (i & 1) == 1 ? t.x : 1.0 - t.x;
        precise float value = wy * wx * element(base + row * extent.x + column);
        sum = sum + value;
        most = value > most ? value : most;
    }
    return IS_MAX ? most : sum;
}

float pool(int base, int region, ivec2 bin) {
    vec2 first, size;
    ivec2 counts;
    for (int a = 0; a < 2; a++) {
        precise float begin = corner(4 * region + a) * scale - shift;
        precise float end = corner(4 * region + 2 + a) * scale - shift;
        precise float whole_size = end - begin;
        whole_size = shift == 0.0 ? max(whole_size, 1.0) : whole_size;
        first[a] = begin;
        size[a] = divide(whole_size, float(bins[a]));
        counts[a] = sampling > 0 ? sampling : int(ceil(size[a]));
    }
    precise float sum = 0.0;
    float most = uintBitsToFloat(0xff800000u);
    for (int i = 0; i < counts.y; i++) {
        for (int k = 0; k < counts.x; k++) {
            vec2 v;
            for (int a = 0; a < 2; a++) {
                precise float edge = first[a] + float(bin[a]) * size[a];
                precise float inner = (float(a == 0 ? k : i) + 0.5) * size[a];
                precise float at = edge + divide(inner, float(counts[a]));
                v[a] = at;
            }
            float value = sample_at(base, v);
            sum = sum + value;
            most = value > most ? value : most;
        }
    }
    int count = counts.x * counts.y;
    return IS_MAX ? most : count > 0 ? divide(sum, float(count)) : 0.0;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(begin + e * gl_WorkGroupSize.x), plane = i / (bins.x * bins.y);
        int region = plane / channels;
        int64_t found = whole(INDEX_TYPE, read_image(INDEX_TYPE, begin_of(2), uint(region)));
        int image = int(clamp(found, int64_t(0), int64_t(n_images - 1)));
        int base = (image * channels + plane % channels) * extent.x * extent.y;
        float value = pool(base, region, ivec2(i % bins.x, i / bins.x % bins.y));
        write_y(TYPE, begin_of(3), uint(i), bits_of_real(TYPE, value));
    }
}
