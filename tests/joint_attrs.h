// Attributes of a joint written as "key=value;key=value", the form that tests and benchmarks use.
//
//     struct joint_attrs attrs;
//     joint_attrs_read(&attrs, "strides=2,2;padding=1,1,1,1");
//     struct msc_joint_spec spec = {.op = op, .n_attrs = attrs.n, .attrs = attrs.rows};
#ifndef MSC_TESTS_JOINT_ATTRS_H
#define MSC_TESTS_JOINT_ATTRS_H

#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct joint_attrs {
    char text[512]; // the text that the rows point to
    struct msc_attr rows[16];
    int32_t n;
};

static inline void joint_attrs_read(struct joint_attrs *out, const char *text) {
    snprintf(out->text, sizeof(out->text), "%s", text);
    out->n = 0;
    for (char *at = out->text; *at != '\0';) {
        char *value = strchr(at, '=');
        char *end = at + strcspn(at, ";");
        bool is_last = *end == '\0';
        assert(value && value < end && (size_t)out->n < sizeof(out->rows) / sizeof(out->rows[0]));
        *value = *end = '\0';
        out->rows[out->n++] = (struct msc_attr){at, value + 1};
        at = is_last ? end : end + 1;
    }
}

#endif
