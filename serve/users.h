// The users of the service: their tokens, and what each may use.
//
//     {"users": [{"name": "ann", "token": "at least 16 characters", "jobs": 50, "running": 2,
//                 "disk": "20G", "upload": "2G", "rate": 50}]}
//
// Only name and token are required. The file must not be readable by other users of the machine.
#ifndef MSC_SERVE_USERS_H
#define MSC_SERVE_USERS_H

#include "base/alloc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct msc_user {
    const char *name;  // letters, digits and ". _ -"
    const char *token; // never shown
    int64_t jobs;      // most jobs that the user may have
    int64_t running;   // most jobs that run at once
    int64_t streams;   // most streams of events at once
    double rate;       // requests per second, over a few seconds
    uint64_t disk_bytes;
    uint64_t upload_bytes; // of one request
    // Guarded by the lock of the users:
    double allowance; // requests that may come at once
    double counted_s; // time at which the allowance was counted
    int64_t n_streams;
    uint64_t uploading_bytes; // that uploads may still bring
};

struct msc_users {
    struct msc_arena arena;
    pthread_mutex_t lock;
    size_t n;
    struct msc_user *items;
};

// MSC_E_INVALID: the message names the file and the place. Call msc_users_finish after success.
enum msc_status msc_users_load(struct msc_users *out, const char *path);
// One user "local" with default limits, whose token is in the file `path`. If the file is missing,
// it is written with a token of 128 random bits.
enum msc_status msc_users_load_local(struct msc_users *out, const char *path);
void msc_users_finish(struct msc_users *users); // accepts a zeroed struct

// The user with that token, or NULL. The time it takes tells nothing about tokens.
struct msc_user *msc_users_find(struct msc_users *users, const char *token);
// Counts a request. False: there are too many.
bool msc_users_may_ask(struct msc_users *users, struct msc_user *user);
// Takes one of the user's streams of events; false: all are taken. Give it back by `close`.
bool msc_users_open_stream(struct msc_users *users, struct msc_user *user);
void msc_users_close_stream(struct msc_users *users, struct msc_user *user);
// Reserves room in the user's quota, of which `used` bytes are on the disk: `wanted` bytes, or as
// much as one upload may have if that is not known (0). Returns the number of bytes, 0 if there is
// no room; give it back by `release`.
uint64_t msc_users_reserve(struct msc_users *users, struct msc_user *user, uint64_t used,
                           uint64_t wanted);
void msc_users_release(struct msc_users *users, struct msc_user *user, uint64_t n_bytes);

#endif
