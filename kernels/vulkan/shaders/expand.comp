// From stored bytes q to floats: ((q - zero) >> shift) & mask (FORMAT 0), or (q - zero) * scale
// (FORMAT 1).
// Buffers: 0 q [n] bytes, 1 out [n] float. Constants: 0 lanes, 1 unused, 2 format, 3 are the bytes
// signed? Tile: lanes * per_lane words of four. Dispatched by vk_quantize.c.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint FORMAT = 0;
layout(constant_id = 3) const bool IS_SIGNED = false;
layout(binding = 0) readonly buffer In { uint words[]; };
layout(binding = 1) writeonly buffer Out { float y[]; };
layout(push_constant) uniform Push {
    uint n; uint per_lane; float scale; int zero; int shift; int mask;
};

void main() {
    uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * per_lane + gl_LocalInvocationID.x;
    for (uint e = 0; e < per_lane; e++) {
        uint at = 4 * (first + e * gl_WorkGroupSize.x);
        uint word = at < n ? words[at / 4] : 0;
        for (uint k = 0; k < 4 && at + k < n; k++) {
            int q = IS_SIGNED ? bitfieldExtract(int(word), int(8 * k), 8)
                              : int(bitfieldExtract(word, int(8 * k), 8));
            precise float value =
                FORMAT == 1 ? float(q - zero) * scale : float((q - zero) >> shift & mask);
            y[at + k] = value;
        }
    }
}
