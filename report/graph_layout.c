#include "report/graph_layout.h"

#include "base/heap.h"

#define SWEEPS 8

struct layout {
    const struct msc_graph *g;
    struct msc_graph_place *nodes;
    int32_t *order;   // [n_joints], joints sorted by layer
    int32_t *offsets; // [n_layers + 1], index in `order` of each layer's first joint
    double *wanted;   // [n_joints], preferred column of each joint
    int32_t n_layers;
};

static int32_t find_layers(const struct layout *l) {
    int32_t n_layers = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(l->g); i++) { // in topological order
        const struct msc_joint *j = msc_graph_joint(l->g, i);
        int32_t layer = 0;
        for (int32_t p = 0; p < j->n_parents; p++) {
            int32_t below = l->nodes[j->parents[p]].layer + 1;
            layer = below > layer ? below : layer;
        }
        l->nodes[i].layer = layer;
        n_layers = layer + 1 > n_layers ? layer + 1 : n_layers;
    }
    return n_layers;
}

// Moves each joint without inputs down to the layer just above its first consumer.
static void sink_sources(const struct layout *l) {
    for (int32_t i = 0; i < msc_graph_n_joints(l->g); i++) {
        const struct msc_joint *j = msc_graph_joint(l->g, i);
        int32_t least = -1;
        for (int32_t c = 0; j->n_parents == 0 && c < j->n_children; c++) {
            int32_t layer = l->nodes[j->children[c]].layer;
            least = least < 0 || layer < least ? layer : least;
        }
        l->nodes[i].layer = least > 0 ? least - 1 : l->nodes[i].layer;
    }
}

static void fill_order(const struct layout *l) {
    int32_t n = msc_graph_n_joints(l->g);
    for (int32_t i = 0; i < n; i++) {
        l->offsets[l->nodes[i].layer + 1]++;
    }
    for (int32_t k = 0; k < l->n_layers; k++) {
        l->offsets[k + 1] += l->offsets[k];
    }
    for (int32_t i = n - 1; i >= 0; i--) { // moves each offset to the beginning of its layer
        int32_t layer = l->nodes[i].layer;
        l->order[--l->offsets[layer + 1]] = i;
    }
    for (int32_t k = 0; k < l->n_layers; k++) {
        l->offsets[k] = l->offsets[k + 1];
    }
    l->offsets[l->n_layers] = n;
}

static double mean_column(const struct layout *l, int32_t n, const int32_t joints[],
                          double otherwise) {
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++) {
        sum += l->nodes[joints[i]].column;
    }
    return n > 0 ? sum / n : otherwise;
}

static bool is_left(const void *context, const void *x, const void *y) {
    const struct layout *l = context;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return l->wanted[a] != l->wanted[b] ? l->wanted[a] < l->wanted[b] : a < b;
}

// Places a layer's joints as close to their preferred columns as their order permits. Joints that
// would overlap form a block around the mean of their preferences (pool adjacent violators).
static void place_layer(const struct layout *l, int32_t first, int32_t n, double starts[],
                        int32_t sizes[]) {
    int32_t n_blocks = 0;
    for (int32_t i = 0; i < n; i++) {
        double start = l->wanted[l->order[first + i]]; // column of the block's first joint
        int32_t size = 1;
        while (n_blocks > 0 && starts[n_blocks - 1] + sizes[n_blocks - 1] > start) {
            n_blocks--;
            start = (starts[n_blocks] * sizes[n_blocks] + (start - sizes[n_blocks]) * size) /
                    (sizes[n_blocks] + size);
            size += sizes[n_blocks];
        }
        starts[n_blocks] = start;
        sizes[n_blocks++] = size;
    }
    for (int32_t b = 0, i = 0; b < n_blocks; b++) {
        for (int32_t k = 0; k < sizes[b]; k++, i++) {
            l->nodes[l->order[first + i]].column = starts[b] + k;
        }
    }
}

static void sweep(const struct layout *l, bool is_down, double starts[], int32_t sizes[]) {
    int32_t spare;
    for (int32_t k = 0; k < l->n_layers; k++) {
        int32_t layer = is_down ? k : l->n_layers - 1 - k;
        int32_t first = l->offsets[layer], n = l->offsets[layer + 1] - first;
        for (int32_t i = 0; i < n; i++) {
            int32_t id = l->order[first + i];
            const struct msc_joint *j = msc_graph_joint(l->g, id);
            double column = l->nodes[id].column;
            l->wanted[id] = is_down ? mean_column(l, j->n_parents, j->parents, column)
                                    : mean_column(l, j->n_children, j->children, column);
        }
        const struct msc_heap heap = {.elements = l->order + first,
                                      .element_bytes = sizeof *l->order,
                                      .spare = &spare,
                                      .is_before = is_left,
                                      .context = l};
        msc_heap_sort(&heap, (size_t)n);
        place_layer(l, first, n, starts, sizes);
    }
}

static void begin_at_zero(struct msc_graph_layout *out, const struct layout *l) {
    int32_t n = msc_graph_n_joints(l->g);
    double least = n > 0 ? l->nodes[0].column : 0.0, greatest = least;
    for (int32_t i = 0; i < n; i++) {
        least = l->nodes[i].column < least ? l->nodes[i].column : least;
        greatest = l->nodes[i].column > greatest ? l->nodes[i].column : greatest;
    }
    for (int32_t i = 0; i < n; i++) {
        l->nodes[i].column -= least;
    }
    out->n_columns = greatest - least + 1.0;
}

enum msc_status msc_graph_layout_make(struct msc_graph_layout *out, const struct msc_graph *g) {
    *out = (struct msc_graph_layout){0};
    size_t n = (size_t)msc_graph_n_joints(g) + 1;
    struct layout l = {.g = g,
                       .nodes = msc_arena_array(&out->arena, n, sizeof *l.nodes),
                       .order = msc_arena_array(&out->arena, n, sizeof *l.order),
                       .offsets = msc_arena_array(&out->arena, n + 1, sizeof *l.offsets),
                       .wanted = msc_arena_array(&out->arena, n, sizeof *l.wanted)};
    double *starts = msc_arena_array(&out->arena, n, sizeof *starts);
    int32_t *sizes = msc_arena_array(&out->arena, n, sizeof *sizes);
    if (!l.nodes || !l.order || !l.offsets || !l.wanted || !starts || !sizes) {
        msc_graph_layout_finish(out);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    l.n_layers = find_layers(&l);
    sink_sources(&l);
    fill_order(&l);
    for (int i = 0; i < SWEEPS; i++) {
        sweep(&l, i % 2 == 0, starts, sizes);
    }
    out->nodes = l.nodes;
    out->n_layers = l.n_layers;
    begin_at_zero(out, &l);
    return MSC_OK;
}

void msc_graph_layout_finish(struct msc_graph_layout *layout) {
    msc_arena_finish(&layout->arena);
    *layout = (struct msc_graph_layout){0};
}
