// News of a search: lines in the log, the callbacks that the caller gave, and TensorBoard. The log
// alone tells the next morning what ran, how far it came, which trial was best when, and why it
// ended.
//
//     struct msc_news news = {0};
//     msc_news_begin(&news, &session);
//     ... msc_news_progress(&news, progress) ...
//     msc_news_end(&news, report, &found);
//     msc_news_close(&news);
#ifndef MSC_PIPELINE_NEWS_H
#define MSC_PIPELINE_NEWS_H

#include "pipeline/board.h"
#include "pipeline/session.h"

struct msc_news {
    const struct msc_session *session; // borrowed
    struct msc_board board;
    double line_s;     // when the last line was written
    double measured_s; // when the measurements after the search will end; NaN: not known
};

void msc_news_begin(struct msc_news *n, const struct msc_session *s);
// Callbacks of the search and of what measures; the payload is the news.
void msc_news_progress(void *payload, const struct msc_search_progress *progress);
void msc_news_measuring(void *payload, const char *what);
void msc_news_best(const struct msc_news *n, const struct msc_trial *trial);
// Tells why the search ended, and its result by the report.
void msc_news_end(struct msc_news *n, const struct cJSON *report,
                  const struct msc_search_result *found);
void msc_news_close(struct msc_news *n); // accepts a zeroed one

#endif
