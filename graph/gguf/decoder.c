#include "graph/gguf/decoder.h"

#include "base/alloc.h"
#include "base/str.h"
#include "data/gguf.h"
#include "graph/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_BLOCKS 4096
#define MOST_LENGTH (1 << 24) // of any axis
#define MASKED (-1e30f)       // added to the score of a later token

// The architectures that are read. They differ in the elements that the rotary embedding turns
// together: neighbours, or an element of the first half with one of the second.
static const struct architecture {
    const char *name;
    bool turns_halves;
} architectures[] = {{"llama", false}, {"qwen2", true}};

#define N_ARCHITECTURES (sizeof(architectures) / sizeof(architectures[0]))

struct decoder {
    const struct msc_gguf *file;
    const struct architecture *architecture;
    struct msc_str text;
    struct msc_array_list *weights;
    bool *is_used; // [n_tensors]
    int n_blocks, n_embedding, n_heads, n_kv_heads, n_in_head, n_rotated;
    float epsilon;
    struct msc_arena arena;
};

// ---- Numbers ----------------------------------------------------------------------------------

// Keeps *out if the file does not have the key. Sets *is_found, which may be NULL.
static enum msc_status find_number(double *out, bool *is_found, const struct decoder *d,
                                   const char *key) {
    char name[128];
    snprintf(name, sizeof(name), "%s.%s", d->architecture->name, key);
    bool is_number = msc_gguf_number(out, d->file, name);
    if (!is_number && msc_gguf_has_value(d->file, name)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%s: %s is not one number", msc_gguf_path(d->file),
                        name);
    }
    if (is_found) {
        *is_found = is_number;
    }
    return MSC_OK;
}

static enum msc_status get_count(int *out, const struct decoder *d, const char *key, double most) {
    double n = 0;
    MSC_TRY(find_number(&n, NULL, d, key));
    if (!(n >= 1 && n <= most) || n != floor(n)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s.%s is %g, expected a whole number from 1 to %g",
                        msc_gguf_path(d->file), d->architecture->name, key, n, most);
    }
    *out = (int)n;
    return MSC_OK;
}

// Like get_count, but keeps *out if the file does not have the key.
static enum msc_status get_optional(int *out, const struct decoder *d, const char *key) {
    double n;
    bool is_found;
    MSC_TRY(find_number(&n, &is_found, d, key));
    return is_found ? get_count(out, d, key, MOST_LENGTH) : MSC_OK;
}

static enum msc_status fail_architecture(const struct msc_gguf *g, const char *name) {
    char known[64] = "";
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "", architectures[i].name);
    }
    return MSC_FAIL(
        MSC_E_UNSUPPORTED,
        "%s: a network of the architecture \"%.60s\"; GGUF is read for: %s. Export other "
        "networks as ONNX",
        msc_gguf_path(g), name, known);
}

static enum msc_status find_architecture(struct decoder *d) {
    const char *name = "";
    double n_parts = 1;
    (void)msc_gguf_text(&name, d->file, "general.architecture");
    if (msc_gguf_number(&n_parts, d->file, "split.count") && n_parts > 1) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "%s: one part of a model in %g files; join them with llama-gguf-split --merge",
            msc_gguf_path(d->file), n_parts);
    }
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        if (strcmp(architectures[i].name, name) == 0) {
            d->architecture = &architectures[i];
            return MSC_OK;
        }
    }
    return fail_architecture(d->file, name);
}

