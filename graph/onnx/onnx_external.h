// Nodes of external joints (graph/external.h): attributes as text, and graphs in attributes. Only
// graph/onnx/*.c includes this header.
#ifndef MSC_GRAPH_ONNX_ONNX_EXTERNAL_H
#define MSC_GRAPH_ONNX_ONNX_EXTERNAL_H

#include "base/alloc.h"
#include "base/status.h"

#include "onnx.pb-c.h"

// The value of attr_NAME for an attribute; the text is in the arena.
enum msc_status msc_onnx__attr_to_text(const char **out, const Onnx__AttributeProto *a,
                                       struct msc_arena *arena);
// The reverse; everything is in the arena. MSC_E_INVALID if the text is not such a value.
enum msc_status msc_onnx__attr_from_text(Onnx__AttributeProto **out, const char *name,
                                         const char *text, struct msc_arena *arena);

// Visits the graphs in an attribute, and the graphs in their nodes. Refuses tensors with external
// data. Functions that are NULL are not called:
// - `visit` is called for each value that a node reads or a graph returns, if no graph around it
//   defines the value; it may replace *name.
// - `visit_node` is called for each node.
// - `visit_own` is called for each value that a graph defines.
struct msc_onnx_graph_visit {
    enum msc_status (*visit)(void *payload, char **name);
    enum msc_status (*visit_node)(void *payload, const Onnx__NodeProto *node);
    enum msc_status (*visit_own)(void *payload, const char *name);
    void *payload;
};
enum msc_status msc_onnx__visit_graphs(const struct msc_onnx_graph_visit *v,
                                       Onnx__AttributeProto *a);

#endif
