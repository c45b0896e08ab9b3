// What a configuration's file may hold, whatever its form, and the reader of TOML. C++ reads this
// header, too.
#ifndef MSC_CONFIG_TREE_H
#define MSC_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>

#define MSC_CONFIG_DEEPEST 200        // levels of lists and objects
#define MSC_CONFIG_MOST_NODES 1000000 // values, lists and objects

#ifdef __cplusplus
extern "C" {
#endif

// Why a text cannot be read.
struct msc_config_toml_error {
    size_t line, column; // from 1; a column is a character
    bool is_memory;      // out of memory; the rest is not set
    char what[400];
};

// Reads a text of TOML 1.0 as a tree of JSON, with the keys in the order of the text. The caller
// owns the result; NULL: *error says why.
struct cJSON *msc_config__parse_toml(const char *text, size_t length,
                                     struct msc_config_toml_error *error);
// The version of toml++: "3.3.0".
const char *msc_config__toml_version(void);

#ifdef __cplusplus
}
#endif

#endif
