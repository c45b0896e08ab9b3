// Writes quantised variants of a tensor, called forms (see forms.glsl).
// Buffers: 0 = x [n] float; 1 = forms. Constants: 0 = lanes; 1 = repair. Tile: lanes * per_lane
// elements. Dispatched by vk_quantize.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#define BINDINGS 2
#define ROW 25
#define FORMS 1
#define FORM_ROW 0
#include "call.glsl"
#include "divide.glsl"
#include "forms.glsl"
layout(local_size_x_id = 0) in;
layout(binding = 0) readonly buffer In { float x[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; };

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i < n) {
            write_forms(i, x[begin_of(0) + i]);
        }
    }
}
