#include "report/page.h"

#include "model/output.h"
#include "report/assets.h"
#include "report/page_internal.h"

#include <stdio.h>
#include <string.h>

// ---- Head -------------------------------------------------------------------------------------

// Completes the security policy that MSC_OUTPUT_PAGE_BEGINNING opens.
static void write_policy(struct msc_str *out, bool is_live) {
    msc_str_printf(out, "'sha256-%s'", msc_asset_script.sha256);
    if (msc_asset_charts.n_bytes > 0) {
        msc_str_printf(out, " 'sha256-%s'", msc_asset_charts.sha256);
    }
    msc_str_printf(out,
                   "; style-src 'sha256-%s'; img-src data:;%s base-uri 'none'; form-action "
                   "'none'\">\n",
                   msc_asset_style.sha256, is_live ? " connect-src 'self';" : "");
}

static void write_head(struct msc_str *out, const char *title, bool is_live) {
    msc_str_append(out, MSC_OUTPUT_PAGE_BEGINNING);
    write_policy(out, is_live);
    msc_str_append(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                        "<meta name=\"referrer\" content=\"no-referrer\">\n"
                        "<meta name=\"color-scheme\" content=\"light dark\">\n"
                        "<link rel=\"icon\" href=\"data:,\">\n<title>");
    msc_html_name(out, title);
    msc_str_append(out, " – mscgym</title>\n<style>");
    msc_str_append_n(out, msc_asset_style.text, msc_asset_style.n_bytes);
    msc_str_append(out, "</style>\n</head>\n");
}

static void write_scripts(struct msc_str *out) {
    const struct msc_asset *scripts[] = {&msc_asset_charts, &msc_asset_script};
    for (size_t i = 0; i < 2; i++) {
        if (scripts[i]->n_bytes > 0) {
            msc_str_append(out, "<script>");
            msc_str_append_n(out, scripts[i]->text, scripts[i]->n_bytes);
            msc_str_append(out, "</script>\n");
        }
    }
}

// ---- Body -------------------------------------------------------------------------------------

// Do the parts of the only record have one with this id?
static bool has_part(const char *articles, const char *id) {
    char text[64];
    snprintf(text, sizeof text, " id=\"r0-%s\"", id);
    return strstr(articles, text) != NULL;
}

static void write_links(struct msc_str *out, const cJSON *records, const char *articles,
                        const char *back) {
    static const struct {
        const char *id, *name;
    } parts[] = {{"box", "Result"},      {"plans", "Plans"},           {"progress", "Best so far"},
                 {"tradeoff", "Cost"},   {"choices", "Choices"},       {"layers", "Plan"},
                 {"measured", "Layers"}, {"importance", "Importance"}, {"effects", "Sensitivity"},
                 {"graph", "Network"},   {"speed", "Speed"},           {"config", "Configuration"}};
    const cJSON *record = NULL;
    int index = 0;
    msc_str_append(out, "<nav aria-label=\"Parts\"><ul>\n");
    if (back) {
        msc_str_append(out, "<li><a href=\"");
        msc_html_text(out, back);
        msc_str_append(out, "\">All records</a></li>\n");
    }
    if (cJSON_GetArraySize(records) == 1) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (has_part(articles, parts[i].id)) {
                msc_str_printf(out, "<li><a href=\"#r0-%s\">%s</a></li>\n", parts[i].id,
                               parts[i].name);
            }
        }
    } else {
        msc_str_append(out, "<li><a href=\"#compare\">Side by side</a></li>\n");
        cJSON_ArrayForEach(record, records) {
            msc_str_printf(out, "<li><a href=\"#r%d\">", index++);
            msc_html_name(out, msc_page__text(record, "name"));
            msc_str_append(out, "</a></li>\n");
        }
    }
    msc_str_append(out, "</ul></nav>\n");
}

static void write_top(struct msc_str *out, bool is_live) {
    msc_str_printf(
        out,
        "<body%s>\n<a class=\"skip\" href=\"#main\">To the result</a>\n<header class=\"top\">"
        "<p class=\"brand\">mscgym <span>report</span></p>\n",
        is_live ? " data-live=\"1\"" : "");
    if (is_live) {
        msc_str_append(out, "<p class=\"live\"><span id=\"live\" role=\"status\">live</span> "
                            "<span id=\"live-at\"></span></p>\n");
    }
}