static enum msc_status read_numbers(struct decoder *d) {
    double epsilon = 0;
    MSC_TRY(get_count(&d->n_blocks, d, "block_count", MOST_BLOCKS));
    MSC_TRY(get_count(&d->n_embedding, d, "embedding_length", MOST_LENGTH));
    MSC_TRY(get_count(&d->n_heads, d, "attention.head_count", MOST_LENGTH));
    d->n_kv_heads = d->n_heads;
    d->n_in_head = d->n_embedding / d->n_heads;
    MSC_TRY(get_optional(&d->n_kv_heads, d, "attention.head_count_kv"));
    MSC_TRY(get_optional(&d->n_in_head, d, "attention.key_length"));
    d->n_rotated = d->n_in_head;
    MSC_TRY(get_optional(&d->n_rotated, d, "rope.dimension_count"));
    if (d->n_heads % d->n_kv_heads != 0 || d->n_in_head < 1 || d->n_rotated != d->n_in_head ||
        d->n_rotated % 2 != 0) {
        return MSC_FAIL(
            MSC_E_UNSUPPORTED,
            "%s: %d heads of %d elements, of which %d are rotated, over %d heads of keys",
            msc_gguf_path(d->file), d->n_heads, d->n_in_head, d->n_rotated, d->n_kv_heads);
    }
    MSC_TRY(find_number(&epsilon, NULL, d, "attention.layer_norm_rms_epsilon"));
    if (!(epsilon > 0) || !isfinite(epsilon)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: %s.attention.layer_norm_rms_epsilon is %g, expected a positive number",
                        msc_gguf_path(d->file), d->architecture->name, epsilon);
    }
    d->epsilon = (float)epsilon;
    return MSC_OK;
}

// ---- Weights ----------------------------------------------------------------------------------

static bool has_tensor(const struct decoder *d, const char *name) {
    return msc_gguf_find(d->file, name) != NULL;
}

// Adds a tensor of the file to the weights, unless it is there already.
static enum msc_status add_tensor(struct decoder *d, const char *name) {
    const struct msc_gguf_tensor *t = msc_gguf_find(d->file, name);
    struct msc_array *array;
    if (!t) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%s\" is missing", msc_gguf_path(d->file), name);
    }
    size_t index = (size_t)(t - msc_gguf_tensor(d->file, 0));
    if (d->is_used[index]) {
        return MSC_OK;
    }
    d->is_used[index] = true;
    MSC_TRY(msc_gguf_load(&array, d->file, t));
    enum msc_status status = msc_array_list_add(d->weights, name, array);
    msc_array_release(array);
    return status;
}

// A tensor that this network does not have would mean another network.
static enum msc_status check_all_used(const struct decoder *d) {
    for (size_t i = 0; i < msc_gguf_n_tensors(d->file); i++) {
        if (!d->is_used[i]) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s: tensor \"%.100s\" is not part of the networks of architecture %s "
                            "that are read",
                            msc_gguf_path(d->file), msc_gguf_tensor(d->file, i)->name,
                            d->architecture->name);
        }
    }
    return MSC_OK;
}

// Adds a constant joint, and its weight, which is not in the file.
static enum msc_status add_constant(struct decoder *d, const char *name, enum msc_dtype dtype,
                                    int n_dims, int64_t length, const void *data) {
    struct msc_array *array;
    char weight[64];
    snprintf(weight, sizeof(weight), MSC_ADDED_PREFIX "%s", name);
    MSC_TRY(msc_array_create_from(&array, dtype, n_dims, &length, data));
    enum msc_status status = msc_array_list_add(d->weights, weight, array);
    msc_array_release(array);
    msc_str_printf(&d->text, "ID %s OPTYPE: constant WEIGHTS: const: %s\n", name, weight);
    return status;
}

// ---- Joints -----------------------------------------------------------------------------------

#define PUT(...) msc_str_printf(&d->text, __VA_ARGS__)

// The type of a matrix [outputs, inputs].
static enum msc_status put_matrix_type(struct decoder *d, const char *name) {
    const struct msc_gguf_tensor *t = msc_gguf_find(d->file, name);
    if (t->n_dims != 2) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%s\" has %d axes, expected 2",
                        msc_gguf_path(d->file), name, t->n_dims);
    }
    PUT("<%lld,%lld|float32|OI>", (long long)t->dims[0], (long long)t->dims[1]);
    return MSC_OK;
}

// A linear layer of `x` with the weight `name`, and a bias if the file has one.
static enum msc_status put_linear(struct decoder *d, const char *joint, const char *name,
                                  const char *x) {
    char weight[160], bias[160];
    snprintf(weight, sizeof(weight), "%s.weight", name);
    snprintf(bias, sizeof(bias), "%s.bias", name);
    bool has_bias = has_tensor(d, bias);
    MSC_TRY(add_tensor(d, weight));
    MSC_TRY(has_bias ? add_tensor(d, bias) : MSC_OK);
    PUT("ID %s IN: %s OPTYPE: msc.linear%s WEIGHTS: weight: %s", joint, x, has_bias ? "_bias" : "",
        weight);
    MSC_TRY(put_matrix_type(d, weight));
    if (has_bias) {
        PUT(" bias: %s", bias);
    }
    PUT("\n");
    return MSC_OK;
}

