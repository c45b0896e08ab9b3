// Runs one of our own products a number of times, so that its instructions can be counted
// (tests/kernels/check_arm.py). Prints the multiplications of one time.
//
//     product_tool ISA bytes|floats WINDOWS RUNS DEPTH CHANNELS TIMES
//     product_tool ISA taps WINDOWS 1 TAPS CHANNELS TIMES      a depthwise convolution
//
// ISA names the table of loops. Results are quantised to bytes. If TIMES is 0, sums are compared
// with those of plain C instead; the exit code is 1 if a sum differs.
#include "kernels/cpu/simd_indirect.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int64_t windows, runs, depth, channels, times;
};

struct operands {
    uint8_t *in;
    int64_t *at, *runs;
    void *weights, *packed, *scratch;
    float *ones, *zeros;
    uint8_t *out;
};

static void *memory(size_t n_bytes) {
    void *p = msc_alloc_aligned(n_bytes + 64);
    if (!p) {
        fprintf(stderr, "product_tool: out of memory\n");
        exit(1);
    }
    memset(p, 0, n_bytes + 64);
    return p;
}

static struct operands make_operands(const struct shape *s, size_t packed, size_t scratch) {
    size_t window = (size_t)(s->runs * s->depth) * sizeof(float);
    struct operands o = {
        .in = memory((size_t)s->windows * (window + (size_t)s->channels)),
        .at = memory((size_t)s->windows * sizeof(int64_t)),
        .runs = memory((size_t)s->runs * sizeof(int64_t)),
        .weights = memory((size_t)s->channels * window),
        .packed = memory(packed),
        .scratch = memory(scratch),
        .ones = memory((size_t)(s->channels + MSC_SIMD_BLOCK) * sizeof(float)),
        .zeros = memory((size_t)(s->channels + MSC_SIMD_BLOCK) * sizeof(float)),
        .out = memory((size_t)(s->windows * s->channels)),
    };
    for (int64_t c = 0; c < s->channels; c++) {
        o.ones[c] = 1.0f;
    }
    return o;
}

// Fills the operands with any bytes, or with small integers as floats.
static void set_operands(const struct operands *o, const struct shape *s, bool is_float) {
    uint32_t state = 1;
    int64_t n_in = s->windows * s->runs * s->depth, n_weights = s->channels * s->runs * s->depth;
    for (int64_t i = 0; i < n_in + n_weights; i++) {
        state = state * 1664525u + 1013904223u;
        uint8_t byte = (uint8_t)(state >> 24);
        bool is_in = i < n_in;
        int64_t at = is_in ? i : i - n_in;
        if (is_float) {
            ((float *)(is_in ? (void *)o->in : o->weights))[at] = (float)(byte % 16) - 8.0f;
        } else {
            ((uint8_t *)(is_in ? (void *)o->in : o->weights))[at] = byte;
        }
    }
}

// The sum of window w and channel c in plain C. In a depthwise convolution, all taps read the
// window.
static double plain_sum(const struct operands *o, const struct shape *s, const char *kind,
                        int64_t w, int64_t c) {
    int64_t n = s->runs * s->depth;
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) {
        if (strcmp(kind, "floats") == 0) {
            sum += (double)((const float *)(void *)o->in)[w * n + k] *
                   (double)((const float *)o->weights)[c * n + k];
        } else {
            bool is_taps = strcmp(kind, "taps") == 0;
            sum += o->in[is_taps ? w * s->channels + c : w * n + k] *
                   ((const int8_t *)o->weights)[c * n + k];
        }
    }
    return sum;
}

static int check_sums(const void *sums, const struct operands *o, const struct shape *s,
                      const char *kind) {
    for (int64_t i = 0; i < s->windows * s->channels; i++) {
        double expected = plain_sum(o, s, kind, i / s->channels, i % s->channels);
        double found = strcmp(kind, "floats") == 0 ? (double)((const float *)sums)[i]
                                                   : (double)((const int32_t *)sums)[i];
        if (found != expected) {
            fprintf(stderr, "product_tool: sum %lld is %.0f, expected %.0f\n", (long long)i, found,
                    expected);
            return 1;
        }
    }
    return 0;
}

static void free_operands(struct operands *o) {
    void *const all[] = {o->in,      o->at,   o->runs,  o->weights, o->packed,
                         o->scratch, o->ones, o->zeros, o->out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        msc_free_aligned(all[i]);
    }
}

static struct msc_simd_bytes quantisation(void) {
    static const float scale = 1.0f;
    static const int32_t zero_point = 0;
    return msc_simd_bytes_of(&(struct msc_quant){
        .bits = 8, .high = 255, .axis = -1, .n = 1, .scales = &scale, .zero_points = &zero_point});
}

