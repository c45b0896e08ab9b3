// Combines columns into images (Col2Im): each element is the sum, in the order of taps, over the
// windows that cover it. A place is a position of the window.
// Buffers: 0 = x [planes][taps][places]; 1 = y [planes][image]; 2 = numbers: for each axis {length
// of the image, length of the window, stride, dilation, padding before, places, 0, 0}.
// Constants: 0 = lanes; 2 = number of axes. Push: elements per image, taps, places.
// Tile: lanes * per_lane elements. Dispatched by vk_image.c.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BINDINGS 3
#define ROW 0
#include "call.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int N_AXES = 2;
struct Axis { int extent; int block; int step; int dilation; int pad; int count; int unused[2]; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer Numbers { Axis axes[]; };
layout(push_constant) uniform Push { uint n; uint per_lane; int area; int n_taps; int n_places; };

// The index of the window whose tap covers position `at` of the image, or -1.
int place_of(int at, int tap) {
    int place = 0, stride = 1;
    for (int a = N_AXES - 1; a >= 0; a--) {
        Axis axis = axes[a];
        int i = at % axis.extent + axis.pad - tap % axis.block * axis.dilation;
        if (i < 0 || i % axis.step != 0 || i / axis.step >= axis.count) {
            return -1;
        }
        place += i / axis.step * stride;
        stride *= axis.count;
        at /= axis.extent;
        tap /= axis.block;
    }
    return place;
}

void main() {
    find_call(gl_WorkGroupID.z);
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane && first + e * gl_WorkGroupSize.x < n; e++) {
        int i = int(first + e * gl_WorkGroupSize.x);
        precise float sum = 0.0;
        for (int tap = 0; tap < n_taps; tap++) {
            int place = place_of(i % area, tap);
            if (place >= 0) {
                sum = sum + x[int(begin_of(0)) + (i / area * n_taps + tap) * n_places + place];
            }
        }
        y[begin_of(1) + i] = sum;
    }
}
