#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <stdatomic.h>
#include <string.h>

// A routine that its first caller makes. If two threads make it at once, one of the two routines is
// discarded.
struct msc_cpu_gemm_routine {
    _Atomic(struct msc_routine *) routine;
    atomic_bool is_unsupported;
    atomic_int exactness; // enum exactness
};

enum exactness {
    UNKNOWN,
    EXACT,
    ROUNDED,
};

enum msc_status msc_cpu_gemm_create_routines(struct msc_cpu_gemm *k) {
    k->routines = msc_alloc_zero(MSC_CPU_GEMM_UNIT_COUNT, sizeof(k->routines[0]));
    MSC_TRY(MSC_ALLOCATED(k->routines));
    for (int i = 0; i < MSC_CPU_GEMM_UNIT_COUNT; i++) {
        atomic_init(&k->routines[i].routine, NULL);
        atomic_init(&k->routines[i].is_unsupported, false);
        atomic_init(&k->routines[i].exactness, UNKNOWN);
    }
    return MSC_OK;
}

void msc_cpu_gemm_destroy_routines(struct msc_cpu_gemm *k) {
    for (int i = 0; k->routines && i < MSC_CPU_GEMM_UNIT_COUNT; i++) {
        msc_routine_destroy(atomic_load(&k->routines[i].routine));
    }
    msc_free(k->routines);
    k->routines = NULL;
}

enum msc_status msc_cpu_gemm_routine(const struct msc_routine **out, const struct msc_cpu_gemm *k,
                                     enum msc_cpu_gemm_unit unit) {
    struct msc_cpu_gemm_routine *r = &k->routines[unit];
    struct msc_routine *have = atomic_load_explicit(&r->routine, memory_order_acquire);
    struct msc_routine *made = NULL;
    if (!have) {
        if (atomic_load(&r->is_unsupported)) {
            return MSC_E_UNSUPPORTED;
        }
        enum msc_status status =
            msc_routine_create(&made, k->backend->engine, &k->chunks[unit].desc);
        if (status == MSC_E_UNSUPPORTED && unit >= MSC_CPU_GEMM_INT8) {
            atomic_store(&r->is_unsupported, true);
            return status;
        }
        if (status != MSC_OK) {
            return msc_status_prefix(status, "joint %s", k->name);
        }
        if (atomic_compare_exchange_strong(&r->routine, &have, made)) {
            have = made;
        } else {
            msc_routine_destroy(made);
        }
    }
    *out = have;
    return MSC_OK;
}

// ---- Large sums -------------------------------------------------------------------------------

// The arrays of one chunk, for a trial run of a routine.
struct trial {
    struct msc_array *weights;
    struct msc_routine_weights *packed;
    uint8_t *in;
    int32_t *out;
    void *scratch;
};

static void trial_finish(struct trial *t) {
    msc_routine_weights_destroy(t->packed);
    msc_array_release(t->weights);
    msc_free_aligned(t->in);
    msc_free_aligned(t->out);
    msc_free_aligned(t->scratch);
}

// Runs a routine once to find out whether it rounds large sums to float32. Inputs of 255 and
// weights of 127 give the largest possible sum. The sum must be odd, because no float32 above 2^24
// is odd. If the number of products is even, the first weight of each channel is 126 instead.
static enum msc_status run_trial(bool *is_exact, struct trial *t, const struct msc_cpu_gemm *k,
                                 const struct msc_cpu_gemm_chunks *c,
                                 const struct msc_routine *routine, int thread) {
    int64_t n = msc_array_n_elements(k->weight), depth = n / k->channels;
    int64_t stride = c->desc.is_input_first ? 1 : depth; // elements from one channel to the next
    int8_t *w = msc_array_data(t->weights);
    bool is_even = depth % 2 == 0;
    memset(w, 127, (size_t)n);
    for (int64_t i = 0; is_even && i < k->channels; i++) {
        w[i * stride] = 126;
    }
    memset(t->in, 255, (size_t)c->in);
    MSC_TRY(msc_routine_pack(&t->packed, routine, w));
    struct msc_routine_call call = {
        .a = t->in, .weights = t->packed, .out = t->out, .scratch = t->scratch};
    MSC_TRY(msc_routine_run(routine, &call, thread));
    // Windows inside the image give this sum or, if the sum was rounded, a sum near it. Windows
    // that extend into the padding give much smaller sums.
    int64_t largest = 255 * (127 * depth - (is_even ? 1 : 0)), n_exact = 0, n_near = 0;
    for (int64_t i = 0; i < c->out; i++) {
        n_exact += t->out[i] == largest;
        n_near += t->out[i] > largest - 1000;
    }
    *is_exact = n_exact > 0 && n_exact == n_near && largest > ((int64_t)1 << 24);
    return MSC_OK;
}

enum msc_status msc_cpu_gemm_is_exact(bool *out, const struct msc_cpu_gemm *k,
                                      enum msc_cpu_gemm_unit unit, int thread) {
    struct msc_cpu_gemm_routine *r = &k->routines[unit];
    const struct msc_cpu_gemm_chunks *c = &k->chunks[unit];
    const struct msc_routine *routine;
    struct trial t = {.in = NULL};
    int known = atomic_load(&r->exactness);
    if (known != UNKNOWN) {
        *out = known == EXACT;
        return MSC_OK;
    }
    MSC_TRY(msc_cpu_gemm_routine(&routine, k, unit));
    enum msc_status status = msc_array_create(&t.weights, MSC_DTYPE_I8, msc_array_n_dims(k->weight),
                                              msc_array_dims(k->weight));
    t.in = msc_alloc_aligned((size_t)c->in);
    t.out = msc_alloc_aligned((size_t)c->out * sizeof(int32_t));
    t.scratch = msc_alloc_aligned(msc_routine_scratch_bytes(routine) + 1);
    if (status == MSC_OK && (!t.in || !t.out || !t.scratch)) {
        status = MSC_FAIL(MSC_E_NOMEM, "joint %s: out of memory", k->name);
    }
    if (status == MSC_OK) {
        status = run_trial(out, &t, k, c, routine, thread);
    }
    trial_finish(&t);
    if (status == MSC_OK) {
        atomic_store(&r->exactness, *out ? EXACT : ROUNDED);
    }
    return status;
}
