// Queries a graph. The network of MSC's tutorial, a convolution and a relu, is built joint by
// joint, and searched by operator, by name, and along its edges.
//
//     cc -std=c11 -o queries queries.c $(pkg-config --cflags --libs mscgym)
//     ./queries
//
// A graph loaded from a model file (msc_graph_load) is queried in the same way.
#include <mscgym/base/str.h>
#include <mscgym/graph/graph.h>

#include <stdio.h>

static enum msc_status add_weight(int32_t *tensor, struct msc_graph *g) {
    struct msc_array *kernel;
    MSC_TRY(msc_array_create(&kernel, MSC_DTYPE_F32, 4, (const int64_t[]){6, 3, 1, 1}));
    enum msc_status status = msc_graph_add_weight(tensor, g, "const", NULL, "OIHW", kernel);
    msc_array_release(kernel);
    return status;
}

// x -> conv2d -> relu
static enum msc_status build(struct msc_graph *g) {
    int32_t x, kernel, conv2d, relu;
    MSC_TRY(msc_graph_add_input(&x, g, "inp_0", NULL, MSC_DTYPE_F32, "NCHW", 4,
                                (const int64_t[]){1, 3, 4, 4}));
    MSC_TRY(add_weight(&kernel, g));
    MSC_TRY(msc_graph_add_joint(
        &conv2d, g,
        &(struct msc_joint_spec){.op = MSC_OP_CONV2D,
                                 .name = "conv2d",
                                 .n_inputs = 1,
                                 .inputs = &x,
                                 .n_weights = 1,
                                 .weights = &(struct msc_weight_spec){"weight", kernel}}));
    int32_t features = msc_joint_output(msc_graph_joint(g, conv2d), 0);
    MSC_TRY(msc_graph_add_joint(
        &relu, g,
        &(struct msc_joint_spec){
            .op = MSC_OP_RELU, .name = "relu", .n_inputs = 1, .inputs = &features}));
    int32_t y = msc_joint_output(msc_graph_joint(g, relu), 0);
    MSC_TRY(msc_graph_set_outputs(g, 1, &y));
    return msc_graph_finalize(g);
}

static void add_joint(struct msc_str *out, const char *what, const struct msc_graph *g,
                      int32_t joint) {
    msc_str_printf(out, "%s ", what);
    msc_joint_print(g, joint, out);
    msc_str_char(out, '\n');
}

static void ask(struct msc_str *out, const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        if (msc_graph_joint(g, i)->op == MSC_OP_CONV2D) {
            add_joint(out, "conv2d joint", g, i);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        msc_str_append(out, "input ");
        msc_tensor_print(g, msc_graph_input(g, i), out);
        msc_str_char(out, '\n');
    }

    int32_t conv2d = msc_graph_find_joint(g, "conv2d");
    const struct msc_joint *joint = msc_graph_joint(g, conv2d);
    add_joint(out, "found joint", g, conv2d);
    for (int32_t i = 0; i < joint->n_parents; i++) {
        add_joint(out, "parent", g, msc_joint_parent(joint, i));
    }
    for (int32_t i = 0; i < joint->n_children; i++) {
        add_joint(out, "child", g, msc_joint_child(joint, i));
    }

    const int32_t *readers;
    int32_t features = msc_graph_find_tensor(g, "conv2d:0");
    int32_t n_readers = msc_graph_consumers(g, features, &readers);
    add_joint(out, "producer", g, msc_graph_producer(g, features));
    for (int32_t i = 0; i < n_readers; i++) {
        add_joint(out, "has consumer", g, readers[i]);
    }
}

int main(void) {
    struct msc_graph *g = NULL;
    struct msc_str text = {0};
    enum msc_status status = msc_graph_create(&g, "main");
    if (status == MSC_OK) {
        status = build(g);
    }
    if (status == MSC_OK) {
        ask(&text, g);
        status = msc_str_status(&text);
    }
    if (status == MSC_OK) {
        fputs(msc_str_text(&text), stdout);
    } else {
        fprintf(stderr, "queries: %s\n", msc_status_message());
    }
    msc_str_finish(&text);
    msc_graph_destroy(g);
    return status == MSC_OK ? 0 : 1;
}
