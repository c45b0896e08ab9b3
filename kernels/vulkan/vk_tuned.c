// Stores on disk, as JSON, the tiles that tuning chose:
//
//     {"schema": 1, "device": "...", "driver": "...", "family": "g", "tiles": [
//         {"rows": 256, "cols": 256, "depth": 256, "integer": false, "tile": "64x64x16 by 8x4"}]}
//
// A file that does not match this device, driver and program is ignored: tiles affect only speed,
// never results.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static char *path_of(const struct msc_vk *vk, struct msc_arena *arena) {
    char *name = msc_arena_printf(arena, "vulkan-%08x-%08x-%s.tiles.json", vk->properties.vendorID,
                                  vk->properties.deviceID, vk->tuning.is_family_u ? "u" : "g");
    return name ? msc_path_join(arena, vk->cache_folder, name) : NULL;
}

const char *msc_vk_tile_text(char text[40], const struct msc_vk_tile *t) {
    snprintf(text, 40, "%ux%ux%u by %ux%u%s", t->rows, t->cols, t->depth, t->row, t->col,
             t->is_matrix ? " matrix" : "");
    return text;
}

// ---- Reading ----------------------------------------------------------------------------------

static int find_tile(const struct msc_vk *vk, const char *text, bool is_integer) {
    char name[40];
    for (int i = 0; i < msc_vk_n_tiles(vk); i++) {
        if (strcmp(msc_vk_tile_text(name, msc_vk_tile(vk, i)), text) == 0) {
            return msc_vk_tile_is_possible(vk, i, is_integer) ? i : -1;
        }
    }
    return -1;
}

static bool is_text(const cJSON *json, const char *key, const char *expected) {
    const cJSON *item = msc_json_get(json, key);
    return cJSON_IsString(item) && strcmp(item->valuestring, expected) == 0;
}

static bool get_count(uint64_t *out, const cJSON *json, const char *key) {
    int64_t count = 0;
    bool is_count =
        msc_json_read_i64(&count, msc_json_get(json, key), 1, INT64_C(1000000000000000));
    *out = (uint64_t)count;
    return is_count;
}

static bool read_row(struct msc_vk_tuned *out, const struct msc_vk *vk, const cJSON *json) {
    const cJSON *tile = msc_json_get(json, "tile");
    if (!get_count(&out->shape.rows, json, "rows") || !get_count(&out->shape.cols, json, "cols") ||
        !get_count(&out->shape.depth, json, "depth") || !cJSON_IsString(tile)) {
        return false;
    }
    out->shape.is_integer = cJSON_IsTrue(msc_json_get(json, "integer"));
    out->tile = find_tile(vk, tile->valuestring, out->shape.is_integer);
    return out->tile >= 0;
}

static void read_rows(struct msc_vk *vk, const cJSON *json) {
    const cJSON *schema = msc_json_get(json, "schema"), *row;
    if (!cJSON_IsNumber(schema) || schema->valuedouble != 1.0 ||
        !is_text(json, "device", vk->properties.deviceName) ||
        !is_text(json, "driver", vk->driver) ||
        !is_text(json, "family", vk->tuning.is_family_u ? "u" : "g")) {
        return;
    }
    cJSON_ArrayForEach(row, msc_json_get(json, "tiles")) {
        if (vk->n_tuned < MSC_VK_MAX_TUNED && read_row(&vk->tuned[vk->n_tuned], vk, row)) {
            vk->n_tuned++;
        }
    }
}

void msc_vk_tuned_load(struct msc_vk *vk) {
    struct msc_arena arena = {0};
    cJSON *json = NULL;
    char *path = vk->cache_folder ? path_of(vk, &arena) : NULL;
    vk->n_tuned = 0;
    if (path && msc_file_exists(path)) {
        if (msc_json_load(&json, path) == MSC_OK) {
            read_rows(vk, json);
        } else {
            msc_log(vk->log, MSC_LOG_WARNING, "vulkan: tuned tiles are ignored: %s",
                    msc_status_message());
        }
    }
    cJSON_Delete(json);
    msc_arena_finish(&arena);
}

// ---- Writing ----------------------------------------------------------------------------------

static enum msc_status vk_tuned_add_row(cJSON *list, const struct msc_vk *vk,
                                        const struct msc_vk_tuned *row) {
    char text[40];
    cJSON *json = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, json));
    MSC_TRY(msc_json_add_number(json, "rows", (double)row->shape.rows));
    MSC_TRY(msc_json_add_number(json, "cols", (double)row->shape.cols));
    MSC_TRY(msc_json_add_number(json, "depth", (double)row->shape.depth));
    MSC_TRY(msc_json_add_bool(json, "integer", row->shape.is_integer));
    return msc_json_add_text(json, "tile", msc_vk_tile_text(text, msc_vk_tile(vk, row->tile)));
}

static enum msc_status add_all(cJSON *json, const struct msc_vk *vk) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "tiles", list));
    MSC_TRY(msc_json_add_number(json, "schema", 1));
    MSC_TRY(msc_json_add_text(json, "device", vk->properties.deviceName));
    MSC_TRY(msc_json_add_text(json, "driver", vk->driver));
    MSC_TRY(msc_json_add_text(json, "family", vk->tuning.is_family_u ? "u" : "g"));
    for (int i = 0; i < vk->n_tuned; i++) {
        MSC_TRY(vk_tuned_add_row(list, vk, &vk->tuned[i]));
    }
    return MSC_OK;
}

enum msc_status msc_vk_tuned_save(const struct msc_vk *vk) {
    struct msc_arena arena = {0};
    struct msc_str text = {0};
    cJSON *json = cJSON_CreateObject();
    char *path = path_of(vk, &arena);
    enum msc_status status = MSC_ALLOCATED(path && json);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(add_all(json, vk));
    msc_json_write_pretty(&text, json);
    MSC_TRY_OUT(msc_str_status(&text));
    MSC_TRY_OUT(msc_file_make_folders(vk->cache_folder));
    status = msc_file_write(path, msc_str_text(&text), text.length);
out:
    msc_str_finish(&text);
    cJSON_Delete(json);
    msc_arena_finish(&arena);
    return status;
}
