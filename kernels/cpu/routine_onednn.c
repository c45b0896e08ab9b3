#include "kernels/cpu/routine_onednn.h"

#include "base/alloc.h"
#include "base/platform.h"
#include "data/array.h"
#include "kernels/cpu/simd_level.h"

#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct msc_routine_engine {
    dnnl_engine_t engine;
    dnnl_stream_t *streams; // [n_threads]
    int n_threads;
    int kernel_threads;
    char name[64];
};

// The memory objects of a run, through which oneDNN gets its operands; one set per thread.
struct places {
    dnnl_memory_t a, b, bias, out, scratch;
};

// If oneDNN clips NaN, it replaces NaN by the lower bound but raises FE_INVALID. In that case
// everything is computed again by a routine that does not clip. That routine is made when it is
// first needed.
struct unlimited {
    pthread_mutex_t making;
    struct msc_routine *routine; // NULL: not made yet
};

struct msc_routine {
    struct msc_routine_engine *engine;
    struct msc_gemm_desc desc;     // the product that oneDNN computes
    struct msc_gemm_desc epilogue; // bias and clip that msc_routine_finish applies; may be empty
    dnnl_primitive_t primitive;
    size_t scratch_bytes;
    struct places *places;       // [n_threads]
    struct unlimited *unlimited; // NULL: oneDNN does not clip
};

struct msc_routine_weights {
    dnnl_memory_t memory;
    void *data;
};

// ---- Engine -----------------------------------------------------------------------------------

// Held while oneDNN describes a primitive, because version 2.6 uses unguarded static variables for
// that. For convolutions, one variable (last_ic_block_size) depends on the type of the weights. If
// a second thread describes another type at the same time, oneDNN can silently pick a wrong layout
// for the weights. For reorders, oneDNN looks up types with std::map::operator[], which inserts
// missing types. There is one oneDNN per process, so one lock is enough.
static pthread_mutex_t describing = PTHREAD_MUTEX_INITIALIZER;

// True if the machine has all extensions of this level, and none is disabled. On x86 each bit of a
// level is an extension. On other processors the same bits mean other extensions, so the levels of
// these processors are our own (simd_level.h).
static bool is_within(const struct msc_routine__isa *isa) {
    return MSC_HAS_ISA_LEVELS &&
           ((int)dnnl_get_effective_cpu_isa() & (int)isa->isa) == (int)isa->isa;
}

// The highest level that the machine has; NULL: none.
static const struct msc_routine__isa *find_isa(void) {
    const struct msc_routine__isa *found = NULL;
    for (const struct msc_routine__isa *isa = msc_routine__isas; isa->name; isa++) {
        found = is_within(isa) ? isa : found;
    }
    return found;
}

const char *msc_routine_isa_level(size_t i) {
    if (!MSC_HAS_ISA_LEVELS) {
        return msc_simd_level(i);
    }
    for (const struct msc_routine__isa *isa = msc_routine__isas; isa->name; isa++) {
        if (!isa->is_unnamed && is_within(isa) && i-- == 0) {
            return isa->name;
        }
    }
    return NULL;
}

// Lists the levels that a user can set: all, or only those that the machine has.
static const char *list_levels(char *text, size_t n_bytes, bool is_all) {
    size_t n = 0;
    text[0] = '\0';
    for (const struct msc_routine__isa *isa = msc_routine__isas; isa->name && n < n_bytes; isa++) {
        if (!isa->is_unnamed && (is_all || is_within(isa))) {
            n += (size_t)snprintf(text + n, n_bytes - n, "%s%s", n > 0 ? ", " : "", isa->name);
        }
    }
    return text;
}

// oneDNN has one level for the whole process. The level is fixed when it is first read.
enum msc_status msc_routine_set_isa(const char *level) {
    char levels[256];
    const struct msc_routine__isa *wanted = msc_routine__isas;
    if (!MSC_HAS_ISA_LEVELS) {
        return msc_simd_set_level(level);
    }
    while (wanted->name && (wanted->is_unnamed || strcmp(wanted->name, level) != 0)) {
        wanted++;
    }
    if (!wanted->name) {
        return MSC_FAIL(MSC_E_INVALID, "isa is \"%s\", expected one of %s", level,
                        list_levels(levels, sizeof levels, true));
    }
    dnnl_status_t set = dnnl_set_max_cpu_isa(wanted->isa);
    const struct msc_routine__isa *found = find_isa();
    if (found == wanted) {
        return MSC_OK;
    }
    if (set != dnnl_success) {
        return MSC_FAIL(MSC_E_STATE,
                        "isa %s: this process already uses %s and cannot change its level", level,
                        found ? found->name : "another");
    }
    return MSC_FAIL(MSC_E_DEVICE, "isa %s: this processor lacks it; it supports %s", level,
                    list_levels(levels, sizeof levels, false));
}

