// Products of bytes for AVX2, which has no exact product of four bytes.
//
// One instruction multiplies bytes and adds neighbouring products, but limits each sum of two to
// int16. The weights decide whether a sum can get beyond that. So each vector of 16 channels has
// three lists of its groups of four bytes; the order of groups does not change an integer sum:
//
//     doubles    two groups whose sums fit int16 even if those of one are added to the other's
//     singles    groups whose sums fit int16
//     wide       all others: bytes are widened to int16 before they are multiplied
//
// Per multiplication, doubles are the quickest. All weights of 6 bits or fewer are doubles.
//
//     weights    [vector]{struct lists, place of each group, groups}, padded to the longest form
//     groups     [channel][4 bytes]; wide ones are [2][channel][2 int16]: bytes 0 and 2, 1 and 3
#ifndef MSC_KERNELS_CPU_SIMD_AVX2_LISTS_H
#define MSC_KERNELS_CPU_SIMD_AVX2_LISTS_H

#ifndef MSC_VECTOR_AVX2
#define MSC_VECTOR_AVX2
#endif
#include "kernels/cpu/simd_indirect_ends.h"

// What a vector's packed weights begin with: where each list ends, in groups. Then follow the
// offset of each group in its run, the run of each group, and the weights.
struct lists {
    int32_t doubles, singles, wide;
};
enum { LISTS_BYTES = VECTOR, PLACE_BYTES = 2 * (int)sizeof(int32_t), WIDE = 2 * VECTOR };

static int64_t count_groups(int64_t n_runs, int64_t depth) {
    return n_runs * ((depth + GROUP - 1) / GROUP);
}

static int64_t places_bytes(int64_t n_groups) {
    return (n_groups * PLACE_BYTES + VECTOR - 1) / VECTOR * VECTOR;
}

static int64_t lists_bytes(int64_t n_runs, int64_t depth) {
    int64_t n = count_groups(n_runs, depth);
    return LISTS_BYTES + places_bytes(n) + n * WIDE;
}

static size_t lists_packed_bytes(int64_t channels, int64_t n_runs, int64_t depth) {
    return (size_t)(count_vectors(channels) * lists_bytes(n_runs, depth));
}

// ---- Packing ----------------------------------------------------------------------------------

// The weights of a vector of channels. The weight of a channel at position k of a run is
// at[channel * channel_step + (run * depth + k) * step].
struct weights {
    const int8_t *at;
    int64_t channels, depth, channel_step, step;
};

// Sums of neighbouring weights of a group: of the positive and of the negative ones.
struct extremes {
    vint most, least;
};

// Loads a group from four rows of 16 channels.
VECTOR_INLINE vint load_rows(const int8_t *from, int64_t row) {
    __m128i x[GROUP], pairs[GROUP];
    UNROLL for (int i = 0; i < GROUP; i++) {
        x[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + i * row));
    }
    UNROLL for (int i = 0; i < GROUP; i += 2) {
        pairs[i] = _mm_unpacklo_epi8(x[i], x[i + 1]);
        pairs[i + 1] = _mm_unpackhi_epi8(x[i], x[i + 1]);
    }
    return (vint){_mm256_set_m128i(_mm_unpackhi_epi16(pairs[0], pairs[2]),
                                   _mm_unpacklo_epi16(pairs[0], pairs[2])),
                  _mm256_set_m128i(_mm_unpackhi_epi16(pairs[1], pairs[3]),
                                   _mm_unpacklo_epi16(pairs[1], pairs[3]))};
}

VECTOR_INLINE vint load_group(const struct weights *w, int32_t run, int32_t k) {
    int8_t group[VECTOR] = {0};
    int64_t n = w->depth - k < GROUP ? w->depth - k : GROUP;
    const int8_t *from = w->at + (run * w->depth + k) * w->step;
    if (w->channel_step == 1 && w->channels == LANES && n == GROUP) {
        return load_rows(from, w->step);
    }
    for (int64_t c = 0; c < w->channels; c++, from += w->channel_step) {
        if (w->step == 1 && n == GROUP) {
            memcpy(group + c * GROUP, from, GROUP);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            group[c * GROUP + i] = from[i * w->step];
        }
    }
    return vi_load(group);
}

VECTOR_INLINE struct extremes extremes_of(vint group) {
    const __m256i zero = _mm256_setzero_si256();
    vint one = {_mm256_set1_epi8(1), _mm256_set1_epi8(1)};
    vint most = {_mm256_max_epi8(group.low, zero), _mm256_max_epi8(group.high, zero)};
    vint least = {_mm256_min_epi8(group.low, zero), _mm256_min_epi8(group.high, zero)};
    return (struct extremes){vi_multiply_bytes(one, most), vi_multiply_bytes(one, least)};
}

