// Writes keys, values and comments as YAML or as TOML, as a person would.
#ifndef MSC_PIPELINE_NOTATION_H
#define MSC_PIPELINE_NOTATION_H

#include "base/str.h"

#include <stdbool.h>

struct cJSON;

struct msc_notation {
    struct msc_str *out;
    bool is_toml;
    const char *in; // YAML: blanks before each line; TOML: "", or a prefix of keys such as "env."
};

// Lines of text, each after "# ".
void msc_notation_comment(const struct msc_notation *n, const char *text);
// `key: value` or `key = value`, in one line.
void msc_notation_put(const struct msc_notation *n, const char *key, const struct cJSON *value);
// Like msc_notation_put, in a comment: something to try.
void msc_notation_suggest(const struct msc_notation *n, const char *key, const struct cJSON *value);
// A list with a line for each item.
void msc_notation_list(const struct msc_notation *n, const char *key, const struct cJSON *list);

#endif
