// The bytes are an ONNX model. If it is small, it is also run on the reference kernels with
// inputs drawn from a fixed seed. Arrays of more than 4 MiB cannot be allocated. A loop may count
// to 2^31, but is asked to stop after a second and must obey.
#include "base/rng.h"
#include "graph/cost.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/reference/reference.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { LENGTH = 3, MAX_TENSORS = 16, MAX_ELEMENTS = 1 << 14 };
#define MAX_MACS 1e6
#define MOST_SECONDS 1
#define MAX_ARRAY_BYTES ((size_t)4 << 20)

// The linker redirects the library's calls to these functions; elements are allocated with them.
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes) {
    return n_bytes > MAX_ARRAY_BYTES ? NULL : __real_aligned_alloc(alignment, n_bytes);
}

// Chooses the shapes of inputs; returns false if they are too large.
static bool choose_shapes(struct msc_input_shape shapes[MAX_TENSORS], const struct msc_graph *g) {
    int32_t n = msc_graph_n_inputs(g);
    if (n > MAX_TENSORS || msc_graph_n_outputs(g) > MAX_TENSORS) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        shapes[i].n_dims = t->n_dims;
        for (int d = 0; d < t->n_dims; d++) {
            shapes[i].dims[d] = t->dims[d] < 0 ? LENGTH : t->dims[d];
        }
        int64_t n_elements = msc_dims_product(t->n_dims, shapes[i].dims);
        if (n_elements < 0 || n_elements > MAX_ELEMENTS) {
            return false;
        }
    }
    return true;
}

static enum msc_status make_input(struct msc_array **out, struct msc_rng *rng,
                                  const struct msc_tensor *t, const struct msc_input_shape *shape) {
    struct msc_array *wide = NULL;
    bool is_float = msc_dtype_is_float(t->dtype);
    MSC_TRY(msc_array_create(&wide, MSC_DTYPE_F32, shape->n_dims, shape->dims));
    float *x = msc_array_data(wide);
    for (int64_t i = 0; i < msc_array_n_elements(wide); i++) {
        x[i] = is_float ? (float)(2.0 * msc_rng_double(rng) - 1.0) : (float)msc_rng_below(rng, 4);
    }
    enum msc_status status = msc_array_convert(out, wide, t->dtype);
    msc_array_release(wide);
    return status;
}

// Returns whether all known lengths are small.
static bool is_small(const struct msc_graph *g) {
    double macs = 0;
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        int64_t n = msc_tensor_n_elements(msc_graph_tensor(g, i));
        if (n > MAX_ELEMENTS) {
            return false;
        }
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        macs += msc_joint_macs(g, msc_graph_joint(g, i));
    }
    return macs < MAX_MACS;
}

// A thread that asks a run to stop after a while.
struct watch {
    struct msc_cancel cancel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_over;
};

static void *watch_run(void *payload) {
    struct watch *w = payload;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += MOST_SECONDS;
    pthread_mutex_lock(&w->lock);
    int waited = 0;
    while (!w->is_over && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&w->wake, &w->lock, &end);
    }
    if (!w->is_over) {
        msc_cancel_raise(&w->cancel, 2);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void watch_begin(struct watch *w) {
    *w = (struct watch){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    if (pthread_create(&w->thread, NULL, watch_run, w) != 0) {
        abort();
    }
}

static void watch_end(struct watch *w) {
    pthread_mutex_lock(&w->lock);
    w->is_over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

static bool has_body(const struct msc_graph *g) {
    bool has = false;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        has = has || msc_graph_joint(g, i)->n_graphs > 0;
    }
    return has;
}

static void run(const struct msc_graph *g, const struct msc_array *const inputs[]) {
    struct msc_array *outputs[MAX_TENSORS] = {NULL};
    int32_t wanted[MAX_TENSORS];
    size_t n = (size_t)msc_graph_n_outputs(g);
    for (size_t i = 0; i < n; i++) {
        wanted[i] = msc_graph_output(g, (int32_t)i);
    }
    struct watch w;
    // Only graphs with bodies are watched: starting a thread costs more than most runs.
    bool is_watched = has_body(g);
    if (is_watched) {
        watch_begin(&w);
    }
    const struct msc_reference_limits limits = {.cancel = is_watched ? &w.cancel : NULL};
    fuzz_check(msc_reference_run_graph(outputs, g, inputs, wanted, n, &limits));
    if (is_watched) {
        watch_end(&w);
    }
    for (size_t i = 0; i < n; i++) {
        msc_array_release(outputs[i]);
    }
}

static void make_and_run(const struct msc_graph *g) {
    struct msc_input_shape shapes[MAX_TENSORS];
    struct msc_array *inputs[MAX_TENSORS] = {NULL};
    struct msc_graph *bound = NULL;
    struct msc_rng rng;
    int32_t n = msc_graph_n_inputs(g);
    enum msc_status status = MSC_OK;
    if (!choose_shapes(shapes, g)) {
        return;
    }
    msc_rng_seed(&rng, 1, 0);
    for (int32_t i = 0; i < n && status == MSC_OK; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        status = fuzz_check(make_input(&inputs[i], &rng, t, &shapes[i]));
    }
    if (status == MSC_OK &&
        fuzz_check(msc_graph_bind_known(&bound, NULL, g, (const struct msc_array *const *)inputs,
                                        (size_t)n)) == MSC_OK &&
        is_small(bound)) {
        run(bound, (const struct msc_array *const *)inputs);
    }
    for (int32_t i = 0; i < n; i++) {
        msc_array_release(inputs[i]);
    }
    msc_graph_destroy(bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct msc_graph *g = NULL;
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    fuzz_write("model.onnx", data, n_bytes);
    if (fuzz_check(msc_onnx_load(&g, fuzz_path("model.onnx"), NULL)) == MSC_OK && is_small(g)) {
        make_and_run(g);
    }
    msc_graph_destroy(g);
    return 0;
}
