// The operators of typed.comp; numbers below 40 are instructions of ewise_ops.glsl. Needs that,
// elements.glsl, power.glsl, angles.glsl.
const uint POWER = 6, CLIP = 10, ELU = 40, GELU = 41, GELU_TANH = 42, PRELU = 43, MOD = 44,
           FLOOR_MOD = 45, AND = 46, OR = 47, XOR = 48, BIT_AND = 49, BIT_OR = 50, BIT_XOR = 51, SHIFT_LEFT = 52,
           SHIFT_RIGHT = 53, NOT = 54, BIT_NOT = 55, EQUAL = 56, GREATER = 57, LESS = 58,
           GREATER_EQUAL = 59, LESS_EQUAL = 60, IS_NAN = 61, IS_INF = 62, SELU = 63, CELU = 64,
           SOFTPLUS = 65, SOFTSIGN = 66, THRESHOLDED_RELU = 67, SHRINK = 68, MISH = 69, SIGN = 70,
           SIN = 71, COS = 72, TAN = 73, ASIN = 74, ACOS = 75, ATAN = 76, SINH = 77, COSH = 78,
           ASINH = 79, ACOSH = 80, ATANH = 81, WHERE = 82, CAST = 83;

uint n_operands(uint op) {
    bool is_binary = op <= POWER || (op >= PRELU && op <= SHIFT_RIGHT) ||
                     (op >= EQUAL && op <= LESS_EQUAL);
    return op == WHERE ? 3 : is_binary ? 2 : 1;
}

// Is the result yes or no?
bool answers(uint op) {
    return op >= EQUAL && op <= IS_INF;
}

// ---- Floats -----------------------------------------------------------------------------------

float softplus(float a) {
    precise float result = max(a, 0.0) + log1p_one(exp_one(-abs(a)));
    return result;
}

// a - trunc(a / b) * b without rounding, over whole numbers of 24 bits: digits of 8 bits of a's are
// brought down one after the other.
float remainder_of(float a, float b) {
    uint x = floatBitsToUint(abs(a)), y = floatBitsToUint(abs(b));
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0) {
        return uintBitsToFloat(0x7fc00000u);
    }
    if (x < y) {
        return a;
    }
    uint exponent = max(y >> 23, 1u), left = max(x >> 23, 1u) - exponent;
    uint size = y < 0x800000u ? y : y & 0x7fffffu | 0x800000u;
    uint rest = (x < 0x800000u ? x : x & 0x7fffffu | 0x800000u) % size;
    for (int i = 0; i < 32 && left > 0; i++) {
        uint digits = min(left, 8u);
        rest = (rest << digits) % size;
        left -= digits;
    }
    uint up = rest == 0 ? 0 : min(23u - uint(findMSB(rest)), exponent - 1);
    rest <<= up;
    rest = rest < 0x800000u ? rest : exponent - up << 23 | rest & 0x7fffffu;
    return with_sign(uintBitsToFloat(rest), a);
}

float apply_activation(uint op, float a, float p, float q) {
    precise float r = 0.0;
    switch (op) {
    case ELU: r = apply(26, a, exp_one(a), p, q); break;
    case GELU: r = apply(27, a, erf_one(0.70710678118654752 * a), p, q); break;
    case GELU_TANH: r = apply(27, a, tanh_one(apply(28, a, 0.0, p, q)), p, q); break;
    case SELU: r = q * (a > 0.0 ? a : p * expm1_one(a)); break;
    case CELU: r = a > 0.0 ? a : p * expm1_one(divide(a, p)); break;
    case SOFTPLUS: r = softplus(a); break;
    case SOFTSIGN: r = divide(a, 1.0 + abs(a)); break;
    case THRESHOLDED_RELU: r = a > p ? a : 0.0; break;
    case SHRINK: r = a < -q ? a + p : a > q ? a - p : 0.0; break;
    case MISH: r = a * tanh_one(softplus(a)); break;
    case SIGN: r = a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; break;
    case SIN: r = sine(a, false); break;
    case COS: r = sine(a, true); break;
    case TAN: r = divide(sine(a, false), sine(a, true)); break;
    case ASIN: r = asin_one(a); break;
    case ACOS: r = acos_one(a); break;
    case ATAN: r = atan_one(a); break;
    case SINH: r = sinh_one(a); break;
    case COSH: r = cosh_one(a); break;
    case ASINH: r = asinh_one(a); break;
    case ACOSH: r = acosh_one(a); break;
    case ATANH: r = atanh_one(a); break;
    }
    return r;
}

