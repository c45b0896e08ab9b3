#include "kernels/choices.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA 1.0

// ---- Choices ----------------------------------------------------------------------------------

static bool is_equal_work(const struct msc_work *a, const struct msc_work *b) {
    return strcmp(a->kind, b->kind) == 0 && a->rows == b->rows && a->cols == b->cols &&
           a->depth == b->depth;
}

void msc_choices_put(struct msc_choices *kept, const struct msc_kept_choice *choice) {
    int i = 0;
    while (i < kept->n && !is_equal_work(&kept->choices[i].work, &choice->work)) {
        i++;
    }
    if (i == MSC_MOST_CHOICES) {
        memmove(&kept->choices[0], &kept->choices[1],
                (MSC_MOST_CHOICES - 1) * sizeof(kept->choices[0]));
        i--;
    } else if (i == kept->n) {
        kept->n++;
    }
    kept->choices[i] = *choice;
}

static double log_ratio(uint64_t a, uint64_t b) {
    return fabs(log2((double)(a + 1) / (double)(b + 1)));
}

double msc_work_distance(const struct msc_work *a, const struct msc_work *b) {
    return log_ratio(a->rows, b->rows) + 2.0 * log_ratio(a->cols, b->cols) +
           0.5 * log_ratio(a->depth, b->depth);
}

const struct msc_kept_choice *msc_choices_find(const struct msc_choices *kept,
                                               const struct msc_work *work, double most) {
    const struct msc_kept_choice *best = NULL;
    double least = most;
    for (int i = 0; i < kept->n; i++) {
        const struct msc_work *of = &kept->choices[i].work;
        double distance = msc_work_distance(of, work);
        if (strcmp(of->kind, work->kind) == 0 && distance < least) {
            least = distance;
            best = &kept->choices[i];
        }
    }
    return best;
}

// ---- Reading ----------------------------------------------------------------------------------

static bool get_count(uint64_t *out, const cJSON *json, const char *key) {
    int64_t count = 0;
    bool is_count =
        msc_json_read_i64(&count, msc_json_get(json, key), 1, INT64_C(1000000000000000));
    *out = (uint64_t)count;
    return is_count;
}

static bool get_text(char out[], size_t n_bytes, const cJSON *json, const char *key) {
    const cJSON *item = msc_json_get(json, key);
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= n_bytes) {
        return false;
    }
    snprintf(out, n_bytes, "%s", item->valuestring);
    return true;
}

static bool read_choice(struct msc_kept_choice *out, const cJSON *json) {
    return get_text(out->work.kind, sizeof out->work.kind, json, "kind") &&
           get_count(&out->work.rows, json, "rows") && get_count(&out->work.cols, json, "cols") &&
           get_count(&out->work.depth, json, "depth") &&
           get_text(out->variant, sizeof out->variant, json, "variant");
}

static void read_choices(struct msc_choices *out, const cJSON *json, const char *device) {
    const cJSON *schema = msc_json_get(json, "schema"), *of = msc_json_get(json, "device"), *row;
    if (!cJSON_IsNumber(schema) || schema->valuedouble != SCHEMA || !cJSON_IsString(of) ||
        strcmp(of->valuestring, device) != 0) {
        return;
    }
    cJSON_ArrayForEach(row, msc_json_get(json, "choices")) {
        struct msc_kept_choice choice;
        if (read_choice(&choice, row)) {
            msc_choices_put(out, &choice);
        }
    }
}

void msc_choices_load(struct msc_choices *out, const char *path, const char *device,
                      const struct msc_log *log) {
    cJSON *json = NULL;
    out->n = 0;
    if (!path || !msc_file_exists(path)) {
        return;
    }
    if (msc_json_load(&json, path) == MSC_OK) {
        read_choices(out, json, device);
    } else {
        msc_log(log, MSC_LOG_WARNING, "kept choices of variants are ignored: %s",
                msc_status_message());
    }
    cJSON_Delete(json);
}

// ---- Writing ----------------------------------------------------------------------------------

static enum msc_status add_choices(cJSON *list, const struct msc_choices *kept) {
    for (int i = 0; i < kept->n; i++) {
        const struct msc_kept_choice *choice = &kept->choices[i];
        cJSON *json = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, json));
        MSC_TRY(msc_json_add_text(json, "kind", choice->work.kind));
        MSC_TRY(msc_json_add_number(json, "rows", (double)choice->work.rows));
        MSC_TRY(msc_json_add_number(json, "cols", (double)choice->work.cols));
        MSC_TRY(msc_json_add_number(json, "depth", (double)choice->work.depth));
        MSC_TRY(msc_json_add_text(json, "variant", choice->variant));
    }
    return MSC_OK;
}

static enum msc_status fill(cJSON *json, const struct msc_choices *kept, const char *device) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(json, "choices", list));
    MSC_TRY(msc_json_add_number(json, "schema", SCHEMA));
    MSC_TRY(msc_json_add_text(json, "device", device));
    return add_choices(list, kept);
}

static enum msc_status save(const struct msc_choices *kept, const char *path, const char *device) {
    struct msc_str text = {0};
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(json);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(fill(json, kept, device));
    msc_json_write_pretty(&text, json);
    MSC_TRY_OUT(msc_str_status(&text));
    status = msc_file_write(path, msc_str_text(&text), text.length);
out:
    msc_str_finish(&text);
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_choices_keep(struct msc_choices *out, const char *path, const char *device,
                                 const struct msc_kept_choice choices[], size_t n,
                                 const struct msc_log *log) {
    struct msc_arena arena = {0};
    int lock = -1;
    const char *folder = msc_path_folder(&arena, path);
    enum msc_status status = MSC_ALLOCATED(folder);
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(msc_file_make_folders(folder));
    MSC_TRY_OUT(msc_file_lock_folder(&lock, folder));
    msc_choices_load(out, path, device, log);
    for (size_t i = 0; i < n; i++) {
        msc_choices_put(out, &choices[i]);
    }
    status = save(out, path, device);
    close(lock);
out:
    msc_arena_finish(&arena);
    return status;
}