static void name_engine(char *name, size_t n_bytes) {
    const dnnl_version_t *v = dnnl_version();
    const struct msc_routine__isa *isa = find_isa();
    char bits[32]; // name of the extensions if oneDNN has no levels
    snprintf(bits, sizeof bits, "isa-%x", (unsigned)dnnl_get_effective_cpu_isa());
    snprintf(name, n_bytes, "onednn-%d.%d.%d %s", v->major, v->minor, v->patch,
             isa ? isa->name : bits);
}

static enum msc_status engine_init(struct msc_routine_engine *e) {
    e->streams = msc_alloc_zero((size_t)e->n_threads, sizeof(e->streams[0]));
    MSC_TRY(MSC_ALLOCATED(e->streams));
    MSC_TRY(msc_routine__check(dnnl_engine_create(&e->engine, dnnl_cpu, 0), "create an engine"));
    for (int i = 0; i < e->n_threads; i++) {
        MSC_TRY(msc_routine__check(
            dnnl_stream_create(&e->streams[i], e->engine, dnnl_stream_default_flags),
            "create a stream"));
    }
    name_engine(e->name, sizeof(e->name));
    return MSC_OK;
}

enum msc_status msc_routine_open(struct msc_routine_engine **out, int n_threads,
                                 int kernel_threads) {
    struct msc_routine_engine *e = msc_alloc_zero(1, sizeof(*e));
    MSC_TRY(MSC_ALLOCATED(e));
    e->n_threads = n_threads;
    e->kernel_threads = kernel_threads;
    enum msc_status status = engine_init(e);
    if (status != MSC_OK) {
        msc_routine_close(e);
        return status;
    }
    *out = e;
    return MSC_OK;
}

void msc_routine_close(struct msc_routine_engine *engine) {
    if (!engine) {
        return;
    }
    for (int i = 0; engine->streams && i < engine->n_threads; i++) {
        dnnl_stream_destroy(engine->streams[i]);
    }
    msc_free(engine->streams);
    dnnl_engine_destroy(engine->engine);
    msc_free(engine);
}

const char *msc_routine_name(const struct msc_routine_engine *engine) {
    return engine->name;
}

struct msc_routine_isa msc_routine_isa(void) {
    const struct msc_routine__isa *isa = find_isa();
    return isa ? isa->has : msc_simd_level_isa();
}

// oneDNN reads the number of threads from OpenMP when it creates a primitive and when it runs one.
static int routine_onednn_enter(const struct msc_routine_engine *e) {
    int before = omp_get_max_threads();
    if (before != e->kernel_threads) {
        omp_set_num_threads(e->kernel_threads);
    }
    return before;
}

static void routine_onednn_leave(const struct msc_routine_engine *e, int before) {
    if (before != e->kernel_threads) {
        omp_set_num_threads(before);
    }
}

// ---- Routines ---------------------------------------------------------------------------------

static size_t bytes_of(const_dnnl_primitive_desc_t pd, dnnl_query_t operand) {
    return dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, operand, 0));
}

static enum msc_status memory_of(dnnl_memory_t *out, const_dnnl_primitive_desc_t pd,
                                 dnnl_query_t operand, dnnl_engine_t engine, void *data) {
    return msc_routine__check(
        dnnl_memory_create(out, dnnl_primitive_desc_query_md(pd, operand, 0), engine, data),
        "create a memory object");
}

static enum msc_status plain_memory(dnnl_memory_t *out, const struct msc_routine__layout *l,
                                    dnnl_engine_t engine, void *data) {
    return msc_routine__check(msc_routine__plain_memory(out, l, engine, data),
                              "create a memory object");
}

// Makes the memory object of an operand, without data.
static enum msc_status make_operand(dnnl_memory_t *out, const struct msc_routine *d,
                                    const_dnnl_primitive_desc_t pd, dnnl_query_t operand) {
    return memory_of(out, pd, operand, d->engine->engine, DNNL_MEMORY_NONE);
}

