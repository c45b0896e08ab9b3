// Keeps elements, sets them to zero or moves them, depending on their coordinates. Kinds:
//   0 lower triangles of matrices, 1 upper triangles; zero elsewhere.
//     Numbers: columns, rows, diagonal k
//   2 reverses the first n elements along the time axis; n is the length of the batch item.
//     Numbers: length of the time axis, its stride, length of the batch axis, its stride
//   3 one-hot: x[1] if the index equals the coordinate along an axis, otherwise x[0]. Numbers:
//     length of the axis, elements per position of the axis
// Buffers: 0 = x; 1 = k (if it is an operand), lengths or indices; 2 = y.
// Constants: 0 = lanes; 2 = kind; 3 = type of elements; 4 = type of buffer 1; 5 = whether k is an
// operand.
// Tile: lanes * per_lane elements. Dispatched by vk_pick.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint KIND = 0;
layout(constant_id = 3) const uint TYPE = 0;
layout(constant_id = 4) const uint INDEX_TYPE = 0;
layout(constant_id = 5) const bool HAS_K = false;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Indices { uint indices[]; };
layout(binding = 2) writeonly buffer Words { uint y_words[]; };
layout(binding = 2) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int numbers[4]; };
READER(read_x, x)
READER(read_index, indices)
WRITER(write_y, y_words, y_bytes)

int64_t index_at(int i) {
    return whole(INDEX_TYPE, read_index(INDEX_TYPE, begin_of(1), uint(i)));
}

// The index in x of output element i; -1: zero.
int find_source(int i) {
    if (KIND < 2) {
        int column = i % numbers[0], row = i / numbers[0] % numbers[1];
        int64_t k = HAS_K ? index_at(0) : int64_t(numbers[2]), d = int64_t(column - row);
        return (KIND == 1 ? d >= k : d <= k) ? i : -1;
    }
    if (KIND == 2) {
        int time = i / numbers[1] % numbers[0];
        int64_t found = index_at(i / numbers[3] % numbers[2]);
        int extent = int(clamp(found, int64_t(0), int64_t(numbers[0])));
        return time < extent ? i + (extent - 1 - 2 * time) * numbers[1] : i;
    }
    int depth = numbers[0], inner = numbers[1];
    int64_t index = index_at(i / (depth * inner) * inner + i % inner);
    index += index < int64_t(0) ? int64_t(depth) : int64_t(0);
    return index == int64_t(i / inner % depth) ? 1 : 0;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        int source = find_source(int(i));
        write_y(TYPE, begin_of(2), i,
                source < 0 ? uvec2(0) : read_x(TYPE, begin_of(0), uint(source)));
    }
}
