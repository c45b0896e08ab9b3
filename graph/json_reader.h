// State and functions shared by the files that read a graph's JSON form.
//
// json_read.c (graphs) and json_read_node.c (nodes) call each other, because a node may have
// bodies, which are graphs. Both use json_read_member.c and graph_reader.h.
#ifndef MSC_GRAPH_JSON_READER_H
#define MSC_GRAPH_JSON_READER_H

#include "base/json.h"
#include "graph/graph_reader.h"

// Read an optional member. If it is absent, the result is "" or NULL.
enum msc_status msc_graph__read_text(const char **out, const cJSON *object, const char *key,
                                     const char *where);
enum msc_status msc_graph__read_array(const cJSON **out, const cJSON *object, const char *key,
                                      const char *where);
// Reads an element of a list as text. `key` is the key of the list.
enum msc_status msc_graph__read_element(const char **out, const cJSON *element, const char *key,
                                        const char *where);
// Reads the member "attrs" of a node into the reader's scratch memory.
enum msc_status msc_graph__read_attrs(struct msc_attr **out, int32_t *n, struct msc_graph_reader *r,
                                      const cJSON *object, const char *where);
// Reads body `which` of the joint `name`, whose operator is `op`. *out is owned by the caller.
enum msc_status msc_graph__read_body(struct msc_graph **out, struct msc_graph_reader *r,
                                     const cJSON *object, enum msc_op op, const char *name,
                                     int32_t which);

// Reads one node and adds it to the graph.
enum msc_status msc_graph__read_node(struct msc_graph_reader *r, const cJSON *object,
                                     const char *where);

#endif