static enum msc_status make_places(struct msc_routine *d, const_dnnl_primitive_desc_t pd) {
    const struct msc_routine__layout bias = msc_routine__bias_layout(&d->desc);
    size_t n_bytes = bytes_of(pd, dnnl_query_scratchpad_md);
    d->scratch_bytes = n_bytes > d->scratch_bytes ? n_bytes : d->scratch_bytes;
    d->places = msc_alloc_zero((size_t)d->engine->n_threads, sizeof(d->places[0]));
    MSC_TRY(MSC_ALLOCATED(d->places));
    for (int i = 0; i < d->engine->n_threads; i++) {
        struct places *p = &d->places[i];
        MSC_TRY(make_operand(&p->a, d, pd, dnnl_query_src_md));
        MSC_TRY(make_operand(&p->out, d, pd, dnnl_query_dst_md));
        MSC_TRY(make_operand(&p->scratch, d, pd, dnnl_query_scratchpad_md));
        if (d->desc.kind == MSC_GEMM_MATMUL) {
            MSC_TRY(make_operand(&p->b, d, pd, dnnl_query_weights_md));
        }
        if (d->desc.bias) {
            MSC_TRY(plain_memory(&p->bias, &bias, d->engine->engine, DNNL_MEMORY_NONE));
        }
    }
    return MSC_OK;
}