// Divides x by its root mean square and multiplies by the weight of `name`.
static enum msc_status put_norm(struct decoder *d, const char *name, const char *x) {
    char weight[160];
    snprintf(weight, sizeof(weight), "%s.weight", name);
    MSC_TRY(add_tensor(d, weight));
    const struct msc_gguf_tensor *t = msc_gguf_find(d->file, weight);
    if (t->n_dims != 1 || t->dims[0] != d->n_embedding) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%s\": expected %d elements",
                        msc_gguf_path(d->file), weight, d->n_embedding);
    }
    PUT("ID %s.square IN: %s,%s OPTYPE: multiply\n", name, x, x);
    PUT("ID %s.mean IN: %s.square OPTYPE: mean ATTRS: axis=2, keepdims=1\n", name, name);
    PUT("ID %s.shifted IN: %s.mean,epsilon OPTYPE: add\n", name, name);
    PUT("ID %s.root IN: %s.shifted OPTYPE: sqrt\n", name, name);
    PUT("ID %s.scaled IN: %s,%s.root OPTYPE: divide\n", name, x, name);
    PUT("ID %s OPTYPE: constant WEIGHTS: const: %s\n", weight, weight);
    PUT("ID %s IN: %s.scaled,%s OPTYPE: multiply\n", name, name, weight);
    return MSC_OK;
}

// The heads of `x` [batch, sequence, heads * elements] as `x.heads` [batch, sequence, heads,
// elements]. Rotated, pairs of elements are turned by the angles of their position.
static void put_rotated(struct decoder *d, const char *x, int n_heads) {
    int n = d->n_in_head, half = n / 2;
    bool halves = d->architecture->turns_halves;
    const char *stride = halves ? "1," : "2,";
    PUT("ID %s.unrotated IN: %s OPTYPE: reshape ATTRS: shape=0,0,%d,%d\n", x, x, n_heads, n);
    PUT("ID %s.a IN: %s.unrotated OPTYPE: strided_slice ATTRS: axes=3, begin=0, end=%d, "
        "strides=%s\n",
        x, x, halves ? half : n, stride);
    PUT("ID %s.b IN: %s.unrotated OPTYPE: strided_slice ATTRS: axes=3, begin=%d, end=%d, "
        "strides=%s\n",
        x, x, halves ? half : 1, n, stride);
    PUT("ID %s.a_cos IN: %s.a,cosines OPTYPE: multiply\n", x, x);
    PUT("ID %s.b_sin IN: %s.b,sines OPTYPE: multiply\n", x, x);
    PUT("ID %s.turned_a IN: %s.a_cos,%s.b_sin OPTYPE: subtract\n", x, x, x);
    PUT("ID %s.a_sin IN: %s.a,sines OPTYPE: multiply\n", x, x);
    PUT("ID %s.b_cos IN: %s.b,cosines OPTYPE: multiply\n", x, x);
    PUT("ID %s.turned_b IN: %s.a_sin,%s.b_cos OPTYPE: add\n", x, x, x);
    if (halves) {
        PUT("ID %s.heads IN: %s.turned_a,%s.turned_b OPTYPE: concat ATTRS: axis=3\n", x, x, x);
        return;
    }
    PUT("ID %s.pair_a IN: %s.turned_a OPTYPE: expand_dims ATTRS: axis=4,\n", x, x);
    PUT("ID %s.pair_b IN: %s.turned_b OPTYPE: expand_dims ATTRS: axis=4,\n", x, x);
    PUT("ID %s.pairs IN: %s.pair_a,%s.pair_b OPTYPE: concat ATTRS: axis=4\n", x, x, x);
    PUT("ID %s.heads IN: %s.pairs OPTYPE: reshape ATTRS: shape=0,0,%d,%d\n", x, x, n_heads, n);
}

