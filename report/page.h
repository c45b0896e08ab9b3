// A report as one self-contained HTML file. Its tables are readable without scripts; a script draws
// charts and the network from the JSON document that the page contains.
//
//     MSC_TRY(msc_document_create(&document, &options));
//     MSC_TRY(msc_page_write(&page, document, &(struct msc_page_options){0}));
//
// The content-security policy allows only the page's own style and scripts, by their hashes. Names
// in a record cannot add a script, an address or a form.
#ifndef MSC_REPORT_PAGE_H
#define MSC_REPORT_PAGE_H

#include "base/str.h"

struct cJSON;

struct msc_page_options {
    // True: the page is served, and its script may request the current page from the server.
    bool is_live;
    const char *back; // address of the list of records; NULL: no link
};

// Appends the page for a document (report/document.h).
enum msc_status msc_page_write(struct msc_str *out, const struct cJSON *document,
                               const struct msc_page_options *options);
// Appends the page that lists records, for the server only. Each record is an object of strings:
// `name`, `path`, `address`, `state`, `trials`, `best`. `all` is the address of the page that
// compares all records, or NULL.
enum msc_status msc_page_write_list(struct msc_str *out, const struct cJSON *records,
                                    const char *all);

#endif
