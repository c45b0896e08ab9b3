// Reads optional members of JSON objects.
#include "graph/json_reader.h"

enum msc_status msc_graph__read_text(const char **out, const cJSON *object, const char *key,
                                     const char *where) {
    *out = "";
    return msc_json_get(object, key) ? msc_json_get_text(out, object, key, where) : MSC_OK;
}

enum msc_status msc_graph__read_array(const cJSON **out, const cJSON *object, const char *key,
                                      const char *where) {
    *out = NULL;
    return msc_json_get(object, key) ? msc_json_get_array(out, object, key, where) : MSC_OK;
}

enum msc_status msc_graph__read_element(const char **out, const cJSON *element, const char *key,
                                        const char *where) {
    if (!cJSON_IsString(element)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s has an element that is not a string", where, key);
    }
    *out = element->valuestring;
    return MSC_OK;
}

enum msc_status msc_graph__read_attrs(struct msc_attr **out, int32_t *n, struct msc_graph_reader *r,
                                      const cJSON *object, const char *where) {
    *out = NULL;
    *n = 0;
    if (!msc_json_get(object, "attrs")) {
        return MSC_OK;
    }
    const cJSON *map;
    MSC_TRY(msc_json_get_object(&map, object, "attrs", where));
    *out = msc_arena_array(&r->scratch, (size_t)cJSON_GetArraySize(map), sizeof(**out));
    MSC_TRY(MSC_ALLOCATED(*out));
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        struct msc_attr *attr = &(*out)[(*n)++];
        attr->key = item->string;
        MSC_TRY(msc_graph__read_element(&attr->value, item, "attrs", where));
    }
    return MSC_OK;
}
