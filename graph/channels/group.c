// Makes units from classes of indices, and groups from units that have the same axes.
#include "graph/channels/channels_internal.h"

#include <string.h>

struct grouping {
    struct msc_channels_finder *f;
    struct msc_arena *arena; // memory of the result
    // [n_nodes], valid at roots
    bool *has_weight;
    struct msc_hash *signatures;
    int32_t *group_of;
    int32_t *unit_of;
    struct msc_channel_group *groups;
    struct msc_hash *group_signatures;
    int32_t n_groups, *n_found;
};

// Calls `visit` for every index that is not frozen, axis by axis.
static void visit_nodes(struct grouping *g, void (*visit)(struct grouping *g, struct msc_axis axis,
                                                          int64_t index, int32_t root)) {
    struct msc_channels_finder *f = g->f;
    for (int32_t i = 0; i < msc_graph_n_tensors(f->g) * MSC_MAX_DIMS; i++) {
        struct msc_axis axis = {i / MSC_MAX_DIMS, i % MSC_MAX_DIMS};
        for (int64_t k = 0; k < f->periods[i]; k++) {
            int32_t root = f->parents[f->first[i] + k];
            if (!f->is_frozen[root]) {
                visit(g, axis, k, root);
            }
        }
    }
}

static void note_weight(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    (void)index;
    if (msc_graph_tensor(g->f->g, axis.tensor)->producer == MSC_NO_ID) {
        g->has_weight[root] = true;
    }
}

static void sign(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    (void)index;
    uint64_t place = (uint64_t)axis.tensor * MSC_MAX_DIMS + (uint64_t)axis.axis;
    g->signatures[root] = msc_hash_add_u64(g->signatures[root], place);
}

// Assigns the class with this root to the group with the same signature, unless this is already
// done.
static void find_group(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    (void)axis;
    (void)index;
    if (g->group_of[root] != MSC_NO_ID) {
        return;
    }
    int32_t k = 0;
    while (k < g->n_groups && !msc_hash_equal(g->group_signatures[k], g->signatures[root])) {
        k++;
    }
    g->group_signatures[k] = g->signatures[root];
    g->n_groups += k == g->n_groups;
    g->group_of[root] = k;
    g->groups[k].n_units++;
}

static void number_unit(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    (void)axis;
    (void)index;
    int32_t k = g->group_of[root];
    if (g->unit_of[root] == MSC_NO_ID) {
        g->unit_of[root] = g->groups[k].first_unit + g->n_found[k]++;
    }
}

// True if the axis is not yet the last in the list of the group's axes.
static bool is_new_axis(const struct msc_channel_group *group, struct msc_axis axis) {
    int32_t n = group->n_axes;
    return n == 0 || group->axes[n - 1].tensor != axis.tensor ||
           group->axes[n - 1].axis != axis.axis;
}

static void count_axis(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    struct msc_channel_group *group = &g->groups[g->group_of[root]];
    (void)index;
    if (g->unit_of[root] != group->first_unit) {
        return;
    }
    struct msc_channel_axis *axes = (struct msc_channel_axis *)group->axes;
    if (is_new_axis(group, axis)) {
        axes[group->n_axes++] = (struct msc_channel_axis){
            .tensor = axis.tensor,
            .axis = axis.axis,
            .roles = g->f->roles[axis.tensor * MSC_MAX_DIMS + axis.axis],
        };
    }
    axes[group->n_axes - 1].n++;
}

static void add_room(struct grouping *g, struct msc_axis axis, int64_t index, int32_t root) {
    (void)axis;
    (void)index;
    struct msc_channel_group *group = &g->groups[g->group_of[root]];
    group->n_axes += g->unit_of[root] == group->first_unit;
}

// ---- Results ----------------------------------------------------------------------------------

static enum msc_status make_room(struct grouping *g) {
    for (int32_t k = 0; k < g->n_groups; k++) {
        struct msc_channel_group *group = &g->groups[k];
        size_t n = (size_t)group->n_axes; // upper limit: the number of indices of the first unit
        group->axes = msc_arena_array(g->arena, n, sizeof(group->axes[0]));
        group->n_axes = 0;
        MSC_TRY(MSC_ALLOCATED(group->axes));
    }
    return MSC_OK;
}

static enum msc_status list_units(struct msc_channels *out, const struct grouping *g) {
    const struct msc_channels_finder *f = g->f;
    int32_t n_axes = out->n_tensors * MSC_MAX_DIMS;
    const int32_t **all = msc_arena_array(g->arena, (size_t)n_axes, sizeof(all[0]));
    MSC_TRY(MSC_ALLOCATED(all));
    out->units = all;
    for (int32_t i = 0; i < n_axes; i++) {
        int64_t n = f->periods[i];
        bool has_units = false;
        for (int64_t k = 0; k < n && !has_units; k++) {
            has_units = !f->is_frozen[f->parents[f->first[i] + k]];
        }
        int32_t *units = !has_units ? NULL : msc_arena_array(g->arena, (size_t)n, sizeof(units[0]));
        MSC_TRY(MSC_ALLOCATED(!has_units || units));
        for (int64_t k = 0; has_units && k < n; k++) {
            units[k] = g->unit_of[f->parents[f->first[i] + k]];
        }
        all[i] = units;
    }
    return MSC_OK;
}

