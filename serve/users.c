#include "serve/users.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/param.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define LEAST_TOKEN 16
#define MOST_NAME 64
#define TOKEN_BYTES 16
// The allowance of requests: as many as come in this time.
#define BURST_S 2.0

struct keys {
    const char *name, *token, *disk, *upload;
    int64_t jobs, running, streams;
    double rate;
};

#define KEY(member) offsetof(struct keys, member)

static const struct msc_param key_params[] = {
    {.name = "name", .help = "name", .offset = KEY(name), .type = MSC_PARAM_TEXT},
    {.name = "token",
     .help = "secret of at least 16 characters",
     .offset = KEY(token),
     .type = MSC_PARAM_TEXT},
    {.name = "jobs",
     .help = "most jobs",
     .offset = KEY(jobs),
     .type = MSC_PARAM_I64,
     .number = 100,
     .min = 0,
     .max = 100000},
    {.name = "running",
     .help = "most jobs at once",
     .offset = KEY(running),
     .type = MSC_PARAM_I64,
     .number = 1000,
     .min = 0,
     .max = 1000},
    {.name = "streams",
     .help = "most streams of events at once",
     .offset = KEY(streams),
     .type = MSC_PARAM_I64,
     .number = 16,
     .min = 0,
     .max = 1000},
    {.name = "rate",
     .help = "requests per second",
     .offset = KEY(rate),
     .type = MSC_PARAM_F64,
     .number = 2000,
     .min = 0.1,
     .max = 1e6},
    {.name = "disk",
     .help = "bytes of all jobs",
     .offset = KEY(disk),
     .type = MSC_PARAM_TEXT,
     .text = "20G"},
    {.name = "upload",
     .help = "bytes of one request",
     .offset = KEY(upload),
     .type = MSC_PARAM_TEXT,
     .text = "4G"},
    {0},
};

static bool is_name(const char *text) {
    size_t n = text ? strlen(text) : 0;
    return n > 0 && n <= MOST_NAME && text[0] != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

// A header carries the token, so it has only visible characters.
static bool is_token(const char *text) {
    size_t n = text ? strlen(text) : 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '!' || text[i] > '~') {
            return false;
        }
    }
    return n >= LEAST_TOKEN;
}

static enum msc_status check_user(const struct msc_users *users, const struct keys *k,
                                  const char *where) {
    if (!is_name(k->name)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: \"name\": expected letters, digits, \".\", \"_\" and \"-\"", where);
    }
    if (!is_token(k->token)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: \"token\": expected at least %d visible characters, such as "
                        "`openssl rand -hex 16` prints",
                        where, LEAST_TOKEN);
    }
    for (size_t i = 0; i < users->n; i++) {
        bool is_same = strcmp(users->items[i].name, k->name) == 0;
        if (is_same || strcmp(users->items[i].token, k->token) == 0) {
            return MSC_FAIL(MSC_E_INVALID, "%s: another user has the same %s", where,
                            is_same ? "name" : "token");
        }
    }
    return MSC_OK;
}

static enum msc_status read_user(struct msc_users *users, const cJSON *object, const char *where) {
    struct keys k;
    struct msc_user *u = &users->items[users->n];
    msc_param_defaults(key_params, &k);
    MSC_TRY(msc_param_read(key_params, &k, object, where, NULL, &users->arena));
    MSC_TRY(check_user(users, &k, where));
    if (!msc_parse_bytes(&u->disk_bytes, k.disk) || !msc_parse_bytes(&u->upload_bytes, k.upload)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: \"disk\", \"upload\": expected a number of bytes such as \"512M\"",
                        where);
    }
    u->name = k.name;
    u->token = k.token;
    u->jobs = k.jobs;
    u->running = k.running;
    u->streams = k.streams;
    u->rate = k.rate;
    users->n++;
    return MSC_OK;
}

// Tokens are secrets: the file may be read by its owner alone.
static enum msc_status check_secret(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: other users of this machine may read the tokens: chmod 600 it", path);
    }
    return MSC_OK;
}

enum msc_status msc_users_load(struct msc_users *out, const char *path) {
    static const char *const known[] = {"users"};
    struct msc_users users = {0};
    cJSON *root = NULL;
    const cJSON *list = NULL, *item = NULL;
    char where[512];
    MSC_TRY(check_secret(path));
    MSC_TRY(msc_json_of_user(msc_json_load(&root, path)));
    enum msc_status status = msc_json_check_keys(root, known, 1, path);
    if (status == MSC_OK) {
        status = msc_json_of_user(msc_json_get_array(&list, root, "users", path));
    }
    if (status == MSC_OK && cJSON_GetArraySize(list) == 0) {
        status = MSC_FAIL(MSC_E_INVALID, "%s: \"users\": expected at least one user", path);
    }
    users.items =
        msc_arena_array(&users.arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof users.items[0]);
    status = status == MSC_OK ? MSC_ALLOCATED(users.items) : status;
    cJSON_ArrayForEach(item, list) {
        if (status == MSC_OK) {
            snprintf(where, sizeof where, "%s: users[%zu]", path, users.n);
            status = read_user(&users, item, where);
        }
    }
    cJSON_Delete(root);
    if (status != MSC_OK) {
        msc_arena_finish(&users.arena);
        return status;
    }
    pthread_mutex_init(&users.lock, NULL);
    *out = users;
    return MSC_OK;
}

