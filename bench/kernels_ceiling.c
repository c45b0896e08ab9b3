// Ceilings, that is, the best rates of the machine: oneDNN's own routines on dense shapes, and
// copies of memory.
#include "bench/kernels.h"

#include "base/alloc.h"
#include "kernels/cpu/routine_onednn.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

// ---- oneDNN -----------------------------------------------------------------------------------

enum { MAX_ARGS = 4 };

// Each thread of the benchmark runs a single-threaded primitive of its own. That is faster than one
// primitive with several threads.
struct onednn {
    dnnl_engine_t engine;
    dnnl_primitive_t primitive;
    dnnl_stream_t streams[BENCH_MAX_THREADS];
    int n_args;
    dnnl_exec_arg_t args[BENCH_MAX_THREADS][MAX_ARGS];
};

#define DNNL_TRY(call)                                                                             \
    do {                                                                                           \
        dnnl_status_t dnnl_try_status = (call);                                                    \
        if (dnnl_try_status != dnnl_success) {                                                     \
            return MSC_FAIL(MSC_E_UNSUPPORTED, "oneDNN: %s failed with %d", #call,                 \
                            (int)dnnl_try_status);                                                 \
        }                                                                                          \
    } while (0)

static enum msc_status run_onednn(void *state, int thread, int n_calls) {
    struct onednn *d = state;
    for (int i = 0; i < n_calls; i++) {
        DNNL_TRY(
            dnnl_primitive_execute(d->primitive, d->streams[thread], d->n_args, d->args[thread]));
    }
    return MSC_OK;
}

static void destroy_onednn(void *state) {
    struct onednn *d = state;
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        for (int a = 0; a < d->n_args; a++) {
            dnnl_memory_destroy(d->args[t][a].memory);
        }
        dnnl_stream_destroy(d->streams[t]);
    }
    dnnl_primitive_destroy(d->primitive);
    dnnl_engine_destroy(d->engine);
    msc_free(d);
}

static struct msc_gemm_desc describe_product(const struct bench_product *p, bool is_int8) {
    int64_t end = bench_product_out_size(p), pad = p->kernel / 2;
    int64_t after = (end - 1) * p->stride + p->kernel - p->size - pad;
    struct msc_gemm_desc desc = {
        .kind = p->kernel == 0 ? MSC_GEMM_LINEAR : MSC_GEMM_CONV,
        .is_int8 = is_int8,
        .n_spatial = p->kernel == 0 ? 0 : 2,
        .batch = p->batch,
        .groups = p->groups,
        .in_channels = p->in,
        .out_channels = p->out,
    };
    for (int i = 0; i < desc.n_spatial; i++) {
        desc.in[i] = p->size;
        desc.out[i] = end;
        desc.kernel[i] = p->kernel;
        desc.strides[i] = p->stride;
        desc.dilation[i] = 1;
        desc.pad_begin[i] = pad;
        desc.pad_end[i] = after;
    }
    return desc;
}

// Fills with small numbers, bytes or floats, none of them denormal.
static void kernels_ceiling_fill(void *data, size_t n_bytes, bool is_int8) {
    if (!is_int8) {
        for (size_t i = 0; i < n_bytes / sizeof(float); i++) {
            ((float *)data)[i] = (float)(i % 17) * 0.125f - 1.0f;
        }
        return;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        ((uint8_t *)data)[i] = (uint8_t)(i % 61);
    }
}

