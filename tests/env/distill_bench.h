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
void distill_bench_close(struct distill_bench *b);

#endif
