// Windows over NHWC images with one to three spatial axes: which input elements a window reads.
//
//     struct msc_cpu_taps t = msc_cpu_window_taps(&w, memory);
//     msc_cpu_window_set_row(&t, &w, z, y);
//     for (int64_t x = 0, n; x < w.axes[2].out; x += n) {
//         n = msc_cpu_window_run(&w, x);
//         msc_cpu_window_set_position(&t, &w, x);
//         ... t.offsets[0 ... t.n - 1] ...
//     }
#ifndef MSC_KERNELS_CPU_WINDOW_H
#define MSC_KERNELS_CPU_WINDOW_H

#include "kernels/lowering/pool.h"

struct msc_cpu_window {
    struct msc_pool_axis axes[3]; // planes, rows, columns; missing axes come first, with length 1
    int64_t channels;
};

// The taps of the windows of one output row, and of one of these windows. Only taps on the input
// are listed, in the order of planes, rows and columns.
struct msc_cpu_taps {
    int64_t n_lines;    // input rows that the output row reads
    int64_t padded;     // the same, with rows in the padding
    int64_t *starts;    // [n_lines] offset of each input row from the image's first element
    int64_t *line_taps; // [n_lines] index in the window of the first tap on each input row
    int64_t n;          // taps of the window
    int64_t *offsets;   // [n] offset of each tap from the image's first element
    int64_t *taps;      // [n] index of each tap in the window
};

size_t msc_cpu_window_bytes(const struct msc_cpu_window *w);
// Uses `memory` of msc_cpu_window_bytes.
struct msc_cpu_taps msc_cpu_window_taps(const struct msc_cpu_window *w, void *memory);

// Sets n_lines, padded, starts and line_taps for output row y of plane z.
void msc_cpu_window_set_row(struct msc_cpu_taps *t, const struct msc_cpu_window *w, int64_t z,
                            int64_t y);
// Sets n, offsets and taps for position x of the row.
void msc_cpu_window_set_position(struct msc_cpu_taps *t, const struct msc_cpu_window *w, int64_t x);
// The number of positions x, x + 1, ... whose windows have the same taps, each `stride` columns
// after the one before.
int64_t msc_cpu_window_run(const struct msc_cpu_window *w, int64_t x);

// The taps [*begin, *end) of a window that are in [0, length), if the first tap is at `first`.
void msc_cpu_window_range(int64_t *begin, int64_t *end, int64_t first,
                          const struct msc_pool_axis *a, int64_t length);
// The number of a window's taps along an axis that are on the input or its padding. Windows may
// extend beyond the padding (ceil_mode).
int64_t msc_cpu_window_count_padded(const struct msc_pool_axis *a, int64_t first);

#endif
