// Writes a graph's JSON form or text form, and its weights, to disk.
#include "graph/graph_internal.h"

#include "base/file.h"
#include "base/str.h"
#include "data/array_codes.h"
#include "data/safetensors.h"

#include <string.h>

static enum msc_status list_elements(struct msc_array_list *list, struct msc_arena *arena,
                                     const struct msc_graph *g, const char *prefix) {
    for (int32_t i = 0; i < g->n_tensors; i++) {
        const struct msc_tensor *t = &g->tensors[i]->tensor;
        if (t->producer != MSC_NO_ID) {
            continue;
        }
        if (t->data == NULL) {
            return MSC_FAIL(MSC_E_STATE, "graph '%s': weight '%s' has no elements to save", g->name,
                            t->name);
        }
        const char *name = msc_arena_printf(arena, "%s%s", prefix, t->name);
        MSC_TRY(MSC_ALLOCATED(name));
        MSC_TRY(msc_array_list_add(list, name, t->data));
    }
    for (int32_t i = 0; i < g->n_joints; i++) {
        const struct msc_joint *j = &g->joints[i]->joint;
        for (int32_t k = 0; k < j->n_graphs; k++) {
            const char *inner = msc_graph_body_prefix(arena, prefix, j->op, j->name, k);
            MSC_TRY(MSC_ALLOCATED(inner));
            MSC_TRY(list_elements(list, arena, j->graphs[k], inner));
        }
    }
    return MSC_OK;
}

enum msc_status msc_graph_list_weights(struct msc_array_list *list, struct msc_arena *arena,
                                       const struct msc_graph *g, const char *prefix) {
    size_t first = list->n;
    MSC_TRY(list_elements(list, arena, g, prefix));
    for (size_t i = first, end = list->n; i < end; i++) {
        MSC_TRY(msc_array_list_add_codes(list, list->names[i], list->arrays[i]));
    }
    return MSC_OK;
}

// The forms that a graph can be saved in.
static const struct form {
    const char *ending;
    void (*write)(const struct msc_graph *g, struct msc_str *out);
} forms[] = {
    {".json", msc_graph_write_json},
    {".msc", msc_graph_print},
};

// The form that the path ends in, or NULL. *n_stem is the length of the path without the ending.
static const struct form *find_form(int *n_stem, const char *path) {
    *n_stem = (int)strlen(path);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (msc_path_ends_in(path, forms[i].ending)) {
            *n_stem -= (int)strlen(forms[i].ending);
            return &forms[i];
        }
    }
    return NULL;
}

bool msc_graph_can_save(const char *path) {
    int n_stem;
    return find_form(&n_stem, path) != NULL && n_stem > 0;
}

enum msc_status msc_graph_save(const struct msc_graph *g, const char *path) {
    struct msc_arena arena = {0};
    struct msc_array_list weights = {0};
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    int n_stem;
    const struct form *form = find_form(&n_stem, path);
    form = form == NULL ? &forms[0] : form;
    char *weights_path = msc_arena_printf(&arena, "%.*s.safetensors", n_stem, path);
    char *text_path = msc_arena_printf(&arena, "%.*s%s", n_stem, path, form->ending);
    MSC_TRY_OUT(MSC_ALLOCATED(weights_path && text_path));
    MSC_TRY_OUT(msc_graph_list_weights(&weights, &arena, g, ""));
    form->write(g, &text);
    if (text.length > 0 && text.data[text.length - 1] != '\n') {
        msc_str_char(&text, '\n');
    }
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_safetensors_save(weights_path, &weights, NULL, 0));
    MSC_TRY_OUT(msc_file_write(text_path, text.data, text.length));
out:
    msc_str_finish(&text);
    msc_array_list_finish(&weights);
    msc_arena_finish(&arena);
    return status;
}
