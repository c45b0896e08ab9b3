// Folders with everything in them.
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 64 // of nested folders
#define BLOCK_BYTES 512

// Opens a folder, but not a link to a folder. NULL if it does not exist or cannot be opened.
static DIR *open_list(int parent, const char *name) {
    int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (descriptor >= 0 && !list) {
        close(descriptor);
    }
    return list;
}

// The next item of a folder, other than the folder itself and its parent; NULL after the last.
static const char *next_name(DIR *list) {
    const struct dirent *item = NULL;
    do {
        item = readdir(list);
    } while (item && (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0));
    return item ? item->d_name : NULL;
}

static void remove_tree(int parent, const char *name, int depth) {
    DIR *list = depth < MAX_DEPTH ? open_list(parent, name) : NULL;
    if (!list) {
        return;
    }
    for (const char *item; (item = next_name(list)) != NULL;) {
        if (unlinkat(dirfd(list), item, 0) != 0) {
            remove_tree(dirfd(list), item, depth + 1);
        }
    }
    closedir(list);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void msc_file_remove_tree(int parent, const char *name) {
    remove_tree(parent, name, 0);
}

static uint64_t tree_bytes(int parent, const char *name, int depth) {
    struct stat info;
    uint64_t sum = 0;
    DIR *list = depth < MAX_DEPTH ? open_list(parent, name) : NULL;
    for (const char *item; list && (item = next_name(list)) != NULL;) {
        if (fstatat(dirfd(list), item, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            sum += (uint64_t)info.st_blocks * BLOCK_BYTES;
            sum += S_ISDIR(info.st_mode) ? tree_bytes(dirfd(list), item, depth + 1) : 0;
        }
    }
    if (list) {
        closedir(list);
    }
    return sum;
}

uint64_t msc_file_tree_bytes(const char *path) {
    return tree_bytes(AT_FDCWD, path, 0);
}
