// Shared by the convolution shaders: the parameters, the input position of a tap, and the steps
// from a sum to an output.
//
// A convolution is a product of rows (output positions: image, plane, row, column) and columns
// (output channels). It is summed over taps (plane, row, column of the kernel) and, for each tap,
// over channels. A linear layer or matrix product has a single tap. z counts groups, or products of
// a batch.
//
// Bindings: 0 = x; 1 = w; 2 = y; 3 = tail (numbers per output channel); 4 = geometry; 5 = quantised
// variants of y (called forms, forms.glsl). Row: flags, x_scale, the words of bytes.glsl, the words
// of forms.glsl.
layout(constant_id = 2) const bool IS_POINTWISE = false; // row r of the output reads only row r of
                                                         // the input
layout(constant_id = 3) const bool IS_TRANSPOSED = false;

#define BINDINGS 6
#define ROW 32
#define QUANT_ROW 2
#define FORMS 5
#define FORM_ROW 7
#include "call.glsl"
#include "divide.glsl"
#include "forms.glsl"

uint flags;
float x_scale;

// Reads the parameters of a call. Must be called first.
void begin_call(uint call) {
    find_call(call);
    flags = word(0);
    x_scale = number(1);
}

const uint HAS_SCALES = 1; // y = (x_scale * w_scales[c]) * sum
const uint HAS_BIAS = 2;
const uint HAS_LIMITS = 4;
const uint HAS_ONE_SCALE = 8;     // y = x_scale * sum
const uint HAS_Y = 16;            // y itself is written, not only its forms
const uint HAS_INTEGER_BIAS = 32; // added to the integer sums

layout(push_constant) uniform Push {
    uint x_step, w_step, y_step;  // from one z to the next; y in floats, x and w in the elements or
                                  // texels that the shader reads
    uint n_z;                     // number of z of one call in this dispatch
    uint n_rows, n_cols;          // rows and columns of one z
    uint y_row;                   // floats from one row of the output to the next
    uint w_row;                   // columns from one row of the weight to the next
    float low, high;
    uint tail_step;               // channels from one z to the next
    uint n_channels;              // channels of all z together
    uint per_lane;
    uint first_x, first_y, first_z; // index of the workgroup at which this dispatch begins
};

layout(binding = 2) writeonly buffer Y { float y[]; };
layout(binding = 2) writeonly buffer YQuads { vec4 y_quads[]; };
// Rows of n_channels numbers: scales, biases, sums of the weights, integer biases; the last two
// rows are integers.
layout(binding = 3) readonly buffer Tail { float tail[]; };
layout(binding = 3) readonly buffer IntegerTail { int integer_tail[]; };
layout(binding = 4) readonly buffer Geometry {
    ivec4 kernel;    // kernel.w: channels read per row
    ivec4 size_in;   // size_in.w: kernel.w rounded up to a multiple of 4, as in the weight
    ivec4 size_out;  // size_out.w: elements from one row of the input to the next
    ivec4 stride;    // stride.w: output channels per input channel (depthwise)
    ivec4 dilation;
    ivec4 padding;
};

// The first input position that output row `row` reads, and the first row of its image.
void locate(uint row, out ivec3 first, out int image) {
    int positions = size_out.x * size_out.y * size_out.z;
    int at = int(row) % positions;
    ivec3 o = ivec3(at / (size_out.y * size_out.z), at / size_out.z % size_out.y, at % size_out.z);
    first = IS_TRANSPOSED ? o + padding.xyz : o * stride.xyz - padding.xyz;
    image = int(row) / positions * size_in.x * size_in.y * size_in.z;
}

// The input row that a tap reads, or -1 if it is outside of the image.
int source(ivec3 first, int image, ivec3 tap) {
    ivec3 at = first + (IS_TRANSPOSED ? -tap : tap) * dilation.xyz;
    bool is_there = true;
    if (IS_TRANSPOSED) {
        is_there = all(equal(at % stride.xyz, ivec3(0)));
        at = ivec3(at.x < 0 ? -1 : at.x / stride.x, at.y < 0 ? -1 : at.y / stride.y,
                   at.z < 0 ? -1 : at.z / stride.z);
    }
    is_there = is_there && all(greaterThanEqual(at, ivec3(0))) && all(lessThan(at, size_in.xyz));
    return is_there ? image + (at.x * size_in.y + at.y) * size_in.z + at.z : -1;
}

// The parameters that turn a channel's sums into outputs.
struct End {
    float scale, bias;
    int integer_bias;
};

End end_of(uint channel) {
    uint at = begin_of(3) + channel;
    precise float scale = 1.0;
    if ((flags & HAS_SCALES) != 0) {
        scale = x_scale * tail[at];
    }
    return End(scale, (flags & HAS_BIAS) != 0 ? tail[n_channels + at] : 0.0,
               (flags & HAS_INTEGER_BIAS) != 0 ? integer_tail[3 * n_channels + at] : 0);
}

// Adds an integer bias to float sums. These sums are integers below 2^24, so they are exact, and
// sum + bias fits an int (vk_conv_gemm.c).
float with_integer_bias(End end, float sum) {
    return (flags & HAS_INTEGER_BIAS) != 0 ? float(int(sum) + end.integer_bias) : sum;
}

float finished(End end, float sum) {
    precise float value = sum;
    if ((flags & HAS_SCALES) != 0) {
        value = end.scale * value;
    }
    if ((flags & HAS_ONE_SCALE) != 0) {
        value = x_scale * value;
    }
    if ((flags & HAS_BIAS) != 0) {
        value = value + end.bias;
    }
    if ((flags & HAS_LIMITS) != 0) {
        value = value < low ? low : value;
        value = value > high ? high : value;
    }
    return value;
}

// Writes column `col` of row `row`.
void finish(uint z, uint row, uint col, float sum) {
    End end = end_of(z * tail_step + col);
    float value = finished(end, with_integer_bias(end, sum));
    uint at = z * y_step + row * y_row + col;
    if ((flags & HAS_Y) != 0) {
        y[begin_of(2) + at] = value;
    }
    write_forms(at, value);
}

// Writes columns col … col + 3 of a row. The length of rows of y must be a multiple of 4.
void finish_quad(uint z, uint row, uint col, vec4 sums) {
    uint at = z * y_step + row * y_row + col;
    for (uint k = 0; k < 4; k++) {
        End end = end_of(z * tail_step + col + k);
        sums[k] = finished(end, with_integer_bias(end, sums[k]));
    }
    if ((flags & HAS_Y) != 0) {
        y_quads[(begin_of(2) + at) / 4] = sums;
    }
    for (uint f = 0; f < n_forms(); f++) {
        write_form_quad(form_of(f), at, sums);
    }
}
