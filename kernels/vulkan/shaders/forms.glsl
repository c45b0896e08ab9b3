// Quantised forms of a result, as quantize.comp makes them: q = clamp(rint(x / scale), low, high) +
// zero as a byte, or (q - zero) * scale as float32. FORMS is their binding, FORM_ROW the place in
// the row: their number, then for each {first word, is it float32?, scale, zero, low, high}; limits
// are less the zero point. Needs call.glsl, divide.glsl and 8-bit storage.
layout(binding = FORMS) writeonly buffer FormBytes { uint8_t form_bytes[]; };
layout(binding = FORMS) writeonly buffer FormWords { uint form_words[]; };

uint n_forms() {
    return word(FORM_ROW);
}

// Less the zero point.
float rounded(uint f, float value) {
    float low = number(FORM_ROW + 5 + 6 * f), high = number(FORM_ROW + 6 + 6 * f);
    float r = roundEven(divide(value, number(FORM_ROW + 3 + 6 * f)));
    r = r > low ? r : low;
    return r < high ? r : high;
}

uint restored(uint f, float r) {
    precise float back = r * number(FORM_ROW + 3 + 6 * f);
    uint bits = floatBitsToUint(back);
    return bits == 0x80000000u ? 0u : bits; // 0 has no sign
}

void write_forms(uint i, float value) {
    for (uint f = 0; f < n_forms(); f++) {
        uint at = begin_of(FORMS) + word(FORM_ROW + 1 + 6 * f);
        float r = rounded(f, value);
        if (word(FORM_ROW + 2 + 6 * f) != 0) {
            form_words[at + i] = restored(f, r);
        } else {
            form_bytes[4 * at + i] = uint8_t(uint(int(r) + int(word(FORM_ROW + 4 + 6 * f))));
        }
    }
}

// The same for elements i … i + 3; i is a multiple of 4.
void write_forms_of_quad(uint i, vec4 values) {
    for (uint f = 0; f < n_forms(); f++) {
        uint at = begin_of(FORMS) + word(FORM_ROW + 1 + 6 * f);
        bool is_float = word(FORM_ROW + 2 + 6 * f) != 0;
        int zero = int(word(FORM_ROW + 4 + 6 * f));
        uint bytes = 0;
        for (uint k = 0; k < 4; k++) {
            float r = rounded(f, values[k]);
            if (is_float) {
                form_words[at + i + k] = restored(f, r);
            } else {
                bytes |= (uint(int(r) + zero) & 0xffu) << (8 * k);
            }
        }
        if (!is_float) {
            form_words[at + i / 4] = bytes;
        }
    }
}
