// Versions of the external libraries used in this folder (base/versions.h).
#ifndef MSC_GRAPH_ONNX_ONNX_VERSIONS_H
#define MSC_GRAPH_ONNX_ONNX_VERSIONS_H

#include "base/versions.h"

void msc_onnx_versions(msc_version_take take, void *payload);

#endif
