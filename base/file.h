// Files: whole-file reads, atomic writes (complete or absent), locks, paths.
#ifndef MSC_BASE_FILE_H
#define MSC_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msc_str;
struct msc_arena;

// Opens a regular file for reading. Anything else fails with MSC_E_INVALID without reading, because
// a pipe could block and a device might never end. A Git LFS pointer fails in the same way.
// *n_bytes is the current size; it may be NULL. The caller closes *out.
enum msc_status msc_file_open(int *out, uint64_t *n_bytes, const char *path);
// Size of a regular file; fails as msc_file_open does.
enum msc_status msc_file_size(uint64_t *n_bytes, const char *path);
// Reads the whole file and appends a NUL. The caller owns *out (msc_free).
enum msc_status msc_file_read(char **out, size_t *n_bytes, const char *path);
// Maps a whole file read-only; close with msc_file_unmap. An empty file maps to NULL, 0.
enum msc_status msc_file_map(const void **out, size_t *n_bytes, const char *path);
void msc_file_unmap(const void *data, size_t n_bytes);
// Maps n_bytes > 0 bytes of a file from `offset` on, read-only; *out points to the first of these.
// MSC_E_FORMAT: the file ends before. Close with msc_file_unmap_part.
enum msc_status msc_file_map_part(const void **out, const char *path, uint64_t offset,
                                  size_t n_bytes);
void msc_file_unmap_part(const void *data, size_t n_bytes);
// Releases the memory of a mapped part. The contents stay: the next access reads the file again.
void msc_file_forget_part(const void *data, size_t n_bytes);

// Writes PATH.tmp.<16 random digits>, syncs it, renames it to PATH and syncs the folder. On failure
// PATH is untouched and the temporary file is removed. If a killed program left a temporary file,
// the next write to PATH removes it.
enum msc_status msc_file_write(const char *path, const void *data, size_t n_bytes);

// Writes a file like msc_file_write, but in pieces: begin, write any number of times, then commit
// or abort. Call abort after a failure and on any early exit. Abort accepts a zeroed or committed
// writer.
struct msc_file_writer {
    char *path;
    char *temporary;
    int descriptor; // valid while path is not NULL
    uint64_t n_bytes;
};
enum msc_status msc_file_writer_begin(struct msc_file_writer *w, const char *path);
enum msc_status msc_file_writer_write(struct msc_file_writer *w, const void *data, size_t n_bytes);
// Write at an offset and read back from an offset, for data that is not written in order.
enum msc_status msc_file_writer_write_at(struct msc_file_writer *w, uint64_t place,
                                         const void *data, size_t n_bytes);
enum msc_status msc_file_writer_read_at(struct msc_file_writer *w, uint64_t place, void *data,
                                        size_t n_bytes);
enum msc_status msc_file_writer_commit(struct msc_file_writer *w);
void msc_file_writer_abort(struct msc_file_writer *w);

// Syncs the folder of `path`, so that its file names survive a power cut. Does nothing if the file
// system cannot sync folders.
void msc_file_sync_folder(const char *path);

// Syncs the contents of a file that another program wrote, and its folder.
enum msc_status msc_file_sync(const char *path);
bool msc_file_exists(const char *path);
enum msc_status msc_file_make_folders(const char *path); // like mkdir -p; also syncs the folders
// Waits for the lock of a folder, for changes that read a file and write it anew. close(*lock)
// releases it, as does the end of the process. A file system without locks locks nothing.
enum msc_status msc_file_lock_folder(int *lock, const char *folder);
enum msc_status msc_file_remove(const char *path);       // not an error if absent
// Removes the folder `name` of the folder `parent` (a descriptor or AT_FDCWD) and everything in
// it, as far as possible. Does not follow links.
void msc_file_remove_tree(int parent, const char *name);
// The bytes on the disk of everything in a folder, without following links; 0: no such folder.
uint64_t msc_file_tree_bytes(const char *path);
// Renames within one file system, replacing `to`. If `from` is absent, succeeds and keeps `to`.
enum msc_status msc_file_rename(const char *from, const char *to);
// Renames the file to the first free name of PATH.1, PATH.2, ...; *to is in the arena.
enum msc_status msc_file_set_aside(const char **to, struct msc_arena *arena, const char *path);
// Bytes available to this user on the file system of `path` (or of its nearest existing parent).
enum msc_status msc_file_free_bytes(uint64_t *out, const char *path);

// Paths in the arena; NULL if memory is short. `join` returns `path` unchanged if it is absolute.
char *msc_path_join(struct msc_arena *arena, const char *folder, const char *path);
char *msc_path_folder(struct msc_arena *arena, const char *path); // "." if the path has no folder
const char *msc_path_name(const char *path); // the part after the last '/'; borrowed
bool msc_path_ends_in(const char *path, const char *ending);
// True for a relative path that stays inside its folder: no "..", not absolute, not empty.
bool msc_path_is_inside(const char *path);
// True if the absolute `path` is `folder` or lies in it; both have links resolved.
bool msc_path_lies_in(const char *path, const char *folder);
// The absolute path with symbolic links resolved. If the file does not exist yet, resolves its
// folder.
enum msc_status msc_path_absolute(char **out, struct msc_arena *arena, const char *path);
// Like msc_path_absolute, for a path whose missing folders will be created.
enum msc_status msc_path_planned(char **out, struct msc_arena *arena, const char *path);
// The absolute form of `folder`/`path`, with links resolved. MSC_E_INVALID if the result is outside
// `folder`, because of "..", an absolute path or a link.
enum msc_status msc_path_resolve_inside(char **out, struct msc_arena *arena, const char *folder,
                                        const char *path);
// `path` relative to `folder`, with "../" as needed; both are made absolute first.
enum msc_status msc_path_relative(char **out, struct msc_arena *arena, const char *path,
                                  const char *folder);

#endif
