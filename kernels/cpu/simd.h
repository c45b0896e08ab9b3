// Loops worth writing for one instruction set: the epilogues of int32 sums, quantising floats to
// bytes, softmax, element-wise chains and transposes.
//
// There is a table of functions in plain C, and one for each instruction set. All give the same
// bits. msc_simd_best chooses by the machine and by the level of instructions that it may use.
//
//     const struct msc_simd *simd = msc_simd_best();
//     struct msc_simd_bytes q = msc_simd_bytes_of(&quant);
//     simd->quantize(out, x, n, &q);
#ifndef MSC_KERNELS_CPU_SIMD_H
#define MSC_KERNELS_CPU_SIMD_H

#include "graph/quant.h"

// How a quantisation of 8 bits or fewer maps x to a byte, uint8 or int8: x is divided by the scale
// in float32, rounded to even, limited to low ... high (NaN becomes low) and moved by the zero
// point.
//
// If `is_corrected`, no division is needed: x is limited to x_low ... x_high (the integer limits
// times the scale) and multiplied by the reciprocal of the scale; the quotient is corrected once by
// the remainder. This rounds to the same integers. It was tested for every significand of the
// scale, with all numerators near a tie.
struct msc_simd_bytes {
    float scale, low, high;
    int32_t zero_point;
    bool is_corrected;
    float reciprocal, x_low, x_high;
};
struct msc_simd_bytes msc_simd_bytes_of(const struct msc_quant *quant);

// Describes how y is computed from int32 sums: y = scale * (float)(sum - offset) + bias, limited to
// low ... high (NaN is kept). Each operation is rounded. The arrays have one element per sum.
struct msc_simd_finish {
    const int32_t *sums, *offsets;
    const float *scales, *bias;
    float low, high;
};

// Returns a copy of `q` whose integer limits also apply the limits of y (f->low and f->high).
struct msc_simd_bytes msc_simd_limit(const struct msc_simd_finish *f,
                                     const struct msc_simd_bytes *q);

// Describes sums of a depthwise convolution. Each tap of the window is an array of bytes that is
// multiplied with weights; the weights repeat after `period` elements. The sums are computed in
// `n_runs` runs of n elements. In the taps, a run begins `step` bytes after the start of the
// previous run; in the output, runs are contiguous.
enum { MSC_SIMD_BLOCK = 64, MSC_SIMD_TAPS = 4 };
struct msc_simd_taps {
    const uint8_t *const *taps; // [n_taps], padded to a multiple of MSC_SIMD_TAPS with pointers to
                                // any readable bytes
    int n_taps;
    uint8_t flip;        // XORed with each byte: 0x80 converts int8 to uint8 (adds 128)
    const void *weights; // packed
    int64_t period;      // a multiple of MSC_SIMD_BLOCK, or at least n
    int64_t n;           // elements per run; each run begins with the first weights
    int64_t n_runs, step;
};
// The bytes of packed weights, enough for every table.
size_t msc_simd_taps_bytes(int n_taps, int64_t period);

// Describes rows of windows of a depthwise convolution. The windows have 3 columns and up to
// MSC_SIMD_TAPS rows. The sums are the same as those of add_taps.
enum { MSC_SIMD_COLUMNS = 3 };
struct msc_simd_columns {
    const uint8_t *const *rows; // [n_rows][MSC_SIMD_TAPS]: start of each input row of the windows;
                                // unused ones may point to any readable row
    int64_t n_rows, n;          // rows of windows, and windows per row
    int64_t n_used, n_shared;   // input rows per window; of these, rows that the window below reads
    int64_t n_in;               // columns of each input row
    int64_t first, stride;      // column of the first window, and the distance between windows
    const uint8_t *blank;       // [channels] bytes to read outside of the image
    uint8_t flip;               // as in msc_simd_taps
    const void *weights;        // packed by pack_taps; each column has MSC_SIMD_TAPS taps
    int64_t channels;
};

// Windows over elements with contiguous channels; window w starts at w * step. The taps of window w
// and channel c are x[w * step + offsets[t] + c]; their result is out[w * channels + c].
struct msc_simd_pool {
    const int64_t *offsets; // [n_taps]
    int64_t n_taps;
    int64_t channels;
    int64_t n_windows, step;
};

// A chain of element-wise operations, each on the previous result, which is in a register. One
// result may be saved for later.
enum msc_simd_op {
    MSC_SIMD_LOAD,   // first instruction: loads operand 0
    MSC_SIMD_FINISH, // first instruction: operands sums, scales, bias, offsets; limited to p[0] ...
                     // p[1]
    MSC_SIMD_SAVE,
    MSC_SIMD_ADD,
    MSC_SIMD_SUBTRACT,
    MSC_SIMD_MULTIPLY,
    MSC_SIMD_DIVIDE,
    MSC_SIMD_ADD_NUMBER, // adds p[0]
    MSC_SIMD_SUBTRACT_NUMBER,
    MSC_SIMD_MULTIPLY_NUMBER,
    MSC_SIMD_DIVIDE_NUMBER,
    MSC_SIMD_ADD_SAVED,
    MSC_SIMD_MULTIPLY_SAVED,
    MSC_SIMD_RELU, // RELU and CLIP keep NaN
    MSC_SIMD_CLIP, // limits to p[0] ... p[1]
    MSC_SIMD_HARD_SWISH,
};

