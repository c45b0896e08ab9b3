// Measures how close kernels come to what the machine can do. Both are measured in the same run.
//
//     bench_kernels [--device cpu] [--threads 2] [--repeats 5] [--json FILE]
//                   [--clock wall|thread] [--only NAMES] [--products own|onednn]
//                   [--peak GFLOP/S] [--peak-bytes TOP/S] [--bandwidth GB/S]
//
// Each round measures every job once, and the table has medians over rounds. On the cpu the
// ceilings are measured as well. They are oneDNN's best float32 and best u8 x s8 -> u8 rate over
// all shapes and, for steps that only move bytes, a copy of as many bytes in the same memory. Every
// array that is read or written counts once, also for a copy. With --only, oneDNN is not measured.
// On other devices the ceilings are given as options; a unit without one has no share. --clock
// thread leaves out time used by other programs. With --products onednn, oneDNN computes the
// products of the cpu's steps wherever it can.
#include "bench/kernels.h"

#include "bench/rows.h"
#include "kernels/cpu/cpu.h"
#include "kernels/engine/backends.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const unit_names[] = {"GFLOP/s", "TOP/s", "GB/s"};
static const double unit_sizes[] = {1e9, 1e12, 1e9};

struct settings {
    const char *device, *json;
    const char *only; // prefixes of steps' names, separated by commas; "": all
    int n_threads, n_repeats;
    bool has_thread_clock, leaves_products; // to oneDNN
    double given[3];                        // ceilings by unit, in that unit; 0: not given
};

struct bench_job *bench_add(struct bench_jobs *jobs, const char *name, enum bench_unit unit,
                            double work) {
    if (jobs->n == BENCH_MAX_JOBS) {
        fprintf(stderr, "bench_kernels: more than %d jobs\n", BENCH_MAX_JOBS);
        exit(1);
    }
    struct bench_job *job = &jobs->job[jobs->n++];
    *job = (struct bench_job){.unit = unit, .work = work, .n_calls = 1};
    snprintf(job->name, sizeof(job->name), "%s", name);
    return job;
}

// ---- Measuring --------------------------------------------------------------------------------

