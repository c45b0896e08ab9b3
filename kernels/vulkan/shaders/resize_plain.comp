// Resizes any axes with any number of taps: the result along an axis is the weighted sum of the
// results along the later axes. With a single tap, the output is the element itself. If a
// coordinate has no taps, the output is `extrapolation`.
// Buffers: 0 = x; 1 = y; 2 = numbers: for each axis {length of y, stride in x, index of its first
// head}; then heads, one per output coordinate of each axis: {number of taps, index of the first
// tap}; then taps: {index along the axis, bits of the weight}.
// Constants: 0 = lanes; 2 = type of elements; 3 = number of axes. Push: maximum number of taps of
// an element (a product over the axes), extrapolation.
// Tile: lanes * per_lane elements. Dispatched by vk_resize_plain.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const int N_AXES = 1;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Words { uint y_words[]; };
layout(binding = 1) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 2) readonly buffer Numbers { int numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int most; float extrapolation; };
READER(read_x, x)
WRITER(write_y, y_words, y_bytes)

// The number of taps of an element along each axis, and the index of the first tap.
struct Taps { int count[N_AXES]; int first[N_AXES]; };

bool find_taps(int i, out Taps taps) {
    bool is_inside = true;
    for (int a = N_AXES - 1; a >= 0; a--) {
        int extent = numbers[3 * a], head = numbers[3 * a + 2] + 2 * (i % extent);
        i /= extent;
        taps.count[a] = numbers[head];
        taps.first[a] = numbers[head + 1];
        is_inside = is_inside && taps.count[a] > 0;
    }
    return is_inside;
}

float interpolate(Taps taps) {
    int at[N_AXES];
    float sums[N_AXES];
    for (int a = 0; a < N_AXES; a++) {
        at[a] = 0;
        sums[a] = 0.0;
    }
    for (int turn = 0; turn < most; turn++) {
        int place = 0;
        for (int a = 0; a < N_AXES; a++) {
            place += numbers[taps.first[a] + 2 * at[a]] * numbers[3 * a + 1];
        }
        float value = real(TYPE, read_x(TYPE, begin_of(0), uint(place)));
        bool is_done = true; // true if the sums from this axis on are complete
        for (int a = N_AXES - 1; a >= 0 && is_done; a--) {
            if (taps.count[a] == 1) {
                continue;
            }
            precise float part = intBitsToFloat(numbers[taps.first[a] + 2 * at[a] + 1]) * value;
            precise float sum = at[a] == 0 ? part : sums[a] + part;
            sums[a] = sum;
            value = sum;
            at[a]++;
            is_done = at[a] == taps.count[a];
            at[a] = is_done ? 0 : at[a];
        }
        if (is_done) {
            return value;
        }
    }
    return 0.0;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        Taps taps;
        float value = find_taps(int(i), taps) ? interpolate(taps) : extrapolation;
        write_y(TYPE, begin_of(1), i, bits_of_real(TYPE, value));
    }
}
