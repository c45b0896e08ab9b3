// Colours in text for people.
//
// msc_style_begin and _end put marks into a string if its has_styles is set, and do nothing
// otherwise. A mark is a control byte. Text that was made safe (base/shown.h) contains no control
// bytes, so every name from outside must be made safe before it is appended. msc_style_show makes
// the rest of the string safe and turns the marks into a terminal's escape sequences.
//
//     struct msc_str text = {.has_styles = is_terminal};
//     msc_style_begin(&text, MSC_STYLE_BEST);
//     msc_shown_append(&text, name);
//     msc_style_end(&text);
//     msc_style_show(&shown, &text);
#ifndef MSC_BASE_STYLE_H
#define MSC_BASE_STYLE_H

struct msc_str;

enum msc_style {
    MSC_STYLE_PLAIN,
    MSC_STYLE_HEADING, // bold
    MSC_STYLE_BEST,    // bold and green
    MSC_STYLE_FAINT,
    MSC_STYLE_WARNING, // yellow
    MSC_STYLE_ERROR,   // bold and red
};

// Styles do not nest. MSC_STYLE_PLAIN writes no mark.
void msc_style_begin(struct msc_str *out, enum msc_style style);
void msc_style_end(struct msc_str *out);
// The escape sequence that begins a style; the sequence of MSC_STYLE_PLAIN ends every style.
const char *msc_style_escape(enum msc_style style);
// Appends `text` to `out` as safe lines; escape sequences replace the marks.
void msc_style_show(struct msc_str *out, const struct msc_str *text);

#endif