// ---- One user ---------------------------------------------------------------------------------

static enum msc_status write_token(const char *path) {
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return MSC_FAIL(MSC_E_IO, "cannot make a token: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    text[sizeof text - 2] = '\n';
    mode_t before = umask(S_IRWXG | S_IRWXO);
    enum msc_status status = msc_file_write(path, text, sizeof text - 1);
    umask(before);
    return status;
}

enum msc_status msc_users_load_local(struct msc_users *out, const char *path) {
    struct msc_users users = {0};
    char *token = NULL;
    size_t n_bytes = 0;
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(object);
    users.items = msc_arena_alloc(&users.arena, sizeof users.items[0]);
    MSC_TRY_OUT(MSC_ALLOCATED(object && users.items));
    if (!msc_file_exists(path)) {
        MSC_TRY_OUT(write_token(path));
    }
    MSC_TRY_OUT(check_secret(path));
    MSC_TRY_OUT(msc_file_read(&token, &n_bytes, path));
    token[strcspn(token, "\r\n")] = '\0';
    MSC_TRY_OUT(msc_json_add_text(object, "name", "local"));
    MSC_TRY_OUT(msc_json_add_text(object, "token", token));
    MSC_TRY_OUT(read_user(&users, object, path));
    pthread_mutex_init(&users.lock, NULL);
    *out = users;
    users = (struct msc_users){0};
out:
    msc_free(token);
    cJSON_Delete(object);
    msc_arena_finish(&users.arena);
    return status;
}

void msc_users_finish(struct msc_users *users) {
    if (users->items) {
        pthread_mutex_destroy(&users->lock);
        msc_arena_finish(&users->arena);
        users->items = NULL;
    }
}

// ---- Asking -----------------------------------------------------------------------------------

// Compares every byte of `given`, whatever the differences are.
static bool is_equal(const char *token, const char *given) {
    size_t n = strlen(token), m = strlen(given);
    unsigned difference = n != m;
    for (size_t i = 0; i < m; i++) {
        difference |= (unsigned char)given[i] ^ (unsigned char)token[i % n];
    }
    return difference == 0;
}

struct msc_user *msc_users_find(struct msc_users *users, const char *token) {
    struct msc_user *found = NULL;
    for (size_t i = 0; i < users->n; i++) {
        found = is_equal(users->items[i].token, token) ? &users->items[i] : found;
    }
    return found;
}

bool msc_users_may_ask(struct msc_users *users, struct msc_user *user) {
    pthread_mutex_lock(&users->lock);
    double now_s = msc_clock_seconds();
    double most = user->rate * BURST_S > 1.0 ? user->rate * BURST_S : 1.0;
    double grown = user->counted_s > 0.0 ? (now_s - user->counted_s) * user->rate : most;
    user->allowance = user->allowance + grown < most ? user->allowance + grown : most;
    user->counted_s = now_s;
    bool may = user->allowance >= 1.0;
    user->allowance -= may ? 1.0 : 0.0;
    pthread_mutex_unlock(&users->lock);
    return may;
}

bool msc_users_open_stream(struct msc_users *users, struct msc_user *user) {
    pthread_mutex_lock(&users->lock);
    bool may = user->n_streams < user->streams;
    user->n_streams += may;
    pthread_mutex_unlock(&users->lock);
    return may;
}

void msc_users_close_stream(struct msc_users *users, struct msc_user *user) {
    pthread_mutex_lock(&users->lock);
    user->n_streams--;
    pthread_mutex_unlock(&users->lock);
}

uint64_t msc_users_reserve(struct msc_users *users, struct msc_user *user, uint64_t used,
                           uint64_t wanted) {
    pthread_mutex_lock(&users->lock);
    uint64_t taken = used + user->uploading_bytes;
    uint64_t left = taken < user->disk_bytes ? user->disk_bytes - taken : 0;
    uint64_t most = left < user->upload_bytes ? left : user->upload_bytes;
    uint64_t room = wanted == 0 ? most : wanted <= left ? wanted : 0;
    user->uploading_bytes += room;
    pthread_mutex_unlock(&users->lock);
    return room;
}

void msc_users_release(struct msc_users *users, struct msc_user *user, uint64_t n_bytes) {
    pthread_mutex_lock(&users->lock);
    user->uploading_bytes -= n_bytes;
    pthread_mutex_unlock(&users->lock);
}