VECTOR_INLINE struct extremes both_extremes(struct extremes a, struct extremes b) {
    return (struct extremes){vi_add_words(a.most, b.most), vi_add_words(a.least, b.least)};
}

// True if the products of these weights with any uint8 have sums from -128 * 255 to 128 * 255.
VECTOR_INLINE bool fit(struct extremes e) {
    const __m256i limit = _mm256_set1_epi16(128), below = _mm256_set1_epi16(-128);
    __m256i beyond = _mm256_or_si256(_mm256_or_si256(_mm256_cmpgt_epi16(e.most.low, limit),
                                                     _mm256_cmpgt_epi16(e.most.high, limit)),
                                     _mm256_or_si256(_mm256_cmpgt_epi16(below, e.least.low),
                                                     _mm256_cmpgt_epi16(below, e.least.high)));
    return _mm256_testz_si256(beyond, beyond);
}

// The lists while they are filled. Doubles are added from the front; singles and wide groups from
// the back of their lists.
struct filling {
    int32_t *offsets, *runs;
    int32_t doubles, singles, wide;
};

struct waiting {
    struct extremes extremes;
    int32_t run, k;
};
enum { MOST_WAITING = 4 };

static void set_place(const struct filling *f, int32_t i, const struct waiting *g) {
    f->offsets[i] = g->k;
    f->runs[i] = g->run;
}

// Adds a group that fits: with one of those that wait as doubles, if possible. Otherwise it waits
// itself, and the one that waits longest becomes a single. Returns the new number of those that
// wait.
VECTOR_INLINE int add_fitting(struct filling *f, struct waiting waiting[], int n,
                              const struct waiting *g) {
    for (int i = 0; i < n; i++) {
        if (fit(both_extremes(waiting[i].extremes, g->extremes))) {
            set_place(f, f->doubles++, &waiting[i]);
            set_place(f, f->doubles++, g);
            memmove(waiting + i, waiting + i + 1, (size_t)(n - i - 1) * sizeof(waiting[0]));
            return n - 1;
        }
    }
    if (n == MOST_WAITING) {
        set_place(f, --f->singles, &waiting[0]);
        memmove(waiting, waiting + 1, (size_t)--n * sizeof(waiting[0]));
    }
    waiting[n] = *g;
    return n + 1;
}

