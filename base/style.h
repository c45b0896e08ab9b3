// Text for people that a terminal may show in colours.
//
// A style is asked for where the text is made, in strings that take styles; others have the text alone.
// It is a mark in the text, a byte that safe text has none of (base/shown.h), and so every name in
// such a text has to be made safe before. Whoever shows the text turns the marks into what
// terminals obey, once all else is safe.
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

// Neither does anything where the string takes no styles, and nothing is asked for by PLAIN. They
// do not nest.
void msc_style_begin(struct msc_str *out, enum msc_style style);
void msc_style_end(struct msc_str *out);
// What begins a style on a terminal, and what ends every style.
const char *msc_style_escape(enum msc_style style);
// Appends the text, made safe to show as lines, its styles as a terminal takes them.
void msc_style_show(struct msc_str *out, const struct msc_str *text);

#endif