float apply_real(uint op, float a, float b, float p, float q) {
    precise float r = 0.0;
    switch (op) {
    case PRELU: r = a < 0.0 ? a * b : a; break;
    case MOD: r = remainder_of(a, b); break;
    case FLOOR_MOD: r = a - floor(divide(a, b)) * b; break;
    case EQUAL: r = a == b ? 1.0 : 0.0; break;
    case GREATER: r = a > b ? 1.0 : 0.0; break;
    case LESS: r = a < b ? 1.0 : 0.0; break;
    case GREATER_EQUAL: r = a >= b ? 1.0 : 0.0; break;
    case LESS_EQUAL: r = a <= b ? 1.0 : 0.0; break;
    case IS_NAN: r = isnan(a) ? 1.0 : 0.0; break;
    case IS_INF: r = isinf(a) ? (a < 0.0 ? p : q) : 0.0; break;
    default: r = op < 40 ? apply(op, a, b, p, q) : apply_activation(op, a, p, q); break;
    }
    return r;
}

// ---- Whole numbers ----------------------------------------------------------------------------

// Modulo 2^64; negative powers truncate.
int64_t power_whole(int64_t a, int64_t b) {
    int64_t result = int64_t(1), factor = a;
    if (b < int64_t(0)) {
        bool is_odd = (b & int64_t(1)) != int64_t(0);
        return a == int64_t(1) ? a : a == int64_t(-1) ? int64_t(is_odd ? -1 : 1) : int64_t(0);
    }
    for (int i = 0; i < 63 && b > int64_t(0); i++) {
        result *= (b & int64_t(1)) != int64_t(0) ? factor : int64_t(1);
        factor *= factor;
        b >>= 1;
    }
    return result;
}

// Truncated; by 0 it is 0.
int64_t quotient(int64_t a, int64_t b) {
    return b == int64_t(0) ? b : b == int64_t(-1) ? -a : a / b;
}

int64_t floor_mod(int64_t a, int64_t b) {
    int64_t rest = a - quotient(a, b) * b;
    return rest != int64_t(0) && (rest < int64_t(0)) != (b < int64_t(0)) ? rest + b : rest;
}

bool compare_whole(uint op, int64_t a, int64_t b) {
    switch (op) {
    case AND: return a != int64_t(0) && b != int64_t(0);
    case OR: return a != int64_t(0) || b != int64_t(0);
    case XOR: return (a != int64_t(0)) != (b != int64_t(0));
    case NOT: return a == int64_t(0);
    case EQUAL: return a == b;
    case GREATER: return a > b;
    case LESS: return a < b;
    case GREATER_EQUAL: return a >= b;
    case LESS_EQUAL: return a <= b;
    }
    return false;
}

// Shifts are of unsigned numbers.
int64_t shift_whole(bool is_left, int64_t a, int64_t b) {
    uint by = b < int64_t(0) || b > int64_t(63) ? 64 : uint(b);
    uint64_t bits = uint64_t(a);
    return by > 63 ? int64_t(0) : int64_t(is_left ? bits << by : bits >> by);
}

int64_t apply_whole(uint op, int64_t a, int64_t b, int64_t low, int64_t high) {
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return quotient(a, b);
    case 4: return max(a, b);
    case 5: return min(a, b);
    case POWER: return power_whole(a, b);
    case 8: return max(a, int64_t(0));
    case 10: return min(max(a, low), high);
    case 20: return a < int64_t(0) ? -a : a;
    case 21: return -a;
    case 23:
    case 24:
    case 25: return a;
    case PRELU: return a < int64_t(0) ? a * b : a;
    case MOD: return a - quotient(a, b) * b;
    case FLOOR_MOD: return floor_mod(a, b);
    case BIT_AND: return a & b;
    case BIT_OR: return a | b;
    case BIT_XOR: return a ^ b;
    case BIT_NOT: return ~a;
    case SHIFT_LEFT: return shift_whole(true, a, b);
    case SHIFT_RIGHT: return shift_whole(false, a, b);
    case SIGN: return int64_t(sign(int(a >> 63)) | (a > int64_t(0) ? 1 : 0));
    }
    return int64_t(compare_whole(op, a, b) ? 1 : 0);
}