static struct msc_simd_finish finish_of(const struct operands *o) {
    return (struct msc_simd_finish){.offsets = (const int32_t *)(const void *)o->zeros,
                                    .scales = o->ones,
                                    .bias = o->zeros,
                                    .low = 0.0f,
                                    .high = 255.0f};
}

static int run_product(const struct msc_simd_product *product, const struct shape *s,
                       const char *kind) {
    bool is_float = strcmp(kind, "floats") == 0;
    int64_t depth = s->depth * (is_float ? (int64_t)sizeof(float) : 1);
    struct operands o = make_operands(s, product->packed_bytes(s->channels, s->runs, depth),
                                      product->scratch_bytes(s->runs, depth));
    for (int64_t i = 0; i < s->windows; i++) {
        o.at[i] = i * s->runs * depth;
    }
    for (int64_t run = 0; run < s->runs; run++) {
        o.runs[run] = run * depth;
    }
    set_operands(&o, s, is_float);
    product->pack(o.packed, o.weights, s->channels, s->runs, depth);
    const struct msc_simd_indirect w = {.in = o.in,
                                        .at = o.at,
                                        .n = s->windows,
                                        .n_runs = s->runs,
                                        .runs = o.runs,
                                        .depth = depth,
                                        .weights = o.packed,
                                        .channels = s->channels,
                                        .scratch = o.scratch};
    const struct msc_simd_quantized quantized = {.bytes = o.out, .q = quantisation()};
    const struct msc_simd_epilogue epilogue = {
        .finish = finish_of(&o), .n_quantized = 1, .quantized = &quantized, .has_numbers = true};
    for (int64_t i = 0; i < s->times; i++) {
        product->multiply_epilogue(&w, &epilogue);
    }
    int failed = 0;
    if (s->times == 0) {
        void *sums = memory((size_t)(s->windows * s->channels) * sizeof(int32_t));
        product->multiply(sums, &w);
        failed = check_sums(sums, &o, s, kind);
        msc_free_aligned(sums);
    }
    free_operands(&o);
    return failed;
}

static int run_taps(const struct msc_simd *table, const struct shape *s) {
    int n_taps = (int)s->depth;
    struct operands o = make_operands(s, msc_simd_taps_bytes(n_taps, s->channels), 0);
    const uint8_t *taps[256];
    for (int i = 0; i < 256; i++) {
        taps[i] = o.in;
    }
    set_operands(&o, s, false);
    table->pack_taps(o.packed, o.weights, s->channels, n_taps, s->channels);
    const struct msc_simd_taps t = {.taps = taps,
                                    .n_taps = n_taps,
                                    .weights = o.packed,
                                    .period = s->channels,
                                    .n = s->channels,
                                    .n_runs = s->windows,
                                    .step = s->channels};
    const struct msc_simd_finish f = finish_of(&o);
    const struct msc_simd_bytes q = quantisation();
    for (int64_t i = 0; i < s->times; i++) {
        table->add_taps_quantize(o.out, &t, &f, &q);
    }
    int failed = 0;
    if (s->times == 0) {
        int32_t *sums = memory((size_t)(s->windows * s->channels) * sizeof(int32_t));
        table->add_taps(sums, &t);
        failed = check_sums(sums, &o, s, "taps");
        msc_free_aligned(sums);
    }
    free_operands(&o);
    return failed;
}

static const struct msc_simd *find_table(const char *isa) {
    const struct msc_simd *table;
    for (size_t i = 0; (table = msc_simd_of_machine(i)) != NULL; i++) {
        if (strcmp(table->isa, isa) == 0) {
            return table;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: product_tool ISA bytes|floats|taps WINDOWS RUNS DEPTH CHANNELS "
                        "TIMES\n");
        return 2;
    }
    const struct shape s = {atoll(argv[3]), atoll(argv[4]), atoll(argv[5]), atoll(argv[6]),
                            atoll(argv[7])};
    const struct msc_simd *table = find_table(argv[1]);
    bool is_taps = strcmp(argv[2], "taps") == 0, is_float = strcmp(argv[2], "floats") == 0;
    if (!table || (!is_taps && !(is_float ? table->floats : table->bytes))) {
        fprintf(stderr, "product_tool: this machine has no %s for %s\n", argv[2], argv[1]);
        return 1;
    }
    printf("%lld\n", (long long)(s.windows * s.runs * s.depth * s.channels));
    return is_taps ? run_taps(table, &s)
                   : run_product(is_float ? table->floats : table->bytes, &s, argv[2]);
}
