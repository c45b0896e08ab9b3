// External joints: nodes whose operator ops.def lacks, such as the operators of a user's own
// domain. mscgym carries them through every form of a graph, and computes them only if a plug-in
// does (graph/operators.h).
//
// An external joint has the operator MSC_OP_EXTERNAL ("msc.external") and these attributes:
//
//     domain      "my.domain"; "" is ONNX's own
//     op          "Rotate"
//     version     of the domain's operator set
//     signature   types of operands and outputs: "float32[N,3], int64[2] -> float32[N,M]"
//     captures    names of the values that graphs in attributes read; the last operands. Absent
//                 if there are none
//     imports     further domains that those graphs use, with versions: "other.domain=2". Absent
//                 if there are none
//     attr_NAME   attribute NAME of the node: its type, a space, its value
//
// A joint that has a body (msc_joint.graphs[0], graph/rules) is computed by the body unless a
// plug-in computes it. Its types are those of the body; the signature may be empty.
//
// Values of attr_NAME: "int 3", "float 0.5", "string text", "ints 1,2", "floats 0.5,1",
// "strings ["a","b"]" (JSON). All other attributes (tensors, graphs, ...) are "proto BASE64", where
// the bytes are the AttributeProto of ONNX.
//
// In a signature, a name stands for an unknown length; equal names are equal lengths. The operands
// give the names of the first part their values, so outputs get the right lengths in a graph that
// is bound to other lengths. A name that occurs only after "->" is known once the joint has run.
// "-" is an absent operand.
#ifndef MSC_GRAPH_EXTERNAL_H
#define MSC_GRAPH_EXTERNAL_H

#include "graph/graph.h"

MSC_PUBLIC_BEGIN

#define MSC_EXTERNAL_ATTR "attr_" // prefix of the node's own attributes

// Appends "my.domain::Rotate", or "Rotate" in ONNX's own domain.
void msc_external_write_name(struct msc_str *out, const struct msc_joint *j);
// Number of operands that are inputs of the node, without captured values.
int32_t msc_external_n_inputs(const struct msc_joint *j);
// The first external joint that no plug-in of the graph computes; MSC_NO_ID if there is none.
// Bodies of control flow count as the joint that has them.
int32_t msc_graph_find_uncomputed(const struct msc_graph *g);
// Fails with MSC_E_UNSUPPORTED and one line that names that joint and the remedy; MSC_OK if there
// is no such joint.
enum msc_status msc_graph_require_computed(const struct msc_graph *g);

MSC_PUBLIC_END

#endif
