// x to the power y, operation by operation as in graph/reference/numeric.c. Numbers of more than 24
// bits are pairs of a rounded float and the rest. Needs divide.glsl, numeric.glsl.
vec2 pair_sum(float a, float b) {
    precise float s = a + b;
    precise float from_b = s - a;
    precise float rest = (a - (s - from_b)) + (b - from_b);
    return vec2(s, rest);
}

// a + b as a pair. Requires |a| >= |b|.
vec2 pair_normal(float a, float b) {
    precise float s = a + b;
    precise float rest = b - (s - a);
    return vec2(s, rest);
}

vec2 pair_product(float a, float b) {
    precise float p = a * b;
    precise float big_a = a * 4097.0;
    precise float big_b = b * 4097.0;
    precise float a1 = big_a - (big_a - a);
    precise float b1 = big_b - (big_b - b);
    precise float a2 = a - a1;
    precise float b2 = b - b1;
    precise float rest = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
    return vec2(p, rest);
}

vec2 pair_multiply(vec2 a, vec2 b) {
    vec2 p = pair_product(a.x, b.x);
    precise float rest = p.y + (a.x * b.y + a.y * b.x);
    return pair_normal(p.x, rest);
}

// log2 of a positive finite x.
vec2 log2_pair(float x) {
    bool is_denormal = x < 1.17549435e-38;
    uint bits = floatBitsToUint(is_denormal ? scaled_denormal(x) : x);
    uint above = bits - 0x3f3504f3u;
    int n = int(above) >> 23;
    float e = float(is_denormal ? n - 23 : n);
    float m = uintBitsToFloat((above & 0x007fffffu) + 0x3f3504f3u);
    precise float f = m - 1.0;
    vec2 d = pair_sum(m, 1.0);
    float s1 = divide(f, d.x);
    vec2 back = pair_product(s1, d.x);
    precise float left = ((f - back.x) - back.y) - s1 * d.y;
    vec2 s = pair_normal(s1, divide(left, d.x));
    vec2 z = pair_multiply(s, s);
    vec2 cubic = pair_multiply(pair_multiply(z, s), vec2(3.33333343e-1, -9.93410776e-9));
    precise float q = (1.17137894e-1 * z.x + 1.4273386e-1) * z.x + 2.0000078e-1;
    precise float rest = q * z.x * z.x * s.x;
    vec2 t = pair_normal(s.x, cubic.x);
    precise float low = t.y + (s.y + cubic.y + rest);
    t = pair_multiply(pair_normal(t.x, low), vec2(2.88539004, 4.05191811e-8));
    vec2 sum = pair_sum(e, t.x);
    low = sum.y + t.y;
    return pair_normal(sum.x, low);
}

// x to the power y. Requires positive finite x and finite y.
float power_positive(float x, float y) {
    y = y > 1e12 ? 1e12 : y;
    y = y < -1e12 ? -1e12 : y;
    vec2 l = log2_pair(x);
    vec2 product = pair_product(l.x, y);
    precise float low = product.y + l.y * y;
    if (product.x > 200.0 || product.x < -200.0) {
        return product.x > 0.0 ? uintBitsToFloat(0x7f800000u) : 0.0;
    }
    precise float shifted = product.x + ROUNDER;
    precise float r = (product.x - (shifted - ROUNDER)) + low;
    precise float p = 1.4324839e-5;
    p = p * r + 1.5452136e-4;
    p = p * r + 1.3337962e-3;
    p = p * r + 9.618087e-3;
    p = p * r + 5.550405e-2;
    p = p * r + 2.402265e-1;
    p = p * r + 6.931472e-1;
    p = p * r + 1.0;
    return scale_by_power(p, floatBitsToUint(shifted) - ROUNDER_BITS);
}

float power_one(float x, float y) {
    precise float few = y == 2.0 ? x * x : x * x * x;
    if (y == 2.0 || y == 3.0) {
        return few;
    }
    if (y == 0.5 && x >= 0.0) {
        return root(x) + 0.0;
    }
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (y == 1.0 || isnan(x) || isnan(y)) {
        return y == 1.0 ? x : x + y;
    }
    float a = abs(x), infinite = uintBitsToFloat(0x7f800000u), result;
    bool is_whole = floor(y) == y;
    bool is_odd = is_whole && floor(y * 0.5) != y * 0.5;
    if (isinf(y)) {
        result = a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? infinite : 0.0;
    } else if (is_zero(a) || isinf(a)) {
        result = is_zero(a) == (y > 0.0) ? 0.0 : infinite;
    } else if (x < 0.0 && !is_whole) {
        return uintBitsToFloat(0x7fc00000u);
    } else {
        result = power_positive(a, y);
    }
    bool is_negative = (floatBitsToUint(x) & 0x80000000u) != 0;
    return is_negative && is_odd ? -result : result;
}
