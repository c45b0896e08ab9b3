// Finds the pairs of tasks that are neighbours in the network, for agents: the tasks of one joint,
// and those of two joints of which the second reads an output of the first. A joint without tasks
// passes on the tasks of the joints before it.
#include "base/alloc.h"
#include "env/quantize/space.h"
#include "graph/graph.h"

#include <stdlib.h>

// Of more tasks than this, a joint has only the latest ones. Along a chain of residual sums, and of
// joints that join many tensors, all tasks would otherwise be neighbours.
#define MOST_TASKS 8

struct list {
    size_t n;
    uint32_t *tasks;
};

struct walk {
    const struct msc_graph *g;
    struct msc_arena *arena;
    struct list *own;    // [n_joints], the tasks that decide a joint's operands
    struct list *passed; // [n_joints], the tasks that a joint passes on
    size_t n_pairs, capacity;
    uint32_t (*pairs)[2];
};

static int compare_latest(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

// Keeps the latest tasks of a list, each once.
static void keep_latest(struct list *list) {
    size_t n = 0;
    if (list->n == 0) {
        return;
    }
    qsort(list->tasks, list->n, sizeof list->tasks[0], compare_latest);
    for (size_t i = 0; i < list->n; i++) {
        if (n == 0 || list->tasks[i] != list->tasks[n - 1]) {
            list->tasks[n++] = list->tasks[i];
        }
    }
    list->n = n < MOST_TASKS ? n : MOST_TASKS;
}

// The task that decides a slot which a joint reads; MSC_NO_ID: none.
static int32_t task_of(const struct msc_quantize_space *s, const struct msc_sites *sites,
                       int32_t slot) {
    return sites->slots[slot].joint == MSC_NO_ID ? MSC_NO_ID : msc_quantize_task_of_slot(s, slot);
}

static enum msc_status find_own(struct walk *w, const struct msc_quantize_space *s,
                                const struct msc_sites *sites) {
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        if (task_of(s, sites, i) != MSC_NO_ID) {
            w->own[sites->slots[i].joint].n++;
        }
    }
    for (int32_t j = 0; j < msc_graph_n_joints(w->g); j++) {
        w->own[j].tasks = msc_arena_array(w->arena, w->own[j].n + 1, sizeof w->own[j].tasks[0]);
        MSC_TRY(MSC_ALLOCATED(w->own[j].tasks));
        w->own[j].n = 0;
    }
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        int32_t task = task_of(s, sites, i);
        if (task != MSC_NO_ID) {
            struct list *own = &w->own[sites->slots[i].joint];
            own->tasks[own->n++] = (uint32_t)task;
        }
    }
    return MSC_OK;
}

// The tasks that the joints before this one pass on.
static enum msc_status gather_before(struct list *before, const struct walk *w,
                                     const struct msc_joint *joint) {
    size_t n = 0;
    for (int32_t i = 0; i < joint->n_parents; i++) {
        n += w->passed[joint->parents[i]].n;
    }
    *before = (struct list){.tasks = msc_arena_array(w->arena, n + 1, sizeof before->tasks[0])};
    MSC_TRY(MSC_ALLOCATED(before->tasks));
    for (int32_t i = 0; i < joint->n_parents; i++) {
        const struct list *from = &w->passed[joint->parents[i]];
        for (size_t k = 0; k < from->n; k++) {
            before->tasks[before->n++] = from->tasks[k];
        }
    }
    keep_latest(before);
    return MSC_OK;
}

static enum msc_status reserve(struct walk *w, size_t n_more) {
    size_t capacity = 2 * (w->n_pairs + n_more);
    if (w->n_pairs + n_more <= w->capacity) {
        return MSC_OK;
    }
    uint32_t(*pairs)[2] = msc_arena_array(w->arena, capacity, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(pairs));
    for (size_t i = 0; i < w->n_pairs; i++) {
        pairs[i][0] = w->pairs[i][0];
        pairs[i][1] = w->pairs[i][1];
    }
    w->pairs = pairs;
    w->capacity = capacity;
    return MSC_OK;
}

static void add_pair(struct walk *w, uint32_t a, uint32_t b) {
    w->pairs[w->n_pairs][0] = a;
    w->pairs[w->n_pairs++][1] = b;
}

static enum msc_status visit(struct walk *w, int32_t j) {
    struct list *own = &w->own[j], before;
    MSC_TRY(gather_before(&before, w, msc_graph_joint(w->g, j)));
    keep_latest(own);
    if (own->n == 0) {
        w->passed[j] = before;
        return MSC_OK;
    }
    MSC_TRY(reserve(w, own->n * (own->n + before.n)));
    for (size_t i = 0; i < own->n; i++) {
        for (size_t k = 0; k < i; k++) {
            add_pair(w, own->tasks[i], own->tasks[k]);
        }
        for (size_t k = 0; k < before.n; k++) {
            add_pair(w, own->tasks[i], before.tasks[k]);
        }
    }
    w->passed[j] = *own;
    return MSC_OK;
}

enum msc_status msc_quantize_add_neighbours(struct msc_quantize_space *s,
                                            const struct msc_quantize_inputs *in,
                                            struct msc_arena *arena) {
    struct walk w = {.g = in->host->graph, .arena = arena};
    int32_t n = msc_graph_n_joints(w.g);
    w.own = msc_arena_array(arena, (size_t)n + 1, sizeof w.own[0]);
    w.passed = msc_arena_array(arena, (size_t)n + 1, sizeof w.passed[0]);
    MSC_TRY(MSC_ALLOCATED(w.own && w.passed));
    MSC_TRY(find_own(&w, s, msc_quantizer_sites(in->quantizer)));
    for (int32_t j = 0; j < n; j++) {
        MSC_TRY(visit(&w, j));
    }
    s->space.n_neighbours = msc_space_sort_neighbours(w.pairs, w.n_pairs);
    s->space.neighbours = (const uint32_t(*)[2])w.pairs;
    return MSC_OK;
}