static double clock_seconds(const struct settings *s) {
    struct timespec t;
    clock_gettime(s->has_thread_clock ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Seconds that one thread takes; +inf if the job failed.
static double kernels_run(const struct bench_job *job, int thread, int n_calls,
                          const struct settings *s) {
    double start = clock_seconds(s);
    if (job->run(job->state, thread, n_calls) == MSC_OK) {
        return clock_seconds(s) - start;
    }
    fprintf(stderr, "%s: %s\n", job->name, msc_status_message());
    return INFINITY;
}

// Seconds until n_threads threads have made n_calls calls each.
static double kernels_measure(const struct bench_job *job, int n_threads, int n_calls,
                              const struct settings *s) {
    double seconds = 0;
#pragma omp parallel num_threads(n_threads) reduction(max : seconds)
    seconds = kernels_run(job, omp_get_thread_num(), n_calls, s);
    return seconds;
}

// Chooses as many calls as take a hundredth of a second or more. The first call does not count,
// because it may compile shaders.
static bool choose_calls(struct bench_job *job, int n_threads, const struct settings *s) {
    if (isinf(kernels_measure(job, n_threads, 1, s))) {
        return false;
    }
    for (job->n_calls = 1; job->n_calls < 1 << 20; job->n_calls *= 2) {
        double seconds = kernels_measure(job, n_threads, job->n_calls, s);
        if (isinf(seconds)) {
            return false;
        }
        if (seconds > 0.01) {
            break;
        }
    }
    return true;
}

static bool measure_all(struct bench_jobs *jobs, const struct settings *s) {
    for (int t = 1; t <= s->n_threads; t++) {
        for (int i = 0; i < jobs->n; i++) {
            if (!choose_calls(&jobs->job[i], t, s)) {
                return false;
            }
        }
        for (int k = 0; k < s->n_repeats; k++) {
            for (int i = 0; i < jobs->n; i++) {
                struct bench_job *job = &jobs->job[i];
                double seconds = kernels_measure(job, t, job->n_calls, s);
                job->rates[t - 1][k] = job->work * job->n_calls * t / seconds;
            }
        }
    }
    return true;
}

static int kernels_compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double kernels_median(const struct bench_job *job, int n_threads, int n) {
    double sorted[BENCH_MAX_REPEATS];
    memcpy(sorted, job->rates[n_threads - 1], (size_t)n * sizeof(sorted[0]));
    qsort(sorted, (size_t)n, sizeof(sorted[0]), kernels_compare_doubles);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// ---- Reporting --------------------------------------------------------------------------------

struct ceiling {
    double rate; // 0: unknown
    const char *name;
};

static struct ceiling ceiling_of(const struct bench_jobs *jobs, const struct bench_job *job,
                                 int n_threads, const struct settings *s) {
    struct ceiling best = {0, ""};
    if (job->beside) {
        return (struct ceiling){kernels_median(job->beside, n_threads, s->n_repeats),
                                job->beside->name};
    }
    for (int i = 0; i < jobs->n; i++) {
        const struct bench_job *other = &jobs->job[i];
        if (other->is_ceiling && other->unit == job->unit && job->unit != BENCH_BYTES) {
            double rate = kernels_median(other, n_threads, s->n_repeats);
            best = rate > best.rate ? (struct ceiling){rate, other->name} : best;
        }
    }
    if (best.rate == 0 && s->given[job->unit] > 0) {
        best = (struct ceiling){s->given[job->unit] * unit_sizes[job->unit], "given"};
    }
    return best;
}

// oneDNN's rate on the same shape, or 0.
static double rate_of_same(const struct bench_jobs *jobs, const struct bench_job *job,
                           int n_threads, int n_repeats) {
    for (int i = 0; i < jobs->n; i++) {
        const struct bench_job *other = &jobs->job[i];
        size_t length = strlen(other->name);
        char end = job->name[length];
        if (other->is_ceiling && other->unit == job->unit && job->unit != BENCH_BYTES &&
            strncmp(other->name, job->name, length) == 0 && (end == '\0' || end == ' ')) {
            return kernels_median(other, n_threads, n_repeats);
        }
    }
    return 0;
}

static enum msc_status report_job(cJSON *rows, const struct bench_jobs *jobs,
                                  const struct bench_job *job, const struct settings *s) {
    printf("| %-42s | %-7s |", job->name, unit_names[job->unit]);
    for (int t = 1; t <= s->n_threads; t++) {
        char agent[64], peer[96];
        double ours = kernels_median(job, t, s->n_repeats);
        struct ceiling c = ceiling_of(jobs, job, t, s);
        double same = rate_of_same(jobs, job, t, s->n_repeats);
        printf(" %9.3f |", ours / unit_sizes[job->unit]);
        printf(c.rate > 0 ? " %5.1f %% |" : "         |", c.rate > 0 ? 100 * ours / c.rate : 0.0);
        printf(same > 0 ? " %5.1f %% |" : "         |", same > 0 ? 100 * ours / same : 0.0);
        snprintf(agent, sizeof(agent), "%s, %d threads", s->device, t);
        snprintf(peer, sizeof(peer), "%s (%s)", c.rate > 0 ? c.name : "none",
                 unit_names[job->unit]);
        double size = unit_sizes[job->unit];
        struct bench_row row = {"kernels", job->name, agent, peer, ours / size, c.rate / size};
        MSC_TRY(bench_row_add(rows, &row));
    }
    printf("\n");
    return MSC_OK;
}

static enum msc_status kernels_report(cJSON *rows, const struct bench_jobs *jobs,
                                      const struct settings *s) {
    printf("\n| kernel | unit |");
    for (int t = 1; t <= s->n_threads; t++) {
        printf(" %d thr | of ceiling | of oneDNN here |", t);
    }
    printf("\n|---|---|%s\n", s->n_threads > 1 ? "---|---|---|---|---|---|" : "---|---|---|");
    for (int i = 0; i < jobs->n; i++) {
        if (!jobs->job[i].is_ceiling) {
            MSC_TRY(report_job(rows, jobs, &jobs->job[i], s));
        }
    }
    printf("\nceilings\n");
    for (int i = 0; i < jobs->n; i++) {
        const struct bench_job *job = &jobs->job[i];
        if (job->is_ceiling) {
            printf("| %-42s | %-7s |", job->name, unit_names[job->unit]);
            for (int t = 1; t <= s->n_threads; t++) {
                printf(" %9.3f |", kernels_median(job, t, s->n_repeats) / unit_sizes[job->unit]);
            }
            printf("\n");
        }
    }
    return MSC_OK;
}

// ---- The program ------------------------------------------------------------------------------

// Switches products of our own off.
static void leave_products(struct msc_backend *backend) {
    struct msc_cpu_backend *b = msc_cpu_from(backend);
    b->bytes = b->floats = b->tiles = NULL;
    b->winograd = NULL;
}

static enum msc_status kernels_bench(const struct settings *s, struct bench_jobs *jobs) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend;
    options.n_threads = BENCH_MAX_THREADS;
    MSC_TRY(msc_backend_open(&backend, s->device, &options));
    printf("%s\n", backend->def->numerics(backend));
    if (backend->def->memory_is_host && s->leaves_products) {
        leave_products(backend);
    }
    cJSON *rows = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    if (backend->def->memory_is_host && s->only[0] == '\0') {
        MSC_TRY_OUT(bench_add_onednn(jobs));
    }
    MSC_TRY_OUT(bench_add_steps(jobs, backend, s->n_threads, s->only));
    if (!measure_all(jobs, s)) {
        status = MSC_FAIL(MSC_E_STATE, "a kernel failed while it was measured");
        goto out;
    }
    MSC_TRY_OUT(kernels_report(rows, jobs, s));
    if (s->json) {
        MSC_TRY_OUT(bench_rows_save(rows, s->json));
    }
out:
    for (int i = 0; i < jobs->n; i++) {
        jobs->job[i].destroy(jobs->job[i].state);
    }
    cJSON_Delete(rows);
    msc_backend_close(backend);
    return status;
}

static bool read_settings(struct settings *s, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--device") == 0) {
            s->device = argv[i + 1];
        } else if (strcmp(argv[i], "--json") == 0) {
            s->json = argv[i + 1];
        } else if (strcmp(argv[i], "--only") == 0) {
            s->only = argv[i + 1];
        } else if (strcmp(argv[i], "--threads") == 0) {
            s->n_threads = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            s->n_repeats = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--clock") == 0) {
            s->has_thread_clock = strcmp(argv[i + 1], "thread") == 0;
        } else if (strcmp(argv[i], "--products") == 0) {
            s->leaves_products = strcmp(argv[i + 1], "onednn") == 0;
        } else if (strcmp(argv[i], "--peak") == 0) {
            s->given[BENCH_FLOAT] = atof(argv[i + 1]);
        } else if (strcmp(argv[i], "--peak-bytes") == 0) {
            s->given[BENCH_INT8] = atof(argv[i + 1]);
        } else if (strcmp(argv[i], "--bandwidth") == 0) {
            s->given[BENCH_BYTES] = atof(argv[i + 1]);
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && s->n_threads >= 1 && s->n_threads <= BENCH_MAX_THREADS &&
           s->n_repeats >= 1 && s->n_repeats <= BENCH_MAX_REPEATS;
}

int main(int argc, char **argv) {
    static struct bench_jobs jobs;
    struct settings s = {
        .device = "cpu", .only = "", .n_threads = BENCH_MAX_THREADS, .n_repeats = 5};
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr, "usage: bench_kernels [--device NAME] [--threads 1|2] [--repeats N] "
                        "[--json FILE] [--clock wall|thread] [--only NAMES] "
                        "[--products own|onednn] [--peak GFLOP/S] [--peak-bytes TOP/S] "
                        "[--bandwidth GB/S]\n");
        return 2;
    }
    if (strncmp(s.device, "vulkan", 6) == 0) {
        s.n_threads = 1; // one thread owns a device
    }
    if (kernels_bench(&s, &jobs) != MSC_OK) {
        fprintf(stderr, "bench_kernels: %s\n", msc_status_message());
        return 1;
    }
    return 0;
}
