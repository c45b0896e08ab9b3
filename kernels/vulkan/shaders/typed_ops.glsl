// The operators of typed.comp: the instructions of ewise_ops.glsl, then those of typed.def. Needs
// ewise_ops.glsl, elements.glsl, power.glsl, angles.glsl.
const uint POWER = 6, CLIP = 10; // codes of ewise.def; vk_typed.c checks that they are the same
#define TYPED(code, name, op, operands) const uint name = code;
#define TYPED_REAL(code, name, op, operands, expression) const uint name = code;
#define TYPED_ACTIVATION(code, name, op, key0, key1, expression) const uint name = code;
#define TYPED_VARIANT(code, name, expression) const uint name = code;
#include "typed.def"

uint n_operands(uint op) {
    bool is_binary = op <= POWER || (op >= PRELU && op <= SHIFT_RIGHT) ||
                     (op >= EQUAL && op <= LESS_EQUAL);
    return op == WHERE ? 3 : is_binary ? 2 : 1;
}

// True if the result is a boolean.
bool answers(uint op) {
    return op >= EQUAL && op <= IS_INF;
}

// ---- Floats -----------------------------------------------------------------------------------

float softplus(float a) {
    precise float result = max(a, 0.0) + log1p_one(exp_one(-abs(a)));
    return result;
}

// a - trunc(a / b) * b without rounding: long division of 24-bit significands in integer
// arithmetic, with digits of 8 bits.
float remainder_of(float a, float b) {
    uint x = floatBitsToUint(a) & 0x7fffffffu, y = floatBitsToUint(b) & 0x7fffffffu;
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

// The remainder with the sign of b, also if it is 0.
float floor_remainder(float a, float b) {
    precise float rest = remainder_of(a, b);
    precise float turned = rest + b;
    bool has_other_sign = ((floatBitsToUint(rest) ^ floatBitsToUint(b)) & 0x80000000u) != 0;
    bool is_zero = (floatBitsToUint(rest) & 0x7fffffffu) == 0;
    return is_zero ? with_sign(0.0, b) : has_other_sign && !isnan(rest) ? turned : rest;
}

float apply_activation(uint op, float a, float p, float q) {
    precise float r = 0.0;
    switch (op) {
#define TYPED_ACTIVATION(code, name, op, key0, key1, expression) case name: r = expression; break;
#define TYPED_VARIANT(code, name, expression) case name: r = expression; break;
#include "typed.def"
    }
    return r;
}

float apply_real(uint op, float a, float b, float p, float q) {
    precise float r = 0.0;
    switch (op) {
#define TYPED_REAL(code, name, op, operands, expression) case name: r = expression; break;
#include "typed.def"
    default: r = op < ELU ? apply(op, a, b, p, q) : apply_activation(op, a, p, q); break;
    }
    return r;
}

// ---- Integers ---------------------------------------------------------------------------------

// Integer power modulo 2^64; results of negative exponents are truncated.
int64_t power_integer(int64_t a, int64_t b) {
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

// The truncated quotient; 0 if b is 0.
int64_t quotient(int64_t a, int64_t b) {
    return b == int64_t(0) ? b : b == int64_t(-1) ? -a : a / b;
}

int64_t floor_mod(int64_t a, int64_t b) {
    int64_t rest = a - quotient(a, b) * b;
    return rest != int64_t(0) && (rest < int64_t(0)) != (b < int64_t(0)) ? rest + b : rest;
}

bool compare_integers(uint op, int64_t a, int64_t b) {
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

// A right shift fills with the sign. If b is negative, or 64 or more, all bits are shifted out: the
// result is 0 or, for a right shift of a negative number, -1.
int64_t shift_integer(bool is_left, int64_t a, int64_t b) {
    bool is_far = b < int64_t(0) || b > int64_t(63);
    uint by = is_far ? 63 : uint(b);
    return !is_left ? a >> by : is_far ? int64_t(0) : int64_t(uint64_t(a) << by);
}

int64_t apply_integer(uint op, int64_t a, int64_t b, int64_t low, int64_t high) {
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return quotient(a, b);
    case 4: return max(a, b);
    case 5: return min(a, b);
    case POWER: return power_integer(a, b);
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
    case SHIFT_LEFT: return shift_integer(true, a, b);
    case SHIFT_RIGHT: return shift_integer(false, a, b);
    case SIGN: return int64_t(sign(int(a >> 63)) | (a > int64_t(0) ? 1 : 0));
    }
    return int64_t(compare_integers(op, a, b) ? 1 : 0);
}
