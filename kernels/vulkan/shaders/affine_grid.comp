// Points of a regular grid over [-1, 1], each transformed by the matrix of its batch item.
// Buffers: 0 = matrices [batch][axes][axes + 1]; 1 = y [batch][points][axes].
// Constants: 0 = lanes; 1 = repair; 2 = number of axes; 3 = align_corners. Push: points per batch,
// length of each axis.
// Tile: lanes * per_lane points. Dispatched by vk_image.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 2
#define ROW 0
#include "call.glsl"
#include "divide.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int N_AXES = 2;
layout(constant_id = 3) const bool ALIGNS = false;
layout(binding = 0) readonly buffer Matrices { float matrices[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int points; int lengths[3]; };

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(first + e * gl_WorkGroupSize.x), rest = i % points;
        vec4 at = vec4(0.0);
        for (int a = N_AXES - 1; a >= 0; a--) { // coordinates are stored last axis first
            float extent = float(lengths[a]), span = ALIGNS ? extent - 1.0 : extent;
            precise float begin = ALIGNS ? -1.0 : divide(1.0, extent) - 1.0;
            precise float v = begin + divide(2.0 * float(rest % lengths[a]), span);
            at[N_AXES - 1 - a] = span > 0.0 ? v : 0.0;
            rest /= lengths[a];
        }
        at[N_AXES] = 1.0;
        for (int r = 0; r < N_AXES; r++) {
            uint row = begin_of(0) + uint((i / points * N_AXES + r) * (N_AXES + 1));
            precise float sum = 0.0;
            for (int c = 0; c <= N_AXES; c++) {
                precise float part = at[c] * matrices[row + c];
                sum = sum + part;
            }
            y[begin_of(1) + i * N_AXES + r] = sum;
        }
    }
}
