// The instructions of element-wise programs, from kernels/lowering/ewise.def: each is the formula
// of the reference kernel, with every operation rounded. Needs divide.glsl, numeric.glsl and, if
// HAS_POWER is defined, power.glsl.
#define fabsf abs
#define sqrtf root
#define floorf floor
#define ceilf ceil
#define rintf roundEven
#define msc_sigmoidf sigmoid_one
#define msc_tanhf tanh_one
#define msc_erff erf_one
#define msc_expf exp_one
#define msc_logf log_one
#ifdef HAS_POWER
#define msc_powf power_one
#else
#define EWISE_WITHOUT_POWER
#endif

float limit(float a, float low, float high) {
    float r = a < low ? low : a;
    return r > high ? high : r;
}

float apply(uint op, float a, float b, float p, float q) {
    precise float r = 0.0;
    switch (op) {
#define EWISE(code, name, operands, expression) case code: r = expression; break;
#define EWISE_LOOP(code, name, operands, loop, expression) case code: r = expression; break;
#include "kernels/lowering/ewise.def"
    }
    return r;
}
