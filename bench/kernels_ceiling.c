// What the machine can do: oneDNN's own routines over dense shapes, and copies of memory.
#include "bench/kernels.h"

#include "base/alloc.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

// ---- oneDNN -----------------------------------------------------------------------------------

enum { MAX_ARGS = 4 };

// One primitive of one thread for each of our threads: threads inside a primitive are slower.
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

static enum msc_status describe_conv(dnnl_convolution_desc_t *out, const struct bench_product *p,
                                     bool is_int8) {
    dnnl_memory_desc_t x, w, y;
    int64_t end = bench_product_out_size(p), pad = p->kernel / 2;
    dnnl_dims_t strides = {p->stride, p->stride};
    dnnl_dims_t begin = {pad, pad};
    dnnl_dims_t after = {(end - 1) * p->stride + p->kernel - p->size - pad,
                         (end - 1) * p->stride + p->kernel - p->size - pad};
    dnnl_dims_t x_dims = {p->batch, p->in, p->size, p->size};
    dnnl_dims_t y_dims = {p->batch, p->out, end, end};
    dnnl_dims_t w_dims = {p->groups, p->out / p->groups, p->in / p->groups, p->kernel, p->kernel};
    dnnl_dims_t plain = {p->out, p->in, p->kernel, p->kernel};
    dnnl_data_type_t type = is_int8 ? dnnl_u8 : dnnl_f32;
    bool is_grouped = p->groups > 1;
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&x, 4, x_dims, type, dnnl_nhwc));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&y, 4, y_dims, type, dnnl_nhwc));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&w, is_grouped ? 5 : 4, is_grouped ? w_dims : plain,
                                          is_int8 ? dnnl_s8 : dnnl_f32, dnnl_format_tag_any));
    DNNL_TRY(dnnl_convolution_forward_desc_init(out, dnnl_forward_inference,
                                                dnnl_convolution_direct, &x, &w, NULL, &y, strides,
                                                begin, after));
    return MSC_OK;
}

static enum msc_status describe_linear(dnnl_inner_product_desc_t *out,
                                       const struct bench_product *p, bool is_int8) {
    dnnl_memory_desc_t x, w, y;
    dnnl_dims_t x_dims = {p->batch, p->in}, w_dims = {p->out, p->in}, y_dims = {p->batch, p->out};
    dnnl_data_type_t type = is_int8 ? dnnl_u8 : dnnl_f32;
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&x, 2, x_dims, type, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&y, 2, y_dims, type, dnnl_ab));
    DNNL_TRY(dnnl_memory_desc_init_by_tag(&w, 2, w_dims, is_int8 ? dnnl_s8 : dnnl_f32,
                                          dnnl_format_tag_any));
    DNNL_TRY(dnnl_inner_product_forward_desc_init(out, dnnl_forward_inference, &x, &w, NULL, &y));
    return MSC_OK;
}

// Bytes and floats that are small numbers, none of them denormal.
static void kernels_ceiling_fill(void *data, size_t n_bytes, dnnl_data_type_t type) {
    if (type == dnnl_f32) {
        for (size_t i = 0; i < n_bytes / sizeof(float); i++) {
            ((float *)data)[i] = (float)(i % 17) * 0.125f - 1.0f;
        }
        return;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        ((uint8_t *)data)[i] = (uint8_t)(i % 61);
    }
}

static enum msc_status make_memory(struct onednn *d, const_dnnl_primitive_desc_t pd) {
    static const struct {
        int arg;
        dnnl_query_t query;
    } wanted[] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                  {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                  {DNNL_ARG_DST, dnnl_query_dst_md}};
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        DNNL_TRY(dnnl_stream_create(&d->streams[t], d->engine, dnnl_stream_default_flags));
        for (int a = 0; a < (int)(sizeof(wanted) / sizeof(wanted[0])); a++) {
            const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, wanted[a].query, 0);
            void *data;
            d->args[t][a].arg = wanted[a].arg;
            DNNL_TRY(
                dnnl_memory_create(&d->args[t][a].memory, md, d->engine, DNNL_MEMORY_ALLOCATE));
            DNNL_TRY(dnnl_memory_get_data_handle(d->args[t][a].memory, &data));
            kernels_ceiling_fill(data, dnnl_memory_desc_get_size(md), md->data_type);
        }
    }
    d->n_args = (int)(sizeof(wanted) / sizeof(wanted[0]));
    return MSC_OK;
}

static enum msc_status make_primitive(struct onednn *d, const struct bench_product *p,
                                      bool is_int8) {
    dnnl_convolution_desc_t conv;
    dnnl_inner_product_desc_t linear;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr;
    const float scale = 0.001f;
    bool is_linear = p->kernel == 0;
    if (is_linear) {
        MSC_TRY(describe_linear(&linear, p, is_int8));
    } else {
        MSC_TRY(describe_conv(&conv, p, is_int8));
    }
    DNNL_TRY(dnnl_engine_create(&d->engine, dnnl_cpu, 0));
    DNNL_TRY(dnnl_primitive_attr_create(&attr));
    if (is_int8) {
        DNNL_TRY(dnnl_primitive_attr_set_output_scales(attr, 1, 0, &scale));
    }
    DNNL_TRY(dnnl_primitive_desc_create(&pd, is_linear ? (const_dnnl_op_desc_t)&linear : &conv,
                                        attr, d->engine, NULL));
    DNNL_TRY(dnnl_primitive_create(&d->primitive, pd));
    enum msc_status status = make_memory(d, pd);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static enum msc_status add_onednn(struct bench_jobs *jobs, const struct bench_product *p,
                                  bool is_int8) {
    struct onednn *d = msc_alloc_zero(1, sizeof(*d));
    if (!d) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    enum msc_status status = make_primitive(d, p, is_int8);
    if (status != MSC_OK) {
        msc_free(d);
        return status;
    }
    struct bench_job *job =
        bench_add(jobs, p->name, is_int8 ? BENCH_INT8 : BENCH_FLOAT, bench_product_operations(p));
    job->is_ceiling = true;
    job->state = d;
    job->run = run_onednn;
    job->destroy = destroy_onednn;
    return MSC_OK;
}

enum msc_status bench_add_onednn(struct bench_jobs *jobs) {
    // Dense work that fits the caches: what routines do best.
    static const struct bench_product larger[] = {
        {"3x3 128-128 28x28", 8, 128, 128, 28, 3, 1, 1, 0, false},
        {"3x3 512-512 14x14", 8, 512, 512, 14, 3, 1, 1, 0, false},
        {"linear 1024x1024x1024", 1024, 1024, 1024, 1, 0, 1, 1, 0, false},
    };
    omp_set_num_threads(1);
    for (int is_int8 = 0; is_int8 < 2; is_int8++) {
        for (int i = 0; i < bench_n_products; i++) {
            if (!bench_products[i].is_for_devices) {
                MSC_TRY(add_onednn(jobs, &bench_products[i], is_int8));
            }
        }
        for (size_t i = 0; i < sizeof(larger) / sizeof(larger[0]); i++) {
            MSC_TRY(add_onednn(jobs, &larger[i], is_int8));
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
        // What was copied counts as used, so that no copy is left out.
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return MSC_OK;
}

enum msc_status bench_add_copy(struct bench_job **out, struct bench_jobs *jobs,
                               void *const memory[BENCH_MAX_THREADS], size_t n_bytes) {
    struct copy *c = msc_alloc_zero(1, sizeof(*c));
    if (!c) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
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
