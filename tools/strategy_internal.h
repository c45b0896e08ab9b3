// Internal to tools/: shared by the strategy sources.
#ifndef MSC_TOOLS_STRATEGY_INTERNAL_H
#define MSC_TOOLS_STRATEGY_INTERNAL_H

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/strategy.h"

struct msc_strategy_edit {
    const char *site, *tensor, *label;
    size_t n_joints; // 0: all joints that read the tensor
    const char **joints;
    bool has_origin;
    struct msc_strategy_origin origin;
    struct msc_edit edit;
};

// A group that loses some of its channels.
struct msc_strategy_group {
    const char *name, *label;
    int32_t n_units, n_kept;
    int32_t *kept; // [n_kept] ascending, relative to the group's first unit
};

struct msc_strategy_weight {
    const char *tensor;
    const struct msc_array *elements;
};

struct msc_strategy {
    struct msc_arena arena;
    const char *name;                // begins error messages; NULL: not read from a file
    const struct msc_target *target; // of the sites' scheme
    bool has_weights;                // the edits are valid only for the weights with hash `weights`
    struct msc_hash weights;
    bool has_plain; // `plain` is set: made by a section without searches
    struct msc_hash plain;
    struct msc_strategy_edit *edits;
    size_t n, capacity;
    struct msc_array **arrays; // references to the edits' arrays
    size_t n_arrays, arrays_capacity;
    struct msc_strategy_group *groups;
    size_t n_groups, groups_capacity;
    struct msc_strategy_weight *replaced;
    size_t n_replaced, replaced_capacity;
    struct msc_strategy_weight *multiplied; // activations, and what they are multiplied by
    size_t n_multiplied, multiplied_capacity;
};

// Keeps a reference to the array until the strategy is destroyed.
enum msc_status msc_strategy__keep_array(struct msc_strategy *s, const struct msc_array *array);
// Puts "does not fit this model" before the message; returns `status`.
enum msc_status msc_strategy__fail_fit(const struct msc_strategy *s, enum msc_status status);
// Fails unless the graph has the sites of all edits. Scales may be for other shapes.
enum msc_status msc_strategy__check_sites(const struct msc_strategy *s, const struct msc_graph *g);
// strategy_prune.c. Pruned channels and replaced weights: the functions write them to the file,
// Adds n bytes as base64.
enum msc_status msc_strategy__bytes_to_json(cJSON *object, const char *key, const void *bytes,
                                            size_t n);
// read them, merge them and hash them.
enum msc_status msc_strategy__prunes_to_json(const struct msc_strategy *s, cJSON *root);
enum msc_status msc_strategy__read_prunes(struct msc_strategy *s, const cJSON *root,
                                          const char *name);
enum msc_status msc_strategy__merge_prunes(struct msc_strategy *s,
                                           const struct msc_strategy *later);
struct msc_hash msc_strategy__hash_prunes(struct msc_hash h, const struct msc_strategy *s);

// strategy_multiply.c. Does the joint read the product if the strategy multiplies this tensor?
bool msc_strategy__is_multiplied(const struct msc_joint *j, int32_t tensor);
// The graph with the strategy's multiplications; the caller owns *out.
// MSC_E_STATE: the graph lacks these activations, or they have other shapes.
enum msc_status msc_strategy__multiply_graph(struct msc_graph **out, const struct msc_strategy *s,
                                             const struct msc_graph *g);

// strategy_blocks.c. Weights in blocks: the functions write one to its object of the file, read it
// (the caller owns q->integers), and fail unless it fits the tensor.
enum msc_status msc_strategy__blocks_to_json(const struct msc_quant *q, cJSON *object);
enum msc_status msc_strategy__read_blocks(struct msc_quant *q, const cJSON *object,
                                          const char *where);
enum msc_status msc_strategy__check_blocks(const struct msc_strategy_edit *e,
                                           const struct msc_tensor *t);

// Adds a copy of an edit; it overrides existing edits. The caller still owns the strings and arrays
// of `model`.
enum msc_status msc_strategy__add(struct msc_strategy *s, const struct msc_strategy_edit *model);
// Does the edit apply to this joint?
bool msc_strategy__names_joint(const struct msc_strategy_edit *e, const char *joint);
// Sets an edit to copies of the arrays, which the strategy owns.
enum msc_status msc_strategy__copy_quant(struct msc_strategy *s, struct msc_edit *out,
                                         const struct msc_quant *in);

#endif