static enum msc_status make_arguments(struct onednn *d, const_dnnl_primitive_desc_t pd,
                                      bool is_int8) {
    static const struct {
        int arg;
        dnnl_query_t query;
    } wanted[MAX_ARGS] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                          {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                          {DNNL_ARG_DST, dnnl_query_dst_md},
                          {DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md}};
    d->n_args = MAX_ARGS;
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        DNNL_TRY(dnnl_stream_create(&d->streams[t], d->engine, dnnl_stream_default_flags));
        for (int a = 0; a < MAX_ARGS; a++) {
            size_t n_bytes =
                dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, wanted[a].query, 0));
            void *data = NULL;
            d->args[t][a].arg = wanted[a].arg;
            DNNL_TRY(dnnl_memory_create(&d->args[t][a].memory,
                                        dnnl_primitive_desc_query_md(pd, wanted[a].query, 0),
                                        d->engine, DNNL_MEMORY_ALLOCATE));
            DNNL_TRY(dnnl_memory_get_data_handle(d->args[t][a].memory, &data));
            kernels_ceiling_fill(data, data ? n_bytes : 0, is_int8);
        }
    }
    return MSC_OK;
}

static enum msc_status make_primitive(struct onednn *d, const struct bench_product *p,
                                      bool is_int8) {
    const struct msc_gemm_desc desc = describe_product(p, is_int8);
    dnnl_primitive_desc_t pd;
    DNNL_TRY(dnnl_engine_create(&d->engine, dnnl_cpu, 0));
    MSC_TRY(msc_routine__primitive_desc(&pd, &desc, is_int8 ? dnnl_u8 : dnnl_f32, d->engine));
    dnnl_status_t created = dnnl_primitive_create(&d->primitive, pd);
    enum msc_status status = msc_routine__check(created, "create a primitive");
    if (status == MSC_OK) {
        status = make_arguments(d, pd, is_int8);
    }
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static enum msc_status add_onednn(struct bench_jobs *jobs, const char *name,
                                  const struct bench_product *p, bool is_int8) {
    struct onednn *d = msc_alloc_zero(1, sizeof(*d));
    MSC_TRY(MSC_ALLOCATED(d));
    enum msc_status status = make_primitive(d, p, is_int8);
    if (status != MSC_OK) {
        msc_free(d);
        return status;
    }
    struct bench_job *job =
        bench_add(jobs, name, is_int8 ? BENCH_INT8 : BENCH_FLOAT, bench_product_operations(p));
    job->is_ceiling = true;
    job->state = d;
    job->run = run_onednn;
    job->destroy = destroy_onednn;
    return MSC_OK;
}

enum msc_status bench_add_onednn(struct bench_jobs *jobs) {
    omp_set_num_threads(1);
    for (int is_int8 = 0; is_int8 < 2; is_int8++) {
        const struct kernel_case *row = NULL;
        while ((row = kernel_case_next(row, "ceiling"))) {
            struct bench_product p;
            if (!bench_product_of(&p, row)) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: a row of the reader ceiling must be a convolution or a linear "
                                "layer with a bias",
                                row->name);
            }
            MSC_TRY(add_onednn(jobs, row->name, &p, is_int8 == 1));
        }
    }
    return MSC_OK;
}

// ---- Copies -----------------------------------------------------------------------------------

struct copy {
    size_t n_bytes;
    char *memory[BENCH_MAX_THREADS];
};

static enum msc_status run_copy(void *state, int thread, int n_calls) {
    struct copy *c = state;
    char *from = c->memory[thread], *to = from + c->n_bytes;
    for (int i = 0; i < n_calls; i++) {
        memcpy(to, from, c->n_bytes);
        // Marks the copied bytes as used, so that the compiler keeps the copy.
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return MSC_OK;
}

enum msc_status bench_add_copy(struct bench_job **out, struct bench_jobs *jobs,
                               void *const memory[BENCH_MAX_THREADS], size_t n_bytes) {
    struct copy *c = msc_alloc_zero(1, sizeof(*c));
    MSC_TRY(MSC_ALLOCATED(c));
    c->n_bytes = n_bytes / 2;
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        c->memory[t] = memory[t];
    }
    char name[64];
    snprintf(name, sizeof(name), "copy of %.2f MB", (double)n_bytes / 2e6);
    struct bench_job *job = bench_add(jobs, name, BENCH_BYTES, 2.0 * (double)c->n_bytes);
    job->is_ceiling = true;
    job->state = c;
    job->run = run_copy;
    job->destroy = msc_free;
    *out = job;
    return MSC_OK;
}
