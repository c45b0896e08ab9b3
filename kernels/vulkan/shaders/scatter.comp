// Writes updates into a copy of x at positions given by indices. If several updates have the same
// position, they take effect in order, regardless of the order of invocations. The position of an
// update is y[sum over dims of stride * coordinate + sum over indices of stride * index]. Updates
// that differ only in the last N_LISTED dims form a list; only these can have the same position.
//   stage 0, over y:       y = x (or zero), marks = 0
//   stage 1, over updates: marks[position] = {index of the last update + 1, number of updates}
//   stage 2, over updates: the last update of each position writes its value, or x combined with
//                          all updates of the position
// Buffers: 0 = x; 1 = indices; 2 = updates; 3 = y; 4 = marks; 5 = numbers: for each dim {length,
// stride in y, of indices, of updates}, then for each index {stride in y, length of its axis,
// divisor, step in indices}. With a divisor, the index is (number / divisor) % length; without a
// divisor, negative indices count from the end. Indices outside of their axis are clamped.
// Constants: 0 = lanes; 2 = type of elements; 3 = type of indices; 4 = number of dims; 5 = number
// of indices per update; 6 = reduction (0 none, 1 add, 2 multiply, 3 maximum, 4 minimum);
// 7 = N_LISTED; 8 = stage; 9 = whether x is present.
// Tile: lanes * per_lane elements or updates. Dispatched by vk_scatter.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 6
#define ROW 0
#include "call.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint TYPE = 0;
layout(constant_id = 3) const uint INDEX_TYPE = 0;
layout(constant_id = 4) const int N_DIMS = 1;
layout(constant_id = 5) const int N_INDICES = 1;
layout(constant_id = 6) const uint REDUCTION = 0;
layout(constant_id = 7) const int N_LISTED = 0;
layout(constant_id = 8) const int STAGE = 0;
layout(constant_id = 9) const bool HAS_X = true;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) readonly buffer Indices { uint indices[]; };
layout(binding = 2) readonly buffer Updates { uint updates[]; };
layout(binding = 3) writeonly buffer Words { uint y_words[]; };
layout(binding = 3) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = 4) buffer Marks { uint marks[]; };
layout(binding = 5) readonly buffer Numbers { ivec4 numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int n_listed; };
READER(read_x, x)
READER(read_index, indices)
READER(read_update, updates)
WRITER(write_y, y_words, y_bytes)

// Offsets in y, indices and updates of index i of the dims [first, end).
ivec3 places(int i, int first, int end) {
    ivec3 at = ivec3(0);
    for (int d = end - 1; d >= first; d--) {
        at += i % numbers[d].x * numbers[d].yzw;
        i /= numbers[d].x;
    }
    return at;
}

// The part of the offset in y that comes from indices. The indices begin at `first` in the index
// buffer.
int indexed(int first) {
    int at = 0;
    for (int k = 0; k < N_INDICES; k++) {
        ivec4 row = numbers[N_DIMS + k];
        int64_t extent = int64_t(row.y);
        int64_t i = whole(INDEX_TYPE, read_index(INDEX_TYPE, begin_of(1), uint(first + k * row.w)));
        if (row.z > 0) {
            i = max(i, int64_t(0)) / int64_t(row.z) % extent;
        } else {
            i = clamp(i < int64_t(0) ? i + extent : i, int64_t(0), extent - int64_t(1));
        }
        at += int(i) * row.x;
    }
    return at;
}

// The offsets, in y and in updates, of update number `listed` in the list that begins at `base`.
ivec2 find_update(ivec3 base, int listed) {
    ivec3 at = base + places(listed, N_DIMS - N_LISTED, N_DIMS);
    return ivec2(at.x + indexed(at.y), at.z);
}

uvec2 meet(uvec2 there, uvec2 update) {
    if (is_real(TYPE)) {
        float a = real(TYPE, there), b = real(TYPE, update);
        precise float r = REDUCTION == 1 ? a + b : a * b;
        r = REDUCTION == 3   ? (b > a || isnan(b) ? b : a)
            : REDUCTION == 4 ? (b < a || isnan(b) ? b : a)
                             : r;
        return bits_of_real(TYPE, r);
    }
    int64_t a = whole(TYPE, there), b = whole(TYPE, update);
    return bits_of_whole(TYPE, REDUCTION == 1   ? a + b
                               : REDUCTION == 2 ? a * b
                               : REDUCTION == 3 ? max(a, b)
                                                : min(a, b));
}

uvec2 element(int i) {
    return HAS_X ? read_x(TYPE, begin_of(0), uint(i)) : uvec2(0);
}

uvec2 update_at(int i) {
    return read_update(TYPE, begin_of(2), uint(i));
}

void put(ivec3 base, int listed, ivec2 at) {
    uint mark = begin_of(4) + 2 * uint(at.x);
    uvec2 result = update_at(at.y);
    if (marks[mark] != uint(listed) + 1) {
        return;
    }
    if (REDUCTION > 0) {
        uvec2 before = element(at.x);
        for (int i = 0; marks[mark + 1] > 1 && i < listed; i++) {
            ivec2 other = find_update(base, i);
            if (other.x == at.x) {
                before = meet(before, update_at(other.y));
            }
        }
        result = meet(before, result);
    }
    write_y(TYPE, begin_of(3), uint(at.x), result);
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(first + e * gl_WorkGroupSize.x);
        if (STAGE == 0) {
            write_y(TYPE, begin_of(3), uint(i), element(i));
            marks[begin_of(4) + 2 * i] = 0;
            marks[begin_of(4) + 2 * i + 1] = 0;
            continue;
        }
        int listed = i % n_listed;
        ivec3 base = places(i / n_listed, 0, N_DIMS - N_LISTED);
        ivec2 at = find_update(base, listed);
        if (STAGE == 1) {
            uint mark = begin_of(4) + 2 * uint(at.x);
            atomicMax(marks[mark], uint(listed) + 1);
            atomicAdd(marks[mark + 1], 1);
        } else {
            put(base, listed, at);
        }
    }
}