// True if an instruction other than the first reads an array.
static inline bool msc_simd_reads_array(enum msc_simd_op op) {
    return op == MSC_SIMD_ADD || op == MSC_SIMD_SUBTRACT || op == MSC_SIMD_MULTIPLY ||
           op == MSC_SIMD_DIVIDE;
}

struct msc_simd_instr {
    enum msc_simd_op op;
    int32_t operands[4]; // indices of arrays
    float p[2];
};

struct msc_simd_chain {
    int32_t n_instrs;
    const struct msc_simd_instr *instrs;
};

// The arrays that instructions read, by index: float32 or, if the array has a quantisation, uint8
// or int8 integers q with the value (float)(q - zero point) * scale.
struct msc_simd_arrays {
    const float *const *at;
    const struct msc_quant *const *quants; // NULL: all are float32
};

// The quantisation of the array that an instruction reads, or NULL.
static inline const struct msc_quant *msc_simd_quant_of(const struct msc_simd_arrays *arrays,
                                                        const struct msc_simd_instr *instr) {
    return arrays->quants ? arrays->quants[instr->operands[0]] : NULL;
}

// The arrays that a chain reads and writes. `out` or `bytes` may be NULL. `q` is the quantisation
// of `bytes` and must have is_corrected.
struct msc_simd_run {
    struct msc_simd_arrays arrays;
    float *out;
    uint8_t *bytes;
    const struct msc_simd_bytes *q;
    int64_t n;
};

struct msc_simd_product;
struct msc_simd_winograd;
struct msc_simd {
    const char *isa; // instruction set of the loops: "plain", "avx2", "avx512_vnni"
    // Matrix products (simd_indirect.h); NULL if a library is as fast.
    const struct msc_simd_product *bytes, *tiles, *floats;
    const struct msc_simd_winograd *winograd; // NULL: none
    void (*quantize)(uint8_t out[], const float x[], int64_t n, const struct msc_simd_bytes *q);
    void (*finish)(float out[], const struct msc_simd_finish *f, int64_t n);
    // Packs weights [n_channels][n_taps] for `period` elements: element i has the weights of
    // channel i % n_channels.
    void (*pack_taps)(void *packed, const int8_t weights[], int64_t n_channels, int n_taps,
                      int64_t period);
    void (*add_taps)(int32_t sums[], const struct msc_simd_taps *t);
    // Like add_taps, but quantises the scaled sums to bytes. `q` must have is_corrected. The arrays
    // of `f` are [period]; f->sums is not used.
    void (*add_taps_quantize)(uint8_t out[], const struct msc_simd_taps *t,
                              const struct msc_simd_finish *f, const struct msc_simd_bytes *q);
    // Like add_taps and add_taps_quantize, but for columns. The arrays of `f` are [channels]. For
    // bytes, every y must also be less than 2^31 times q->scale. NULL: use the functions for taps.
    void (*add_columns)(int32_t sums[], const struct msc_simd_columns *c);
    void (*add_columns_quantize)(uint8_t out[], const struct msc_simd_columns *c,
                                 const struct msc_simd_finish *f, const struct msc_simd_bytes *q);
    // The largest tap of each window, per channel. Windows have at least one tap. `flip` is 0x80
    // for int8.
    void (*largest)(uint8_t out[], const uint8_t x[], const struct msc_simd_pool *p, uint8_t flip);
    // Like `largest`, for floats; NaN is kept.
    void (*largest_float)(float out[], const float x[], const struct msc_simd_pool *p);
    // Adds the taps in order and divides by `divisor`.
    void (*mean)(float out[], const float x[], const struct msc_simd_pool *p, float divisor);
    // Softmax of a row of n > 0 elements; `out` may be `x`. The exponentials are added up in 16
    // partial sums. The elements after the last multiple of 16 are added one by one to another sum,
    // to which the 16 partial sums are then added in order.
    void (*softmax)(float out[], const float x[], int64_t n);
    void (*log_softmax)(float out[], const float x[], int64_t n);
    // Runs a chain in registers. NULL: running instructions one by one is as fast.
    void (*run_chain)(const struct msc_simd_chain *chain, const struct msc_simd_run *run);
    // out[c * out_row + r] = in[r * in_row + c] for all rows r and columns c, for elements of 4
    // bytes and of 1 byte. Both are NULL if plain loops are as fast.
    void (*transpose4)(void *out, int64_t out_row, const void *in, int64_t in_row, int64_t rows,
                       int64_t cols);
    void (*transpose1)(void *out, int64_t out_row, const void *in, int64_t in_row, int64_t rows,
                       int64_t cols);
};

// The tables that this machine can run, best first; NULL after the last. The plain one is the last.
const struct msc_simd *msc_simd_of_machine(size_t i);
// The best of them that the engine's level allows (msc_routine_isa). It never changes.
const struct msc_simd *msc_simd_best(void);
extern const struct msc_simd msc_simd_plain;

#endif
