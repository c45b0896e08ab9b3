// Copies elements of any type from positions that follow from output coordinates and indices:
// gathers, repeats, padding in all modes, depth to space. y[o] = x[sum over dims of stride *
// coordinate + sum over indices of stride * index]. The coordinate is the coordinate of o plus a
// shift. If it is outside of [0, length of the input), the mode applies: 0 take `fill`, 1 take the
// nearest, 2 mirror, 3 wrap around. Indices outside of their axis are clamped.
// Buffers: 0 = x; 1 = indices or the fill; 2 = y; 3 = numbers: for each dim {length, x stride,
// stride of indices, shift, length of the input (0: any)}, then for each index {x stride, axis
// length}.
// Constants: 0 = lanes; 2 = type of elements; 3 = type of indices; 4 = number of dims; 5 = number
// of indices per element; 6 = mode; 7 = whether the fill is in a buffer.
// Tile: lanes * per_lane elements. Dispatched by vk_gather.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 4
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const uint INDEX_TYPE = 0;
layout(constant_id = 4) const int N_DIMS = 1;
layout(constant_id = 5) const int N_INDICES = 0;
layout(constant_id = 6) const uint MODE = 0;
layout(constant_id = 7) const bool READS_FILL = false;
struct Dim { int extent; int stride; int index_stride; int shift; int in_extent; };
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Indices { uint indices[]; };
layout(binding = 2) writeonly buffer Words { uint y_words[]; };
layout(binding = 2) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 3) readonly buffer Numbers { int numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; uvec2 fill; };
READER(read_x, x)
READER(read_index, indices)
WRITER(write_y, y_words, y_bytes)

Dim dim_of(int d) {
    int at = 5 * d;
    return Dim(numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3], numbers[at + 4]);
}

// The position in [0, extent) that is read for a coordinate; -1: none, take `fill`.
int source(int i, int extent) {
    if (extent == 0 || (i >= 0 && i < extent)) {
        return i;
    }
    int period = MODE == 2 ? max(2 * (extent - 1), 1) : extent;
    int at = i >= 0 ? i % period : period - 1 - (-1 - i) % period; // avoids % of negative numbers
    return MODE == 0 ? -1 : MODE == 1 ? clamp(i, 0, extent - 1) : at < extent ? at : period - at;
}

void move_element(uint o) {
    int rest = int(o), at = 0, first = 0;
    bool is_inside = true;
    for (int d = N_DIMS - 1; d >= 0; d--) {
        Dim dim = dim_of(d);
        int i = rest % dim.extent;
        rest /= dim.extent;
        first += i * dim.index_stride;
        i = source(i + dim.shift, dim.in_extent);
        is_inside = is_inside && (i >= 0 || dim.in_extent == 0);
        at += i * dim.stride;
    }
    for (int k = 0; k < N_INDICES; k++) {
        int stride = numbers[5 * N_DIMS + 2 * k], extent = numbers[5 * N_DIMS + 2 * k + 1];
        int64_t index = whole(INDEX_TYPE, read_index(INDEX_TYPE, begin_of(1), uint(first + k)));
        index += index < int64_t(0) ? int64_t(extent) : int64_t(0);
        at += int(clamp(index, int64_t(0), int64_t(extent - 1))) * stride;
    }
    uvec2 element = READS_FILL ? read_index(TYPE, begin_of(1), 0) : fill;
    if (is_inside) {
        element = read_x(TYPE, begin_of(0), uint(at));
    }
    write_y(TYPE, begin_of(2), o, element);
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint begin = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && begin + e * gl_WorkGroupSize.x < n; e++) {
        move_element(begin + e * gl_WorkGroupSize.x);
    }
}
