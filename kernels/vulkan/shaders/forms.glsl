// Quantised forms of a result, as quantize.comp makes them: q = clamp(rint(x / scale), low, high) +
// zero as a byte, or (q - zero) * scale as float32. FORMS is their binding, FORM_ROW the place in
// the row: their number, then for each {first word, is it float32?, scale, zero, low, high}; limits
// are less the zero point. Needs call.glsl, divide.glsl and 8-bit storage.
layout(binding = FORMS) writeonly buffer FormBytes { uint8_t form_bytes[]; };
layout(binding = FORMS) writeonly buffer FormWords { uint form_words[]; };

uint n_forms() {
    return word(FORM_ROW);
}

struct Form {
    uint at; // first word
    bool is_float;
    float scale, low, high;
    int zero;
};

Form form_of(uint f) {
    uint at = FORM_ROW + 1 + 6 * f;
    return Form(begin_of(FORMS) + word(at), word(at + 1) != 0, number(at + 2), number(at + 4),
                number(at + 5), int(word(at + 3)));
}

// Less the zero point.
float rounded(Form form, float value) {
    float r = roundEven(divide(value, form.scale));
    r = r > form.low ? r : form.low;
    return r < form.high ? r : form.high;
}

uint restored(Form form, float r) {
    precise float back = r * form.scale;
    uint bits = floatBitsToUint(back);
    return bits == 0x80000000u ? 0u : bits; // 0 has no sign
}

void write_form(Form form, uint i, float value) {
    float r = rounded(form, value);
    if (form.is_float) {
        form_words[form.at + i] = restored(form, r);
    } else {
        form_bytes[4 * form.at + i] = uint8_t(uint(int(r) + form.zero));
    }
}

// Elements i … i + 3; i is a multiple of 4.
void write_form_quad(Form form, uint i, vec4 values) {
    uint bytes = 0;
    for (uint k = 0; k < 4; k++) {
        float r = rounded(form, values[k]);
        if (form.is_float) {
            form_words[form.at + i + k] = restored(form, r);
        } else {
            bytes |= (uint(int(r) + form.zero) & 0xffu) << (8 * k);
        }
    }
    if (!form.is_float) {
        form_words[form.at + i / 4] = bytes;
    }
}

// All forms of element i.
void write_forms(uint i, float value) {
    for (uint f = 0; f < n_forms(); f++) {
        write_form(form_of(f), i, value);
    }
}
