// Columns of text for people.
#ifndef MSC_CLI_TABLE_H
#define MSC_CLI_TABLE_H

#include "base/str.h"

#include <stddef.h>

// Columns of a name, so that it leaves room for the rest of a line.
#define MSC_CLI_NAME_COLUMNS 42

// Columns of the terminal that standard output is; 0: it is none.
size_t msc_cli_terminal_columns(void);
// A long text loses its middle to a star, so that a name cut short is a pattern that fits it.
void msc_cli_write_short(struct msc_str *out, const char *text, size_t columns);
// The same, filled with blanks, and two more behind it.
void msc_cli_write_padded(struct msc_str *out, const char *text, size_t columns);

#endif
