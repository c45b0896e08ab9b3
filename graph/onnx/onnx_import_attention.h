// Attention as joints, for the translators of ONNX's Attention and of ONNX Runtime's: products of
// queries and keys, a bias, a softmax, and the product with the values.
//
//     struct msc_attention a = {.c = {.node = n}, .dtype = dtype, .is_causal = true, ...};
//     a.q = msc_attention_split_heads(&a.c, queries, n_heads);
//     ... the same for a.k and a.v ...
//     struct msc_value *p = msc_attention_probabilities(&a);
//     return msc_attention_last(&a, p);
//
// Below, b is the batch, h the number of query heads, s and t the lengths of queries and keys, and
// d the size of a head.
#ifndef MSC_GRAPH_ONNX_ONNX_IMPORT_ATTENTION_H
#define MSC_GRAPH_ONNX_ONNX_IMPORT_ATTENTION_H

#include "graph/onnx/onnx_import_compose.h"

struct msc_attention {
    struct msc_compose c;
    bool is_causal;
    bool sees_a_key;                   // every query sees a key, whatever the mask
    int64_t left_window, right_window; // -1: unlimited
    float scale, softcap;              // 0: not given
    enum msc_dtype dtype, softmax_dtype;
    struct msc_value *q, *k, *v;   // q [b, h, s, d]; k and v [b, key heads, t, d of k or v]
    struct msc_value *mask;        // bool, or numbers added to the scores; NULL: none
    struct msc_value *offset;      // position of the first query among the keys, a scalar or
                                   // [b, 1, 1, 1]; NULL: 0
    struct msc_value *kept_length; // [b] keys from here on are masked; NULL: none
    struct msc_value *sink;        // [h, 1, 1] or a scalar: score of an additional key whose value
                                   // is 0; NULL: none
    // Set by msc_attention_probabilities, [b, h, s, t]: the scaled products, the same after
    // softcap, and the same after softcap and mask.
    struct msc_value *products, *limited, *masked;
};

// [b, s, heads * d] becomes [b, heads, s, d].
struct msc_value *msc_attention_split_heads(struct msc_compose *c, struct msc_value *x,
                                            int64_t heads);
// If each head of keys or values serves a group of query heads, repeats the heads of x so that
// there is one per query head.
struct msc_value *msc_attention_repeat_heads(struct msc_attention *a, struct msc_value *x);
// The probabilities [b, h, s, t].
struct msc_value *msc_attention_probabilities(struct msc_attention *a);
// Multiplies the probabilities by the values. The result [b, s, h * d] becomes the node's first
// output.
enum msc_status msc_attention_last(struct msc_attention *a, struct msc_value *p);
// 0, 1, 2, ... along an axis of x.
struct msc_value *msc_attention_count(struct msc_compose *c, struct msc_value *x, int64_t axis);

#endif
