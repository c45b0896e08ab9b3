#include "graph/notes.h"

#include "graph/graph_internal.h"

const struct msc_graph_notes *msc_graph_notes(const struct msc_graph *g) {
    return &g->notes;
}

bool msc_graph_has_notes(const struct msc_graph *g) {
    const struct msc_graph_notes *n = &g->notes;
    const char *const texts[] = {n->doc, n->graph_doc, n->domain};
    bool has = n->model_version != 0 || n->n_metadata > 0 || n->n_docs > 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        has = has || (texts[i] != NULL && texts[i][0] != '\0');
    }
    return has;
}

static const char *notes_copy_text(struct msc_graph *g, const char *text) {
    return msc_arena_strdup(&g->arena, text == NULL ? "" : text);
}

static enum msc_status copy_pairs(const struct msc_attr **out, struct msc_graph *g,
                                  const struct msc_attr from[], size_t n) {
    struct msc_attr *to = msc_arena_array(&g->arena, n + 1, sizeof(to[0]));
    if (to == NULL) {
        return msc_graph__no_memory(g);
    }
    for (size_t i = 0; i < n; i++) {
        to[i].key = notes_copy_text(g, from[i].key);
        to[i].value = notes_copy_text(g, from[i].value);
        if (to[i].key == NULL || to[i].value == NULL) {
            return msc_graph__no_memory(g);
        }
    }
    *out = to;
    return MSC_OK;
}

enum msc_status msc_graph_set_notes(struct msc_graph *g, const struct msc_graph_notes *notes) {
    struct msc_graph_notes copy = *notes;
    copy.doc = notes_copy_text(g, notes->doc);
    copy.graph_doc = notes_copy_text(g, notes->graph_doc);
    copy.domain = notes_copy_text(g, notes->domain);
    if (copy.doc == NULL || copy.graph_doc == NULL || copy.domain == NULL) {
        return msc_graph__no_memory(g);
    }
    MSC_TRY(copy_pairs(&copy.metadata, g, notes->metadata, notes->n_metadata));
    MSC_TRY(copy_pairs(&copy.docs, g, notes->docs, notes->n_docs));
    g->notes = copy;
    return MSC_OK;
}
