// Hash table with open addressing that maps the names of joints, tensors, aliases or prims to ids.
#include "graph/graph_internal.h"

#include <string.h>

#define FIRST_CAPACITY 64

// The entry that holds `key`, or the free entry for it. The table always has a free entry.
static struct msc_graph_name *find_slot(const struct msc_graph_names *names, const char *key) {
    size_t mask = names->capacity - 1;
    size_t i = (size_t)msc_hash_bytes(key, strlen(key)).low & mask;
    while (names->entries[i].key != NULL && strcmp(names->entries[i].key, key) != 0) {
        i = (i + 1) & mask;
    }
    return &names->entries[i];
}

static enum msc_status double_capacity(struct msc_graph_names *names) {
    struct msc_graph_names larger = {
        .capacity = names->capacity == 0 ? FIRST_CAPACITY : names->capacity * 2,
        .n = names->n,
    };
    larger.entries = msc_alloc_zero(larger.capacity, sizeof(larger.entries[0]));
    MSC_TRY(MSC_ALLOCATED(larger.entries));
    for (size_t i = 0; i < names->capacity; i++) {
        if (names->entries[i].key != NULL) {
            *find_slot(&larger, names->entries[i].key) = names->entries[i];
        }
    }
    msc_graph__names_finish(names);
    *names = larger;
    return MSC_OK;
}

enum msc_status msc_graph__names_put(struct msc_graph_names *names, const char *key, int32_t id) {
    if ((names->n + 1) * 2 > names->capacity) {
        MSC_TRY(double_capacity(names));
    }
    struct msc_graph_name *slot = find_slot(names, key);
    names->n += slot->key == NULL;
    *slot = (struct msc_graph_name){key, id};
    return MSC_OK;
}

int32_t msc_graph__names_find(const struct msc_graph_names *names, const char *key) {
    if (names->capacity == 0) {
        return MSC_NO_ID;
    }
    const struct msc_graph_name *slot = find_slot(names, key);
    return slot->key == NULL ? MSC_NO_ID : slot->id;
}

void msc_graph__names_finish(struct msc_graph_names *names) {
    msc_free(names->entries);
    *names = (struct msc_graph_names){0};
}

const char *msc_graph_body_prefix(struct msc_arena *arena, const char *prefix, enum msc_op op,
                                  const char *joint, int32_t which) {
    const char *body = op != MSC_OP_IF ? "body" : which == 0 ? "then" : "else";
    return msc_arena_printf(arena, "%s%s/%s/", prefix, joint, body);
}
