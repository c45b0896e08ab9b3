// Running a case's network on a backend and comparing what comes out with what is expected.
#ifndef MSC_TESTS_CONFORMANCE_RUN_H
#define MSC_TESTS_CONFORMANCE_RUN_H

#include "kernels/backend.h"
#include "tests/conformance/case.h"

struct conformance_result {
    bool is_passed;
    bool is_stepwise;    // some of it joint by joint on the reference kernels
    char reason[256];    // why it is not passed
    char elsewhere[128]; // operators computed on another device than the backend's: "Take, TopK"
};

struct conformance_options {
    const char *rewritten; // a path: the model is first written anew to it, and read from there
    bool by_text;          // operators mean what ONNX's text says
    double atol;           // how far a number may be off beside the relative tolerance
};

void conformance_run(struct conformance_result *out, struct conformance_case *c,
                     struct msc_backend *backend, const struct conformance_options *options);

#endif
