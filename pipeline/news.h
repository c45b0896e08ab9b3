// Reports the progress of a search: lines in the log, the caller's callbacks, and TensorBoard. The
// log by itself shows what ran, how far it got, when each best trial was found, and why the search
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
    double line_s;     // time of the last line
    double measured_s; // when the measurements after the search will end; NaN: unknown
};

void msc_news_begin(struct msc_news *n, const struct msc_session *s);
// Callbacks for the search and for measurements; the payload is a struct msc_news.
void msc_news_progress(void *payload, const struct msc_search_progress *progress);
void msc_news_measuring(void *payload, const char *what);
void msc_news_best(const struct msc_news *n, const struct msc_trial *trial);
// Reports why the search ended, and its result, which is taken from `report`.
void msc_news_end(struct msc_news *n, const struct cJSON *report,
                  const struct msc_search_result *found);
void msc_news_close(struct msc_news *n); // accepts a zeroed struct

#endif