static const char *implementation(const_dnnl_primitive_desc_t pd) {
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

// True for oneDNN's fallback, a scalar loop. It is slower than float32 arithmetic on the same
// integers.
static bool is_slow(const_dnnl_primitive_desc_t pd) {
    return strncmp(implementation(pd), "ref", 3) == 0;
}

// True for a loop that oneDNN compiled for the shape. Such loops clip with vector instructions.
static bool is_compiled(const char *implementation) {
    static const char *const beginnings[] = {"jit", "brg", "brdgmm"};
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        if (strncmp(implementation, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return false;
}

// True if a NaN that is lost by clipping can be noticed, and the primitive without clipping can
// then compute the results again. Never with several kernel threads, because FE_INVALID is then
// raised in oneDNN's own threads.
static bool is_pair(const struct msc_routine_engine *e, const_dnnl_primitive_desc_t limited,
                    const_dnnl_primitive_desc_t unlimited) {
    const char *name = implementation(limited);
    return MSC_LIMITS_RAISE_INVALID && e->kernel_threads == 1 && is_compiled(name) &&
           strcmp(name, implementation(unlimited)) == 0 &&
           dnnl_memory_desc_equal(
               dnnl_primitive_desc_query_md(limited, dnnl_query_weights_md, 0),
               dnnl_primitive_desc_query_md(unlimited, dnnl_query_weights_md, 0));
}

// Describes the primitive of a routine. The primitive does not clip if NaN would be lost.
static enum msc_status describe(dnnl_primitive_desc_t *out, struct msc_routine *d) {
    dnnl_engine_t engine = d->engine->engine;
    dnnl_primitive_desc_t limited = NULL;
    dnnl_data_type_t result = d->desc.is_int8 ? dnnl_s32 : dnnl_f32;
    bool has_clip = d->desc.has_clip;
    enum msc_status status =
        has_clip ? msc_routine__primitive_desc(&limited, &d->desc, result, engine) : MSC_OK;
    d->desc.has_clip = false;
    if (status == MSC_OK) {
        status = msc_routine__primitive_desc(out, &d->desc, result, engine);
    }
    if (status == MSC_OK && has_clip && is_pair(d->engine, limited, *out)) {
        size_t n_bytes = bytes_of(*out, dnnl_query_scratchpad_md);
        dnnl_primitive_desc_destroy(*out);
        *out = limited;
        d->desc.has_clip = true;
        d->scratch_bytes = n_bytes;
        d->unlimited = msc_alloc_zero(1, sizeof(*d->unlimited));
        if (!d->unlimited || pthread_mutex_init(&d->unlimited->making, NULL) != 0) {
            msc_free(d->unlimited);
            d->unlimited = NULL;
            return MSC_FAIL(MSC_E_NOMEM, "out of memory");
        }
        return MSC_OK;
    }
    dnnl_primitive_desc_destroy(limited);
    return status;
}

static enum msc_status routine_init(struct msc_routine *d) {
    dnnl_primitive_desc_t pd = NULL;
    pthread_mutex_lock(&describing);
    enum msc_status status = describe(&pd, d);
    pthread_mutex_unlock(&describing);
    if (status == MSC_OK && d->desc.is_int8 && is_slow(pd)) {
        status = MSC_FAIL(MSC_E_UNSUPPORTED, "oneDNN: no fast int8 routine for this shape");
    }
    if (status == MSC_OK) {
        status = msc_routine__check(dnnl_primitive_create(&d->primitive, pd), "create a primitive");
    }
    if (status == MSC_OK) {
        status = make_places(d, pd);
    }
    dnnl_primitive_desc_destroy(pd);
    return status;
}

enum msc_status msc_routine_create(struct msc_routine **out, struct msc_routine_engine *engine,
                                   const struct msc_gemm_desc *desc) {
    struct msc_routine *d = msc_alloc_zero(1, sizeof(*d));
    MSC_TRY(MSC_ALLOCATED(d));
    d->engine = engine;
    d->desc = *desc;
    if (desc->kind == MSC_GEMM_CONV_TRANSPOSE && DNNL_VERSION_MAJOR < 3) {
        // With oneDNN 2.6, a transposed convolution takes 25 times as long with clipping and twice
        // as long with a bias. With 3.7, either costs at most 5 %.
        d->desc.bias = NULL;
        d->desc.has_clip = false;
    }
    int before = routine_onednn_enter(engine);
    enum msc_status status = routine_init(d);
    routine_onednn_leave(engine, before);
    if (desc->bias != d->desc.bias || desc->has_clip != d->desc.has_clip) {
        d->epilogue = *desc;
        d->epilogue.bias = d->desc.bias ? NULL : desc->bias;
        d->epilogue.has_clip = desc->has_clip && !d->desc.has_clip;
    }
    if (status != MSC_OK) {
        msc_routine_destroy(d);
        return status;
    }
    *out = d;
    return MSC_OK;
}

void msc_routine_destroy(struct msc_routine *d) {
    if (!d) {
        return;
    }
    for (int i = 0; d->places && i < d->engine->n_threads; i++) {
        dnnl_memory_destroy(d->places[i].a);
        dnnl_memory_destroy(d->places[i].b);
        dnnl_memory_destroy(d->places[i].bias);
        dnnl_memory_destroy(d->places[i].out);
        dnnl_memory_destroy(d->places[i].scratch);
    }
    if (d->unlimited) {
        msc_routine_destroy(d->unlimited->routine);
        pthread_mutex_destroy(&d->unlimited->making);
        msc_free(d->unlimited);
    }
    msc_free(d->places);
    dnnl_primitive_destroy(d->primitive);
    msc_free(d);
}

size_t msc_routine_scratch_bytes(const struct msc_routine *d) {
    return d->scratch_bytes;
}

// ---- Weights ----------------------------------------------------------------------------------

// The description of the routine's primitive, borrowed. Every primitive has one.
static const_dnnl_primitive_desc_t desc_of(const struct msc_routine *d) {
    const_dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_get_primitive_desc(d->primitive, &pd);
    return pd;
}

size_t msc_routine_weights_bytes(const struct msc_routine *d) {
    return bytes_of(desc_of(d), dnnl_query_weights_md);
}

struct reorder {
    dnnl_memory_t plain;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
};

static enum msc_status reorder_run(struct reorder *r, const struct msc_routine *d,
                                   dnnl_memory_t packed, const void *elements) {
    dnnl_engine_t engine = d->engine->engine;
    const struct msc_routine__layout plain = msc_routine__weights_layout(&d->desc);
    MSC_TRY(plain_memory(&r->plain, &plain, engine, (void *)elements));
    pthread_mutex_lock(&describing);
    dnnl_status_t described = msc_routine__reorder_desc(&r->pd, &plain, desc_of(d), engine);
    pthread_mutex_unlock(&describing);
    MSC_TRY(msc_routine__check(described, "pack weights"));
    MSC_TRY(msc_routine__check(dnnl_primitive_create(&r->primitive, r->pd), "pack weights"));
    MSC_TRY(msc_routine__check(dnnl_stream_create(&r->stream, engine, dnnl_stream_default_flags),
                               "create a stream"));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, r->plain}, {DNNL_ARG_TO, packed}};
    return msc_routine__check(dnnl_primitive_execute(r->primitive, r->stream, 2, args),
                              "pack weights");
}

static enum msc_status weights_init(struct msc_routine_weights *w, const struct msc_routine *d,
                                    const void *elements) {
    struct reorder r = {.pd = NULL};
    w->data = msc_alloc_aligned(msc_routine_weights_bytes(d));
    MSC_TRY(MSC_ALLOCATED(w->data));
    MSC_TRY(memory_of(&w->memory, desc_of(d), dnnl_query_weights_md, d->engine->engine, w->data));
    int before = routine_onednn_enter(d->engine);
    enum msc_status status = reorder_run(&r, d, w->memory, elements);
    routine_onednn_leave(d->engine, before);
    dnnl_stream_destroy(r.stream);
    dnnl_primitive_destroy(r.primitive);
    dnnl_primitive_desc_destroy(r.pd);
    dnnl_memory_destroy(r.plain);
    return status;
}

enum msc_status msc_routine_pack(struct msc_routine_weights **out, const struct msc_routine *d,
                                 const void *elements) {
    struct msc_routine_weights *w = msc_alloc_zero(1, sizeof(*w));
    MSC_TRY(MSC_ALLOCATED(w));
    enum msc_status status = weights_init(w, d, elements);
    if (status != MSC_OK) {
        msc_routine_weights_destroy(w);
        return status;
    }
    *out = w;
    return MSC_OK;
}

void msc_routine_weights_destroy(struct msc_routine_weights *w) {
    if (w) {
        dnnl_memory_destroy(w->memory);
        msc_free_aligned(w->data);
        msc_free(w);
    }
}

// ---- Running ----------------------------------------------------------------------------------

static enum msc_status routine_onednn_execute(const struct msc_routine *d,
                                              const struct msc_routine_call *call, int thread) {
    const struct places *p = &d->places[thread];
    dnnl_stream_t stream = d->engine->streams[thread];
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, p->a},
                               {DNNL_ARG_DST, p->out},
                               {DNNL_ARG_SCRATCHPAD, p->scratch},
                               {DNNL_ARG_WEIGHTS, call->weights ? call->weights->memory : p->b}};
    int n = 4;
    dnnl_status_t status = msc_routine__set_data(p->a, (void *)call->a, stream);
    if (status == dnnl_success) {
        status = msc_routine__set_data(p->out, call->out, stream);
    }
    if (status == dnnl_success) {
        status = msc_routine__set_data(p->scratch, call->scratch, stream);
    }
    if (status == dnnl_success && !call->weights) {
        status = msc_routine__set_data(p->b, (void *)call->b, stream);
    }
    if (status == dnnl_success && p->bias) {
        // The cast is safe, because oneDNN only reads the bias.
        const float *bias = msc_routine_bias(&d->desc, call);
        status = msc_routine__set_data(p->bias, (void *)bias, stream);
        args[n++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, p->bias};
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_execute(d->primitive, stream, n, args);
    }
    return msc_routine__check(status, "run a primitive");
}

