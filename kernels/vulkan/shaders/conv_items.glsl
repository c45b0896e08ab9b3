// Defines what differs between the compile-time variants of conv_g.comp and conv_matrix.comp: the
// buffers, how x is read and y written, and the types of sums and items. An item is four channels
// of a row of x, or four columns of one step (conv_g.comp) of w. Needs HAS_X_QUADS and HAS_Y_QUADS.
#if defined(BYTES) || defined(INTEGER)
#include "bytes.glsl"
layout(binding = 0) readonly buffer X { uint xs[]; };
#else
layout(binding = 0) readonly buffer X { float xs[]; };
layout(binding = 0) readonly buffer XQuads { vec4 x_quads[]; };
#endif
#if defined(INTEGER)
layout(binding = 1) readonly buffer W { uvec4 w_quads[]; };
#include "dot.glsl"
#define PER_STEP 4u
#define X_ITEM uint
#define QUAD uvec4
#define SUMS ivec4
#define MULTIPLY(sums, a, b) sums += dot_of(a, b)
#else
layout(binding = 1) readonly buffer W { vec4 w_quads[]; };
#define PER_STEP 1u
#define X_ITEM vec4
#define QUAD vec4
#define SUMS vec4
#define MULTIPLY(sums, a, b) sums = fma(vec4(a), b, sums)
#endif

// Reads channels c … c + 3 of an input row; zero outside of the image.
X_ITEM load(uint z, int from, int c) {
    uint at = z * x_step + uint(from * size_out.w + c);
    bool is_there = from >= 0;
#if defined(INTEGER)
    uint zeros = (word(QUANT_ROW + 1) & 0xffu) * 0x01010101u;
    uint bytes = zeros;
    if (HAS_X_QUADS) {
        bytes = is_there ? xs[begin_of(0) + at / 4] : zeros;
    } else {
        for (uint k = 0; k < 4 && is_there && c + int(k) < kernel.w; k++) {
            uint q = bitfieldExtract(xs[begin_of(0) + (at + k) / 4], int(8 * ((at + k) % 4)), 8);
            bytes = bitfieldInsert(bytes, q, int(8 * k), 8);
        }
    }
    // Converts uint8 to int8; the zero point is converted in the same way.
    return word(QUANT_ROW) != 0 ? bytes : bytes ^ 0x80808080u;
#else
    vec4 value = vec4(0.0);
#if defined(BYTES)
    uint bytes = HAS_X_QUADS && is_there ? xs[begin_of(0) + at / 4] : 0;
    for (uint k = 0; k < 4 && is_there && (HAS_X_QUADS || c + int(k) < kernel.w); k++) {
        value[k] = float_of(HAS_X_QUADS ? byte_of(bytes, k)
                                        : byte_of(xs[begin_of(0) + (at + k) / 4], (at + k) % 4));
    }
#else
    if (HAS_X_QUADS) {
        value = is_there ? x_quads[(begin_of(0) + at) / 4] : value;
    } else {
        for (uint k = 0; k < 4 && is_there && c + int(k) < kernel.w; k++) {
            value[k] = xs[begin_of(0) + at + k];
        }
    }
#endif
    return value;
#endif
}

// Writes columns col … col + 3 of a row, as a quantised variant (form) or as floats.
void write(bool is_form, Form form, uint at, uint col, vec4 value) {
    if (HAS_Y_QUADS && col < n_cols) {
        if (is_form) {
            write_form_quad(form, at, value);
        } else {
            y_quads[(begin_of(2) + at) / 4] = value;
        }
    }
    for (uint k = 0; k < 4 && !HAS_Y_QUADS && col + k < n_cols; k++) {
        if (is_form) {
            write_form(form, at + k, value[k]);
        } else {
            y[begin_of(2) + at + k] = value[k];
        }
    }
}

// Writes the quantised variants (forms) of columns col … col + 3 of a row, then the values
// themselves.
void write_all(uint at, uint col, vec4 value) {
    for (uint f = 0; f < n_forms(); f++) {
        write(true, form_of(f), at, col, value);
    }
    if ((flags & HAS_Y) != 0) {
        write(false, Form(0, 0, 0.0, 0.0, 0.0, 0), at, col, value);
    }
}

#if defined(INTEGER)
// What is added to a channel's sums of q * w: its bias, and -zero * (sum of weights), which makes
// them sums of (q - zero) * w. Intermediate results may wrap around, because the final result fits
// an int.
int integer_more(uint channel) {
    int zero = int(word(QUANT_ROW + 1)) - (word(QUANT_ROW) != 0 ? 0 : 128);
    return end_of(channel).integer_bias -
           zero * integer_tail[begin_of(3) + 2 * n_channels + channel];
}
#endif
