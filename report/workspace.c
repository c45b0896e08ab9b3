#include "report/workspace.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_scan.h"
#include "records/record_writer.h"
#include "results/history.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// Subfolders are searched to this depth.
#define DEEPEST 2
#define MOST_RECORDS 2000

struct listing {
    cJSON *rows;
    const cJSON *known;
    struct msc_arena arena;
};

static const char *row_text(const cJSON *row, const char *key) {
    const cJSON *item = msc_json_get(row, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

bool msc_workspace_stamp_of(struct msc_workspace_stamp *out, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    *out = (struct msc_workspace_stamp){
        .n_bytes = (uint64_t)info.st_size,
        .time_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec,
    };
    return true;
}

static bool is_running(const char *path) {
    struct msc_record_writer writer;
    msc_record_find_writer(&writer, path);
    return writer.is_written == MSC_RECORD_WRITTEN_YES;
}

// ---- A record ---------------------------------------------------------------------------------

static enum msc_status read_best(char best[48], char trials[32], const char *path) {
    struct msc_record_scan *scan = NULL;
    struct msc_history history = {0};
    const struct msc_record_line *line = NULL;
    enum msc_status status = MSC_OK;
    best[0] = '\0';
    trials[0] = '\0';
    MSC_TRY(msc_record_scan_open(&scan, path, NULL));
    MSC_TRY_OUT(msc_history_init(&history, msc_record_goal(msc_record_scan_record(scan)), 4));
    do {
        MSC_TRY_OUT(msc_record_scan_next(&line, scan));
        if (line) {
            msc_history_add(&history, line);
        }
    } while (line);
    snprintf(trials, 32, "%lld", (long long)history.n_trials);
    if (history.n_last > 0) {
        snprintf(best, 48, "%.5g", history.last[0].value);
    }
out:
    msc_history_finish(&history);
    msc_record_scan_close(scan);
    return status;
}

static const cJSON *find_known(const cJSON *known, const char *path, const char *stamp) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, known) {
        if (strcmp(row_text(row, "path"), path) == 0 &&
            strcmp(row_text(row, "stamp"), stamp) == 0) {
            return row;
        }
    }
    return NULL;
}

static enum msc_status fill_row(cJSON *row, struct listing *l, const char *path,
                                const char *stamp) {
    char address[MSC_HASH_TEXT_BYTES], best[48], trials[32];
    const cJSON *known = find_known(l->known, path, stamp);
    bool is_readable = true;
    if (known) {
        snprintf(best, sizeof best, "%s", row_text(known, "best"));
        snprintf(trials, sizeof trials, "%s", row_text(known, "trials"));
        is_readable = trials[0] != '\0';
    } else {
        is_readable = read_best(best, trials, path) == MSC_OK;
    }
    msc_hash_format(address, msc_hash_bytes(path, strlen(path)));
    address[16] = '\0';
    const char *state = !is_readable ? "cannot be read" : is_running(path) ? "running" : "at rest";
    MSC_TRY(msc_json_add_text(row, "name", msc_path_name(path)));
    MSC_TRY(msc_json_add_text(row, "path", path));
    MSC_TRY(msc_json_add_text(row, "address", address));
    MSC_TRY(msc_json_add_text(row, "state", state));
    MSC_TRY(msc_json_add_text(row, "trials", trials));
    MSC_TRY(msc_json_add_text(row, "best", best));
    return msc_json_add_text(row, "stamp", stamp);
}

// Orders records of running searches first, then by path.
static bool comes_before(const cJSON *a, const cJSON *b) {
    bool runs_a = strcmp(row_text(a, "state"), "running") == 0;
    bool runs_b = strcmp(row_text(b, "state"), "running") == 0;
    return runs_a != runs_b ? runs_a : strcmp(row_text(a, "path"), row_text(b, "path")) < 0;
}

static enum msc_status insert_row(cJSON *rows, cJSON *row) {
    int place = 0;
    const cJSON *other = NULL;
    cJSON_ArrayForEach(other, rows) {
        if (comes_before(row, other)) {
            break;
        }
        place++;
    }
    if (place == cJSON_GetArraySize(rows)) {
        return msc_json_push(rows, row);
    }
    cJSON_InsertItemInArray(rows, place, row);
    return MSC_OK;
}

static enum msc_status add_file(struct listing *l, const char *path) {
    struct msc_workspace_stamp now;
    char stamp[64];
    bool is_record = false;
    if (cJSON_GetArraySize(l->rows) >= MOST_RECORDS || !msc_workspace_stamp_of(&now, path) ||
        msc_record_is_file(&is_record, path) != MSC_OK || !is_record) {
        return MSC_OK;
    }
    snprintf(stamp, sizeof stamp, "%llu %llu", (unsigned long long)now.n_bytes,
             (unsigned long long)now.time_ns);
    cJSON *row = cJSON_CreateObject();
    enum msc_status status =
        row ? fill_row(row, l, path, stamp) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(row);
        return status;
    }
    return insert_row(l->rows, row);
}

// ---- Folders ----------------------------------------------------------------------------------

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// True for "a.jsonl", "a.jsonl.1", "a.jsonl.saved.1", but not for "a.jsonl.params".
static bool may_be_record(const char *name) {
    const char *end = strstr(name, ".jsonl");
    if (!end || name[0] == '.') {
        return false;
    }
    end += strlen(".jsonl");
    end += strncmp(end, ".saved", 6) == 0 ? 6 : 0;
    return end[0] == '\0' || (end[0] == '.' && strspn(end + 1, "0123456789") == strlen(end + 1));
}

static enum msc_status add_folder(struct listing *l, const char *path, int depth) {
    DIR *folder = opendir(path);
    enum msc_status status = MSC_OK;
    for (const struct dirent *item; status == MSC_OK && folder && (item = readdir(folder));) {
        bool is_hidden = item->d_name[0] == '.';
        char *inner = is_hidden ? NULL : msc_path_join(&l->arena, path, item->d_name);
        if (!is_hidden && !inner) {
            status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        } else if (inner && is_folder(inner)) {
            status = depth < DEEPEST ? add_folder(l, inner, depth + 1) : MSC_OK;
        } else if (inner && may_be_record(item->d_name)) {
            status = add_file(l, inner);
        }
    }
    if (folder) {
        closedir(folder);
    }
    return status;
}

enum msc_status msc_workspace_list(struct cJSON **out, const struct cJSON *known,
                                   const char *const paths[], size_t n) {
    struct listing l = {.rows = cJSON_CreateArray(), .known = known};
    enum msc_status status = MSC_ALLOCATED(l.rows);
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = is_folder(paths[i]) ? add_folder(&l, paths[i], 0) : add_file(&l, paths[i]);
    }
    msc_arena_finish(&l.arena);
    if (status != MSC_OK) {
        cJSON_Delete(l.rows);
        return status;
    }
    *out = l.rows;
    return MSC_OK;
}

const char *msc_workspace_find(const struct cJSON *list, const char *address) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (strcmp(row_text(row, "address"), address) == 0) {
            return row_text(row, "path");
        }
    }
    return NULL;
}
