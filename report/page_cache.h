// Keeps the pages of a server as they were last made. A page is made again when its files have
// changed, but only after a pause: at least one second, and at least 20 times as long as it took to
// make it. If it cannot be made, requests fail until an attempt succeeds.
//
// Any thread may get pages. One page is made at a time; meanwhile requests for pages that were made
// before get these, also if they are old. At most MSC_PAGE_CACHE_MOST pages are kept.
#ifndef MSC_REPORT_PAGE_CACHE_H
#define MSC_REPORT_PAGE_CACHE_H

#include "report/http.h"

#include <pthread.h>

#define MSC_PAGE_CACHE_MOST 64

struct msc_page_cache_item;

struct msc_page_cache {
    pthread_mutex_t making; // held while a page is made
    pthread_mutex_t lock;   // held for moments, to read or change the items; taken after `making`
    struct msc_page_cache_item *items;
    size_t n, capacity;
};

// What a page is made of.
struct msc_page_source {
    const char *key;          // names the page in the cache
    const char *const *paths; // records; with the files next to them they decide whether it changed
    size_t n;                 // 0: it is made again each time, after the pause
    enum msc_status (*write)(struct msc_str *out, const struct msc_page_source *source);
    const char *back; // address of the page to go back to; NULL: none
    void *payload;    // for `write`
};

void msc_page_cache_init(struct msc_page_cache *cache);
void msc_page_cache_finish(struct msc_page_cache *cache);
// The page; the caller gives *out back by msc_http_text_drop. Errors are those of source->write.
enum msc_status msc_page_cache_get(struct msc_http_text **out, struct msc_page_cache *cache,
                                   const struct msc_page_source *source);

// For `write`: the page of the source's records, side by side.
enum msc_status msc_page_write_records(struct msc_str *out, const struct msc_page_source *source);

#endif
