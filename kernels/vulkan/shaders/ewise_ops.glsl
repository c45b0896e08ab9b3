// The instructions of element-wise programs; numbers are those of kernels/cpu/ewise_loops.h. Each is
// the formula of the reference kernel, every operation rounded. Needs divide.glsl, numeric.glsl
// and, where HAS_POWER is defined, power.glsl.
float limit(float a, float low, float high) {
    float r = a < low ? low : a;
    return r > high ? high : r;
}

float apply(uint op, float a, float b, float p, float q) {
    precise float r = 0.0;
    switch (op) {
    case 0: r = a + b; break;
    case 1: r = a - b; break;
    case 2: r = a * b; break;
    case 3: r = divide(a, b); break;
    case 4: r = a > b || isnan(a) ? a : b; break;
    case 5: r = a < b || isnan(a) ? a : b; break;
#ifdef HAS_POWER
    case 6: r = power_one(a, b); break;
#endif
    case 8: r = a < 0.0 ? 0.0 : a; break;
    case 9: r = a < 0.0 ? p * a : a; break;
    case 10: r = limit(a, p, q); break;
    case 11: r = limit(p * a + q, 0.0, 1.0); break;
    case 12: r = a * limit(0.16666667163372039794921875 * a + 0.5, 0.0, 1.0); break;
    case 13: r = sigmoid_one(a); break;
    case 14: r = tanh_one(a); break;
    case 15: r = erf_one(a); break;
    case 16: r = exp_one(a); break;
    case 17: r = log_one(a); break;
    case 18: r = sqrt(a); break;
    case 19: r = isinf(a) ? abs(a) : sqrt(a) + 0.0; break;
    case 20: r = abs(a); break;
    case 21: r = -a; break;
    case 22: r = divide(1.0, a); break;
    case 23: r = floor(a); break;
    case 24: r = ceil(a); break;
    case 25: r = roundEven(a); break;
    case 26: r = a < 0.0 ? p * (b - 1.0) : a; break;
    case 27: r = 0.5 * a * (1.0 + b); break;
    case 28: r = 0.797884561 * (a + 0.044715 * (a * a * a)); break;
    case 29: r = a * p; break;
    case 30: r = a; break;
    }
    return r;
}
