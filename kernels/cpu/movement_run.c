#include "kernels/cpu/movement_run.h"

#include "base/platform.h"
#include "kernels/cpu/simd.h"

#include <string.h>

enum { TILE = 16 };

// Transposes one tile: rows of `in` become columns of `out`.
static void transpose_tile4(uint32_t *out, int64_t out_row, const uint32_t *in, int64_t in_row,
                            int64_t n_in, int64_t n_out) {
    uint32_t tile[TILE][TILE];
    for (int64_t i = 0; i < n_in; i++) {
        memcpy(tile[i], in + i * in_row, (size_t)n_out * sizeof(tile[0][0]));
    }
    for (int64_t o = 0; o < n_out; o++) {
        uint32_t row[TILE];
        for (int64_t i = 0; i < n_in; i++) {
            row[i] = tile[i][o];
        }
        memcpy(out + o * out_row, row, (size_t)n_in * sizeof(row[0]));
    }
}

// Transposes `width` input rows (2 to 4) to contiguous output rows of `width` elements. `width` is
// a compile-time constant.
static inline void interleave_rows(uint32_t *restrict out, const uint32_t *restrict in,
                                   int64_t in_row, int64_t n, int width) {
    for (int64_t o = 0; o < n; o++) {
        for (int i = 0; i < width; i++) {
            out[o * width + i] = in[i * in_row + o];
        }
    }
}

MSC_SIMD static void interleave4(uint32_t *out, const uint32_t *in, int64_t in_row, int64_t n,
                                 int64_t width) {
    if (width == 2) {
        interleave_rows(out, in, in_row, n, 2);
    } else if (width == 3) {
        interleave_rows(out, in, in_row, n, 3);
    } else {
        interleave_rows(out, in, in_row, n, 4);
    }
}

// The inverse of interleave_rows: transposes contiguous input rows of `width` elements to `width`
// output rows.
static inline void separate_rows(uint32_t *restrict out, int64_t out_row,
                                 const uint32_t *restrict in, int64_t n, int width) {
    for (int o = 0; o < width; o++) {
        for (int64_t i = 0; i < n; i++) {
            out[o * out_row + i] = in[i * width + o];
        }
    }
}

MSC_SIMD static void separate4(uint32_t *out, int64_t out_row, const uint32_t *in, int64_t n,
                               int64_t width) {
    if (width == 2) {
        separate_rows(out, out_row, in, n, 2);
    } else if (width == 3) {
        separate_rows(out, out_row, in, n, 3);
    } else {
        separate_rows(out, out_row, in, n, 4);
    }
}

static bool is_block(int64_t width) {
    return width >= 2 && width <= 4;
}

// Transposes few rows or few columns, without tiles: copies one row or column after the other.
static void transpose_narrow4(uint32_t *out, int64_t out_row, const uint32_t *in, int64_t in_row,
                              int64_t n_in, int64_t n_out) {
    if (out_row == n_in && is_block(n_in)) {
        interleave4(out, in, in_row, n_out, n_in);
        return;
    }
    if (in_row == n_out && is_block(n_out)) {
        separate4(out, out_row, in, n_in, n_out);
        return;
    }
    if (n_in < n_out) {
        for (int64_t o = 0; o < n_out; o++) {
            for (int64_t i = 0; i < n_in; i++) {
                out[o * out_row + i] = in[i * in_row + o];
            }
        }
        return;
    }
    for (int64_t i = 0; i < n_in; i++) {
        for (int64_t o = 0; o < n_out; o++) {
            out[o * out_row + i] = in[i * in_row + o];
        }
    }
}

// Copies a plane element by element. `bytes` is a compile-time constant, except for rare element
// sizes.
static inline void copy_each(const struct msc_movement *m, int a, int b, char *out, const char *in,
                             size_t bytes) {
    int64_t in_step = m->in[b] * (int64_t)bytes, out_step = m->out[b] * (int64_t)bytes;
    for (int64_t i = 0; i < m->dims[a]; i++) {
        char *to = out + i * m->out[a] * (int64_t)bytes;
        const char *from = in + i * m->in[a] * (int64_t)bytes;
        for (int64_t k = 0; k < m->dims[b]; k++) {
            memcpy(to + k * out_step, from + k * in_step, bytes);
        }
    }
}

