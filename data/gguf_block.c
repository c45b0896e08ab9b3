#include "data/gguf_block.h"

#include "data/dtype.h"

#include <string.h>

// A plane has some bits of each code. `width` bytes have the bits of the first `width` elements in
// their lowest bits, those of the next elements above them, and so on; then come the next `width`
// bytes.
struct plane {
    int at, width, bits;
};

enum factors {
    NO_FACTORS,
    NIBBLES,   // factor and lift in one byte
    SIX,       // 16 factors of 6 bits in 12 bytes, plus 32
    SIX_PAIRS, // 8 factors and 8 lifts of 6 bits in 12 bytes
    BYTES,
};

struct layout {
    struct msc_gguf_block_type type;
    struct plane low, high; // a plane of 0 bits is absent
    int d, m;               // places of the float16 numbers; m < 0: absent
    enum factors factors;
    int factors_at;
};

static const struct layout layouts[] = {
    {{MSC_GGUF_Q4_0, "q4_0", 32, 18, 32, 4, 8, false, 0, 0}, {2, 16, 4}, {0}, 0, -1, 0, 0},
    {{MSC_GGUF_Q4_1, "q4_1", 32, 20, 32, 4, 0, true, 0, 0}, {4, 16, 4}, {0}, 0, 2, 0, 0},
    {{MSC_GGUF_Q5_0, "q5_0", 32, 22, 32, 5, 16, false, 0, 0}, {6, 16, 4}, {2, 1, 1}, 0, -1, 0, 0},
    {{MSC_GGUF_Q5_1, "q5_1", 32, 24, 32, 5, 0, true, 0, 0}, {8, 16, 4}, {4, 1, 1}, 0, 2, 0, 0},
    {{MSC_GGUF_Q8_0, "q8_0", 32, 34, 32, 8, 128, false, 0, 0}, {2, 32, 8}, {0}, 0, -1, 0, 0},
    {{MSC_GGUF_Q2_K, "q2_k", 256, 84, 16, 2, 0, true, 0, 15}, {16, 32, 2}, {0}, 80, 82, NIBBLES, 0},
    {{MSC_GGUF_Q3_K, "q3_k", 256, 110, 16, 3, 4, false, -32, 31},
     {32, 32, 2},
     {0, 32, 1},
     108,
     -1,
     SIX,
     96},
    {{MSC_GGUF_Q4_K, "q4_k", 256, 144, 32, 4, 0, true, 0, 63},
     {16, 32, 4},
     {0},
     0,
     2,
     SIX_PAIRS,
     4},
    {{MSC_GGUF_Q5_K, "q5_k", 256, 176, 32, 5, 0, true, 0, 63},
     {48, 32, 4},
     {16, 32, 1},
     0,
     2,
     SIX_PAIRS,
     4},
    {{MSC_GGUF_Q6_K, "q6_k", 256, 210, 16, 6, 32, false, -128, 127},
     {0, 64, 4},
     {128, 32, 2},
     208,
     -1,
     BYTES,
     192},
};

#define N_LAYOUTS ((int)(sizeof(layouts) / sizeof(layouts[0])))

const struct msc_gguf_block_type *msc_gguf_block_type_at(int index) {
    return index < N_LAYOUTS ? &layouts[index].type : NULL;
}

const struct msc_gguf_block_type *msc_gguf_block_type(int type) {
    for (int i = 0; i < N_LAYOUTS; i++) {
        if ((int)layouts[i].type.type == type) {
            return &layouts[i].type;
        }
    }
    return NULL;
}

const struct msc_gguf_block_type *msc_gguf_block_type_named(const char *name) {
    for (int i = 0; i < N_LAYOUTS; i++) {
        if (strcmp(layouts[i].type.name, name) == 0) {
            return &layouts[i].type;
        }
    }
    return NULL;
}

static const struct layout *layout_of(const struct msc_gguf_block_type *type) {
    int i = 0;
    while (layouts[i].type.type != type->type) {
        i++;
    }
    return &layouts[i];
}

// ---- Codes ------------------------------------------------------------------------------------

static void read_plane(uint8_t codes[], int n, const uint8_t bytes[], const struct plane *p,
                       int shift) {
    int per_byte = p->bits > 0 ? 8 / p->bits : 0;
    for (int first = 0; p->bits > 0 && first < n; first += p->width * per_byte) {
        const uint8_t *chunk = bytes + p->at + first / per_byte;
        for (int i = 0; i < p->width * per_byte; i++) {
            int part = chunk[i % p->width] >> (i / p->width * p->bits);
            codes[first + i] |= (uint8_t)((part & ((1 << p->bits) - 1)) << shift);
        }
    }
}

static void write_plane(uint8_t bytes[], const uint8_t codes[], int n, const struct plane *p,
                        int shift) {
    int per_byte = p->bits > 0 ? 8 / p->bits : 0;
    for (int first = 0; p->bits > 0 && first < n; first += p->width * per_byte) {
        uint8_t *chunk = bytes + p->at + first / per_byte;
        for (int i = 0; i < p->width * per_byte; i++) {
            int part = codes[first + i] >> shift & ((1 << p->bits) - 1);
            chunk[i % p->width] |= (uint8_t)(part << (i / p->width * p->bits));
        }
    }
}

// ---- Scales -----------------------------------------------------------------------------------

