// What the fuzzers share: a folder of their own in memory, and what must hold of every call.
//
// A fuzzer is one file with libFuzzer's entry. It turns the bytes into files below fuzz_path, calls
// the library on them, and says by fuzz_check what came of it:
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
// Crashes, undefined behaviour, leaks, hangs and large allocations are libFuzzer's and the
// sanitizers' to find.
#ifndef MSC_TESTS_FUZZ_FUZZ_H
#define MSC_TESTS_FUZZ_FUZZ_H

#include "base/log.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

// Path of a file in the folder of this process, below $TMPDIR or /dev/shm; the folder goes when the
// process ends by itself. The text is good until the fourth call from here.
const char *fuzz_path(const char *name);
void fuzz_write(const char *name, const void *data, size_t n_bytes);
void fuzz_remove(const char *name); // absent is fine
// Aborts unless the folder holds these files and nothing else. For what must leave no half-written
// file; `names` ends with NULL.
void fuzz_check_files(const char *const names[]);

// A failure must tell why in one line: aborts when the text is empty or has a line break. The text
// is emptied, so that none of an earlier failure is taken for it. Returns `status`.
enum msc_status fuzz_check(enum msc_status status);
// Aborts with this text.
void fuzz_fail(const char *what);

// Takes messages and drops them.
extern const struct msc_log fuzz_log;

#endif
