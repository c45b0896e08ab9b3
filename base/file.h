// Files: whole-file reads, writes that are complete or absent, locks, paths.
#ifndef MSC_BASE_FILE_H
#define MSC_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msc_str;
struct msc_arena;

// Opens a regular file for reading; anything else (a pipe would wait for its writer, a device may
// never end) is MSC_E_INVALID at once, and so is what Git LFS leaves in its place. *n_bytes is its size now; may be NULL. The caller closes *out.
enum msc_status msc_file_open(int *out, uint64_t *n_bytes, const char *path);
// The whole file with a NUL after its end; owned by the caller (msc_free).
enum msc_status msc_file_read(char **out, size_t *n_bytes, const char *path);
// Read-only mapping of a whole file; close with msc_file_unmap. An empty file maps to NULL, 0.
enum msc_status msc_file_map(const void **out, size_t *n_bytes, const char *path);
void msc_file_unmap(const void *data, size_t n_bytes);

// Writes PATH.tmp.<16 random digits>, syncs it, renames it over PATH and syncs the folder. On
// failure PATH is untouched and the temporary file is gone; one that a killed program left goes
// with the next write of PATH.
enum msc_status msc_file_write(const char *path, const void *data, size_t n_bytes);

// The same in pieces. Begin, write any number of times, then commit or abort; abort after a
// failure and on any early exit; it accepts a zeroed writer and one that was committed.
struct msc_file_writer {
    char *path;
    char *temporary;
    int descriptor; // valid while path is not NULL
    uint64_t n_bytes;
};
enum msc_status msc_file_writer_begin(struct msc_file_writer *w, const char *path);
enum msc_status msc_file_writer_write(struct msc_file_writer *w, const void *data, size_t n_bytes);
// At a place of its own, for what is not written in order; and what was written there.
enum msc_status msc_file_writer_write_at(struct msc_file_writer *w, uint64_t place,
                                         const void *data, size_t n_bytes);
enum msc_status msc_file_writer_read_at(struct msc_file_writer *w, uint64_t place, void *data,
                                        size_t n_bytes);
enum msc_status msc_file_writer_commit(struct msc_file_writer *w);
void msc_file_writer_abort(struct msc_file_writer *w);

// The names in the folder of `path` outlive a power cut from now on. Where the file system cannot do
// that, nobody can.
void msc_file_sync_folder(const char *path);

bool msc_file_exists(const char *path);
enum msc_status msc_file_make_folders(const char *path); // like mkdir -p, and synced
enum msc_status msc_file_remove(const char *path);       // absent is no error
// In one file system, over what `to` was. Absent is no error, and `to` stays.
enum msc_status msc_file_rename(const char *from, const char *to);
// Gives the file the first free of the names PATH.1, PATH.2, ...; *to is in the arena.
enum msc_status msc_file_set_aside(const char **to, struct msc_arena *arena, const char *path);
// Bytes free to this user on the file system that holds `path` (or its nearest existing parent).
enum msc_status msc_file_free_bytes(uint64_t *out, const char *path);

// Paths in the arena; NULL when memory is short. `join` returns `path` alone when it is absolute.
char *msc_path_join(struct msc_arena *arena, const char *folder, const char *path);
char *msc_path_folder(struct msc_arena *arena, const char *path); // "." when there is none
const char *msc_path_name(const char *path);                      // after the last '/'; borrowed
bool msc_path_ends_in(const char *path, const char *ending);
// True for a relative path that stays inside its folder: no "..", not absolute, not empty.
bool msc_path_is_inside(const char *path);
// Absolute form with symbolic links resolved (of the folder, when the file does not exist yet).
enum msc_status msc_path_absolute(char **out, struct msc_arena *arena, const char *path);
// The same of a path whose missing folders are going to be made.
enum msc_status msc_path_planned(char **out, struct msc_arena *arena, const char *path);
// The absolute form of `folder`/`path`, links resolved; MSC_E_INVALID when it lies outside of
// `folder`, by "..", by being absolute or by a link on its way.
enum msc_status msc_path_resolve_inside(char **out, struct msc_arena *arena, const char *folder,
                                        const char *path);
// `path` as seen from `folder`, with "../" where needed; both made absolute first.
enum msc_status msc_path_relative(char **out, struct msc_arena *arena, const char *path,
                                  const char *folder);

#endif
