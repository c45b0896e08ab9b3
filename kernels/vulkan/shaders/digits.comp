// Whole-number products of digits, added up: sums += int(product) << shift (STAGE 1; STAGE 0 the
// same from 0), and the way out: y = t * float(sum), then + bias (STAGE 2).
// t = x_scale * scales[c] (x_scale alone where there are none), each line rounded once; c = i mod
// channels. Buffers: 0 product and y [n] float, 1 sums [n] int, 2 scales and biases [2][channels].
// Constants: 0 lanes, 1 unused, 2 stage, 3 is there a bias? Tile: lanes * per_lane elements.
// Dispatched by vk_quantize.c.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint STAGE = 0;
layout(constant_id = 3) const bool HAS_BIAS = false;
layout(binding = 0) buffer Product { float product[]; };
layout(binding = 1) buffer Sums { int sums[]; };
layout(binding = 2) readonly buffer Tail { float tail[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; float x_scale; uint channels; int shift; uint n_scales;
};

void main() {
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint i = first + e * gl_WorkGroupSize.x;
        if (i >= n) {
            break;
        }
        if (STAGE == 2) {
            uint c = i % channels;
            precise float t = n_scales == 0 ? x_scale : x_scale * tail[c];
            precise float y = t * float(sums[i]);
            if (HAS_BIAS) {
                y = y + tail[channels + c];
            }
            product[i] = y;
        } else {
            int part = int(product[i]) << shift;
            sums[i] = STAGE == 0 ? part : sums[i] + part;
        }
    }
}