// Copies elements of any size with any strides.
static void copy_plane(const struct msc_movement *m, int a, int b, char *out, const char *in) {
    switch (m->bytes) {
    case 1:
        copy_each(m, a, b, out, in, 1);
        break;
    case 2:
        copy_each(m, a, b, out, in, 2);
        break;
    case 4:
        copy_each(m, a, b, out, in, 4);
        break;
    case 8:
        copy_each(m, a, b, out, in, 8);
        break;
    default:
        copy_each(m, a, b, out, in, m->bytes);
        break;
    }
}

// Transposes a plane: dim `a` is contiguous in the input, dim `b` in the output.
static void transpose_plane(const struct msc_movement *m, int a, int b, char *out, const char *in) {
    const struct msc_simd *simd = msc_simd_best();
    bool is_narrow = m->dims[a] < TILE / 2 || m->dims[b] < TILE / 2;
    if (m->bytes == 1 && !is_narrow && simd->transpose1) {
        simd->transpose1(out, m->out[a], in, m->in[b], m->dims[b], m->dims[a]);
        return;
    }
    if (m->bytes != 4) {
        copy_plane(m, a, b, out, in);
        return;
    }
    if (!is_narrow && simd->transpose4) {
        simd->transpose4(out, m->out[a], in, m->in[b], m->dims[b], m->dims[a]);
        return;
    }
    if (is_narrow) {
        transpose_narrow4((uint32_t *)(void *)out, m->out[a], (const uint32_t *)(const void *)in,
                          m->in[b], m->dims[b], m->dims[a]);
        return;
    }
    for (int64_t i = 0; i < m->dims[b]; i += TILE) {
        int64_t n_in = m->dims[b] - i < TILE ? m->dims[b] - i : TILE;
        for (int64_t o = 0; o < m->dims[a]; o += TILE) {
            int64_t n_out = m->dims[a] - o < TILE ? m->dims[a] - o : TILE;
            transpose_tile4((uint32_t *)(void *)out + o * m->out[a] + i, m->out[a],
                            (const uint32_t *)(const void *)in + i * m->in[b] + o, m->in[b], n_in,
                            n_out);
        }
    }
}

static void copy_rows(const struct msc_movement *m, int a, int b, char *out, const char *in) {
    size_t n_bytes = (size_t)m->dims[b] * m->bytes;
    for (int64_t i = 0; i < m->dims[a]; i++) {
        memcpy(out + i * m->out[a] * (int64_t)m->bytes, in + i * m->in[a] * (int64_t)m->bytes,
               n_bytes);
    }
}

typedef void (*plane_fn)(const struct msc_movement *m, int a, int b, char *out, const char *in);

// Chooses the function that copies a plane, and the plane's dims: *a and the output's innermost
// dim.
static plane_fn choose_plane(const struct msc_movement *m, int *a) {
    int last = m->n_dims - 1;
    *a = last - 1;
    if (m->out[last] != 1) {
        return copy_plane;
    }
    if (m->in[last] == 1) {
        return copy_rows;
    }
    for (int d = 0; d < last; d++) {
        if (m->in[d] == 1) {
            *a = d;
            return transpose_plane;
        }
    }
    return copy_plane;
}

void msc_cpu_movement_run(const struct msc_movement *m, void *out, const void *in) {
    if (m->n == 0) {
        return;
    }
    struct msc_movement two = *m;
    if (two.n_dims < 2) {
        // Describes the copy as a plane of one row or of one element.
        bool is_row = two.n_dims == 1;
        two.dims[1] = is_row ? m->dims[0] : 1;
        two.in[1] = is_row ? m->in[0] : 1;
        two.out[1] = is_row ? m->out[0] : 1;
        two.dims[0] = 1;
        two.in[0] = two.out[0] = 0;
        two.n_dims = 2;
    }
    int a, b = two.n_dims - 1;
    plane_fn plane = choose_plane(&two, &a);
    int64_t index[MSC_MAX_DIMS] = {0};
    int64_t from = 0, to = 0;
    for (int d = 0; d >= 0;) {
        plane(&two, a, b, (char *)out + to * (int64_t)m->bytes,
              (const char *)in + from * (int64_t)m->bytes);
        for (d = b; d >= 0; d--) {
            if (d == a || d == b) {
                continue;
            }
            from += two.in[d];
            to += two.out[d];
            if (++index[d] < two.dims[d]) {
                break;
            }
            from -= two.in[d] * two.dims[d];
            to -= two.out[d] * two.dims[d];
            index[d] = 0;
        }
    }
}
