// Correctly rounded quotients and square roots. The device's results may be off by a few units in
// the last place; if so, they are corrected by means of the residual, which a fused multiply-add
// computes exactly. Every shader that includes this file has constant 1, "repair": whether the
// device needs corrections.
#extension GL_EXT_control_flow_attributes : require
layout(constant_id = 1) const bool REPAIRS = false;

// If v is in 2^-60 … 2^60, all intermediate results and residuals below are in the range of floats.
bool is_moderate(float v) {
    return (floatBitsToUint(v) >> 23 & 255u) - 67u < 120u;
}

// Divides by means of the reciprocal of b (Markstein 1990): each step reduces the error to at most
// half a unit in the last place.
float refined_quotient(float a, float b) {
    precise float y = 1.0 / b;
    y = fma(fma(-b, y, 1.0), y, y);
    precise float q = a * y;
    q = fma(fma(-b, q, a), y, q);
    q = fma(fma(-b, q, a), y, q);
    return q;
}

// Moves q to the neighbouring float if that is closer to a / b, up to three times in each
// direction.
float nearest_quotient(float q, float a, float b) {
    [[dont_unroll]] for (int i = 0; i < 6; i++) {
        float near = intBitsToFloat(floatBitsToInt(q) + (i % 2) * 2 - 1);
        q = abs(fma(-near, b, a)) < abs(fma(-q, b, a)) ? near : q;
    }
    return q;
}

float divide(float a, float b) {
    precise float q = a / b;
    if (REPAIRS && is_moderate(a) && is_moderate(b)) {
        q = refined_quotient(a, b);
    } else if (REPAIRS && q != 0.0 && !isinf(q) && !isnan(q)) {
        q = nearest_quotient(q, a, b);
    }
    return q;
}

// The square root of a positive finite number. Small numbers are scaled, so that no intermediate
// result is denormal; denormals are read by their bits, since a device may treat them as zero.
float refined_root(float v) {
    uint bits = floatBitsToUint(v);
    bool is_small = bits < 0x1f800000u; // 2^-64
    precise float x = v;
    if (is_small) {
        x = bits < 0x800000u ? float(bits) * 2.58493941422821148e-26 : v * 18446744073709551616.0;
    }
    precise float r = sqrt(x);
    r = fma(fma(-r, r, x), 0.5 / r, r);
    float best = r;
    [[dont_unroll]] for (int i = -1; i <= 1; i += 2) {
        float near = intBitsToFloat(floatBitsToInt(r) + i);
        best = abs(fma(-near, near, x)) < abs(fma(-best, best, x)) ? near : best;
    }
    precise float back = is_small ? best * 2.3283064365386963e-10 : best;
    return back;
}

float root(float v) {
    bool is_there = floatBitsToUint(v) - 1u < 0x7f7fffffu; // positive and finite; works also on
                                                           // devices without denormals
    return REPAIRS && is_there ? refined_root(v) : sqrt(v);
}
