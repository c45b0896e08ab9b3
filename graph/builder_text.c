// Writes values of attributes as text in the builder's arena.
#include "base/str.h"
#include "graph/builder_internal.h"
#include "graph/op_attrs.h"

const char *msc_builder_ints(struct msc_builder *b, const int64_t values[], int n) {
    struct msc_str text = {0};
    msc_attr_write_ints(&text, values, (size_t)n);
    return msc_str_keep(&text, &b->arena);
}

const char *msc_builder_floats(struct msc_builder *b, const float values[], int n) {
    struct msc_str text = {0};
    msc_attr_write_floats(&text, values, (size_t)n);
    return msc_str_keep(&text, &b->arena);
}

const char *msc_builder_float(struct msc_builder *b, float value) {
    struct msc_str text = {0};
    msc_str_float(&text, value);
    return msc_str_keep(&text, &b->arena);
}

const char *msc_builder_int(struct msc_builder *b, int64_t value) {
    return msc_arena_printf(&b->arena, "%lld", (long long)value);
}
