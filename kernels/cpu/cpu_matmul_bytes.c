#include "kernels/cpu/cpu_matmul_bytes.h"

#include "base/platform.h"
#include "kernels/cpu/cpu.h"

#include <string.h>

// Rows are multiplied in blocks, so that a block's sums stay in the cache.
enum { BLOCK = 64, SIGN = 0x80 };

static bool is_byte(const struct msc_quant *q) {
    return msc_dtype_bytes(msc_quant_dtype(q)) == 1;
}

bool msc_matmul_bytes_accepts(const struct msc_matmul_bytes *m) {
    if (!m->product || !m->product->pack_rows || !is_byte(m->quants[0]) || !is_byte(m->quants[1])) {
        return false;
    }
    // If much of the packed matrix would be padding, products of floats are faster.
    size_t packed = m->product->packed_bytes(m->columns, 1, m->depth);
    return packed <= 4 * (size_t)(m->depth * m->columns * m->product->weight_bytes);
}

// ---- Scratch ----------------------------------------------------------------------------------

struct parts {
    uint8_t *a; // [BLOCK][depth], for rows that are converted or whose end must be readable
    int8_t *b;  // [depth][columns]
    void *packed, *product;
    int32_t *sums;       // [BLOCK][columns]
    int32_t *of_columns; // [columns] za' sum b' - depth za' zb'
    int32_t *of_rows;    // [BLOCK] zb' sum a'
    int64_t *at;         // [BLOCK]
    size_t n_bytes;
};

static struct parts place(const struct msc_matmul_bytes *m, char *memory) {
    struct parts p = {.n_bytes = 0};
    size_t columns = (size_t)m->columns, depth = (size_t)m->depth;
    p.a = msc_cpu_take(memory, &p.n_bytes, BLOCK * depth + MSC_SIMD_GROUP);
    p.b = msc_cpu_take(memory, &p.n_bytes, depth * columns);
    p.packed = msc_cpu_take(memory, &p.n_bytes, m->product->packed_bytes(m->columns, 1, m->depth));
    p.product = msc_cpu_take(memory, &p.n_bytes, m->product->scratch_bytes(1, m->depth));
    p.sums = msc_cpu_take(memory, &p.n_bytes, BLOCK * columns * sizeof(p.sums[0]));
    p.of_columns = msc_cpu_take(memory, &p.n_bytes, columns * sizeof(p.of_columns[0]));
    p.of_rows = msc_cpu_take(memory, &p.n_bytes, BLOCK * sizeof(p.of_rows[0]));
    p.at = msc_cpu_take(memory, &p.n_bytes, BLOCK * sizeof(p.at[0]));
    return p;
}

size_t msc_matmul_bytes_scratch(const struct msc_matmul_bytes *m) {
    return place(m, NULL).n_bytes;
}

// ---- Running ----------------------------------------------------------------------------------

// za' or zb'
static int32_t zero_of(const struct msc_matmul_bytes *m, int i) {
    int32_t zero = m->quants[i]->zero_points[0];
    bool is_signed = m->quants[i]->low < 0;
    return i == 0 ? zero + (is_signed ? SIGN : 0) : zero - (is_signed ? 0 : SIGN);
}

MSC_SIMD static void sum_columns(int32_t sums[], const int8_t b[], int64_t depth, int64_t columns) {
    memset(sums, 0, (size_t)columns * sizeof(sums[0]));
    for (int64_t i = 0; i < depth; i++, b += columns) {
        for (int64_t c = 0; c < columns; c++) {
            sums[c] += b[c];
        }
    }
}

MSC_SIMD static void sum_rows(int32_t sums[], const uint8_t a[], int64_t n, int64_t depth) {
    for (int64_t i = 0; i < n; i++, a += depth) {
        int32_t sum = 0;
        for (int64_t k = 0; k < depth; k++) {
            sum += a[k];
        }
        sums[i] = sum;
    }
}

MSC_SIMD static void correct(float out[], const int32_t sums[], int64_t n, int64_t columns,
                             const int32_t of_rows[], const int32_t of_columns[]) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t of_row = (uint32_t)of_rows[i];
        for (int64_t c = 0; c < columns; c++) {
            uint32_t sum = (uint32_t)sums[i * columns + c] - of_row - (uint32_t)of_columns[c];
            out[i * columns + c] = (float)(int32_t)sum;
        }
    }
}

// Packs b and computes the terms of its columns.
static void pack(const struct parts *p, const struct msc_matmul_bytes *m, const uint8_t b[]) {
    const int8_t *from = (const int8_t *)b;
    if (m->quants[1]->low >= 0) {
        msc_cpu_recode((uint8_t *)p->b, b, m->depth * m->columns, SIGN, 0, 0xff);
        from = p->b;
    }
    m->product->pack_rows(p->packed, from, m->columns, m->depth, 1);
    sum_columns(p->of_columns, from, m->depth, m->columns);
    uint32_t za = (uint32_t)zero_of(m, 0);
    uint32_t of_all = (uint32_t)m->depth * za * (uint32_t)zero_of(m, 1);
    for (int64_t c = 0; c < m->columns; c++) {
        p->of_columns[c] = (int32_t)(za * (uint32_t)p->of_columns[c] - of_all);
    }
}

static void sum_block(const struct parts *p, const struct msc_matmul_bytes *m, const uint8_t a[],
                      int64_t n) {
    uint32_t zb = (uint32_t)zero_of(m, 1);
    sum_rows(p->of_rows, a, n, m->depth);
    for (int64_t i = 0; i < n; i++) {
        p->of_rows[i] = (int32_t)(zb * (uint32_t)p->of_rows[i]);
    }
}

void msc_matmul_bytes_run(float out[], const struct msc_matmul_bytes *m, const uint8_t a[],
                          const uint8_t b[], bool packs, void *scratch) {
    struct parts p = place(m, scratch);
    struct msc_simd_indirect w = {.at = p.at,
                                  .n_runs = 1,
                                  .runs = &(const int64_t){0},
                                  .depth = m->depth,
                                  .weights = p.packed,
                                  .channels = m->columns,
                                  .scratch = p.product};
    uint8_t flip = m->quants[0]->low < 0 ? SIGN : 0;
    bool copies = flip || m->depth % MSC_SIMD_GROUP != 0;
    if (packs) {
        pack(&p, m, b);
    }
    for (int64_t i = 0; i < BLOCK; i++) {
        p.at[i] = i * m->depth;
    }
    for (int64_t row = 0; row < m->rows; row += BLOCK, a += BLOCK * m->depth) {
        w.n = m->rows - row < BLOCK ? m->rows - row : BLOCK;
        w.in = a;
        if (copies) {
            msc_cpu_recode(p.a, a, w.n * m->depth, flip, 0, 0xff);
            w.in = p.a;
        }
        m->product->multiply(p.sums, &w);
        sum_block(&p, m, w.in, w.n);
        correct(out + row * m->columns, p.sums, w.n, m->columns, p.of_rows, p.of_columns);
    }
}
