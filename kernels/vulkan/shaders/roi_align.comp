// Pools regions of images to grids of bins. A bin is the mean, or the maximum, of samples at
// regular positions in it. For the mean, a sample is interpolated between four elements; for the
// maximum, a sample is the maximum of the four elements, each times its weight.
// Buffers: 0 = x [images][channels][rows][columns]; 1 = regions [n][x1, y1, x2, y2]; 2 = image
// index of each region; 3 = y [n][channels][bins down][bins across].
// Constants: 0 = lanes; 1 = repair; 2 = type of buffer 2; 3 = whether bins are maxima instead of
// means; 4 = type of other elements. Push: channels, images, lengths {across, down} of x and of y,
// samples per bin along an axis (0: about one per element), scale and shift of coordinates.
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
const float MOST_SAMPLES = 4194304.0; // as in graph/reference/reference_sample.c
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

// Finds the elements on both sides of a position along one axis, and the distance of the position
// from the first of them.
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
    if (!(v.x >= -1.0 && v.y >= -1.0 && v.x <= float(extent.x) && v.y <= float(extent.y))) {
        return 0.0; // also if a region is NaN
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

// A bin along one axis: its start, its length, its number of samples (0: none), and the samples
// [first, end) that may be inside the image. Samples outside of that range count as 0.
struct Span { float edge; float size; float count; int first; int end; };

Span span_of(int region, int a, int bin) {
    precise float begin = corner(4 * region + a) * scale - shift;
    precise float end = corner(4 * region + 2 + a) * scale - shift;
    precise float whole_size = end - begin;
    whole_size = shift == 0.0 && whole_size < 1.0 ? 1.0 : whole_size;
    Span s;
    s.size = divide(whole_size, float(bins[a]));
    precise float edge = begin + float(bin) * s.size;
    s.edge = edge;
    float elements = s.size > MOST_SAMPLES ? MOST_SAMPLES : ceil(s.size);
    s.count = sampling > 0 ? float(sampling) : elements > 0.0 ? elements : 0.0;
    s.first = 0;
    s.end = int(s.count);
    float step = s.size / s.count;
    if (step > 0.0) { // false for negative step or NaN; the range has some margin for rounding
        float first = floor((-1.0 - s.edge) / step - 0.5) - 1.0;
        float last = ceil((float(extent[a]) - s.edge) / step - 0.5) + 2.0;
        s.first = first < s.count ? int(max(first, 0.0)) : s.end;
        s.end = last < s.count ? int(max(last, 0.0)) : s.end;
    }
    return s;
}

float place_of(Span s, int i) {
    precise float inner = (float(i) + 0.5) * s.size;
    precise float at = s.edge + divide(inner, s.count);
    return at;
}

float pool(int base, int region, ivec2 bin) {
    Span across = span_of(region, 0, bin.x), down = span_of(region, 1, bin.y);
    float count = across.count * down.count;
    if (count == 0.0) {
        return 0.0;
    }
    bool is_all = float(across.end - across.first) == across.count &&
                  float(down.end - down.first) == down.count;
    precise float sum = 0.0;
    float most = is_all ? uintBitsToFloat(0xff800000u) : 0.0;
    for (int i = down.first; i < down.end; i++) {
        for (int k = across.first; k < across.end; k++) {
            float value = sample_at(base, vec2(place_of(across, k), place_of(down, i)));
            sum = sum + value;
            most = value > most ? value : most;
        }
    }
    return IS_MAX ? most : divide(sum, count);
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
