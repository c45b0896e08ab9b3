#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

// Computes a convolution in tiles of up to MSC_DOT_WIDTH output positions. The elements that each
// tap (position of the kernel) reads are gathered into columns, with 0 for padding. Each output
// channel is then a sum of products along the columns. Padding adds 0 * w, which changes no bit of
// a finite sum.

// The `n` output positions of one tile, one per column.
struct tile {
    int n;
    int64_t at[MSC_DOT_WIDTH][3];
    int64_t out_offsets[MSC_DOT_WIDTH];
};

static void tile_positions(struct tile *t, const struct msc_window *w, int64_t first, int n) {
    t->n = n;
    for (int p = 0; p < n; p++) {
        int64_t rest = first + p;
        t->out_offsets[p] = 0;
        for (int a = 2; a >= 0; a--) {
            t->at[p][a] = rest % w->out[a];
            t->out_offsets[p] += t->at[p][a] * w->out_strides[a];
            rest /= w->out[a];
        }
    }
}

// Computes offsets [taps, MSC_DOT_WIDTH]: for each tap and output position, the offset of the
// element that is read, relative to the input channel; -1 outside the input.
static void tap_offsets(int64_t offsets[], const struct msc_conv *c, const struct tile *t) {
    const struct msc_window *w = &c->window;
    int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t k[3] = {tap / (w->kernel[1] * w->kernel[2]), tap / w->kernel[2] % w->kernel[1],
                        tap % w->kernel[2]};
        for (int p = 0; p < t->n; p++) {
            int64_t offset = 0;
            for (int a = 0; a < 3 && offset >= 0; a++) {
                int64_t i = msc_reference__conv_source(c, a, t->at[p][a], k[a]);
                offset = i < 0 ? -1 : offset + i * w->in_strides[a];
            }
            offsets[tap * MSC_DOT_WIDTH + p] = offset;
        }
    }
}

// Gathers columns [depth, MSC_DOT_WIDTH] for the channels of one group. The depth axis runs over
// (channel, kernel position).
static void reference_conv_gather(float columns[], const struct msc_window *w, const struct tile *t,
                                  const int64_t offsets[], const float x[], int64_t channels) {
    int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    for (int64_t channel = 0; channel < channels; channel++) {
        const float *from = x + channel * w->in_channel_stride;
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t *at = offsets + tap * MSC_DOT_WIDTH;
            float *to = columns + (channel * taps + tap) * MSC_DOT_WIDTH;
            for (int p = 0; p < t->n; p++) {
                to[p] = at[p] < 0 ? 0.0f : from[at[p]];
            }
        }
    }
}

// Gathers the weights of one output channel, in the order of the columns.
static void gather_weights(float row[], const struct msc_conv *c, const float weight[],
                           int64_t channels) {
    const struct msc_window *w = &c->window;
    for (int64_t channel = 0; channel < channels; channel++) {
        const float *from = weight + channel * c->weight_in_stride;
        for (int64_t z = 0; z < w->kernel[0]; z++) {
            for (int64_t y = 0; y < w->kernel[1]; y++) {
                for (int64_t x = 0; x < w->kernel[2]; x++) {
                    *row++ = from[z * w->kernel_strides[0] + y * w->kernel_strides[1] +
                                  x * w->kernel_strides[2]];
                }
            }
        }
    }
}

struct work {
    const struct msc_conv *conv;
    const float *x, *bias; // bias may be NULL
    float *out;
    float *columns;   // [depth, MSC_DOT_WIDTH]
    float *rows;      // [out channels, depth]
    int64_t *offsets; // [taps, MSC_DOT_WIDTH]
    int64_t depth;
};

static void run_tile(const struct work *work, const struct tile *t, int64_t batch, int64_t group) {
    const struct msc_conv *c = work->conv;
    const struct msc_window *w = &c->window;
    int64_t in = w->in_channels / c->groups, out = w->out_channels / c->groups;
    reference_conv_gather(work->columns, w, t, work->offsets,
                          work->x + batch * w->in_batch_stride + group * in * w->in_channel_stride,
                          in);
    for (int64_t channel = group * out; channel < (group + 1) * out; channel++) {
        float sums[MSC_DOT_WIDTH];
        msc_reference__dot_tile(sums, work->rows + channel * work->depth, 1, work->columns,
                                work->depth);
        float *to = work->out + batch * w->out_batch_stride + channel * w->out_channel_stride;
        for (int p = 0; p < t->n; p++) {
            to[t->out_offsets[p]] = work->bias ? sums[p] + work->bias[channel] : sums[p];
        }
    }
}

static void run_tiles(const struct work *work) {
    const struct msc_conv *c = work->conv;
    const struct msc_window *w = &c->window;
    int64_t positions = w->out[0] * w->out[1] * w->out[2];
    for (int64_t first = 0; first < positions; first += MSC_DOT_WIDTH) {
        int64_t n = positions - first < MSC_DOT_WIDTH ? positions - first : MSC_DOT_WIDTH;
        struct tile tile;
        tile_positions(&tile, w, first, (int)n);
        tap_offsets(work->offsets, c, &tile);
        for (int64_t batch = 0; batch < w->n_batches; batch++) {
            for (int64_t group = 0; group < c->groups; group++) {
                run_tile(work, &tile, batch, group);
            }
        }
    }
}

// Allocates columns, rows and offsets as one block.
static enum msc_status create_memory(struct work *work, void **memory) {
    const struct msc_window *w = &work->conv->window;
    size_t taps = (size_t)(w->kernel[0] * w->kernel[1] * w->kernel[2]);
    size_t n_columns = (size_t)work->depth * MSC_DOT_WIDTH;
    size_t n_rows = (size_t)(work->depth * w->out_channels);
    n_rows += n_rows % 2; // keeps the offsets aligned
    *memory = msc_alloc_zero(n_columns + n_rows + 2 * taps * MSC_DOT_WIDTH + 1, sizeof(float));
    MSC_TRY(MSC_ALLOCATED(*memory));
    work->columns = *memory; // unused columns of the last tile are zeros
    work->rows = work->columns + n_columns;
    work->offsets = (int64_t *)(void *)(work->rows + n_rows);
    return MSC_OK;
}

enum msc_status msc_reference__conv(const struct msc_reference_call *call) {
    if (!msc_reference__is_f32(call)) {
        return msc_reference__real_conv(call);
    }
    struct msc_conv c;
    MSC_TRY(msc_reference__conv_init(&c, call));
    const struct msc_window *w = &c.window;
    int64_t in = w->in_channels / c.groups, out = w->out_channels / c.groups;
    struct work work = {
        .conv = &c,
        .x = call->operands[0].data,
        .bias = msc_reference__has(call, 2) ? call->operands[2].data : NULL,
        .out = call->outputs[0].data,
        .depth = in * w->kernel[0] * w->kernel[1] * w->kernel[2],
    };
    void *memory;
    MSC_TRY(create_memory(&work, &memory));
    for (int64_t i = 0; i < w->out_channels; i++) {
        gather_weights(work.rows + i * work.depth, &c,
                       (const float *)call->operands[1].data + i / out * c.weight_group_stride +
                           i % out * c.weight_out_stride,
                       in);
    }
    run_tiles(&work);
    msc_free(memory);
    return MSC_OK;
}