VECTOR_INLINE void list_groups(struct filling *f, const struct weights *w, int64_t n_runs) {
    struct waiting waiting[MOST_WAITING];
    int n = 0;
    for (int32_t run = 0; run < n_runs; run++) {
        for (int32_t k = 0; k < w->depth; k += GROUP) {
            struct waiting g = {extremes_of(load_group(w, run, k)), run, k};
            if (fit(g.extremes)) {
                n = add_fitting(f, waiting, n, &g);
            } else {
                set_place(f, --f->wide, &g);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        set_place(f, --f->singles, &waiting[i]);
    }
}

VECTOR_INLINE int32_t count_wide(const struct weights *w, int64_t n_runs) {
    int32_t n = 0;
    for (int32_t run = 0; run < n_runs; run++) {
        for (int32_t k = 0; k < w->depth; k += GROUP) {
            n += !fit(extremes_of(load_group(w, run, k)));
        }
    }
    return n;
}

VECTOR_TARGET static void pack_vector(char *packed, const struct weights *w, int64_t n_runs) {
    int32_t n = (int32_t)count_groups(n_runs, w->depth);
    int32_t *offsets = (int32_t *)(void *)(packed + LISTS_BYTES), *runs = offsets + n;
    memset(packed, 0, (size_t)lists_bytes(n_runs, w->depth));
    int32_t first_wide = n - count_wide(w, n_runs);
    struct filling f = {offsets, runs, 0, first_wide, n};
    list_groups(&f, w, n_runs);
    *(struct lists *)(void *)packed = (struct lists){f.doubles, first_wide, n};
    char *to = packed + LISTS_BYTES + places_bytes(n);
    for (int32_t i = 0; i < n; i++, to += VECTOR) {
        vint group = load_group(w, runs[i], offsets[i]);
        if (i >= first_wide) {
            vi_store(to, widened(group, 8));
            to += VECTOR;
            group = widened(group, 0);
        }
        vi_store(to, group);
    }
}

static void lists_pack_steps(void *packed, struct weights w, int64_t channels, int64_t n_runs) {
    char *to = packed;
    for (int64_t c = 0; c < channels; c += LANES) {
        w.channels = channels - c < LANES ? channels - c : LANES;
        pack_vector(to, &w, n_runs);
        to += lists_bytes(n_runs, w.depth);
        w.at += w.channels * w.channel_step;
    }
}

static void lists_pack(void *packed, const void *weights, int64_t channels, int64_t n_runs,
                       int64_t depth) {
    struct weights w = {.at = weights, .depth = depth, .channel_step = n_runs * depth, .step = 1};
    lists_pack_steps(packed, w, channels, n_runs);
}

static void lists_pack_rows(void *packed, const void *rows, int64_t channels, int64_t n_rows,
                            int64_t element) {
    (void)element;
    struct weights w = {.at = rows, .depth = n_rows, .channel_step = 1, .step = channels};
    lists_pack_steps(packed, w, channels, 1);
}

// ---- Multiplying ------------------------------------------------------------------------------

enum { MOST_AHEAD = 4096 };

static size_t lists_scratch_bytes(int64_t n_runs, int64_t depth) {
    return n_runs == 1 ? 0 : (size_t)places_bytes(count_groups(n_runs, depth));
}

// Sets b->places to the offsets of the vector's groups in a window. Scratch memory has them if
// there are several runs. The lists of the next vector are prefetched: they do not follow directly,
// so the processor does not predict them.
static void enter_lists(struct block *b) {
    const struct msc_simd_indirect *w = b->w;
    int64_t n = count_groups(w->n_runs, w->depth), step = lists_bytes(w->n_runs, w->depth);
    for (int64_t at = 0; at < step && at < MOST_AHEAD; at += LINE) {
        __builtin_prefetch(b->weights + step + at);
    }
    const int32_t *offsets = (const int32_t *)(const void *)(b->weights + LISTS_BYTES);
    int32_t *places = w->scratch;
    b->places = offsets;
    if (w->n_runs == 1) {
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        places[i] = (int32_t)(w->runs[offsets[n + i]] - w->runs[0]) + offsets[i];
    }
    b->places = places;
}

VECTOR_INLINE vint load_4(const char *from) {
    int32_t group;
    memcpy(&group, from, sizeof(group));
    return vi_set(group);
}

VECTOR_INLINE vint products_of_double(const char *x, const int32_t *places, const char *weights) {
    return vi_add_words(vi_multiply_bytes(load_4(x + places[0]), vi_load(weights)),
                        vi_multiply_bytes(load_4(x + places[1]), vi_load(weights + VECTOR)));
}

VECTOR_INLINE void add_lists(vint s[], int n, const struct block *b, int64_t at) {
    const struct msc_simd_indirect *w = b->w;
    const struct lists *lists = (const struct lists *)(const void *)b->weights;
    const char *weights = b->weights + LISTS_BYTES + places_bytes(lists->wide), *x[MOST_WINDOWS];
    const int32_t *place = b->places, *end = place + lists->doubles;
    const vint one = vi_set(0x10001), lowest = vi_set(0xff00ff);
    UNROLL for (int p = 0; p < n; p++) {
        x[p] = (const char *)w->in + w->runs[0] + w->at[at + p];
    }
    for (; place < end; place += 2, weights += 2 * VECTOR) {
        UNROLL for (int p = 0; p < n; p++) {
            vint y = products_of_double(x[p], place, weights);
            s[p] = vi_add(s[p], vi_multiply_words(y, one));
            vi_keep(&s[p]);
        }
    }
    for (end = b->places + lists->singles; place < end; place++, weights += VECTOR) {
        UNROLL for (int p = 0; p < n; p++) {
            vint y = vi_multiply_bytes(load_4(x[p] + *place), vi_load(weights));
            s[p] = vi_add(s[p], vi_multiply_words(y, one));
            vi_keep(&s[p]);
        }
    }
    for (end = b->places + lists->wide; place < end; place++, weights += WIDE) {
        UNROLL for (int p = 0; p < n; p++) {
            vint y = load_4(x[p] + *place);
            vint even = vi_multiply_words(vi_and(y, lowest), vi_load(weights));
            vint odd = vi_multiply_words(vi_upper_bytes(y), vi_load(weights + VECTOR));
            s[p] = vi_add(s[p], vi_add(even, odd));
            vi_keep(&s[p]);
        }
    }
}

#endif