// Keys or values for each head of the queries: `x.each` [batch, heads, sequence, elements].
static void put_each(struct decoder *d, const char *x) {
    bool is_shared = d->n_kv_heads < d->n_heads;
    PUT("ID %s.%s IN: %s.heads OPTYPE: permute_dims ATTRS: axes=0,2,1,3\n", x,
        is_shared ? "by_head" : "each", x);
    if (is_shared) {
        PUT("ID %s.each IN: %s.by_head,heads_of_keys OPTYPE: take ATTRS: axis=1\n", x, x);
    }
}

// A linear layer of `x` whose outputs are heads. Its joint and its weight have the same name.
static enum msc_status put_heads(struct decoder *d, const char *name, const char *x, int n_heads) {
    char weight[160];
    snprintf(weight, sizeof(weight), "%s.weight", name);
    MSC_TRY(put_linear(d, name, name, x));
    const struct msc_gguf_tensor *t = msc_gguf_find(d->file, weight);
    if (t->dims[0] != (int64_t)n_heads * d->n_in_head) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%s\" has %lld rows, expected %d heads of %d",
                        msc_gguf_path(d->file), weight, (long long)t->dims[0], n_heads,
                        d->n_in_head);
    }
    return MSC_OK;
}

static enum msc_status put_attention(struct decoder *d, int block, const char *x) {
    char q[64], k[64], v[64], out[64];
    snprintf(q, sizeof(q), "blk.%d.attn_q", block);
    snprintf(k, sizeof(k), "blk.%d.attn_k", block);
    snprintf(v, sizeof(v), "blk.%d.attn_v", block);
    snprintf(out, sizeof(out), "blk.%d.attn_output", block);
    MSC_TRY(put_heads(d, q, x, d->n_heads));
    MSC_TRY(put_heads(d, k, x, d->n_kv_heads));
    MSC_TRY(put_heads(d, v, x, d->n_kv_heads));
    put_rotated(d, q, d->n_heads);
    put_rotated(d, k, d->n_kv_heads);
    PUT("ID %s.heads IN: %s OPTYPE: reshape ATTRS: shape=0,0,%d,%d\n", v, v, d->n_kv_heads,
        d->n_in_head);
    PUT("ID %s.each IN: %s.heads OPTYPE: permute_dims ATTRS: axes=0,2,1,3\n", q, q);
    put_each(d, k);
    put_each(d, v);
    PUT("ID %s.scaled IN: %s.each,scale OPTYPE: multiply\n", q, q);
    PUT("ID %s.turned IN: %s.each OPTYPE: permute_dims ATTRS: axes=0,1,3,2\n", k, k);
    PUT("ID blk.%d.scores IN: %s.scaled,%s.turned OPTYPE: matmul\n", block, q, k);
    PUT("ID blk.%d.masked IN: blk.%d.scores,mask OPTYPE: add\n", block, block);
    PUT("ID blk.%d.shares IN: blk.%d.masked OPTYPE: nn.softmax ATTRS: axis=-1\n", block, block);
    PUT("ID blk.%d.attended IN: blk.%d.shares,%s.each OPTYPE: matmul\n", block, block, v);
    PUT("ID blk.%d.by_token IN: blk.%d.attended OPTYPE: permute_dims ATTRS: axes=0,2,1,3\n", block,
        block);
    PUT("ID blk.%d.joined IN: blk.%d.by_token OPTYPE: reshape ATTRS: shape=0,0,%d\n", block, block,
        d->n_heads * d->n_in_head);
    char joined[64];
    snprintf(joined, sizeof(joined), "blk.%d.joined", block);
    return put_linear(d, out, out, joined);
}

