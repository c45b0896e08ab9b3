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
    struct MHD_Response *response;
    struct msc_workspace_stamp stamp; // of the files when the page was made
    char failure[256];                // why the last attempt failed; "": it succeeded
    double tried_s, rest_s;
};

static void finish_item(struct msc_page_cache_item *item) {
    if (item->response) {
        MHD_destroy_response(item->response);
    }
    msc_free(item->key);
}

void msc_page_cache_finish(struct msc_page_cache *cache) {
    for (size_t i = 0; i < cache->n; i++) {
        finish_item(&cache->items[i]);
    }
    msc_free(cache->items);
    *cache = (struct msc_page_cache){0};
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

static struct msc_page_cache_item *find_item(struct msc_page_cache *cache, const char *key) {
    for (size_t i = 0; i < cache->n; i++) {
        if (strcmp(cache->items[i].key, key) == 0) {
            return &cache->items[i];
        }
    }
    char *copy = msc_strdup(key);
    if (!copy || make_room(cache) != MSC_OK) {
        msc_free(copy);
        return NULL;
    }
    struct msc_page_cache_item *item = &cache->items[cache->n++];
    *item = (struct msc_page_cache_item){.key = copy};
    return item;
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

static enum msc_status make_item(struct msc_page_cache_item *item,
                                 const struct msc_page_source *source) {
    struct msc_str text = {0};
    struct MHD_Response *response = NULL;
    enum msc_status status = source->write(&text, source);
    if (status == MSC_OK) {
        response = msc_http_response(msc_str_text(&text), text.length, MSC_HTTP_PAGE);
        status = MSC_ALLOCATED(response);
    }
    if (status == MSC_OK && item->response) {
        MHD_destroy_response(item->response);
    }
    item->response = status == MSC_OK ? response : item->response;
    msc_str_finish(&text);
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
    return item->response && item->failure[0] == '\0' && now->n_bytes == item->stamp.n_bytes &&
           now->time_ns == item->stamp.time_ns;
}

static void refresh_item(struct msc_page_cache_item *item, const struct msc_page_source *source) {
    const struct msc_workspace_stamp now = stamp_of_files(source->paths, source->n);
    double begin_s = msc_clock_seconds();
    if (source->n > 0 && is_as_made(item, &now)) {
        return;
    }
    enum msc_status status = make_item(item, source);
    item->failure[0] = '\0';
    if (status != MSC_OK) {
        snprintf(item->failure, sizeof item->failure, "%s\n", msc_status_message());
    }
    item->stamp = now;
    item->tried_s = msc_clock_seconds();
    item->rest_s = REST_TIMES * (item->tried_s - begin_s);
    item->rest_s = item->rest_s > LEAST_REST_S ? item->rest_s : LEAST_REST_S;
}

enum MHD_Result msc_page_cache_answer(struct msc_page_cache *cache,
                                      struct MHD_Connection *connection,
                                      const struct msc_page_source *source) {
    struct msc_page_cache_item *item = find_item(cache, source->key);
    if (!item) {
        return msc_http_answer(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n",
                               MSC_HTTP_TEXT);
    }
    if (msc_clock_seconds() - item->tried_s >= item->rest_s) {
        refresh_item(item, source);
    }
    return item->failure[0] == '\0' ? MHD_queue_response(connection, MHD_HTTP_OK, item->response)
                                    : msc_http_answer(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                                      item->failure, MSC_HTTP_TEXT);
}
