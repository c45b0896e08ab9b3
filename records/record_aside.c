// Renames a record together with its companion files, and undoes that.
#include "records/record_internal.h"

#include "base/file.h"
#include "records/record_query.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// Suffixes of the files that are renamed with a record.
static const char *const companions[] = {".params",      ".base.json",    ".result.json",
                                         ".rerank.json", ".distill.json", ".cut"};
#define N_COMPANIONS (sizeof companions / sizeof companions[0])

// Finds a free PATH.i. A companion file that exists only under the name PATH.i was moved by an
// earlier, interrupted attempt, so it does not make the name unavailable.
static enum msc_status find_free_name(const char **out, struct msc_arena *arena, const char *path) {
    for (int i = 1;; i++) {
        const char *target = msc_arena_printf(arena, "%s.%d", path, i);
        bool is_free = target && !msc_file_exists(target);
        for (size_t k = 0; target && k < N_COMPANIONS; k++) {
            const char *from = msc_arena_printf(arena, "%s%s", path, companions[k]);
            const char *to = msc_arena_printf(arena, "%s%s", target, companions[k]);
            MSC_TRY(MSC_ALLOCATED(from && to));
            is_free = is_free && !(msc_file_exists(from) && msc_file_exists(to));
        }
        MSC_TRY(MSC_ALLOCATED(target));
        if (is_free) {
            *out = target;
            return MSC_OK;
        }
    }
}

static enum msc_status move_companion(struct msc_arena *arena, const char *path, const char *target,
                                      const char *ending) {
    const char *from = msc_arena_printf(arena, "%s%s", path, ending);
    const char *to = msc_arena_printf(arena, "%s%s", target, ending);
    MSC_TRY(MSC_ALLOCATED(from && to));
    return !msc_file_exists(from) || rename(from, to) == 0
               ? MSC_OK
               : msc_record__fail_system("set the old record aside", from, errno);
}

// The record is renamed last: as long as it has its old name, an interrupted move can be resumed.
static enum msc_status move_aside(const char **new_path, struct msc_arena *arena,
                                  const char *path) {
    const char *target = NULL;
    const char *attempt = msc_arena_printf(arena, "%s.attempt", path);
    MSC_TRY(MSC_ALLOCATED(attempt));
    MSC_TRY(find_free_name(&target, arena, path));
    for (size_t k = 0; k < N_COMPANIONS; k++) {
        MSC_TRY(move_companion(arena, path, target, companions[k]));
    }
    if (rename(path, target) != 0) {
        return msc_record__fail_system("set the old record aside", path, errno);
    }
    MSC_TRY(msc_file_remove(attempt));
    *new_path = target;
    msc_file_sync_folder(path);
    return MSC_OK;
}

enum msc_status msc_record_set_aside(char **new_path, const char *path, const struct msc_log *log) {
    struct msc_arena arena = {0};
    const char *target = NULL;
    int descriptor = -1;
    if (new_path) {
        *new_path = NULL;
    }
    if (!msc_file_exists(path)) {
        return MSC_OK;
    }
    MSC_TRY(msc_record__open_locked(&descriptor, path, 0));
    enum msc_status status = move_aside(&target, &arena, path);
    if (status == MSC_OK) {
        msc_log(log, MSC_LOG_INFO, "%s: the old record is now %s", path, target);
    }
    if (status == MSC_OK && new_path) {
        *new_path = msc_strdup(target);
        status = MSC_ALLOCATED(*new_path);
    }
    close(descriptor);
    msc_arena_finish(&arena);
    return status;
}

// Removes the files of a search that recorded no trial.
static enum msc_status remove_beginning(struct msc_arena *arena, const char *path) {
    const char *attempt = msc_arena_printf(arena, "%s.attempt", path);
    for (size_t k = 0; k < N_COMPANIONS; k++) {
        const char *beside = msc_arena_printf(arena, "%s%s", path, companions[k]);
        MSC_TRY(beside ? msc_file_remove(beside)
                       : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path));
    }
    MSC_TRY(attempt ? msc_file_remove(attempt) : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path));
    return msc_file_remove(path);
}

static enum msc_status move_back(struct msc_arena *arena, const char *path, const char *aside) {
    MSC_TRY(remove_beginning(arena, path));
    for (size_t k = 0; k < N_COMPANIONS; k++) {
        MSC_TRY(move_companion(arena, aside, path, companions[k]));
    }
    if (rename(aside, path) != 0) {
        return msc_record__fail_system("restore the name of the old record", aside, errno);
    }
    msc_file_sync_folder(path);
    return MSC_OK;
}

// Counts the trials of the record at the path. *n_asked is the number of trials that count against
// a budget.
static enum msc_status count_lines(size_t *n_lines, size_t *n_asked, const char *path) {
    struct msc_record *record = NULL;
    struct msc_record_counts counts = {0};
    enum msc_status status = msc_record_open(&record, path, MSC_RECORD_READ, NULL);
    if (status == MSC_OK) {
        msc_record_count(&counts, record);
    }
    msc_record_close(record);
    *n_lines = counts.n_trials;
    *n_asked = counts.n_budgeted;
    return status == MSC_E_NOT_FOUND ? MSC_OK : status;
}

bool msc_record_is_begun(const char *path) {
    size_t n_lines, n_asked;
    return count_lines(&n_lines, &n_asked, path) != MSC_OK || n_asked > 0;
}

enum msc_status msc_record_take_back(const char *path, const char *aside,
                                     const struct msc_log *log) {
    struct msc_arena arena = {0};
    int descriptor = -1;
    size_t n_lines, n_asked;
    if (!msc_file_exists(aside)) {
        return MSC_OK;
    }
    MSC_TRY(count_lines(&n_lines, &n_asked, path));
    if (n_lines > 0) {
        MSC_TRY(msc_record_set_aside(NULL, path, log));
    }
    MSC_TRY(msc_record__open_locked(&descriptor, aside, 0));
    enum msc_status status = move_back(&arena, path, aside);
    if (status == MSC_OK) {
        msc_log(log, MSC_LOG_INFO,
                "%s: restored the old record, because the new search failed before its first trial",
                path);
    }
    close(descriptor);
    msc_arena_finish(&arena);
    return status;
}
