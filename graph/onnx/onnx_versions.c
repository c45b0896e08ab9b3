#include "graph/onnx/onnx_versions.h"

#include <protobuf-c/protobuf-c.h>

void msc_onnx_versions(msc_version_take take, void *payload) {
    take(payload, "protobuf-c", protobuf_c_version());
}
