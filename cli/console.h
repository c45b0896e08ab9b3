// Messages on standard error: log lines, errors, and on a terminal a line with the progress of the
// search. If the environment variable MSCGYM_PROGRESS is "json", the progress is written as lines
// of JSON instead, for programs (docs/json.md).
#ifndef MSC_CLI_CONSOLE_H
#define MSC_CLI_CONSOLE_H

#include "base/log.h"
#include "search/search.h"

#include <stdbool.h>
#include <stdint.h>

struct msc_console {
    struct msc_log log; // passed to library functions
    bool is_terminal;
    bool writes_json;       // the progress as lines of JSON
    bool has_colors;        // standard error has colours
    bool has_output_colors; // standard output has colours
    bool is_quiet;
    bool has_level; // set by --log-level
    double last_progress_s;
};

void msc_console_init(struct msc_console *console);
// Applies the common options. `log_level` is an index for msc_log_level_at, `color` an enum
// msc_color; -1 if not given.
void msc_console_set(struct msc_console *console, bool is_quiet, int64_t log_level, int64_t color);
// Lets all messages through, unless an option set the level. For commands whose configuration
// filters the messages (`verbose`).
void msc_console_open_up(struct msc_console *console);
// Prints the text as a line, also with --quiet.
void msc_console_say(struct msc_console *console, const char *text);
// Prints "mscgym: text", also with --quiet.
void msc_console_error(struct msc_console *console, const char *text);
// Does anybody see the progress?
bool msc_console_shows_progress(const struct msc_console *console);
// Shows or refreshes the progress line, at most a few times a second. `best` is NaN if there is
// no best trial yet.
void msc_console_progress(struct msc_console *console, const char *name,
                          const struct msc_search_progress *progress, double best);
// Like msc_console_progress, during the final measurement of the winner: shows what is measured
// now, and the time left.
void msc_console_measuring(struct msc_console *console, const char *name, const char *what,
                           double left_s);
// Removes the progress line.
void msc_console_end_progress(struct msc_console *console);

#endif
