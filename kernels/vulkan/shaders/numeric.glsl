// exp, log, tanh, erf and the sigmoid, operation by operation as in graph/reference/numeric.c. So
// every device that rounds + and * correctly gives the same bits. Needs divide.glsl.
const float ROUNDER = 12582912.0; // 1.5 * 2^23
const uint ROUNDER_BITS = 0x4b400000u;

// Tests the bits, because a device may treat denormals as zero.
bool is_zero(float v) {
    return (floatBitsToUint(v) & 0x7fffffffu) == 0;
}

// A positive denormal times 2^23, computed from its bits.
float scaled_denormal(float v) {
    precise float result = float(floatBitsToUint(v)) * 1.17549435e-38;
    return result;
}

float scale_by_power(float mantissa, uint n) {
    uint half_n = uint(int(n) >> 1);
    precise float result = mantissa * uintBitsToFloat((half_n + 127u) << 23);
    result = result * uintBitsToFloat((n - half_n + 127u) << 23);
    return result;
}

float exp_one(float v) {
    v = v > 90.0 ? 90.0 : v;
    v = v < -104.0 ? -104.0 : v;
    precise float shifted = v * 1.44269504 + ROUNDER;
    precise float n = shifted - ROUNDER;
    precise float r = (v - n * 0.693359375) - n * -2.12194440e-4;
    precise float p = 1.3818697e-3;
    p = p * r + 8.368716e-3;
    p = p * r + 4.1668292e-2;
    p = p * r + 1.6666521e-1;
    p = p * r + 4.9999994e-1;
    p = p * (r * r) + r + 1.0;
    return scale_by_power(p, floatBitsToUint(shifted) - ROUNDER_BITS);
}

float with_sign(float magnitude, float sign_of) {
    return uintBitsToFloat((floatBitsToUint(magnitude) & 0x7fffffffu) |
                           (floatBitsToUint(sign_of) & 0x80000000u));
}

float tanh_one(float v) {
    float a = abs(v);
    precise float z = v * v;
    precise float p = -5.6370148e-3;
    p = p * z + 2.0579655e-2;
    p = p * z + -5.3722013e-2;
    p = p * z + 1.3331237e-1;
    p = p * z + -3.3333275e-1;
    precise float near = p * z * a + a;
    precise float far = exp_one(2.0 * a) + 1.0;
    far = 1.0 - divide(2.0, far);
    return with_sign(a < 0.625 ? near : far, v);
}

float erf_one(float v) {
    float a = abs(v);
    precise float z = v * v;
    precise float p = -5.9944164e-4;
    p = p * z + 4.9940264e-3;
    p = p * z + -2.6767345e-2;
    p = p * z + 1.12818435e-1;
    p = p * z + -3.7612498e-1;
    p = p * z + 1.2837915e-1;
    precise float near = p * a + a;
    float b = a > 4.0 ? 4.0 : a;
    precise float q = 5.1962616e-7;
    q = q * b + 1.4335026e-5;
    q = q * b + -3.9680948e-4;
    q = q * b + 4.053732e-3;
    q = q * b + -2.4895595e-2;
    q = q * b + 1.08012244e-1;
    q = q * b + 6.335434e-1;
    q = q * b + 1.1294341;
    q = q * b + -1.6039683e-4;
    precise float far = 1.0 - exp_one(-q);
    return with_sign(a < 0.921875 ? near : far, v);
}

float sigmoid_one(float v) {
    float e = exp_one(-abs(v));
    precise float below = 1.0 + e;
    return divide(v >= 0.0 ? 1.0 : e, below);
}

float log_one(float v) {
    bool is_denormal = v < 1.17549435e-38;
    uint bits = floatBitsToUint(is_denormal ? scaled_denormal(v) : v);
    uint above = bits - 0x3f3504f3u;
    int n = int(above) >> 23;
    float e = float(is_denormal ? n - 23 : n);
    precise float f = uintBitsToFloat((above & 0x007fffffu) + 0x3f3504f3u) - 1.0;
    precise float z = f * f;
    precise float p = 6.74919e-2;
    p = p * f + -1.1670025e-1;
    p = p * f + 1.18835375e-1;
    p = p * f + -1.240624e-1;
    p = p * f + 1.422036e-1;
    p = p * f + -1.6667989e-1;
    p = p * f + 2.0002072e-1;
    p = p * f + -2.500001e-1;
    p = p * f + 3.3333313e-1;
    precise float y = p * f * z;
    y = y + e * -2.12194440e-4;
    y = y - 0.5 * z;
    precise float result = (f + y) + e * 0.693359375;
    result = is_zero(v) ? uintBitsToFloat(0xff800000u) : result;
    result = isinf(v) ? v : result;
    return v >= 0.0 ? result : uintBitsToFloat(0x7fc00000u);
}
