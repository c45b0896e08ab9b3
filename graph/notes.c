#include "graph/notes.h"

#include "graph/graph_internal.h"

const struct msc_graph_notes *msc_graph_notes(const struct msc_graph *g) {
    return &g->notes;
}

bool msc_graph_has_notes(const struct msc_graph *g) {
    const struct msc_graph_notes *n = &g->notes;
    const char *const texts[] = {n->doc, n->graph_doc, n->domain};
    bool has = n->opset != 0 || n->model_version != 0 || n->n_metadata > 0 || n->n_input_docs > 0 ||
               n->n_output_docs > 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        has = has || (texts[i] != NULL && texts[i][0] != '\0');
    }
    return has;
}

static const char *notes_copy_text(struct msc_graph *g, const char *text) {
    return msc_arena_strdup(&g->arena, text == NULL ? "" : text);
}

// The index of the pair with this key; `n` if the key is new.
static enum msc_status place_of(size_t *out, struct msc_graph_names *places, const char *key,
                                size_t n) {
    int32_t found = msc_graph__names_find(places, key);
    *out = found == MSC_NO_ID ? n : (size_t)found;
    return found == MSC_NO_ID ? msc_graph__names_put(places, key, (int32_t)n) : MSC_OK;
}

static enum msc_status copy_pairs(const struct msc_attr **out, size_t *n_out, struct msc_graph *g,
                                  const struct msc_attr from[], size_t n) {
    struct msc_attr *to = msc_arena_array(&g->arena, n + 1, sizeof(to[0]));
    struct msc_graph_names places = {0};
    enum msc_status status = MSC_ALLOCATED(to);
    *n_out = 0;
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        size_t at;
        struct msc_attr pair = {notes_copy_text(g, from[i].key), notes_copy_text(g, from[i].value)};
        if (pair.key == NULL || pair.value == NULL) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
            break;
        }
        status = place_of(&at, &places, pair.key, *n_out);
        if (status == MSC_OK) {
            *n_out += at == *n_out;
            to[at] = pair;
        }
    }
    msc_graph__names_finish(&places);
    *out = to;
    return status;
}

enum msc_status msc_graph_set_notes(struct msc_graph *g, const struct msc_graph_notes *notes) {
    struct msc_graph_notes copy = *notes;
    copy.doc = notes_copy_text(g, notes->doc);
    copy.graph_doc = notes_copy_text(g, notes->graph_doc);
    copy.domain = notes_copy_text(g, notes->domain);
    MSC_TRY(MSC_ALLOCATED(copy.doc && copy.graph_doc && copy.domain));
    MSC_TRY(copy_pairs(&copy.metadata, &copy.n_metadata, g, notes->metadata, notes->n_metadata));
    MSC_TRY(copy_pairs(&copy.input_docs, &copy.n_input_docs, g, notes->input_docs,
                       notes->n_input_docs));
    MSC_TRY(copy_pairs(&copy.output_docs, &copy.n_output_docs, g, notes->output_docs,
                       notes->n_output_docs));
    g->notes = copy;
    return MSC_OK;
}
