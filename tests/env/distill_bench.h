// A network with its host, for tests of the distillation loss.
#ifndef MSC_TESTS_ENV_DISTILL_BENCH_H
#define MSC_TESTS_ENV_DISTILL_BENCH_H

#include "base/str.h"
#include "env/distill.h"
#include "tests/kernels/eval_case.h"

struct distill_bench {
    struct eval_case c;
    struct msc_env_host host;
    struct msc_log log;
    struct msc_str lines; // the warnings so far
    struct msc_distill *d;
};

// Prepares the host, after the network in b->c exists.
void distill_bench_open(struct distill_bench *b);
// Like distill_bench_open, on another device than "cpu". On failure nothing is open but the
// network.
enum msc_status distill_bench_open_on(struct distill_bench *b, const char *device);
void distill_bench_close(struct distill_bench *b);

#endif
