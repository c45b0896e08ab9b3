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

// A list, for servers only.
struct msc_page_list {
    const char *title, *heading;
    const char *note;           // a sentence above the table, or NULL
    const char *const *columns; // headings, NULL-terminated; the first is that of the name
    const char *const *keys;    // members of a row for the columns; the first is not used
    const char *kinds;          // a letter for each column: 'n' a number, 'w' one line, ' ' text
    const struct cJSON *rows;   // objects of strings with `name`, `address` (its link) and the keys
    const char *all;            // address of the page that compares all rows, or NULL
};
// Appends the page.
enum msc_status msc_page_write_list(struct msc_str *out, const struct msc_page_list *list);

#endif
