// Text on its way into a page. Whatever comes from models, records and configurations passes here.
//
//     msc_html_text(&out, task->name);        // between tags, or in an attribute's quotes
//     msc_html_json(&out, document);          // inside <script type="application/json">
#ifndef MSC_REPORT_HTML_H
#define MSC_REPORT_HTML_H

#include "base/str.h"

struct cJSON;

// As one line that is safe to show (base/shown.h), with references for what HTML takes for its own.
void msc_html_text(struct msc_str *out, const char *text);
// The same of a name, which loses its middle where it is very long.
void msc_html_name(struct msc_str *out, const char *name);
// JSON without any character that could end the element around it, or be taken for a comment.
enum msc_status msc_html_json(struct msc_str *out, const struct cJSON *value);

#endif
