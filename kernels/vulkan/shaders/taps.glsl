// Taps of convolutions, also transposed. Needs window.glsl and IS_TRANSPOSED. After the numbers of
// the window come the input and output channels per group, and the weight's strides to the next
// output channel, input channel and group.

// The input coordinate that tap k of output coordinate o reads, or -1.
int source(int a, int o, int k) {
    int step = at_axis(STEP, a), i;
    if (IS_TRANSPOSED) {
        i = o + at_axis(PAD, a) - k * at_axis(DILATION, a);
        if (i < 0 || i % step != 0) {
            return -1;
        }
        i /= step;
    } else {
        i = o * step - at_axis(PAD, a) + k * at_axis(DILATION, a);
    }
    return i < 0 || i >= at_axis(IN, a) ? -1 : i;
}

int count_taps() {
    return at_axis(KERNEL, 0) * at_axis(KERNEL, 1) * at_axis(KERNEL, 2);
}

// The offsets of the first input channel that an output element sums: in the input and in the
// weight.
ivec2 begin_taps(Place p) {
    int in_channels = numbers[OTHERS + 5], out_channels = numbers[OTHERS + 6];
    int group = p.channel / out_channels;
    return ivec2(p.batch * numbers[OTHERS + 1] + group * in_channels * numbers[OTHERS + 2],
                 group * numbers[OTHERS + 9] + p.channel % out_channels * numbers[OTHERS + 7]);
}

// The strides between input channels: in the input and in the weight.
ivec2 channel_step() {
    return ivec2(numbers[OTHERS + 2], numbers[OTHERS + 8]);
}

// Adds the offsets of tap t to `at`, the offsets of a channel. False if the tap is outside of the
// input.
bool find_tap(Place p, int t, inout ivec2 at) {
    bool is_inside = true;
    for (int a = 2; a >= 0; a--) {
        int k = t % at_axis(KERNEL, a), i = source(a, p.at[a], k);
        t /= at_axis(KERNEL, a);
        is_inside = is_inside && i >= 0;
        at += ivec2(i * at_axis(IN_STRIDES, a), k * at_axis(KERNEL_STRIDES, a));
    }
    return is_inside;
}
