#include "base/alloc.h"
#include "data/array_pick.h"
#include "data/npy.h"

#include <string.h>

enum msc_status msc_array_list_add(struct msc_array_list *list, const char *name,
                                   const struct msc_array *array) {
    if (msc_array_list_find(list, name)) {
        return MSC_FAIL(MSC_E_INVALID, "two arrays are named \"%s\"; give each a name of its own",
                        name);
    }
    MSC_TRY(msc_grow(&list->names, &list->names_capacity, list->n + 1, sizeof list->names[0]));
    MSC_TRY(msc_grow(&list->arrays, &list->arrays_capacity, list->n + 1, sizeof list->arrays[0]));
    char *copy = msc_strdup(name);
    if (!copy) {
        return MSC_FAIL(MSC_E_NOMEM, "not enough memory for the array name \"%s\"", name);
    }
    list->names[list->n] = copy;
    list->arrays[list->n] = msc_array_retain(array);
    list->n++;
    return MSC_OK;
}

struct msc_array *msc_array_list_find(const struct msc_array_list *list, const char *name) {
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return list->arrays[i];
        }
    }
    return NULL;
}

void msc_array_list_finish(struct msc_array_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        msc_free(list->names[i]);
        msc_array_release(list->arrays[i]);
    }
    msc_free(list->names);
    msc_free(list->arrays);
    *list = (struct msc_array_list){0};
}

bool msc_array_pick__all(const struct msc_array_pick *pick, const char *name) {
    (void)pick, (void)name;
    return true;
}