static int64_t count_positions(const struct msc_gemm_desc *desc) {
    return desc->batch * msc_dims_product(desc->n_spatial, desc->out);
}

static enum msc_status make_unlimited(const struct msc_routine *d) {
    struct unlimited *u = d->unlimited;
    struct msc_gemm_desc desc = d->desc;
    desc.has_clip = false;
    pthread_mutex_lock(&u->making);
    enum msc_status status =
        u->routine ? MSC_OK : msc_routine_create(&u->routine, d->engine, &desc);
    pthread_mutex_unlock(&u->making);
    return status;
}

// Runs the primitive that clips, and then the routine without clipping if a NaN was lost.
static enum msc_status run_limited(const struct msc_routine *d, const struct msc_routine_call *call,
                                   int thread) {
    feclearexcept(FE_INVALID);
    MSC_TRY(routine_onednn_execute(d, call, thread));
    if (fetestexcept(FE_INVALID) == 0) {
        return MSC_OK;
    }
    MSC_TRY(make_unlimited(d));
    MSC_TRY(routine_onednn_execute(d->unlimited->routine, call, thread));
    msc_routine_finish(&d->desc, NULL, call->out, count_positions(&d->desc));
    return MSC_OK;
}

enum msc_status msc_routine_run(const struct msc_routine *d, const struct msc_routine_call *call,
                                int thread) {
    int before = routine_onednn_enter(d->engine);
    enum msc_status status =
        d->desc.has_clip ? run_limited(d, call, thread) : routine_onednn_execute(d, call, thread);
    routine_onednn_leave(d->engine, before);
    if (status == MSC_OK && d->epilogue.out_channels > 0) {
        msc_routine_finish(&d->epilogue, msc_routine_bias(&d->epilogue, call), call->out,
                           count_positions(&d->epilogue));
    }
    return status;
}
