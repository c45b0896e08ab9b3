// Sliding windows over up to three spatial axes of tensors in any order of axes, described by the
// numbers of vk_plain.c. Missing axes come first and have length 1. Needs `numbers`.
const int IN = 0, OUT = 3, KERNEL = 6, STEP = 9, DILATION = 12, PAD = 15, PAD_END = 18,
          IN_STRIDES = 21, OUT_STRIDES = 24, KERNEL_STRIDES = 27, OTHERS = 30;

int at_axis(int row, int axis) {
    return numbers[row + axis];
}

// The position of an output element: batch, channel, spatial coordinates and offset in y.
struct Place { int batch; int channel; ivec3 at; int to; };

// Finds the place of output element i. The numbers from OTHERS on are: channels of the output,
// strides of batch and channel in the input, strides of batch and channel in the output.
Place place_of(uint i) {
    Place p;
    int rest = int(i);
    p.to = 0;
    for (int a = 2; a >= 0; a--) {
        p.at[a] = rest % at_axis(OUT, a);
        rest /= at_axis(OUT, a);
        p.to += p.at[a] * at_axis(OUT_STRIDES, a);
    }
    p.channel = rest % numbers[OTHERS];
    p.batch = rest / numbers[OTHERS];
    p.to += p.batch * numbers[OTHERS + 3] + p.channel * numbers[OTHERS + 4];
    return p;
}
