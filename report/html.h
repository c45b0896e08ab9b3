// Escapes text for a page. All text from models, records and configurations must pass through here.
//
//     msc_html_text(&out, task->name);        // between tags, or in an attribute's quotes
//     msc_html_json(&out, document);          // inside <script type="application/json">
#ifndef MSC_REPORT_HTML_H
#define MSC_REPORT_HTML_H

#include "base/str.h"

struct cJSON;

// Appends text as one safe line (base/shown.h), with HTML's special characters as references.
void msc_html_text(struct msc_str *out, const char *text);
// Like msc_html_text, but leaves out the middle of a very long name.
void msc_html_name(struct msc_str *out, const char *name);
// Appends JSON with escapes, so that it cannot close the element around it or open a comment.
enum msc_status msc_html_json(struct msc_str *out, const struct cJSON *value);

#endif
