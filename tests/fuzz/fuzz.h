// Helpers that the fuzzers share: a folder in memory for each process, and checks that apply to
// every call.
//
// A fuzzer is a file with libFuzzer's entry point. It turns its input bytes into files below
// fuzz_path, calls the library on them, and passes the status to fuzz_check:
//
//     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
//         if (n_bytes > FUZZ_MAX_BYTES) {
//             return -1;                                   // not for the corpus
//         }
//         fuzz_write("a.npy", data, n_bytes);
//         fuzz_check(msc_npy_load(&array, fuzz_path("a.npy")));
//         ...
//         return 0;
//     }
//
// libFuzzer and the sanitizers find crashes, undefined behaviour, leaks, hangs and large
// allocations.
#ifndef MSC_TESTS_FUZZ_FUZZ_H
#define MSC_TESTS_FUZZ_FUZZ_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

// The path of a file in this process's folder, below $TMPDIR or /dev/shm. The folder is removed
// when the process ends by itself. The returned path is valid until the fourth later call.
const char *fuzz_path(const char *name);
void fuzz_write(const char *name, const void *data, size_t n_bytes);
void fuzz_remove(const char *name); // a missing file is fine
// Aborts unless the folder contains exactly these files; `names` ends with NULL. This finds
// half-written files that a call left.
void fuzz_check_files(const char *const names[]);

// Checks that a failure has a one-line message: aborts if the message is empty or has a line break.
// Clears the message, so that a later failure cannot be reported with it. Returns `status`.
enum msc_status fuzz_check(enum msc_status status);
// Aborts with this message.
void fuzz_fail(const char *what);

// A log that drops all messages.
extern const struct msc_log fuzz_log;

#endif
