// The tiles kept for a device, as choices among the variants of products (kernels/choices.h).
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

// The file of this device, and what names the device in it.
struct place {
    struct msc_arena arena;
    const char *path, *device;
};

static enum msc_status find_place(struct place *out, const struct msc_vk *vk) {
    const char *family = vk->tuning.is_family_u ? "u" : "g";
    *out = (struct place){.path = NULL};
    char *name = msc_arena_printf(&out->arena, "vulkan-%08x-%08x-%s.choices.json",
                                  vk->properties.vendorID, vk->properties.deviceID, family);
    out->device = msc_arena_printf(&out->arena, "%s; %s; family %s", vk->properties.deviceName,
                                   vk->driver, family);
    out->path = name ? msc_path_join(&out->arena, vk->cache_folder, name) : NULL;
    return MSC_ALLOCATED(out->path && out->device);
}

const char *msc_vk_tile_text(char text[40], const struct msc_vk_tile *t) {
    snprintf(text, 40, "%ux%ux%u by %ux%u%s", t->rows, t->cols, t->depth, t->row, t->col,
             t->is_matrix ? " matrix" : "");
    return text;
}

int msc_vk_find_tile(const struct msc_vk *vk, const char *text, bool is_integer) {
    char name[40];
    for (int i = 0; i < msc_vk_n_tiles(vk); i++) {
        if (strcmp(msc_vk_tile_text(name, msc_vk_tile(vk, i)), text) == 0) {
            return msc_vk_tile_is_possible(vk, i, is_integer) ? i : -1;
        }
    }
    return -1;
}

static void take_all(struct msc_vk *vk, const struct msc_choices *kept) {
    vk->n_tuned = 0;
    for (int i = 0; i < kept->n; i++) {
        const struct msc_work *w = &kept->choices[i].work;
        bool is_integer = strcmp(w->kind, "int8") == 0;
        struct msc_vk_tuned row = {{w->rows, w->cols, w->depth, is_integer}, -1};
        row.tile = msc_vk_find_tile(vk, kept->choices[i].variant, is_integer);
        if (row.tile >= 0 && (is_integer || strcmp(w->kind, "float32") == 0)) {
            vk->tuned[vk->n_tuned++] = row;
        }
    }
}

void msc_vk_tuned_load(struct msc_vk *vk) {
    struct msc_choices *kept = vk->cache_folder ? msc_alloc_zero(1, sizeof(*kept)) : NULL;
    struct place place;
    vk->n_tuned = 0;
    if (kept && find_place(&place, vk) == MSC_OK) {
        msc_choices_load(kept, place.path, place.device, vk->log);
        take_all(vk, kept);
    }
    if (kept) {
        msc_arena_finish(&place.arena);
    }
    msc_free(kept);
}

enum msc_status msc_vk_tuned_keep(struct msc_vk *vk, const struct msc_kept_choice choices[],
                                  size_t n) {
    if (!vk->cache_folder) {
        return MSC_FAIL(MSC_E_INVALID, "vulkan: keeping choices needs options.cache_folder");
    }
    struct msc_choices *kept = msc_alloc_zero(1, sizeof(*kept));
    struct place place;
    enum msc_status status = find_place(&place, vk);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(MSC_ALLOCATED(kept));
    status = msc_choices_keep(kept, place.path, place.device, choices, n, vk->log);
    take_all(vk, kept);
out:
    msc_arena_finish(&place.arena);
    msc_free(kept);
    return status;
}

enum msc_status msc_vk_tuned_save(struct msc_vk *vk) {
    size_t n = (size_t)vk->n_tuned;
    struct msc_kept_choice *choices = msc_alloc_zero(n + 1, sizeof(choices[0]));
    MSC_TRY(MSC_ALLOCATED(choices));
    for (size_t i = 0; i < n; i++) {
        choices[i].work = msc_vk_work_of(&vk->tuned[i].shape);
        msc_vk_tile_text(choices[i].variant, msc_vk_tile(vk, vk->tuned[i].tile));
    }
    enum msc_status status = msc_vk_tuned_keep(vk, choices, n);
    msc_free(choices);
    return status;
}