static void read_factors(struct msc_gguf_block *out, const uint8_t x[], enum factors factors) {
    for (int i = 0; factors == NIBBLES && i < 16; i++) {
        out->factors[i] = x[i] & 15;
        out->lifts[i] = x[i] >> 4;
    }
    for (int i = 0; factors == BYTES && i < 16; i++) {
        out->factors[i] = (int8_t)x[i];
    }
    for (int i = 0; factors == SIX && i < 16; i++) {
        int low = i < 8 ? x[i] & 15 : x[i - 8] >> 4;
        int high = x[8 + i % 4] >> (i / 4 * 2) & 3;
        out->factors[i] = (int16_t)((low | high << 4) - 32);
    }
    for (int i = 0; factors == SIX_PAIRS && i < 4; i++) {
        out->factors[i] = x[i] & 63;
        out->lifts[i] = x[4 + i] & 63;
        out->factors[4 + i] = (x[8 + i] & 15) | (x[i] >> 6 << 4);
        out->lifts[4 + i] = (uint8_t)(x[8 + i] >> 4 | x[4 + i] >> 6 << 4);
    }
}

static void write_factors(uint8_t x[], const struct msc_gguf_block *b, enum factors factors) {
    for (int i = 0; factors == NIBBLES && i < 16; i++) {
        x[i] = (uint8_t)(b->factors[i] | b->lifts[i] << 4);
    }
    for (int i = 0; factors == BYTES && i < 16; i++) {
        x[i] = (uint8_t)b->factors[i];
    }
    for (int i = 0; factors == SIX && i < 16; i++) {
        int code = b->factors[i] + 32;
        x[i % 8] |= (uint8_t)((code & 15) << (i < 8 ? 0 : 4));
        x[8 + i % 4] |= (uint8_t)(code >> 4 << (i / 4 * 2));
    }
    for (int i = 0; factors == SIX_PAIRS && i < 4; i++) {
        x[i] = (uint8_t)(b->factors[i] | b->factors[4 + i] >> 4 << 6);
        x[4 + i] = (uint8_t)(b->lifts[i] | b->lifts[4 + i] >> 4 << 6);
        x[8 + i] = (uint8_t)((b->factors[4 + i] & 15) | (b->lifts[4 + i] & 15) << 4);
    }
}

void msc_gguf_scales(float scales[], float minimums[], const struct msc_gguf_block *b,
                     const struct msc_gguf_block_type *type) {
    float d = msc_f16_to_f32(b->d), m = msc_f16_to_f32(b->m);
    bool has_factors = type->most_factor > 0;
    for (int p = 0; p < type->n / type->n_in_part; p++) {
        scales[p] = has_factors ? d * (float)b->factors[p] : d;
        minimums[p] = !type->has_minimums ? 0 : has_factors ? m * (float)b->lifts[p] : -m;
    }
}

// ---- Blocks -----------------------------------------------------------------------------------

static uint16_t read_u16(const uint8_t x[]) {
    return (uint16_t)(x[0] | x[1] << 8);
}

static void write_u16(uint8_t x[], uint16_t value) {
    x[0] = (uint8_t)value;
    x[1] = (uint8_t)(value >> 8);
}

// The codes of Q8_0 are stored as signed bytes.
static void flip_signs(uint8_t codes[], const struct msc_gguf_block_type *type) {
    for (int i = 0; type->bits == 8 && i < type->n; i++) {
        codes[i] ^= 0x80;
    }
}

void msc_gguf_unpack(struct msc_gguf_block *out, const uint8_t bytes[],
                     const struct msc_gguf_block_type *type) {
    const struct layout *l = layout_of(type);
    out->d = read_u16(bytes + l->d);
    out->m = l->m >= 0 ? read_u16(bytes + l->m) : 0;
    read_factors(out, bytes + l->factors_at, l->factors);
    memset(out->codes, 0, (size_t)type->n);
    read_plane(out->codes, type->n, bytes, &l->low, 0);
    read_plane(out->codes, type->n, bytes, &l->high, l->low.bits);
    flip_signs(out->codes, type);
}

void msc_gguf_pack(uint8_t bytes[], const struct msc_gguf_block *block,
                   const struct msc_gguf_block_type *type) {
    const struct layout *l = layout_of(type);
    uint8_t codes[MSC_GGUF_MAX_BLOCK];
    memset(bytes, 0, (size_t)type->n_bytes);
    write_u16(bytes + l->d, block->d);
    if (l->m >= 0) {
        write_u16(bytes + l->m, block->m);
    }
    write_factors(bytes + l->factors_at, block, l->factors);
    memcpy(codes, block->codes, (size_t)type->n);
    flip_signs(codes, type);
    write_plane(bytes, codes, type->n, &l->low, 0);
    write_plane(bytes, codes, type->n, &l->high, l->low.bits);
}

void msc_gguf_decode(float out[], const uint8_t bytes[], int64_t n_blocks,
                     const struct msc_gguf_block_type *type) {
    struct msc_gguf_block block;
    float scales[MSC_GGUF_MAX_PARTS], minimums[MSC_GGUF_MAX_PARTS];
    for (int64_t b = 0; b < n_blocks; b++, bytes += type->n_bytes, out += type->n) {
        msc_gguf_unpack(&block, bytes, type);
        msc_gguf_scales(scales, minimums, &block, type);
        for (int i = 0; i < type->n; i++) {
            int part = i / type->n_in_part;
            out[i] = scales[part] * (float)(block.codes[i] - type->zero) - minimums[part];
        }
    }
}
