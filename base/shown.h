// Text made safe to show.
//
// Names come from models, records and configurations and may contain anything: escape sequences
// that a terminal obeys, line breaks that forge a line, marks that reverse the text direction,
// bytes that are not UTF-8. Before text is shown to people, C-style escapes replace these. The
// result is ordinary text in any language.
//
//     msc_shown_append(&text, joint->name); // re\x1b[2Jlu, flat\u202eten, fc\nfc
//
// Backslashes are kept, so making text safe twice changes nothing. Errors (base/status.h), log
// lines (base/log.h) and the command's output pass through these functions. Writers of text with
// several lines must make each name safe by itself, because a line break in a name cannot be told
// from their own line breaks later.
#ifndef MSC_BASE_SHOWN_H
#define MSC_BASE_SHOWN_H

#include <stddef.h>

struct msc_str;

// Appends the text as part of a line: line breaks are escaped.
void msc_shown_append(struct msc_str *out, const char *text);
// Appends text of several lines: line breaks are kept, everything else is escaped as by
// msc_shown_append.
void msc_shown_append_lines(struct msc_str *out, const char *text);
// Appends JSON text. The data remain the same, but characters that a terminal obeys become escapes
// such as \u009b. A byte that is not UTF-8 becomes \ufffd, as JSON readers treat it.
void msc_shown_append_json(struct msc_str *out, const char *text);
// Appends the text as a JSON string, with quotes; the result is always UTF-8.
void msc_shown_append_string(struct msc_str *out, const char *text);
// Appends a path as one word of a shell command: quoted if needed, and never mistaken for an
// option.
void msc_shown_append_path(struct msc_str *out, const char *path);
// Writes the text as part of a line into out[n_bytes]. If necessary, truncates it after a whole
// character. Returns the full length, as snprintf does. Does not allocate.
size_t msc_shown_copy(char *out, size_t n_bytes, const char *text);
// The number of characters of the text after escaping as part of a line. Does not allocate.
size_t msc_shown_width(const char *text);

#endif