static enum msc_status write_articles(struct msc_str *out, const cJSON *document) {
    const cJSON *records = msc_json_get(document, "records"), *record = NULL;
    int index = 0;
    if (cJSON_GetArraySize(records) > 1) {
        MSC_TRY(msc_page__compare(out, records, msc_json_get(document, "verdict")));
    }
    cJSON_ArrayForEach(record, records) {
        MSC_TRY(msc_page__record(out, record, index++));
    }
    return msc_str_status(out);
}

static enum msc_status write_body(struct msc_str *out, const cJSON *document,
                                  const struct msc_page_options *o) {
    struct msc_str articles = {0};
    enum msc_status status = write_articles(&articles, document);
    write_top(out, o->is_live);
    write_links(out, msc_json_get(document, "records"), msc_str_text(&articles), o->back);
    msc_str_append(out, "</header>\n<main id=\"main\">\n");
    if (msc_asset_charts.n_bytes == 0) {
        msc_str_append(out,
                       "<p class=\"note\">This mscgym was built without Chart.js, so this page has "
                       "tables but no charts.</p>\n");
    }
    msc_str_append(out, msc_str_text(&articles));
    msc_str_finish(&articles);
    MSC_TRY(status);
    msc_str_append(out, "</main>\n<footer><p>Made by ");
    msc_html_text(out, msc_page__text(document, "program"));
    msc_str_append(
        out, ". All data of this page is in the record and the files next to it.</p></footer>\n"
             "<script type=\"application/json\" id=\"data\">");
    MSC_TRY(msc_html_json(out, document));
    msc_str_append(out, "</script>\n");
    return MSC_OK;
}

enum msc_status msc_page_write(struct msc_str *out, const struct cJSON *document,
                               const struct msc_page_options *options) {
    const cJSON *records = msc_json_get(document, "records");
    bool is_one = cJSON_GetArraySize(records) == 1;
    write_head(out, is_one ? msc_page__text(records->child, "name") : "Side by side",
               options->is_live);
    MSC_TRY(write_body(out, document, options));
    write_scripts(out);
    msc_str_append(out, "</body>\n</html>\n");
    return msc_str_status(out);
}

// ---- The list of records ----------------------------------------------------------------------

static void write_list_cell(struct msc_str *out, const char *text, char kind) {
    if (kind == 'w') {
        msc_str_append(out, "<td class=\"b\">");
        msc_html_name(out, text);
        msc_str_append(out, "</td>");
    } else {
        msc_page__text_cell(out, text, kind == 'n');
    }
}

enum msc_status msc_page_write_list(struct msc_str *out, const struct msc_page_list *list) {
    const cJSON *row = NULL;
    write_head(out, list->title, true);
    write_top(out, true);
    msc_str_append(
        out, "</header>\n<main id=\"main\">\n<article class=\"record\" id=\"list\"><header><h1>");
    msc_html_text(out, list->title);
    msc_str_append(out, "</h1></header>\n<section class=\"part\">\n<h2>");
    msc_html_text(out, list->heading);
    msc_str_append(out, "</h2>\n");
    if (list->note) {
        msc_str_append(out, "<p class=\"note\">");
        msc_html_text(out, list->note);
        msc_str_append(out, "</p>\n");
    }
    msc_page__table(out, list->title, list->columns, list->kinds);
    cJSON_ArrayForEach(row, list->rows) {
        msc_page__row(out, NULL);
        msc_str_append(out, "<th scope=\"row\"><a href=\"");
        msc_html_text(out, msc_page__text(row, "address"));
        msc_str_append(out, "\">");
        msc_html_name(out, msc_page__text(row, "name"));
        msc_str_append(out, "</a></th>");
        for (size_t i = 1; list->columns[i]; i++) {
            write_list_cell(out, msc_page__text(row, list->keys[i]), list->kinds[i]);
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    if (list->all) {
        msc_str_append(out, "<p><a href=\"");
        msc_html_text(out, list->all);
        msc_str_append(out, "\">Side by side</a></p>\n");
    }
    msc_str_append(out, "</section></article>\n</main>\n");
    write_scripts(out);
    msc_str_append(out, "</body>\n</html>\n");
    return msc_str_status(out);
}
