// Text made safe to show.
//
// Names come from models, records and configurations, and may hold anything: escape sequences that
// a terminal obeys, line breaks that forge a line, marks that turn the direction of reading, bytes
// that are no UTF-8. Where text leaves for people, those are shown as escapes in the way of C; what
// is left is ordinary text in any language.
//
//     msc_shown_append(&text, joint->name); // re\x1b[2Jlu, flat\u202eten, fc\nfc
//
// Backslashes stay, so that text shown twice is shown as once. Errors (base/status.h), log lines
// (base/log.h) and what the command prints pass through here; texts of several lines ask for it
// name by name, as nobody can tell a name's line breaks from theirs later.
#ifndef MSC_BASE_SHOWN_H
#define MSC_BASE_SHOWN_H

#include <stddef.h>

struct msc_str;

// Appends the text as part of a line.
void msc_shown_append(struct msc_str *out, const char *text);
// Appends lines: line breaks stay.
void msc_shown_append_lines(struct msc_str *out, const char *text);
// Appends JSON text: the same data, where what a terminal would obey is \u009b and the like. A byte
// that is no UTF-8 becomes \ufffd, as readers of JSON have it.
void msc_shown_append_json(struct msc_str *out, const char *text);
// Appends the text as a JSON string, with quotes: the same text, and UTF-8 whatever it is.
void msc_shown_append_string(struct msc_str *out, const char *text);
// Appends a path as a word of a shell's command, in a line: quoted where it needs that, and never an option.
void msc_shown_append_path(struct msc_str *out, const char *path);
// Writes the text as part of a line into out[n_bytes], cut at a whole character if it must be.
// Returns the length that all of it has, as snprintf does. Takes no memory.
size_t msc_shown_copy(char *out, size_t n_bytes, const char *text);
// The characters that the text has as part of a line. Takes no memory.
size_t msc_shown_width(const char *text);

#endif
