#include "tests/env/distill_bench.h"

#include "kernels/backend.h"
#include "kernels/engine/backends.h"

static void note(void *payload, enum msc_log_level level, const char *line) {
    struct msc_str *lines = payload;
    if (level == MSC_LOG_WARNING) {
        msc_str_printf(lines, "%s\n", line);
    }
}

enum msc_status distill_bench_open_on(struct distill_bench *b, const char *device) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    options.n_threads = 2;
    b->log = (struct msc_log){MSC_LOG_INFO, note, &b->lines};
    b->host = (struct msc_env_host){.abi = MSC_ENV_ABI,
                                    .graph = b->c.g,
                                    .n_threads = 2,
                                    .memory_bytes = (uint64_t)1 << 28,
                                    .log = &b->log};
    return msc_backend_open(&b->host.backend, device, &options);
}

void distill_bench_open(struct distill_bench *b) {
    assert_ok(distill_bench_open_on(b, "cpu"));
}

void distill_bench_close(struct distill_bench *b) {
    msc_distill_destroy(b->d);
    msc_backend_close(b->host.backend);
    msc_str_finish(&b->lines);
    eval_close(&b->c);
}