// The group is named after its first weight that produces the units (MSC_CHANNEL_MAKES). If no
// weight produces them, it is named after its first weight.
static const char *find_name(const struct msc_graph *g, const struct msc_channel_group *group) {
    const struct msc_channel_axis *named = NULL;
    for (int32_t i = 0; i < group->n_axes; i++) {
        const struct msc_channel_axis *axis = &group->axes[i];
        bool is_weight = msc_graph_tensor(g, axis->tensor)->producer == MSC_NO_ID;
        bool makes = (axis->roles & MSC_CHANNEL_MAKES) != 0;
        bool had_maker = named != NULL && (named->roles & MSC_CHANNEL_MAKES) != 0;
        if (is_weight && !had_maker && (makes || named == NULL)) {
            named = axis;
        }
    }
    return msc_graph_tensor(g, named->tensor)->name;
}

static bool has_name(const struct grouping *g, int32_t n, const char *name) {
    for (int32_t i = 0; i < n; i++) {
        if (strcmp(g->groups[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum msc_status name_groups(struct grouping *g) {
    for (int32_t i = 0; i < g->n_groups; i++) {
        const char *base = find_name(g->f->g, &g->groups[i]);
        const char *name = msc_arena_strdup(g->arena, base);
        for (int k = 1; name != NULL && has_name(g, i, name); k++) {
            name = msc_arena_printf(g->arena, "%s_%d", base, k);
        }
        MSC_TRY(MSC_ALLOCATED(name));
        g->groups[i].name = name;
    }
    return MSC_OK;
}

static enum msc_status list_reads(struct msc_channels *out, const struct grouping *g) {
    const struct msc_channels_finder *f = g->f;
    struct msc_channel_read *reads =
        msc_arena_array(g->arena, (size_t)f->n_reads, sizeof(reads[0]));
    MSC_TRY(MSC_ALLOCATED(reads));
    for (int32_t i = 0; i < f->n_reads; i++) {
        int32_t tensor = f->sites->slots[f->reads[i].slot].tensor;
        if (out->units[tensor * MSC_MAX_DIMS + f->reads[i].axis] != NULL) {
            reads[out->n_reads++] = f->reads[i];
        }
    }
    out->reads = reads;
    return MSC_OK;
}

// Keeps only the followers whose axis has units.
static enum msc_status list_followers(struct msc_channels *out, const struct grouping *g) {
    const struct msc_channels_finder *f = g->f;
    struct msc_channel_follower *followers =
        msc_arena_array(g->arena, (size_t)f->n_followers, sizeof(followers[0]));
    MSC_TRY(MSC_ALLOCATED(followers));
    for (int32_t i = 0; i < f->n_followers; i++) {
        const struct msc_channel_follower *one = &f->followers[i];
        if (out->units[one->of_tensor * MSC_MAX_DIMS + one->of_axis] != NULL) {
            followers[out->n_followers++] = *one;
        }
    }
    out->followers = followers;
    return MSC_OK;
}

// ---- Passes over the nodes --------------------------------------------------------------------

static enum msc_status sign_classes(struct grouping *g) {
    size_t n = (size_t)g->f->n_nodes;
    struct msc_arena *work = g->f->arena;
    g->has_weight = msc_arena_array(work, n, sizeof(g->has_weight[0]));
    g->signatures = msc_arena_array(work, n, sizeof(g->signatures[0]));
    g->group_of = msc_arena_array(work, n, sizeof(g->group_of[0]));
    g->unit_of = msc_arena_array(work, n, sizeof(g->unit_of[0]));
    MSC_TRY(MSC_ALLOCATED(g->has_weight && g->signatures && g->group_of && g->unit_of));
    visit_nodes(g, note_weight);
    size_t n_classes = 0;
    for (size_t i = 0; i < n; i++) {
        // Freezes classes without weights, because removing them would make no weight smaller.
        g->f->is_frozen[i] = g->f->is_frozen[i] || !g->has_weight[i];
        g->group_of[i] = g->unit_of[i] = MSC_NO_ID;
        n_classes += g->f->parents[i] == (int32_t)i && !g->f->is_frozen[i];
    }
    visit_nodes(g, sign);
    g->groups = msc_arena_array(g->arena, n_classes, sizeof(g->groups[0]));
    g->group_signatures = msc_arena_array(work, n_classes, sizeof(g->group_signatures[0]));
    g->n_found = msc_arena_array(work, n_classes, sizeof(g->n_found[0]));
    return MSC_ALLOCATED(g->groups && g->group_signatures && g->n_found);
}

enum msc_status msc_channels__group(struct msc_channels *out, struct msc_channels_finder *f) {
    out->storage = msc_alloc_zero(1, sizeof(struct msc_arena));
    struct grouping g = {.f = f, .arena = out->storage};
    MSC_TRY(MSC_ALLOCATED(out->storage));
    MSC_TRY(sign_classes(&g));
    visit_nodes(&g, find_group);
    for (int32_t k = 0; k < g.n_groups; k++) {
        g.groups[k].first_unit = out->n_units;
        out->n_units += g.groups[k].n_units;
    }
    visit_nodes(&g, number_unit);
    visit_nodes(&g, add_room);
    MSC_TRY(make_room(&g));
    visit_nodes(&g, count_axis);
    MSC_TRY(name_groups(&g));
    out->n_groups = g.n_groups;
    out->groups = g.groups;
    MSC_TRY(list_units(out, &g));
    MSC_TRY(list_followers(out, &g));
    return list_reads(out, &g);
}
