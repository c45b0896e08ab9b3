// Keeps the pages of a server as they were last made. A page is made again when its files have
// changed, but only after a pause: at least one second, and at least 20 times as long as it took to
// make it. If it cannot be made, requests get status 500 until an attempt succeeds.
//
// Not thread-safe. At most MSC_PAGE_CACHE_MOST pages are kept.
#ifndef MSC_REPORT_PAGE_CACHE_H
#define MSC_REPORT_PAGE_CACHE_H

#include "base/str.h"
#include "report/http.h"

#define MSC_PAGE_CACHE_MOST 64

struct msc_page_cache_item;

struct msc_page_cache { // zero-initialise
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

// Answers with the page.
enum MHD_Result msc_page_cache_answer(struct msc_page_cache *cache,
                                      struct MHD_Connection *connection,
                                      const struct msc_page_source *source);
void msc_page_cache_finish(struct msc_page_cache *cache); // accepts a zeroed cache

// For `write`: the page of the source's records, side by side.
enum msc_status msc_page_write_records(struct msc_str *out, const struct msc_page_source *source);

#endif
