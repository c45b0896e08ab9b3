#include "cli/console.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"
#include "cli/color.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECONDS_BETWEEN_LINES 0.2
#define CLEAR_LINE "\r\033[K"

// Writes a line with one write, so that lines of several threads and processes do not mix.
static void console_write(struct msc_str *text) {
    if (msc_str_status(text) == MSC_OK && text->length > 0) {
        ssize_t n = write(STDERR_FILENO, text->data, text->length);
        (void)n;
    }
    msc_str_finish(text);
}

// Writes a line from its parts without allocating, so that lack of memory can be reported.
static void console_write_line(const struct msc_console *console, enum msc_style style,
                               const char *before, const char *text) {
    bool is_styled = console->has_colors && style != MSC_STYLE_PLAIN;
    const char *const parts[] = {
        console->is_terminal ? CLEAR_LINE : "",
        is_styled ? msc_style_escape(style) : "",
        before,
        is_styled ? msc_style_escape(MSC_STYLE_PLAIN) : "",
        text,
        "\n",
    };
    struct iovec pieces[sizeof parts / sizeof parts[0]];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        pieces[i] = (struct iovec){.iov_base = (char *)parts[i], .iov_len = strlen(parts[i])};
    }
    ssize_t n = writev(STDERR_FILENO, pieces, sizeof parts / sizeof parts[0]);
    (void)n;
}

static void console_log_line(void *payload, enum msc_log_level level, const char *line) {
    static const char *const before[] = {"error: ", "warning: ", "", ""};
    static const enum msc_style styles[] = {MSC_STYLE_ERROR, MSC_STYLE_WARNING, MSC_STYLE_PLAIN,
                                            MSC_STYLE_PLAIN};
    console_write_line(payload, styles[level], before[level], line);
}

void msc_console_init(struct msc_console *console) {
    const char *progress = getenv("MSCGYM_PROGRESS");
    *console =
        (struct msc_console){.is_terminal = isatty(STDERR_FILENO) == 1,
                             .writes_json = progress && strcmp(progress, "json") == 0,
                             .has_colors = msc_color_is_on(MSC_COLOR_AUTO, STDERR_FILENO),
                             .has_output_colors = msc_color_is_on(MSC_COLOR_AUTO, STDOUT_FILENO)};
    console->log.level = MSC_LOG_INFO;
    console->log.write = console_log_line;
    console->log.payload = console;
}

void msc_console_set(struct msc_console *console, bool is_quiet, int64_t log_level, int64_t color) {
    console->is_quiet = is_quiet;
    console->has_level = log_level >= 0;
    if (is_quiet) {
        console->log.level = MSC_LOG_ERROR;
    } else if (log_level >= 0) {
        console->log.level = msc_log_level_at((size_t)log_level);
    }
    if (color >= 0) {
        console->has_colors = msc_color_is_on((enum msc_color)color, STDERR_FILENO);
        console->has_output_colors = msc_color_is_on((enum msc_color)color, STDOUT_FILENO);
    }
    if (color == MSC_COLOR_NEVER) {
        setenv("NO_COLOR", "1", true); // for programs that this one starts
    }
}

void msc_console_open_up(struct msc_console *console) {
    if (!console->is_quiet && !console->has_level) {
        console->log.level = MSC_LOG_DEBUG;
    }
}

void msc_console_say(struct msc_console *console, const char *text) {
    console_write_line(console, MSC_STYLE_PLAIN, "", text);
}

void msc_console_error(struct msc_console *console, const char *text) {
    console_write_line(console, MSC_STYLE_ERROR, "mscgym: ", text);
}

