// Correctly rounded a / b. Where the device's quotient may be some units off, the fused residual
// a - q * b, which is exact near the quotient, picks the best of three neighbours, twice.
// Constant 1 of every shader that includes this: does the quotient need repair?
layout(constant_id = 1) const bool REPAIRS_DIVISION = false;

float nearest_quotient(float q, float a, float b) {
    float best = q;
    float least = abs(fma(-q, b, a));
    for (int i = -1; i <= 1; i += 2) {
        float near = intBitsToFloat(floatBitsToInt(q) + i);
        float rest = abs(fma(-near, b, a));
        if (rest < least) {
            least = rest;
            best = near;
        }
    }
    return best;
}

float divide(float a, float b) {
    precise float q = a / b;
    if (REPAIRS_DIVISION && q != 0.0 && !isinf(q) && !isnan(q)) {
        q = nearest_quotient(nearest_quotient(nearest_quotient(q, a, b), a, b), a, b);
    }
    return q;
}
