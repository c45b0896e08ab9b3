// Plug-ins that are shell scripts of a few lines.
#ifndef MSC_TESTS_SCRIPT_H
#define MSC_TESTS_SCRIPT_H

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

// Says what $b holds, as an error text with ` for ".
#define SCRIPT_SAY_B                                                                               \
    "printf '%s\\n' \"$b\" | sed 's/\"/`/g; s/^/{\"error\":\"/; s/$/\"}/'; read -r c"

// The configuration of such a plug-in, with these members beside the command; freed with msc_free.
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
