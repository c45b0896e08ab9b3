// Plug-ins that are short shell scripts.
#ifndef MSC_TESTS_SCRIPT_H
#define MSC_TESTS_SCRIPT_H

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

// Prints the content of $b as an error message, with ` instead of ".
#define SCRIPT_SAY_B                                                                               \
    "printf '%s\\n' \"$b\" | sed 's/\"/`/g; s/^/{\"error\":\"/; s/$/\"}/'; read -r c"

// The configuration of a plug-in that runs `script`. `members` are members in addition to the
// command. The caller frees the text with msc_free.
static inline char *script_config(const char *members, const char *script) {
    struct msc_str json = {0};
    char *text = NULL;
    msc_str_printf(&json, "{%s,\"command\":[\"/bin/sh\",\"-c\",", members);
    msc_json_write_text(&json, script);
    msc_str_append(&json, "]}");
    assert_ok(msc_str_take(&text, &json));
    return text;
}

#endif
