// Exports small networks with edits and finds nodes of the written model.
#ifndef MSC_TESTS_ONNX_NETS_H
#define MSC_TESTS_ONNX_NETS_H

#include "graph/onnx/onnx_file_internal.h"

#include "tests/graph/onnx_files.h"

#include "base/file.h"
#include "graph/edit.h"

#include <stdio.h>
#include <unistd.h>

static char scratch[64];

static inline int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof(scratch), "/tmp/msc_form_%d.onnx", (int)getpid());
    return 0;
}

static inline int remove_scratch(void **state) {
    (void)state;
    unlink(scratch);
    return 0;
}

enum { MAX_SLOTS = 16 };

// A graph, the edits of its slots for a target, and the exported model.
struct net {
    struct msc_graph *g;
    struct msc_sites sites;
    const struct msc_edit *edits[MAX_SLOTS];
    Onnx__ModelProto *model;
};

// Finds the sites of the graph. The graph must be finalised.
static inline void find_sites(struct net *n, const char *target) {
    const struct msc_site_scheme scheme = {.target = msc_target_find(target)};
    assert_ok(msc_sites_find(&n->sites, n->g, &scheme));
    assert_in_range(n->sites.n_slots, 0, MAX_SLOTS);
}

static inline void finish_outputs(struct net *n, int32_t n_outputs, const int32_t outputs[],
                                  const char *target) {
    n->model = NULL;
    assert_ok(msc_graph_set_outputs(n->g, n_outputs, outputs));
    assert_ok(msc_graph_finalize(n->g));
    find_sites(n, target);
}

static inline void finish_graph(struct net *n, int32_t output, const char *target) {
    finish_outputs(n, 1, &output, target);
}

static inline void export_net(struct net *n) {
    struct msc_onnx_export_options options = {.sites = &n->sites, .slot_edits = n->edits};
    assert_ok(msc_onnx_save(n->g, scratch, &options));
    msc_onnx_model_free(n->model); // frees the model of an earlier export
    assert_ok(msc_onnx_model_read(&n->model, scratch));
}

static inline void finish_net(struct net *n) {
    msc_onnx_model_free(n->model);
    msc_sites_finish(&n->sites);
    msc_graph_destroy(n->g);
}

static inline struct msc_edit make_edit(int32_t bits, int32_t low, int32_t high, const float *scale,
                                        const int32_t *zero_point) {
    return msc_edit_quantize((struct msc_quant){.bits = bits,
                                                .low = low,
                                                .high = high,
                                                .axis = -1,
                                                .n = 1,
                                                .scales = scale,
                                                .zero_points = zero_point});
}

// Assigns an edit to all slots of a tensor.
static inline void edit_tensor(struct net *n, const char *name, const struct msc_edit *edit) {
    int32_t n_found = 0;
    for (int32_t i = 0; i < n->sites.n_slots; i++) {
        if (strcmp(msc_graph_tensor(n->g, n->sites.slots[i].tensor)->name, name) == 0) {
            n->edits[i] = edit;
            n_found++;
        }
    }
    if (n_found == 0) {
        print_error("'%s' has no slot\n", name);
        fail();
    }
}

static inline int count(const struct net *n, const char *op_type) {
    int found = 0;
    for (size_t i = 0; i < n->model->graph->n_node; i++) {
        found += strcmp(n->model->graph->node[i]->op_type, op_type) == 0;
    }
    return found;
}

static inline const Onnx__NodeProto *maker(const struct net *n, const char *value) {
    for (size_t i = 0; i < n->model->graph->n_node; i++) {
        if (strcmp(n->model->graph->node[i]->output[0], value) == 0) {
            return n->model->graph->node[i];
        }
    }
    print_error("no node makes '%s'\n", value);
    fail();
    return NULL;
}

// The first node with this operator.
static inline const Onnx__NodeProto *node_of(const struct net *n, const char *op_type) {
    for (size_t i = 0; i < n->model->graph->n_node; i++) {
        if (strcmp(n->model->graph->node[i]->op_type, op_type) == 0) {
            return n->model->graph->node[i];
        }
    }
    print_error("there is no %s\n", op_type);
    fail();
    return NULL;
}

static inline void check_bytes(const struct net *n, const char *name, int type, size_t n_bytes,
                               const void *expected) {
    for (size_t i = 0; i < n->model->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = n->model->graph->initializer[i];
        if (strcmp(t->name, name) == 0) {
            assert_int_equal(t->data_type, type);
            assert_int_equal(t->raw_data.len, n_bytes);
            assert_memory_equal(t->raw_data.data, expected, n_bytes);
            return;
        }
    }
    print_error("no initialiser is '%s'\n", name);
    fail();
}

#endif