static void append_time(struct msc_str *out, double seconds) {
    long long s = (long long)seconds;
    if (s >= 3600) {
        msc_str_printf(out, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    } else {
        msc_str_printf(out, "%lld:%02lld", s / 60, s % 60);
    }
}

static void append_count(struct msc_str *line, size_t n, const char *what) {
    if (n > 0) {
        msc_str_printf(line, ", %zu %s", n, what);
    }
}

bool msc_console_shows_progress(const struct msc_console *console) {
    return (console->is_terminal || console->writes_json) && !console->is_quiet;
}

// ---- Lines of JSON ----------------------------------------------------------------------------

static void begin_json(struct msc_str *line, const char *name) {
    msc_str_append(line, "{\"progress\":{\"name\":");
    msc_json_write_text(line, name);
}

// Adds a number, unless it is unknown or infinite.
static void add_json(struct msc_str *line, const char *key, double value) {
    if (isfinite(value)) {
        msc_str_printf(line, ",\"%s\":", key);
        msc_json_write_number(line, value);
    }
}

static void end_json(struct msc_str *line) {
    msc_str_append(line, "}}\n");
    console_write(line);
}

static void write_json_progress(const char *name, const struct msc_search_progress *progress,
                                double best) {
    struct msc_str line = {0};
    double of = progress->is_left_exact     ? (double)progress->n_budgeted + progress->n_left
                : progress->max_trials >= 0 ? (double)progress->max_trials
                                            : INFINITY;
    begin_json(&line, name);
    add_json(&line, "trials", (double)progress->n_budgeted);
    add_json(&line, "of", of);
    add_json(&line, "best", best);
    add_json(&line, "trials_per_s", progress->trials_per_s);
    add_json(&line, "left_s", progress->left_s);
    end_json(&line);
}

// ---- The line on a terminal -------------------------------------------------------------------

void msc_console_progress(struct msc_console *console, const char *name,
                          const struct msc_search_progress *progress, double best) {
    double now_s = msc_clock_seconds();
    if (!msc_console_shows_progress(console) ||
        now_s - console->last_progress_s < SECONDS_BETWEEN_LINES) {
        return;
    }
    console->last_progress_s = now_s;
    if (console->writes_json) {
        write_json_progress(name, progress, best);
        return;
    }
    struct msc_str line = {0};
    msc_str_append(&line, CLEAR_LINE);
    msc_shown_append(&line, name);
    msc_str_printf(&line, ": %zu", progress->n_budgeted);
    if (progress->is_left_exact && isfinite(progress->n_left)) {
        msc_str_printf(&line, "/%.0f", (double)progress->n_budgeted + progress->n_left);
    } else if (progress->max_trials >= 0) {
        msc_str_printf(&line, "/%lld", (long long)progress->max_trials);
    }
    msc_str_append(&line, " trials");
    if (!isnan(best)) {
        msc_str_printf(&line, ", best %.5g", best);
    }
    size_t n_front = msc_search_front_size(progress);
    if (n_front > 0) {
        msc_str_printf(&line, ", front of %zu", n_front);
    }
    msc_str_printf(&line, ", reuse %.0f%%", 100 * progress->reuse_ratio);
    if (progress->has_pool) {
        msc_str_printf(&line, ", %zu workers", progress->n_workers);
        append_count(&line, progress->n_lost, "lost");
        append_count(&line, progress->n_refused, "refused");
        append_count(&line, progress->n_retried, "parts sent again");
    }
    if (isfinite(progress->trials_per_s)) {
        msc_str_printf(&line, ", %.3g/s", progress->trials_per_s);
    }
    if (isfinite(progress->left_s)) {
        msc_str_append(&line, progress->is_left_exact ? ", left " : ", left at most ");
        append_time(&line, progress->left_s);
    }
    console_write(&line);
}

void msc_console_measuring(struct msc_console *console, const char *name, const char *what,
                           double left_s) {
    struct msc_str line = {0};
    if (!msc_console_shows_progress(console)) {
        return;
    }
    if (console->writes_json) {
        begin_json(&line, name);
        msc_str_append(&line, ",\"measuring\":");
        msc_json_write_text(&line, what);
        add_json(&line, "left_s", left_s);
        end_json(&line);
        return;
    }
    console->last_progress_s = msc_clock_seconds();
    msc_str_append(&line, CLEAR_LINE);
    msc_shown_append(&line, name);
    msc_str_append(&line, ": measuring ");
    msc_shown_append(&line, what);
    if (isfinite(left_s)) {
        msc_str_append(&line, ", left ");
        append_time(&line, left_s);
    }
    console_write(&line);
}

void msc_console_end_progress(struct msc_console *console) {
    struct msc_str line = {0};
    msc_str_append(&line, console->is_terminal && console->last_progress_s > 0 ? CLEAR_LINE : "");
    console_write(&line);
}