static enum msc_status put_block(struct decoder *d, int block, const char *x) {
    char norm[64], attended[64], gate[64], up[64], down[64], inner[64];
    snprintf(norm, sizeof(norm), "blk.%d.attn_norm", block);
    MSC_TRY(put_norm(d, norm, x));
    MSC_TRY(put_attention(d, block, norm));
    PUT("ID blk.%d.attn_sum IN: %s,blk.%d.attn_output OPTYPE: add\n", block, x, block);
    snprintf(attended, sizeof(attended), "blk.%d.attn_sum", block);
    snprintf(norm, sizeof(norm), "blk.%d.ffn_norm", block);
    snprintf(gate, sizeof(gate), "blk.%d.ffn_gate", block);
    snprintf(up, sizeof(up), "blk.%d.ffn_up", block);
    snprintf(down, sizeof(down), "blk.%d.ffn_down", block);
    snprintf(inner, sizeof(inner), "blk.%d.ffn_inner", block);
    MSC_TRY(put_norm(d, norm, attended));
    MSC_TRY(put_linear(d, gate, gate, norm));
    MSC_TRY(put_linear(d, up, up, norm));
    PUT("ID %s.sigmoid IN: %s OPTYPE: sigmoid\n", gate, gate);
    PUT("ID %s.silu IN: %s,%s.sigmoid OPTYPE: multiply\n", gate, gate, gate);
    PUT("ID %s IN: %s.silu,%s OPTYPE: multiply\n", inner, gate, up);
    MSC_TRY(put_linear(d, down, down, inner));
    PUT("ID blk.%d.sum IN: %s,%s OPTYPE: add\n", block, attended, down);
    return MSC_OK;
}

// ---- Positions and heads ----------------------------------------------------------------------

// The turns of the pairs of elements per position. Llama 3 divides them by a tensor of the file.
// Without a type, scaling is linear, and a factor of 0 means 1, as in llama.cpp.
static enum msc_status add_frequencies(struct decoder *d) {
    double base = 10000, factor = 1;
    const char *scaling = "linear";
    char key[64];
    struct msc_array *divisors = NULL;
    int64_t n = d->n_rotated / 2;
    MSC_TRY(find_number(&base, NULL, d, "rope.freq_base"));
    MSC_TRY(find_number(&factor, NULL, d, "rope.scale_linear")); // of older files
    MSC_TRY(find_number(&factor, NULL, d, "rope.scaling.factor"));
    factor = factor == 0 ? 1 : factor;
    snprintf(key, sizeof(key), "%s.rope.scaling.type", d->architecture->name);
    (void)msc_gguf_text(&scaling, d->file, key);
    bool is_linear = strcmp(scaling, "linear") == 0;
    if (!(base > 0) || !isfinite(base)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: %s.rope.freq_base is %g, expected a positive number",
                        msc_gguf_path(d->file), d->architecture->name, base);
    }
    if ((!is_linear && strcmp(scaling, "none") != 0) || !(factor > 0) || !isfinite(factor)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: %s is \"%.40s\" with the factor %g, expected \"none\" or \"linear\"",
                        msc_gguf_path(d->file), key, scaling, factor);
    }
    const struct msc_gguf_tensor *t = msc_gguf_find(d->file, "rope_freqs.weight");
    if (t && (t->n_dims != 1 || t->dims[0] != n)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: tensor \"%s\": expected %lld elements",
                        msc_gguf_path(d->file), t->name, (long long)n);
    }
    if (t) {
        d->is_used[t - msc_gguf_tensor(d->file, 0)] = true;
        MSC_TRY(msc_gguf_load(&divisors, d->file, t));
    }
    float *turns = msc_arena_array(&d->arena, (size_t)n, sizeof(turns[0]));
    enum msc_status status = MSC_ALLOCATED(turns);
    for (int64_t i = 0; turns && i < n; i++) {
        double turn = 1 / pow(base, (double)(2 * i) / d->n_rotated) / (is_linear ? factor : 1);
        turns[i] = (float)(divisors ? turn / msc_array_get_double(divisors, i) : turn);
    }
    msc_array_release(divisors);
    return status == MSC_OK ? add_constant(d, "frequencies", MSC_DTYPE_F32, 1, n, turns) : status;
}

