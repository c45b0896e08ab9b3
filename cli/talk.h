// What the program tells on standard error: log lines, errors, and on a terminal a line that shows
// how the search goes.
#ifndef MSC_CLI_TALK_H
#define MSC_CLI_TALK_H

#include "base/log.h"
#include "search/search.h"

#include <stdbool.h>

struct msc_talk {
    struct msc_log log; // hand this down
    bool is_terminal;
    bool is_quiet;
    double last_progress_s;
};

void msc_talk_init(struct msc_talk *talk);
void msc_talk_set_quiet(struct msc_talk *talk);
// "mscgym: text", whatever was asked to be quiet.
void msc_talk_error(struct msc_talk *talk, const char *text);
// Shows or refreshes the progress line; several times a second at most. `best` NaN: none yet.
void msc_talk_progress(struct msc_talk *talk, const char *name,
                       const struct msc_search_progress *progress, double best);
// The same while the winner is measured once more: what is measured now, and the time left.
void msc_talk_measuring(struct msc_talk *talk, const char *name, const char *what, double left_s);
// Removes it.
void msc_talk_end_progress(struct msc_talk *talk);

#endif
