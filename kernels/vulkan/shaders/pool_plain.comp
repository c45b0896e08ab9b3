// Pools over one to three spatial axes in any layout: the maximum (and its index), the mean or a
// norm of each window, with taps in order. NaN is kept. A mean divides as in pool.comp.
// Buffers: 0 = x; 1 = y; with INDICES, 2 = indices of the maxima as int64; the last buffer =
// numbers (window.glsl).
// Constants: 0 = lanes; 1 = repair; 2 = kind (0 maximum, 1 mean, 2 norm); 3 = type of elements;
// 4 = whether padding counts; 5 = whether the first axis varies fastest in indices. Push: the
// norm's power.
// Tile: lanes * per_lane outputs. Dispatched by vk_plain.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef INDICES
#define BINDINGS 4
#else
#define BINDINGS 3
#endif
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
#include "numeric.glsl"
#include "power.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint KIND = 0;
layout(constant_id = 3) const uint TYPE = 0;
layout(constant_id = 4) const bool COUNTS_PADDING = false;
layout(constant_id = 5) const bool IS_COLUMN_MAJOR = false;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Words { uint y_words[]; };
layout(binding = 1) writeonly buffer Bytes { uint8_t y_bytes[]; };
#ifdef INDICES
layout(binding = 2) writeonly buffer Places { uint places[]; };
#endif
layout(binding = BINDINGS - 1) readonly buffer Numbers { int numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; float power; };
READER(read_x, x)
WRITER(write_y, y_words, y_bytes)
#include "window.glsl"

// The taps [begin, end) of a window beginning at `first` that are in [0, extent).
ivec2 taps(int first, int a, int extent) {
    int dilation = at_axis(DILATION, a);
    int begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
    int inside = first >= extent ? 0 : (extent - 1 - first) / dilation + 1;
    return ivec2(begin, max(min(inside, at_axis(KERNEL, a)), begin));
}

float pool(Place p, out ivec3 best) {
    ivec2 range[3];
    ivec3 first;
    int count = 1, padded = 1, base = p.batch * numbers[OTHERS + 1] + p.channel * numbers[OTHERS + 2];
    for (int a = 0; a < 3; a++) {
        int pad = at_axis(PAD, a);
        first[a] = p.at[a] * at_axis(STEP, a) - pad;
        range[a] = taps(first[a], a, at_axis(IN, a));
        count *= range[a].y - range[a].x;
        ivec2 all = taps(first[a] + pad, a, at_axis(IN, a) + pad + at_axis(PAD_END, a));
        padded *= all.y - all.x;
    }
    float top = uintBitsToFloat(0xff800000u);
    precise float sum = 0.0;
    best = ivec3(0);
    for (int t = 0; t < count; t++) {
        int rest = t, at = base;
        ivec3 place;
        for (int a = 2; a >= 0; a--) {
            int length = range[a].y - range[a].x;
            place[a] = first[a] + (range[a].x + rest % length) * at_axis(DILATION, a);
            rest /= length;
            at += place[a] * at_axis(IN_STRIDES, a);
        }
        float v = real(TYPE, read_x(TYPE, begin_of(0), uint(at)));
        if (v > top || isnan(v)) {
            top = v;
            best = place;
        }
        v = KIND == 2 ? power_one(abs(v), power) : v;
        sum = sum + v;
    }
    return KIND == 0   ? top
           : KIND == 1 ? divide(sum, float(COUNTS_PADDING ? padded : count))
                       : power_one(sum, divide(1.0, power));
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        Place p = place_of(begin + e * gl_WorkGroupSize.x);
        ivec3 best;
        write_y(TYPE, begin_of(1), uint(p.to), bits_of_real(TYPE, pool(p, best)));
#ifdef INDICES
        int index = 0;
        for (int i = 0; i < 3; i++) {
            int a = IS_COLUMN_MAJOR ? 2 - i : i;
            index = index * at_axis(IN, a) + best[a];
        }
        index += p.batch * numbers[OTHERS + 1] + p.channel * numbers[OTHERS + 2];
        places[begin_of(2) + 2 * uint(p.to)] = uint(index);
        places[begin_of(2) + 2 * uint(p.to) + 1] = 0;
#endif
    }
}
