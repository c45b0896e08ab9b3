// A report as one HTML file that needs nothing else: tables that are readable as they are, and a script
// that draws charts and the network from the document in it.
//
//     MSC_TRY(msc_document_create(&document, &options));
//     MSC_TRY(msc_page_write(&page, document, &(struct msc_page_options){0}));
//
// Its content-security policy allows the page's own style and scripts, by their hashes, and nothing else:
// no script, no address and no form that a name in a record could bring in.
#ifndef MSC_REPORT_PAGE_H
#define MSC_REPORT_PAGE_H

#include "base/str.h"

struct cJSON;

struct msc_page_options {
    // It is served: the script may ask the server that it came from for the page as it is now.
    bool is_live;
    const char *back; // address of the page that lists the records; NULL: there is none
};

// Appends the page of a document (report/document.h).
enum msc_status msc_page_write(struct msc_str *out, const struct cJSON *document,
                               const struct msc_page_options *options);
// Appends the page that lists records: objects with `name`, `path`, `address`, `state`, `trials`, `best`,
// texts all. `all` is the address of the page that has them side by side, or NULL. For serving alone.
enum msc_status msc_page_write_list(struct msc_str *out, const struct cJSON *records,
                                    const char *all);

#endif
