// Operators along lines of a tensor, one element after the other. Each invocation computes one
// line: the elements that share the indices of all kept dims.
//   kinds whose result is a number: 0 sum, 1 mean, 2 maximum, 3 minimum, 4 product
//   kinds whose result is an index: 5 of the greatest element, 6 of the least element
//   kinds whose result is a line: 7 cumulative sums, 8 hardmax (1 at the greatest), 9 softmax, 10
//     log-softmax, 11 cumulative products
// With TOPK, the result is the n_top greatest (kind 0) or least (kind 1) elements in order, and
// their indices.
// Buffers: 0 = x; 1 = y; with TOPK, 2 = indices as int64; the last buffer = numbers: {length,
// stride in x, stride in y} for each kept dim, then for each other dim.
// Constants: 0 = lanes; 1 = repair; 2 = kind; 3 and 4 = types of x and y; 5 and 6 = numbers of kept
// and other dims; 7 = whether elements are integers; 8 = flags: 1 take the last of equal elements,
// 2 exclusive, 4 backwards.
// Tile: lanes * per_lane lines. Dispatched by vk_along.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef TOPK
#define BINDINGS 4
#else
#define BINDINGS 3
#endif
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
#include "numeric.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint KIND = 0;
layout(constant_id = 3) const uint TYPE_X = 0;
layout(constant_id = 4) const uint TYPE_Y = 0;
layout(constant_id = 5) const int N_KEPT = 1;
layout(constant_id = 6) const int N_GONE = 1;
layout(constant_id = 7) const bool IS_WHOLE = false;
layout(constant_id = 8) const uint FLAGS = 0;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer Words { uint y_words[]; };
layout(binding = 1) writeonly buffer Bytes { uint8_t y_bytes[]; };
layout(binding = BINDINGS - 1) readonly buffer Numbers { int numbers[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int count; int n_top; };
READER(read_x, x)
WRITER(write_y, y_words, y_bytes)
#ifdef TOPK
layout(binding = 2) buffer Places { uint places[]; };
#endif

// Offsets in x and y of index i of the dims [first, end).
ivec2 places_of(int i, int first, int end) {
    ivec2 at = ivec2(0);
    for (int d = end - 1; d >= first; d--) {
        int extent = numbers[3 * d];
        at += i % extent * ivec2(numbers[3 * d + 1], numbers[3 * d + 2]);
        i /= extent;
    }
    return at;
}

ivec2 along(ivec2 base, int i) {
    return base + places_of(i, N_KEPT, N_KEPT + N_GONE);
}

float real_at(ivec2 at) {
    return real(TYPE_X, read_x(TYPE_X, begin_of(0), uint(at.x)));
}

int64_t whole_at(ivec2 at) {
    return whole(TYPE_X, read_x(TYPE_X, begin_of(0), uint(at.x)));
}

void put_real(ivec2 at, float v) {
    write_y(TYPE_Y, begin_of(1), uint(at.y), bits_of_real(TYPE_Y, v));
}

void put_whole(ivec2 at, int64_t v) {
    write_y(TYPE_Y, begin_of(1), uint(at.y), bits_of_whole(TYPE_Y, v));
}

#ifndef TOPK
// ---- One number -------------------------------------------------------------------------------

float combine(float a, float v) {
    precise float r = KIND == 4 ? a * v : a + v;
    return KIND == 2   ? (v > a || isnan(v) ? v : a)
           : KIND == 3 ? (v < a || isnan(v) ? v : a)
                       : r;
}

void reduce_real(ivec2 base) {
    float r = KIND == 2   ? uintBitsToFloat(0xff800000u)
              : KIND == 3 ? uintBitsToFloat(0x7f800000u)
                          : float(KIND == 4);
    for (int i = 0; i < count; i++) {
        r = combine(r, real_at(along(base, i)));
    }
    put_real(base, KIND == 1 ? divide(r, float(count)) : r);
}

void reduce_whole(ivec2 base) {
    int64_t r = KIND == 2   ? packInt2x32(ivec2(0, 0x80000000))
                : KIND == 3 ? packInt2x32(ivec2(-1, 0x7fffffff))
                            : int64_t(KIND == 4 ? 1 : 0);
    for (int i = 0; i < count; i++) {
        int64_t v = whole_at(along(base, i));
        r = KIND == 2 ? max(r, v) : KIND == 3 ? min(r, v) : KIND == 4 ? r * v : r + v;
    }
    put_whole(base, KIND == 1 && count > 0 ? r / int64_t(count) : r);
}

// ---- One index --------------------------------------------------------------------------------

int find_place(ivec2 base, bool is_least, bool is_last) {
    int best = 0;
    int64_t top_whole = int64_t(0);
    float top = 0.0;
    for (int i = 0; i < count; i++) {
        ivec2 at = along(base, i);
        bool is_equal, is_better;
        if (IS_WHOLE) {
            int64_t v = whole_at(at);
            is_equal = v == top_whole;
            is_better = i == 0 || (is_least ? v < top_whole : v > top_whole);
            top_whole = is_better ? v : top_whole;
        } else {
            float v = real_at(at);
            is_equal = v == top;
            is_better = i == 0 || (is_least ? v < top : v > top);
            top = is_better ? v : top;
        }
        best = is_better || (is_equal && is_last) ? i : best;
    }
    return best;
}

// ---- A line -----------------------------------------------------------------------------------

void add_up(ivec2 base) {
    bool is_product = KIND == 11;
    precise float sum = is_product ? 1.0 : 0.0;
    int64_t whole_sum = int64_t(is_product ? 1 : 0);
    bool is_exclusive = (FLAGS & 2u) != 0;
    for (int i = 0; i < count; i++) {
        ivec2 at = along(base, (FLAGS & 4u) != 0 ? count - 1 - i : i);
        float before = sum;
        int64_t whole_before = whole_sum;
        if (IS_WHOLE) {
            whole_sum = is_product ? whole_sum * whole_at(at) : whole_sum + whole_at(at);
            put_whole(at, is_exclusive ? whole_before : whole_sum);
        } else {
            sum = is_product ? sum * real_at(at) : sum + real_at(at);
            put_real(at, is_exclusive ? before : sum);
        }
    }
}

void mark_greatest(ivec2 base) {
    int best = find_place(base, false, false);
    for (int i = 0; i < count; i++) {
        put_real(along(base, i), i == best ? 1.0 : 0.0);
    }
}

void softmax(ivec2 base) {
    float top = uintBitsToFloat(0xff800000u);
    precise float sum = 0.0;
    for (int i = 0; i < count; i++) {
        float v = real_at(along(base, i));
        top = v > top ? v : top;
    }
    for (int i = 0; i < count; i++) {
        precise float d = real_at(along(base, i)) - top;
        sum = sum + exp_one(d);
    }
    float rest = log_one(sum);
    for (int i = 0; i < count; i++) {
        ivec2 at = along(base, i);
        precise float d = real_at(at) - top;
        precise float less = d - rest;
        put_real(at, KIND == 10 ? less : divide(exp_one(d), sum));
    }
}

void compute(ivec2 base) {
    if (KIND <= 4) {
        if (IS_WHOLE) {
            reduce_whole(base);
        } else {
            reduce_real(base);
        }
    } else if (KIND <= 6) {
        put_whole(base, int64_t(find_place(base, KIND == 6, (FLAGS & 1u) != 0)));
    } else if (KIND == 7 || KIND == 11) {
        add_up(base);
    } else if (KIND == 8) {
        mark_greatest(base);
    } else {
        softmax(base);
    }
}
#else
// ---- The greatest or least in order ------------------------------------------------------------

// True if value a at index i comes before value b at index k in the result. Integers are in a_whole
// and b_whole. NaN counts as greatest.
bool stands_before(float a, int64_t a_whole, int i, float b, int64_t b_whole, int k) {
    bool is_equal = IS_WHOLE ? a_whole == b_whole : a == b || (isnan(a) && isnan(b));
    bool is_greater = IS_WHOLE ? a_whole > b_whole : a > b || (isnan(a) && !isnan(b));
    return is_equal ? i < k : KIND == 0 ? is_greater : !is_greater;
}

// Finds the elements of the result one by one: each search finds the first element that comes after
// the element found before.
void compute(ivec2 base) {
    int last = -1;
    float last_real = 0.0;
    int64_t last_whole = int64_t(0);
    for (int t = 0; t < n_top; t++) {
        int best = -1;
        float best_real = 0.0;
        int64_t best_whole = int64_t(0);
        for (int i = 0; i < count; i++) {
            ivec2 at = along(base, i);
            float v = IS_WHOLE ? 0.0 : real_at(at);
            int64_t w = IS_WHOLE ? whole_at(at) : int64_t(0);
            if ((last < 0 || stands_before(last_real, last_whole, last, v, w, i)) &&
                (best < 0 || stands_before(v, w, i, best_real, best_whole, best))) {
                best = i;
                best_real = v;
                best_whole = w;
            }
        }
        last = best;
        last_real = best_real;
        last_whole = best_whole;
        uint to = uint(base.y + places_of(t, N_KEPT, N_KEPT + 1).y);
        uint from = uint(along(base, max(best, 0)).x);
        write_y(TYPE_Y, begin_of(1), to, read_x(TYPE_X, begin_of(0), from));
        places[begin_of(2) + 2 * to] = uint(max(best, 0));
        places[begin_of(2) + 2 * to + 1] = 0;
    }
}
#endif

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        compute(places_of(int(first + e * gl_WorkGroupSize.x), 0, N_KEPT));
    }
}
