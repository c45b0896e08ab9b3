// Delivers a placement: the pieces of a point, and their manifest.
#include "model/place_internal.h"

#include <stdio.h>

enum msc_status msc_place__networks(struct msc_place_network networks[], const struct msc_graph *g,
                                    const struct msc_place_table *p,
                                    const struct msc_place_options *o, struct msc_arena *arena) {
    const char *paths[MSC_PLACE_MOST_VARIANTS];
    int32_t *groups = msc_arena_array(arena, (size_t)msc_graph_n_joints(g) + 1, sizeof *groups);
    MSC_TRY(MSC_ALLOCATED(groups));
    MSC_TRY(msc_place_groups(groups, g, p));
    networks[0] = (struct msc_place_network){.g = g, .groups = groups};
    paths[0] = o->model;
    for (size_t v = 1; v < p->n_variants; v++) {
        networks[v] = (struct msc_place_network){.g = o->variants[v - 1].g};
        paths[v] = o->variants[v - 1].path;
    }
    return msc_place_align(networks, paths, p->n_variants, p->n_groups, arena);
}

// Where each piece runs, by the first group of each, and what it is made of.
struct parts {
    struct msc_place_tiling tiling;
    uint32_t variants[MSC_PLACE_MOST_GROUPS];
    const char *backends[MSC_PLACE_MOST_GROUPS];
};

static enum msc_status extract_parts(struct msc_graph *out[], const struct parts *parts,
                                     const struct msc_place_network networks[]) {
    for (size_t i = 0; i < parts->tiling.n; i++) {
        size_t first = parts->tiling.firsts[i], last = parts->tiling.firsts[i + 1] - 1;
        char name[32];
        snprintf(name, sizeof name, "piece%zu", i);
        MSC_TRY(
            msc_place_extract_run(&out[i], &networks[parts->variants[first]], first, last, name));
    }
    return MSC_OK;
}

static enum msc_status split(struct msc_pieces **out, const struct msc_graph *g,
                             const struct msc_place_table *p, const struct parts *parts,
                             const struct msc_place_options *o, const char *folder) {
    struct msc_place_network networks[MSC_PLACE_MOST_VARIANTS];
    struct msc_graph *graphs[MSC_PLACE_MOST_GROUPS] = {0};
    struct msc_arena arena = {0};
    const struct msc_split_options options = {.by = MSC_SPLIT_BY_PLAN,
                                              .model = o->model,
                                              .folder = folder,
                                              .parts = (const struct msc_graph *const *)graphs,
                                              .backends = parts->backends,
                                              .n_plan = parts->tiling.n};
    enum msc_status status = msc_place__networks(networks, g, p, o, &arena);
    status = status == MSC_OK ? extract_parts(graphs, parts, networks) : status;
    status = status == MSC_OK ? msc_split(out, g, &options) : status;
    for (size_t i = 0; i < parts->tiling.n; i++) {
        msc_graph_destroy(graphs[i]);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_place__split(struct msc_pieces **out, const struct msc_graph *g,
                                 const struct msc_place_table *p, const uint32_t choices[],
                                 const struct msc_place_options *o, const char *folder) {
    struct parts parts;
    msc_place__tile(&parts.tiling, choices, p->n_groups);
    msc_place_table_variants(parts.variants, p, choices);
    for (size_t i = 0; i < parts.tiling.n; i++) {
        parts.backends[i] = p->backends[choices[parts.tiling.firsts[i]]].name;
    }
    return split(out, g, p, &parts, o, folder);
}

enum msc_status msc_place__split_variants(struct msc_pieces **out, const struct msc_graph *g,
                                          const struct msc_place_table *p,
                                          const uint32_t variants[],
                                          const struct msc_place_options *o, const char *folder) {
    struct parts parts;
    msc_place__tile(&parts.tiling, variants, p->n_groups);
    for (size_t i = 0; i < p->n_groups; i++) {
        parts.variants[i] = variants[i];
        parts.backends[i] = "cpu";
    }
    return split(out, g, p, &parts, o, folder);
}

enum msc_status msc_place_deliver(struct msc_pieces **out, const struct msc_graph *g,
                                  const struct msc_place_table *p, const uint32_t choices[],
                                  const struct msc_place_options *o) {
    return msc_place__split(out, g, p, choices, o, o->folder);
}
