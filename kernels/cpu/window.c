#include "kernels/cpu/window.h"

#include "kernels/cpu/cpu.h"

void msc_cpu_window_range(int64_t *begin, int64_t *end, int64_t first,
                          const struct msc_pool_axis *a, int64_t length) {
    *begin = first < 0 ? (-first + a->dilation - 1) / a->dilation : 0;
    int64_t inside = first >= length ? 0 : (length - 1 - first) / a->dilation + 1;
    *end = inside < a->kernel ? inside : a->kernel;
}

int64_t msc_cpu_window_count_padded(const struct msc_pool_axis *a, int64_t first) {
    int64_t begin, end;
    msc_cpu_window_range(&begin, &end, first + a->pad_begin, a, a->in + a->pad_begin + a->pad_end);
    return end > begin ? end - begin : 0;
}

// Assigns the lists from `memory` on. Returns their size in bytes.
static size_t place_lists(struct msc_cpu_taps *t, const struct msc_cpu_window *w, char *memory) {
    size_t line_bytes = (size_t)(w->axes[0].kernel * w->axes[1].kernel) * sizeof(int64_t);
    size_t tap_bytes = line_bytes * (size_t)w->axes[2].kernel, used = 0;
    t->starts = msc_cpu_take(memory, &used, line_bytes);
    t->line_taps = msc_cpu_take(memory, &used, line_bytes);
    t->offsets = msc_cpu_take(memory, &used, tap_bytes);
    t->taps = msc_cpu_take(memory, &used, tap_bytes);
    return used;
}

size_t msc_cpu_window_bytes(const struct msc_cpu_window *w) {
    struct msc_cpu_taps t;
    return place_lists(&t, w, NULL);
}

struct msc_cpu_taps msc_cpu_window_taps(const struct msc_cpu_window *w, void *memory) {
    struct msc_cpu_taps t = {.n = 0};
    place_lists(&t, w, memory);
    return t;
}

void msc_cpu_window_set_row(struct msc_cpu_taps *t, const struct msc_cpu_window *w, int64_t z,
                            int64_t y) {
    const struct msc_pool_axis *planes = &w->axes[0], *rows = &w->axes[1], *cols = &w->axes[2];
    int64_t first_z = z * planes->stride - planes->pad_begin;
    int64_t first_y = y * rows->stride - rows->pad_begin;
    int64_t z_begin, z_end, y_begin, y_end;
    msc_cpu_window_range(&z_begin, &z_end, first_z, planes, planes->in);
    msc_cpu_window_range(&y_begin, &y_end, first_y, rows, rows->in);
    t->n_lines = 0;
    for (int64_t i = z_begin; i < z_end; i++) {
        for (int64_t j = y_begin; j < y_end; j++) {
            int64_t plane = first_z + i * planes->dilation;
            int64_t row = plane * rows->in + first_y + j * rows->dilation;
            t->line_taps[t->n_lines] = (i * rows->kernel + j) * cols->kernel;
            t->starts[t->n_lines++] = row * cols->in * w->channels;
        }
    }
    t->padded =
        msc_cpu_window_count_padded(planes, first_z) * msc_cpu_window_count_padded(rows, first_y);
}

void msc_cpu_window_set_position(struct msc_cpu_taps *t, const struct msc_cpu_window *w,
                                 int64_t x) {
    const struct msc_pool_axis *cols = &w->axes[2];
    int64_t first = x * cols->stride - cols->pad_begin, begin, end;
    msc_cpu_window_range(&begin, &end, first, cols, cols->in);
    t->n = 0;
    for (int64_t i = 0; i < t->n_lines; i++) {
        for (int64_t j = begin; j < end; j++) {
            t->taps[t->n] = t->line_taps[i] + j;
            t->offsets[t->n++] = t->starts[i] + (first + j * cols->dilation) * w->channels;
        }
    }
}

int64_t msc_cpu_window_run(const struct msc_cpu_window *w, int64_t x) {
    const struct msc_pool_axis *a = &w->axes[2];
    int64_t reach = a->in - 1 - (a->kernel - 1) * a->dilation + a->pad_begin;
    int64_t begin = (a->pad_begin + a->stride - 1) / a->stride;
    int64_t end = reach < 0 ? 0 : reach / a->stride + 1;
    end = end < a->out ? end : a->out;
    return x >= begin && x < end ? end - x : 1;
}
