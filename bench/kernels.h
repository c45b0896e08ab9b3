// Shared declarations of bench_kernels: jobs, which are timed repeatedly.
//
// A job runs calls of one kernel on one thread; each thread has its own memory. The table compares
// the rate of a backend's kernel with the best rate that the machine reached in the same run.
// kernels_ceiling.c makes the jobs for these ceilings, kernels_steps.c those for the backend.
#ifndef MSC_BENCH_KERNELS_H
#define MSC_BENCH_KERNELS_H

#include "kernels/backend.h"

#include "tests/kernels/kernel_cases.h"

enum { BENCH_MAX_THREADS = 2, BENCH_MAX_REPEATS = 99, BENCH_MAX_JOBS = 200 };

enum bench_unit {
    BENCH_FLOAT, // float32 operations: GFLOP/s
    BENCH_INT8,  // operations on bytes: TOP/s
    BENCH_BYTES, // bytes read and written: GB/s
};

struct bench_job {
    char name[64];
    enum bench_unit unit;
    double work; // operations or bytes of one call
    bool is_ceiling;
    const struct bench_job *beside; // the ceiling of a BENCH_BYTES job: a copy of as many bytes
    void *state;
    enum msc_status (*run)(void *state, int thread, int n_calls);
    void (*destroy)(void *state);
    int n_calls;                                        // calls per measurement and thread
    double rates[BENCH_MAX_THREADS][BENCH_MAX_REPEATS]; // indexed by threads - 1
};

struct bench_jobs {
    struct bench_job job[BENCH_MAX_JOBS];
    int n;
};

struct bench_job *bench_add(struct bench_jobs *jobs, const char *name, enum bench_unit unit,
                            double work);

// A convolution or linear layer with bias. These are also measured on bytes and in oneDNN.
struct bench_product {
    int64_t batch, in, out, size, kernel, stride, groups; // size 1 and kernel 0: a linear layer
    int32_t zero_point;                                   // zero point of the activations
};
// False for other rows: joints that move bytes, or products of two activations.
bool bench_product_of(struct bench_product *out, const struct kernel_case *row);
int64_t bench_product_out_size(const struct bench_product *p);
double bench_product_operations(const struct bench_product *p);

// The graph of a row, not finalized; owned by the caller. Products are followed by a relu, as in
// most networks.
enum msc_status bench_build(struct msc_graph **out, int32_t *output, const struct kernel_case *row);
// Fills x with small numbers, none of them denormal.
void bench_fill(float x[], int64_t n);

// Adds oneDNN's float32 and u8 x s8 -> u8 routines for the products and for larger shapes.
enum msc_status bench_add_onednn(struct bench_jobs *jobs);
// Adds a copy of the first half of each thread's memory to its second half. It uses the same pages
// as the job that it is the ceiling of. n_bytes is the size of both halves, a multiple of 128; the
// memory is borrowed.
enum msc_status bench_add_copy(struct bench_job **out, struct bench_jobs *jobs,
                               void *const memory[BENCH_MAX_THREADS], size_t n_bytes);
// Adds the steps of a backend whose names start with one of `only`.
enum msc_status bench_add_steps(struct bench_jobs *jobs, struct msc_backend *backend, int n_threads,
                                const char *only);

#endif
