// One-line shell scripts that replace mscgym-runtime in tests.
#ifndef MSC_TESTS_TOOLS_RUNTIME_SCRIPT_H
#define MSC_TESTS_TOOLS_RUNTIME_SCRIPT_H

#include "tools/runtime.h"

#define HELLO                                                                                      \
    "{\"protocol\":1,\"runtimes\":[{\"name\":\"onnxruntime\",\"version\":\"1.2.3\"},"              \
    "{\"name\":\"openvino\",\"missing\":\"pip install openvino\"}],\"processor\":\"A chip\","      \
    "\"features\":[\"avx2\",\"avx512_vnni\"],\"threads\":4}"
// A script that has already answered the hello message.
#define AFTER_HELLO "read -r a; echo '" HELLO "'; "

static const struct msc_runtime_job two_models = {.runtime = "onnxruntime",
                                                  .models =
                                                      (const char *const[]){"a.onnx", "b.onnx"},
                                                  .n_models = 2,
                                                  .batch = 1,
                                                  .n_threads = 1,
                                                  .n_rounds = 3};

static inline enum msc_status start_script(struct msc_runtime **out, const char *script,
                                           double timeout_s) {
    const char *const command[] = {"/bin/sh", "-c", script, NULL};
    const struct msc_runtime_options o = {.command = command, .timeout_s = timeout_s};
    return msc_runtime_start(out, &o);
}

#endif
