// Strided copies of elements of 4 bytes or, with BYTES, of single bytes: out[o] = in[i] for every
// index of up to 9 dims, or a constant if an input coordinate is outside of [0, length). Used for
// transposes, slices, joins and padding.
// Buffers: 0 = in; 1 = out; 2 = dims: for each {length, in stride, out stride, shift of the input
// coordinate, length of the input (0: no check)}.
// Constants: 0 = lanes; 2 = number of dims; 3 = whether a coordinate may be outside.
// Tile: lanes * per_lane elements. Dispatched by vk_movement.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
#ifdef BYTES
#extension GL_EXT_shader_8bit_storage : require
#define ELEMENT uint8_t
const int PER_WORD = 4;
#else
#define ELEMENT uint
const int PER_WORD = 1;
#endif
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint N_DIMS = 4;
layout(constant_id = 3) const bool HAS_OUTSIDE = false;
struct Dim { int extent; int in_stride; int out_stride; int shift; int in_extent; };
layout(binding = 0) readonly buffer In { ELEMENT from[]; };
layout(binding = 1) writeonly buffer Out { ELEMENT to[]; };
layout(binding = 2) readonly buffer Dims { Dim dims[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int in_base; int out_base; uint fill; };

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        int rest = int(i);
        int at = in_base + PER_WORD * int(begin_of(0));
        int place = out_base + PER_WORD * int(begin_of(1));
        bool is_inside = true;
        for (int d = int(N_DIMS) - 1; d >= 0; d--) {
            int index = rest % dims[d].extent;
            rest /= dims[d].extent;
            int source = index + dims[d].shift;
            if (HAS_OUTSIDE && dims[d].in_extent > 0) {
                is_inside = is_inside && source >= 0 && source < dims[d].in_extent;
            }
            at += source * dims[d].in_stride;
            place += index * dims[d].out_stride;
        }
        bool is_filled = HAS_OUTSIDE && !is_inside;
        uint element = uint(from[is_filled ? 0 : at]);
        to[place] = ELEMENT(is_filled ? fill : element);
    }
}
