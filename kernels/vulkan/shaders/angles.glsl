// Trigonometric and hyperbolic functions as polynomials, accurate to a few units in the last place.
// Sines and cosines are accurate for angles up to some ten thousands. Needs divide.glsl,
// numeric.glsl.
const float HALF_PI = 1.57079632679489662;

// log(1 + v) and exp(v) - 1, also accurate near 0.
float log1p_one(float v) {
    precise float u = 1.0 + v;
    precise float less = u - 1.0;
    float l = log_one(u);
    precise float corrected = l * divide(v, less);
    return u == 1.0 ? v : isinf(u) ? u : corrected;
}

float expm1_one(float v) {
    float u = exp_one(v);
    precise float less = u - 1.0;
    precise float corrected = less * divide(v, log_one(u));
    return u == 1.0 ? v : less == -1.0 || isinf(u) || v > 1.0 ? less : corrected;
}

// The sine or, if is_cosine, the cosine, which is computed as the sine of the angle plus a quarter
// turn.
float sine(float v, bool is_cosine) {
    float a = abs(v);
    uint octant = uint(min(a * 1.27323954473516, 4e9));
    octant += octant & 1u;
    float k = float(octant);
    precise float x = ((a - k * 0.78515625) - k * 2.4187564849853515625e-4) -
                      k * 3.77489497744594108e-8;
    precise float z = x * x;
    precise float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * x + x;
    precise float c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z +
                       4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
    uint quarter = (octant >> 1) + (is_cosine ? 1u : 0u);
    float result = clamp((quarter & 1u) != 0 ? c : s, -1.0, 1.0);
    bool flips = (quarter & 2u) != 0;
    flips = !is_cosine && v < 0.0 ? !flips : flips;
    return isinf(v) || isnan(v) ? uintBitsToFloat(0x7fc00000u) : flips ? -result : result;
}

float atan_one(float v) {
    float a = abs(v), base = 0.0, x = a;
    precise float ahead = a + 1.0, behind = a - 1.0;
    if (a > 2.414213562373095) {
        base = HALF_PI;
        x = -divide(1.0, a);
    } else if (a > 0.414213562373095) {
        base = 0.5 * HALF_PI;
        x = divide(behind, ahead);
    }
    precise float z = x * x;
    precise float p = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z -
                      3.33329491539e-1;
    precise float result = base + (p * z * x + x);
    return with_sign(result, v);
}

// asin(x) for 0 <= x <= 0.5; z is x * x.
float asin_near(float x, float z) {
    precise float p = 4.2163199048e-2 * z + 2.4181311049e-2;
    p = p * z + 4.5470025998e-2;
    p = p * z + 7.4953002686e-2;
    p = p * z + 1.6666752422e-1;
    p = p * z * x + x;
    return p;
}

float asin_one(float v) {
    float a = abs(v);
    precise float z = a > 0.5 ? 0.5 * (1.0 - a) : a * a;
    float near = asin_near(a > 0.5 ? root(z) : a, z);
    precise float far = HALF_PI - 2.0 * near;
    return a <= 1.0 ? with_sign(a > 0.5 ? far : near, v) : uintBitsToFloat(0x7fc00000u);
}

float acos_one(float v) {
    precise float z = 0.5 * (1.0 - abs(v));
    precise float far = 2.0 * asin_near(root(z), z);
    far = v < 0.0 ? 2.0 * HALF_PI - far : far;
    precise float near = HALF_PI - asin_one(v);
    return abs(v) <= 1.0 ? (abs(v) > 0.5 ? far : near) : uintBitsToFloat(0x7fc00000u);
}

float sinh_one(float v) {
    float a = abs(v), u = expm1_one(a), half_root = exp_one(0.5 * a);
    precise float near = 0.5 * (u + divide(u, u + 1.0));
    precise float far = 0.5 * half_root * half_root;
    return with_sign(a > 80.0 ? far : near, v);
}

float cosh_one(float v) {
    float a = abs(v), e = exp_one(a), half_root = exp_one(0.5 * a);
    precise float near = 0.5 * (e + divide(1.0, e));
    precise float far = 0.5 * half_root * half_root;
    return a > 80.0 ? far : near;
}

float asinh_one(float v) {
    float a = abs(v);
    precise float square = a * a + 1.0;
    precise float below = 1.0 + root(square);
    precise float near = a + divide(a * a, below);
    precise float far = log_one(a) + 0.693147181;
    return with_sign(a > 1e9 ? far : log1p_one(near), v);
}

float acosh_one(float v) {
    precise float t = v - 1.0;
    precise float square = 2.0 * t + t * t;
    precise float near = t + root(square);
    precise float far = log_one(v) + 0.693147181;
    return v > 1e9 ? far : log1p_one(near);
}

float atanh_one(float v) {
    float a = abs(v);
    precise float below = 1.0 - a;
    precise float result = 0.5 * log1p_one(divide(2.0 * a, below));
    return with_sign(result, v);
}
