// Giving a record another name, with what lies beside it.
#include "records/record_internal.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

// Files beside a record that go with it, by what their names add to its own.
static const char *const companions[] = {".params",      ".base.json",    ".result.json",
                                         ".rerank.json", ".distill.json", ".cut"};
#define N_COMPANIONS (sizeof companions / sizeof companions[0])

// PATH.i and its companions. A companion that is only there under the new name was moved when an
// earlier attempt was interrupted, and takes no name away.
static enum msc_status find_free_name(const char **out, struct msc_arena *arena, const char *path) {
    for (int i = 1;; i++) {
        const char *target = msc_arena_printf(arena, "%s.%d", path, i);
        bool is_free = target && !msc_file_exists(target);
        for (size_t k = 0; target && k < N_COMPANIONS; k++) {
            const char *from = msc_arena_printf(arena, "%s%s", path, companions[k]);
            const char *to = msc_arena_printf(arena, "%s%s", target, companions[k]);
            if (!from || !to) {
                return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
            }
            is_free = is_free && !(msc_file_exists(from) && msc_file_exists(to));
        }
        if (!target) {
            return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
        }
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
    if (!from || !to) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    return !msc_file_exists(from) || rename(from, to) == 0
               ? MSC_OK
               : msc_record__fail_system("set the old record aside", from, errno);
}

// The record itself comes last: as long as it has its name, the rest can be moved after it.
static enum msc_status move_aside(const char **new_path, struct msc_arena *arena,
                                  const char *path) {
    const char *target = NULL;
    const char *attempt = msc_arena_printf(arena, "%s.attempt", path);
    if (!attempt) {
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
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
        status = *new_path ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    close(descriptor);
    msc_arena_finish(&arena);
    return status;
}
