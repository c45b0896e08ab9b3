// Sums of products of bytes minus their zero points, exact in 32 bits: convolutions (with CONV) and
// matrix products. The result is int32 or, with scales, bytes:
//   y = clamp(roundEven((sum + bias) * (scale a * scale b / scale y)) + zero y)
// Buffers: 0 … 2 = a, its scale and zero point; 3 … 5 = b, its scale and zero point;
// 6 and 7 = scale and zero point of y; 8 = bias; 9 = y; 10 = numbers: with CONV as in window.glsl
// and taps.glsl; otherwise for each stacked dim {length, stride in a, in b, 0}.
// Constants: 0 = lanes; 1 = repair; 2 ... 4 = types of a, b, y; 5 = type of scales; 6 = which of
// buffers 0 ... 8 are present (one bit each); 7 = which of them have a number per row of a or
// column of b; 8 = number of stacked dims. Push: rows of a, columns of b, length of sums.
// Tile: lanes * per_lane outputs. Dispatched by vk_integer.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 11
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "elements.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint TYPE_A = 0;
layout(constant_id = 3) const uint TYPE_B = 0;
layout(constant_id = 4) const uint TYPE_Y = 0;
layout(constant_id = 5) const uint TYPE_SCALE = 0;
layout(constant_id = 6) const uint THERE = 0;
layout(constant_id = 7) const uint MANY = 0;
layout(constant_id = 8) const int N_STACK = 0;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer ScaleA { uint scale_a[]; };
layout(binding = 2) readonly buffer ZeroA { uint zero_a[]; };
layout(binding = 3) readonly buffer B { uint b[]; };
layout(binding = 4) readonly buffer ScaleB { uint scale_b[]; };
layout(binding = 5) readonly buffer ZeroB { uint zero_b[]; };
layout(binding = 6) readonly buffer ScaleY { uint scale_y[]; };
layout(binding = 7) readonly buffer ZeroY { uint zero_y[]; };
layout(binding = 8) readonly buffer Bias { int bias[]; };
layout(binding = 9) writeonly buffer Words { uint y_words[]; };
layout(binding = 9) writeonly buffer Bytes { uint8_t y_bytes[]; };
#ifdef CONV
layout(binding = 10) readonly buffer Numbers { int numbers[]; };
#else
layout(binding = 10) readonly buffer Numbers { ivec4 stack[]; };
#endif
layout(push_constant) uniform Push { uint n; uint per_lane; int rows_a; int columns; int count; };
READER(read_a, a)
READER(read_b, b)
READER(read_scale_a, scale_a)
READER(read_scale_b, scale_b)
READER(read_scale_y, scale_y)
READER(read_zero_a, zero_a)
READER(read_zero_b, zero_b)
READER(read_zero_y, zero_y)
WRITER(write_y, y_words, y_bytes)

bool is_there(uint operand) {
    return (THERE >> operand & 1u) != 0;
}

// The index of the scale or zero point for row or column i.
uint which(uint operand, int i) {
    return (MANY >> operand & 1u) != 0 ? uint(i) : 0;
}

int code(uint type, uvec2 bits) {
    return type == I8 ? bitfieldExtract(int(bits.x), 0, 8) : int(bits.x);
}

int zero_of_a(int row) {
    return is_there(2) ? code(TYPE_A, read_zero_a(TYPE_A, begin_of(2), which(2, row))) : 0;
}

int zero_of_b(int column) {
    return is_there(5) ? code(TYPE_B, read_zero_b(TYPE_B, begin_of(5), which(5, column))) : 0;
}

int product(ivec2 at, ivec2 zero) {
    return (code(TYPE_A, read_a(TYPE_A, begin_of(0), uint(at.x))) - zero.x) *
           (code(TYPE_B, read_b(TYPE_B, begin_of(3), uint(at.y))) - zero.y);
}

void put(uint to, int sum, int row, int column) {
    if (!is_there(6)) {
        write_y(TYPE_Y, begin_of(9), to, uvec2(sum, 0));
        return;
    }
    int64_t total = widen(sum);
    if (is_there(8)) {
        total += widen(bias[begin_of(8) + column]);
    }
    precise float scale =
        real(TYPE_SCALE, read_scale_a(TYPE_SCALE, begin_of(1), which(1, row))) *
        real(TYPE_SCALE, read_scale_b(TYPE_SCALE, begin_of(4), which(4, column)));
    scale = divide(scale, real(TYPE_SCALE, read_scale_y(TYPE_SCALE, begin_of(6), 0)));
    precise float v = float(total) * scale;
    v = roundEven(v);
    v = v + float(is_there(7) ? code(TYPE_Y, read_zero_y(TYPE_Y, begin_of(7), 0)) : 0);
    write_y(TYPE_Y, begin_of(9), to, bits_of_real(TYPE_Y, v));
}

#ifdef CONV
const bool IS_TRANSPOSED = false;
#include "window.glsl"
#include "taps.glsl"

void compute(uint i) {
    Place p = place_of(i);
    ivec2 channel = begin_taps(p), zero = ivec2(zero_of_a(0), zero_of_b(p.channel));
    int sum = 0, n_taps = count_taps();
    for (int c = 0; c < numbers[OTHERS + 5]; c++) {
        for (int t = 0; t < n_taps; t++) {
            ivec2 at = channel;
            if (find_tap(p, t, at)) {
                sum += product(at, zero);
            }
        }
        channel += channel_step();
    }
    put(uint(p.to), sum, 0, p.channel);
}
#else
void compute(uint i) {
    int column = int(i) % columns, rest = int(i) / columns, row = rest % rows_a;
    ivec2 at = ivec2(row * count, column), zero = ivec2(zero_of_a(row), zero_of_b(column));
    rest /= rows_a;
    for (int d = N_STACK - 1; d >= 0; d--) {
        at += rest % stack[d].x * stack[d].yz;
        rest /= stack[d].x;
    }
    int sum = 0;
    for (int k = 0; k < count; k++) {
        sum += product(at, zero);
        at += ivec2(1, columns);
    }
    put(i, sum, row, column);
}
#endif

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        compute(first + e * gl_WorkGroupSize.x);
    }
}
