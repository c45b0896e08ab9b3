#include "cli/table.h"

#include "base/shown.h"
#include "base/table.h"

#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_inside_character(char c) { // a continuation byte of UTF-8
    return ((unsigned char)c & 0xC0) == 0x80;
}

static const char *table_skip(const char *shown, size_t n_characters) {
    for (; n_characters > 0 && *shown; n_characters--) {
        do {
            shown++;
        } while (is_inside_character(*shown));
    }
    return shown;
}

size_t msc_cli_terminal_columns(void) {
    struct winsize size = {0};
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    return is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void write_short(struct msc_str *out, const char *shown, size_t columns) {
    size_t n = msc_table_width(shown);
    if (n <= columns) {
        msc_str_append(out, shown);
        return;
    }
    size_t head = columns / 3;
    msc_str_append_n(out, shown, (size_t)(table_skip(shown, head) - shown));
    msc_str_printf(out, "*%s", table_skip(shown, n - (columns - head - 1)));
}

void msc_cli_write_short(struct msc_str *out, const char *text, size_t columns) {
    struct msc_str shown = {0};
    msc_shown_append(&shown, text);
    write_short(out, msc_str_text(&shown), columns);
    out->failed |= shown.failed;
    msc_str_finish(&shown);
}

void msc_cli_write_padded(struct msc_str *out, const char *text, size_t columns) {
    size_t begin = out->length;
    msc_cli_write_short(out, text, columns);
    size_t used = out->failed ? columns : msc_table_width(msc_str_text(out) + begin);
    msc_str_printf(out, "%*s", (int)(columns + 2 - used), "");
}
