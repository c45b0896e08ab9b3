// Options for searching a session (search/search.h), with the observers of the search.
#ifndef MSC_PIPELINE_SESSION_SEARCH_H
#define MSC_PIPELINE_SESSION_SEARCH_H

#include "pipeline/news.h"
#include "pipeline/publisher.h"

struct msc_session_observers {
    struct msc_news *news;
    struct msc_publisher *publisher; // NULL: nothing is published
};

// `config` is for the record's header. It is borrowed until the search ends, as are session and
// observers.
void msc_session_search_options(struct msc_search_options *o, const struct msc_session *s,
                                const struct cJSON *config,
                                struct msc_session_observers *observers);

#endif
