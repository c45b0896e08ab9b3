// Quantised variants of a result, called forms in shaders and msc_quantized in C
// (kernels/backend.h). With r = clamp(rint(x / scale), low, high), a form is r + zero as a byte,
// r * scale as float32, or x rounded to float16 or bfloat16. FORMS is the binding of the forms.
// Word FORM_ROW of the call's row is the number of forms; after it come {first word, kind, scale,
// zero, low, high} for each form. Needs call.glsl, divide.glsl and 8-bit storage.
layout(binding = FORMS) writeonly buffer FormBytes { uint8_t form_bytes[]; };
layout(binding = FORMS) writeonly buffer FormWords { uint form_words[]; };

const uint AS_BYTES = 0, AS_FLOATS = 1, AS_F16 = 2, AS_BF16 = 3; // float16 and bfloat16, stored as
                                                                 // float32

uint n_forms() {
    return word(FORM_ROW);
}

struct Form {
    uint at; // index of the first word
    uint kind;
    float scale, low, high;
    int zero;
};

Form form_of(uint f) {
    uint at = FORM_ROW + 1 + 6 * f;
    return Form(begin_of(FORMS) + word(at), word(at + 1), number(at + 2), number(at + 4),
                number(at + 5), int(word(at + 3)));
}

// The rounded value without the zero point.
float rounded(Form form, float value) {
    float r = roundEven(divide(value, form.scale));
    r = r > form.low ? r : form.low;
    return r < form.high ? r : form.high;
}

uint restored(Form form, float r) {
    precise float back = r * form.scale;
    uint bits = floatBitsToUint(back);
    return bits == 0x80000000u ? 0u : bits; // -0 becomes 0
}

// Equivalent to round_to_f16 and round_to_bf16 of graph/quant.c.
uint narrowed(Form form, float value) {
    uint bits = floatBitsToUint(value), sign = bits & 0x80000000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return bits; // NaN
    }
    if (form.kind == AS_BF16) {
        return sign | min((size + 0x7fffu + (size >> 16 & 1u)) >> 16 << 16, 0x7f7f0000u);
    }
    if (size < 0x38800000u) { // 2^-14
        precise float steps = roundEven(uintBitsToFloat(size) * 16777216.0);
        precise float back = steps * 5.9604644775390625e-8;
        return sign | floatBitsToUint(back);
    }
    return sign | min((size + 0xfffu + (size >> 13 & 1u)) >> 13 << 13, 0x477fe000u);
}

// The float that a form of any kind except AS_BYTES stores.
uint stored(Form form, float value) {
    return form.kind == AS_FLOATS ? restored(form, rounded(form, value)) : narrowed(form, value);
}

void write_form(Form form, uint i, float value) {
    if (form.kind != AS_BYTES) {
        form_words[form.at + i] = stored(form, value);
    } else {
        form_bytes[4 * form.at + i] = uint8_t(uint(int(rounded(form, value)) + form.zero));
    }
}

// Writes elements i … i + 3; i is a multiple of 4.
void write_form_quad(Form form, uint i, vec4 values) {
    uint bytes = 0;
    for (uint k = 0; k < 4; k++) {
        if (form.kind != AS_BYTES) {
            form_words[form.at + i + k] = stored(form, values[k]);
        } else {
            bytes |= (uint(int(rounded(form, values[k])) + form.zero) & 0xffu) << (8 * k);
        }
    }
    if (form.kind == AS_BYTES) {
        form_words[form.at + i / 4] = bytes;
    }
}

// Writes all quantised forms of element i.
void write_forms(uint i, float value) {
    for (uint f = 0; f < n_forms(); f++) {
        write_form(form_of(f), i, value);
    }
}
