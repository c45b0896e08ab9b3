// Runs a case's network on a backend and compares its outputs with the expected ones.
#ifndef MSC_TESTS_CONFORMANCE_RUN_H
#define MSC_TESTS_CONFORMANCE_RUN_H

#include "kernels/backend.h"
#include "tests/conformance/case.h"

struct conformance_result {
    bool is_passed;
    bool is_stepwise;    // some joints ran one by one on the reference kernels
    char reason[256];    // why the case did not pass
    char elsewhere[128]; // operators computed on another device than the backend's: "Take, TopK"
};

struct conformance_options {
    // NULL, or a path to which the model is first exported and from which it is read.
    const char *rewritten;
    bool by_text; // operators mean what ONNX's text says, not what targets compute
    double atol;  // absolute tolerance, in addition to the relative one
};

void conformance_run(struct conformance_result *out, struct conformance_case *c,
                     struct msc_backend *backend, const struct conformance_options *options);

#endif
