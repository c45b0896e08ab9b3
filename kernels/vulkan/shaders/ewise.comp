// Element-wise programs: y[i] = program(operands at i). The program is given in specialisation
// constants, so that the driver compiles it to straight-line code.
// Buffers: 0 = y [n]; 1 = dims: {number, 8 lengths, then 8 strides per operand};
// 2 ... 9 = operands; 10 = quantised variants of y. Row: whether y itself is written, then the
// words of forms.glsl.
// Constants: 0 = lanes; 1 = repair; 2 = number of instructions; 3 = number of operands;
// 4 … 19 = instructions as bytes {op, place of a, place of b, place of the result}; 20 … 51 = their
// parameters; 52 … 59 = how each operand is read: 0 at i, 1 at i mod the innermost dim, 2 one
// number, 3 by strides. A place is an operand or a register; the operands have the first numbers.
// Tile: lanes * per_lane elements. Dispatched by vk_ewise.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define BINDINGS 11
#define ROW 26
#define FORMS 10
#define FORM_ROW 1
#include "call.glsl"
#include "divide.glsl"
#include "forms.glsl"
#include "numeric.glsl"
#ifdef HAS_POWER
#include "power.glsl"
#endif
#include "ewise_ops.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint N_INSTRS = 1;
layout(constant_id = 3) const uint N_OPERANDS = 1;
layout(constant_id = 4) const uint C0 = 0;
layout(constant_id = 5) const uint C1 = 0;
layout(constant_id = 6) const uint C2 = 0;
layout(constant_id = 7) const uint C3 = 0;
layout(constant_id = 8) const uint C4 = 0;
layout(constant_id = 9) const uint C5 = 0;
layout(constant_id = 10) const uint C6 = 0;
layout(constant_id = 11) const uint C7 = 0;
layout(constant_id = 12) const uint C8 = 0;
layout(constant_id = 13) const uint C9 = 0;
layout(constant_id = 14) const uint C10 = 0;
layout(constant_id = 15) const uint C11 = 0;
layout(constant_id = 16) const uint C12 = 0;
layout(constant_id = 17) const uint C13 = 0;
layout(constant_id = 18) const uint C14 = 0;
layout(constant_id = 19) const uint C15 = 0;
layout(constant_id = 20) const float P0 = 0.0;
layout(constant_id = 21) const float P1 = 0.0;
layout(constant_id = 22) const float P2 = 0.0;
layout(constant_id = 23) const float P3 = 0.0;
layout(constant_id = 24) const float P4 = 0.0;
layout(constant_id = 25) const float P5 = 0.0;
layout(constant_id = 26) const float P6 = 0.0;
layout(constant_id = 27) const float P7 = 0.0;
layout(constant_id = 28) const float P8 = 0.0;
layout(constant_id = 29) const float P9 = 0.0;
layout(constant_id = 30) const float P10 = 0.0;
layout(constant_id = 31) const float P11 = 0.0;
layout(constant_id = 32) const float P12 = 0.0;
layout(constant_id = 33) const float P13 = 0.0;
layout(constant_id = 34) const float P14 = 0.0;
layout(constant_id = 35) const float P15 = 0.0;
layout(constant_id = 36) const float P16 = 0.0;
layout(constant_id = 37) const float P17 = 0.0;
layout(constant_id = 38) const float P18 = 0.0;
layout(constant_id = 39) const float P19 = 0.0;
layout(constant_id = 40) const float P20 = 0.0;
layout(constant_id = 41) const float P21 = 0.0;
layout(constant_id = 42) const float P22 = 0.0;
layout(constant_id = 43) const float P23 = 0.0;
layout(constant_id = 44) const float P24 = 0.0;
layout(constant_id = 45) const float P25 = 0.0;
layout(constant_id = 46) const float P26 = 0.0;
layout(constant_id = 47) const float P27 = 0.0;
layout(constant_id = 48) const float P28 = 0.0;
layout(constant_id = 49) const float P29 = 0.0;
layout(constant_id = 50) const float P30 = 0.0;
layout(constant_id = 51) const float P31 = 0.0;
layout(constant_id = 52) const uint M0 = 0;
layout(constant_id = 53) const uint M1 = 0;
layout(constant_id = 54) const uint M2 = 0;
layout(constant_id = 55) const uint M3 = 0;
layout(constant_id = 56) const uint M4 = 0;
layout(constant_id = 57) const uint M5 = 0;
layout(constant_id = 58) const uint M6 = 0;
layout(constant_id = 59) const uint M7 = 0;
layout(binding = 0) buffer Out { float y[]; };
layout(binding = 1) readonly buffer Dims { int dims[]; };
layout(binding = 2) readonly buffer In0 { float x0[]; };
layout(binding = 3) readonly buffer In1 { float x1[]; };
layout(binding = 4) readonly buffer In2 { float x2[]; };
layout(binding = 5) readonly buffer In3 { float x3[]; };
layout(binding = 6) readonly buffer In4 { float x4[]; };
layout(binding = 7) readonly buffer In5 { float x5[]; };
layout(binding = 8) readonly buffer In6 { float x6[]; };
layout(binding = 9) readonly buffer In7 { float x7[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

float v[8 + 24]; // the value at each place

int place(uint mode, int operand, int i) {
    if (mode == 0) {
        return i;
    }
    if (mode == 1) {
        return i % dims[dims[0]];
    }
    int at = 0;
    for (int d = dims[0]; mode == 3 && d > 0; d--) {
        at += i % dims[d] * dims[8 * (operand + 1) + d];
        i /= dims[d];
    }
    return at;
}

void step(uint code, float p, float q) {
    v[code >> 24] = apply(code & 255u, v[code >> 8 & 255u], v[code >> 16 & 255u], p, q);
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        int i = int(first + e * gl_WorkGroupSize.x);
        if (i >= int(n)) {
            break;
        }
        if (N_OPERANDS > 0) v[0] = x0[begin_of(2) + place(M0, 0, i)];
        if (N_OPERANDS > 1) v[1] = x1[begin_of(3) + place(M1, 1, i)];
        if (N_OPERANDS > 2) v[2] = x2[begin_of(4) + place(M2, 2, i)];
        if (N_OPERANDS > 3) v[3] = x3[begin_of(5) + place(M3, 3, i)];
        if (N_OPERANDS > 4) v[4] = x4[begin_of(6) + place(M4, 4, i)];
        if (N_OPERANDS > 5) v[5] = x5[begin_of(7) + place(M5, 5, i)];
        if (N_OPERANDS > 6) v[6] = x6[begin_of(8) + place(M6, 6, i)];
        if (N_OPERANDS > 7) v[7] = x7[begin_of(9) + place(M7, 7, i)];
        if (N_INSTRS > 0) step(C0, P0, P1);
        if (N_INSTRS > 1) step(C1, P2, P3);
        if (N_INSTRS > 2) step(C2, P4, P5);
        if (N_INSTRS > 3) step(C3, P6, P7);
        if (N_INSTRS > 4) step(C4, P8, P9);
        if (N_INSTRS > 5) step(C5, P10, P11);
        if (N_INSTRS > 6) step(C6, P12, P13);
        if (N_INSTRS > 7) step(C7, P14, P15);
        if (N_INSTRS > 8) step(C8, P16, P17);
        if (N_INSTRS > 9) step(C9, P18, P19);
        if (N_INSTRS > 10) step(C10, P20, P21);
        if (N_INSTRS > 11) step(C11, P22, P23);
        if (N_INSTRS > 12) step(C12, P24, P25);
        if (N_INSTRS > 13) step(C13, P26, P27);
        if (N_INSTRS > 14) step(C14, P28, P29);
        if (N_INSTRS > 15) step(C15, P30, P31);
        if (word(0) != 0) {
            y[begin_of(0) + i] = v[31];
        }
        write_forms(uint(i), v[31]);
    }
}
