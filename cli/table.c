#include "cli/table.h"

#include <stdbool.h>
#include <string.h>

static bool is_inside_character(char c) { // of UTF-8
    return ((unsigned char)c & 0xC0) == 0x80;
}

void msc_cli_write_short(struct msc_str *out, const char *text, size_t columns) {
    size_t length = strlen(text);
    if (length <= columns) {
        msc_str_append(out, text);
        return;
    }
    size_t head = columns / 3;
    size_t tail = length - (columns - head - 1);
    while (head > 0 && is_inside_character(text[head])) {
        head--;
    }
    while (is_inside_character(text[tail])) {
        tail++;
    }
    msc_str_append_n(out, text, head);
    msc_str_printf(out, "*%s", text + tail);
}

void msc_cli_write_padded(struct msc_str *out, const char *text, size_t columns) {
    size_t begin = out->length;
    msc_cli_write_short(out, text, columns);
    msc_str_printf(out, "%*s", (int)(columns + 2 - (out->length - begin)), "");
}
