#include "report/page_cache.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "report/document.h"
#include "report/page.h"
#include "report/workspace.h"

#include <stdio.h>
#include <string.h>

#define LEAST_REST_S 1.0
#define REST_TIMES 20.0

struct msc_page_cache_item {
    char *key;
    struct msc_http_text *text;       // as it was last made; NULL: never
    struct msc_workspace_stamp stamp; // of the files when the page was made
    enum msc_status status;           // of the last attempt
    char failure[256];
    double tried_s, rest_s;
};

void msc_page_cache_init(struct msc_page_cache *cache) {
    *cache = (struct msc_page_cache){0};
    pthread_mutex_init(&cache->making, NULL);
    pthread_mutex_init(&cache->lock, NULL);
}

static void finish_item(struct msc_page_cache_item *item) {
    msc_http_text_drop(item->text);
    msc_free(item->key);
}

void msc_page_cache_finish(struct msc_page_cache *cache) {
    for (size_t i = 0; i < cache->n; i++) {
        finish_item(&cache->items[i]);
    }
    msc_free(cache->items);
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->making);
}

static struct msc_page_cache_item *find_item(const struct msc_page_cache *cache, const char *key) {
    for (size_t i = 0; i < cache->n; i++) {
        if (strcmp(cache->items[i].key, key) == 0) {
            return &cache->items[i];
        }
    }
    return NULL;
}

// Makes room for one more item: drops the one that was made longest ago if there are many.
static enum msc_status make_room(struct msc_page_cache *cache) {
    size_t oldest = 0;
    if (cache->n < MSC_PAGE_CACHE_MOST) {
        return msc_grow(&cache->items, &cache->capacity, cache->n + 1, sizeof *cache->items);
    }
    for (size_t i = 1; i < cache->n; i++) {
        oldest = cache->items[i].tried_s < cache->items[oldest].tried_s ? i : oldest;
    }
    finish_item(&cache->items[oldest]);
    cache->items[oldest] = cache->items[--cache->n];
    return MSC_OK;
}

enum msc_status msc_page_write_records(struct msc_str *out, const struct msc_page_source *source) {
    const struct msc_document_options o = {.paths = source->paths, .n = source->n};
    const struct msc_page_options page = {.is_live = true, .back = source->back};
    cJSON *document = NULL;
    MSC_TRY(msc_document_create(&document, &o));
    enum msc_status status = msc_page_write(out, document, &page);
    cJSON_Delete(document);
    return status;
}

// A stamp of all files that a page is made from. It changes when any of the files changes.
static struct msc_workspace_stamp stamp_of_files(const char *const paths[], size_t n) {
    static const char *const beside[] = {"", ".result.json", ".rerank.json", ".distill.json"};
    struct msc_workspace_stamp sum = {0};
    struct msc_str path = {0};
    for (size_t i = 0; i < n * (sizeof beside / sizeof beside[0]); i++) {
        struct msc_workspace_stamp one = {0};
        msc_str_clear(&path);
        msc_str_append(&path, paths[i % n]);
        msc_str_append(&path, beside[i / n]);
        if (!path.failed && msc_workspace_stamp_of(&one, msc_str_text(&path))) {
            sum.n_bytes += one.n_bytes;
            sum.time_ns += one.time_ns;
        }
    }
    msc_str_finish(&path);
    return sum;
}

static bool is_as_made(const struct msc_page_cache_item *item,
                       const struct msc_workspace_stamp *now) {
    return item && item->text && item->status == MSC_OK && now->n_bytes == item->stamp.n_bytes &&
           now->time_ns == item->stamp.time_ns;
}

static bool is_fresh(const struct msc_page_cache_item *item) {
    return item && msc_clock_seconds() - item->tried_s < item->rest_s;
}

// One use of the item's page, or its failure.
static enum msc_status take(struct msc_http_text **out, const struct msc_page_cache_item *item) {
    if (item->status != MSC_OK) {
        return MSC_FAIL(item->status, "%s", item->failure);
    }
    *out = msc_http_text_keep(item->text);
    return MSC_OK;
}

static enum msc_status make(struct msc_http_text **out, const struct msc_page_source *source) {
    struct msc_str text = {0};
    enum msc_status status = source->write(&text, source);
    if (status != MSC_OK) {
        msc_str_finish(&text);
        return status;
    }
    return msc_http_text_create(out, &text, MSC_HTTP_PAGE);
}

// Puts a new page, or why there is none (`text` is NULL), in the place of the last one.
static enum msc_status store(struct msc_page_cache *cache, const char *key,
                             const struct msc_page_cache_item *made) {
    struct msc_page_cache_item *item = find_item(cache, key);
    if (!item) {
        char *copy = msc_strdup(key);
        enum msc_status status = MSC_ALLOCATED(copy);
        status = status == MSC_OK ? make_room(cache) : status;
        if (status != MSC_OK) {
            msc_free(copy);
            return status;
        }
        item = &cache->items[cache->n++];
        *item = (struct msc_page_cache_item){.key = copy};
    }
    struct msc_http_text *old = item->text;
    char *kept = item->key;
    *item = *made;
    item->key = kept;
    item->text = made->text ? msc_http_text_keep(made->text) : old;
    if (made->text) {
        msc_http_text_drop(old);
    }
    return MSC_OK;
}

// Makes the page and keeps it. The caller holds `making`.
static enum msc_status renew(struct msc_http_text **out, struct msc_page_cache *cache,
                             const struct msc_page_source *source) {
    struct msc_page_cache_item *item = find_item(cache, source->key);
    struct msc_page_cache_item made = {.stamp = stamp_of_files(source->paths, source->n)};
    double begin_s = msc_clock_seconds();
    if (source->n > 0 && is_as_made(item, &made.stamp)) {
        return take(out, item);
    }
    made.status = make(&made.text, source);
    if (made.status != MSC_OK) {
        snprintf(made.failure, sizeof made.failure, "%s", msc_status_message());
    }
    made.tried_s = msc_clock_seconds();
    made.rest_s = REST_TIMES * (made.tried_s - begin_s);
    made.rest_s = made.rest_s > LEAST_REST_S ? made.rest_s : LEAST_REST_S;
    pthread_mutex_lock(&cache->lock);
    enum msc_status status = store(cache, source->key, &made);
    pthread_mutex_unlock(&cache->lock);
    status = status == MSC_OK ? take(out, &made) : status;
    msc_http_text_drop(made.text);
    return status;
}

enum msc_status msc_page_cache_get(struct msc_http_text **out, struct msc_page_cache *cache,
                                   const struct msc_page_source *source) {
    enum msc_status status = MSC_OK;
    pthread_mutex_lock(&cache->lock);
    const struct msc_page_cache_item *item = find_item(cache, source->key);
    bool is_kept = is_fresh(item);
    bool is_ours = !is_kept && pthread_mutex_trylock(&cache->making) == 0;
    is_kept = is_kept || (!is_ours && item && item->text);
    status = is_kept ? take(out, item) : MSC_OK;
    pthread_mutex_unlock(&cache->lock);
    if (is_kept) {
        return status;
    }
    if (!is_ours) {
        pthread_mutex_lock(&cache->making);
    }
    // Another request may have made it just now.
    item = find_item(cache, source->key);
    status = is_fresh(item) ? take(out, item) : renew(out, cache, source);
    pthread_mutex_unlock(&cache->making);
    return status;
}