// Cosines and sines [sequence, 1, elements / 2] of the angles, and the mask [sequence, sequence]
// that hides later tokens.
static enum msc_status put_positions(struct decoder *d) {
    static const int64_t zero = 0, one = 1;
    static const float nothing = 0, masked = MASKED;
    float scale = (float)(1 / sqrt((double)d->n_in_head));
    MSC_TRY(add_frequencies(d));
    MSC_TRY(add_constant(d, "zero", MSC_DTYPE_I64, 0, 0, &zero));
    MSC_TRY(add_constant(d, "one", MSC_DTYPE_I64, 0, 0, &one));
    MSC_TRY(add_constant(d, "nothing", MSC_DTYPE_F32, 0, 0, &nothing));
    MSC_TRY(add_constant(d, "hidden", MSC_DTYPE_F32, 0, 0, &masked));
    MSC_TRY(add_constant(d, "epsilon", MSC_DTYPE_F32, 0, 0, &d->epsilon));
    MSC_TRY(add_constant(d, "scale", MSC_DTYPE_F32, 0, 0, &scale));
    PUT("ID shape IN: input_ids OPTYPE: shape_of\n");
    PUT("ID length IN: shape,one OPTYPE: take\n");
    PUT("ID positions IN: zero,length,one OPTYPE: arange\n");
    PUT("ID places IN: positions OPTYPE: astype ATTRS: dtype=float32\n");
    PUT("ID places.column IN: places OPTYPE: expand_dims ATTRS: axis=1,2\n");
    PUT("ID angles IN: places.column,frequencies OPTYPE: multiply\n");
    PUT("ID cosines IN: angles OPTYPE: cos\nID sines IN: angles OPTYPE: sin\n");
    PUT("ID positions.column IN: positions OPTYPE: expand_dims ATTRS: axis=1,\n");
    PUT("ID is_seen IN: positions,positions.column OPTYPE: less_equal\n");
    PUT("ID mask IN: is_seen,nothing,hidden OPTYPE: where\n");
    return MSC_OK;
}

static enum msc_status add_heads_of_keys(struct decoder *d) {
    int64_t *heads = msc_arena_array(&d->arena, (size_t)d->n_heads, sizeof(heads[0]));
    MSC_TRY(MSC_ALLOCATED(heads));
    for (int i = 0; i < d->n_heads; i++) {
        heads[i] = i / (d->n_heads / d->n_kv_heads);
    }
    return d->n_kv_heads < d->n_heads
               ? add_constant(d, "heads_of_keys", MSC_DTYPE_I64, 1, d->n_heads, heads)
               : MSC_OK;
}

// ---- The network ------------------------------------------------------------------------------

static enum msc_status put_network(struct decoder *d) {
    char x[64] = "embedded";
    PUT("decoder <INPUTS: input_ids| OUTPUTS: logits>\n");
    PUT("ID input_ids OUT: input_ids<batch,sequence|int64> OPTYPE: input\n");
    MSC_TRY(put_positions(d));
    MSC_TRY(add_heads_of_keys(d));
    MSC_TRY(add_tensor(d, "token_embd.weight"));
    PUT("ID token_embd OPTYPE: constant WEIGHTS: const: token_embd.weight");
    MSC_TRY(put_matrix_type(d, "token_embd.weight"));
    PUT("\n");
    PUT("ID embedded IN: token_embd,input_ids OPTYPE: take\n");
    for (int i = 0; i < d->n_blocks; i++) {
        MSC_TRY(put_block(d, i, x));
        snprintf(x, sizeof(x), "blk.%d.sum", i);
    }
    MSC_TRY(put_norm(d, "output_norm", x));
    // Without a matrix for the output, it is the table of tokens.
    bool is_tied = !has_tensor(d, "output.weight");
    MSC_TRY(put_linear(d, "logits", is_tied ? "token_embd" : "output", "output_norm"));
    return check_all_used(d);
}

enum msc_status msc_gguf_to_text(char **text, size_t *n_bytes, struct msc_array_list *weights,
                                 const char *path) {
    struct msc_gguf *file;
    MSC_TRY(msc_gguf_open(&file, path));
    struct decoder d = {.file = file, .weights = weights};
    enum msc_status status = MSC_OK;
    d.is_used = msc_arena_array(&d.arena, msc_gguf_n_tensors(file) + 1, sizeof(bool));
    MSC_TRY_OUT(MSC_ALLOCATED(d.is_used));
    MSC_TRY_OUT(find_architecture(&d));
    MSC_TRY_OUT(read_numbers(&d));
    MSC_TRY_OUT(put_network(&d));
    *n_bytes = d.text.length;
    status = msc_str_take(text, &d.text);
out:
    msc_str_finish(&d.text);
    msc_arena_finish(&d.arena);
    msc_gguf_close(file);
    return status;
}
