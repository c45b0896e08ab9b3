// Reads stored bytes q as floats: ((q - zero) >> shift & mask) * factor. With factor 1, the result
// is the integer, or some of its bits (a digit, kernels/lowering/digits.h); otherwise it is the
// number that q represents. The words {whether q is signed, zero, shift, mask, factor} begin at
// index QUANT_ROW of the call's row of parameters. Needs call.glsl.
float float_of(int q) {
    int number_of_q = q - int(word(QUANT_ROW + 1));
    precise float value = float(number_of_q >> int(word(QUANT_ROW + 2)) & int(word(QUANT_ROW + 3)));
    value = value * number(QUANT_ROW + 4);
    return value;
}

// Byte k of a word.
int byte_of(uint bytes, uint k) {
    return word(QUANT_ROW) != 0 ? bitfieldExtract(int(bytes), int(8 * k), 8)
                                : int(bitfieldExtract(bytes, int(8 * k), 8));
}
