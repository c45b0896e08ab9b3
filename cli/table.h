// Columns of text for people.
#ifndef MSC_CLI_TABLE_H
#define MSC_CLI_TABLE_H

#include "base/str.h"

#include <stddef.h>

// A name gets at most this many columns, to leave room for the rest of the line.
#define MSC_CLI_NAME_COLUMNS 42

// Columns of the terminal on standard output; 0 if it is not a terminal.
size_t msc_cli_terminal_columns(void);
// Writes text in at most `columns` columns. In a longer text, * replaces the middle, so the result
// is a pattern that matches the text.
void msc_cli_write_short(struct msc_str *out, const char *text, size_t columns);
// Like msc_cli_write_short, but padded with blanks to `columns`, plus two blanks.
void msc_cli_write_padded(struct msc_str *out, const char *text, size_t columns);

#endif
