// The text form of graphs as a language: its tokens and its syntax tree. docs/text-form.md has the
// grammar. graph/text_read.c makes a graph of the tree; graph/print.c writes the text.
//
// The reader holds one token, the next one. Functions that read something begin at this token and
// end after the last token of what they read. So programs can read fragments of a graph, such as
// the joints of a pattern, between words of their own:
//
//     struct msc_text_reader r;
//     struct msc_text_joints joints = {0};
//     MSC_TRY(msc_text_open(&r, &arena, text, n_bytes, "rules.msc"));
//     ... if (msc_text_is_label(&r, "MATCH")) {
//         MSC_TRY(msc_text_next(&r));
//         MSC_TRY(msc_text_read_joints(&joints, &r));      // ID a, ID b ... up to another word
//     }
//
// The tree has the words of the text; it is not checked against the table of operators. All texts
// and lists are in the arena. Errors are MSC_E_FORMAT, and the message begins with
// "NAME:LINE:COLUMN: ". Only graph/ includes this header.
#ifndef MSC_GRAPH_TEXT_H
#define MSC_GRAPH_TEXT_H

#include "data/array.h"

#include <stdbool.h>
#include <stddef.h>

struct msc_arena;
struct msc_str;

enum msc_text_kind {
    MSC_TEXT_NONE, // in a tree: not given
    MSC_TEXT_END,
    MSC_TEXT_WORD,   // a name, number or operator without quotes
    MSC_TEXT_QUOTED, // `text` is without the quotes and escapes
    MSC_TEXT_LABEL,  // a word that ends in ':'; `text` is without the colon
    MSC_TEXT_MARK,   // one of , | < > ( ) { } =
};

struct msc_text_token {
    enum msc_text_kind kind;
    int line, column; // from 1; columns count characters
    const char *text; // NULL if not given; "" at the end of the text
};

struct msc_text_reader {
    const char *name; // of the text, for messages
    struct msc_arena *arena;
    struct msc_text_token token; // the next token
    const char *at, *end;        // the text after `token`
    int line, column;            // of *at
    int depth;                   // number of graphs around the one that is being read
};

// ---- Syntax tree ------------------------------------------------------------------------------

struct msc_text_words {
    size_t n;
    struct msc_text_token *items; // words and quoted texts
};

// NAME(ALIAS)<DIMS|DTYPE|LAYOUT>. Only the name is always given.
struct msc_text_tensor {
    struct msc_text_token name;  // "" (quoted) if an optional operand is absent
    struct msc_text_token alias; // "" (quoted): none
    struct msc_text_token dtype; // not given: no type is given
    int n_dims;
    struct msc_text_token dims[MSC_MAX_DIMS]; // numbers and symbols; a quoted text is a symbol
    struct msc_text_token layout;
};

struct msc_text_tensors {
    size_t n;
    struct msc_text_tensor *items;
};

struct msc_text_attrs {
    size_t n;
    struct msc_text_attr {
        struct msc_text_token key, value;
    } * items;
};

struct msc_text_weights {
    size_t n;
    struct msc_text_weight {
        struct msc_text_token role;
        struct msc_text_tensor tensor;
    } * items;
};

// Parents, children and shared references follow from the rest of a graph. They are read and
// dropped, like the numbers after "ID_" and "P_".
struct msc_text_joints {
    size_t n;
    struct msc_text_joint {
        struct msc_text_token name, optype, scope;
        struct msc_text_tensors inputs, outputs;
        struct msc_text_attrs attrs;
        struct msc_text_weights weights;
        size_t n_graphs;
        struct msc_text_graph **graphs;
    } * items;
};

struct msc_text_prims {
    size_t n;
    struct msc_text_prim {
        struct msc_text_token name, optype;
        struct msc_text_words parents;
        struct msc_text_attrs attrs;
    } * items;
};

struct msc_text_graph {
    struct msc_text_token name;
    struct msc_text_token inputs_label; // not given: the order of the joints
    struct msc_text_words inputs, outputs;
    struct msc_text_prims prims;
    struct msc_text_joints joints;
    struct msc_text_attrs notes, metadata, input_docs, output_docs;
    struct msc_text_token notes_label; // not given: there are no notes
};

// ---- Tokens -----------------------------------------------------------------------------------

// Begins to read a text of UTF-8 and reads the first token. `text` and `name` are borrowed while
// the reader is used.
enum msc_status msc_text_open(struct msc_text_reader *r, struct msc_arena *arena, const char *text,
                              size_t length, const char *name);
// Moves to the next token.
enum msc_status msc_text_next(struct msc_text_reader *r);
// True if the next token is this mark, label or word.
bool msc_text_is(const struct msc_text_reader *r, char mark);
bool msc_text_is_label(const struct msc_text_reader *r, const char *label);
bool msc_text_is_word(const struct msc_text_reader *r, const char *word);
// Moves past the mark; fails if the next token is another.
enum msc_status msc_text_expect(struct msc_text_reader *r, char mark);
// Reads a word or quoted text. `what` names it in messages: "the name of a joint".
enum msc_status msc_text_take(struct msc_text_token *out, struct msc_text_reader *r,
                              const char *what);
// Moves past the mark '=' and reads the value after it: all characters up to white space, or a
// quoted text.
enum msc_status msc_text_take_value(struct msc_text_token *out, struct msc_text_reader *r);
// Makes room for one more item of a list of the tree, whose array is in the arena. *items is the
// list; `n` is its length.
enum msc_status msc_text_grow(void *items, size_t n, size_t item_bytes, struct msc_text_reader *r);

// Puts "NAME:LINE:COLUMN: " before the message of a failure that concerns the token. MSC_E_INVALID
// becomes MSC_E_FORMAT.
enum msc_status msc_text_at(const struct msc_text_reader *r, const struct msc_text_token *token,
                            enum msc_status status);
#define MSC_TEXT_FAIL(reader, token, ...)                                                          \
    msc_text_at((reader), (token), MSC_FAIL(MSC_E_FORMAT, __VA_ARGS__))
// Fails because the next token is not `expected`: "expected ',', found 'x'".
enum msc_status msc_text_unexpected(const struct msc_text_reader *r, const char *expected);

// ---- Parts of a graph -------------------------------------------------------------------------

enum msc_status msc_text_read_tensor(struct msc_text_tensor *out, struct msc_text_reader *r);
// Reads KEY=VALUE pairs up to a token that does not begin a pair, and appends them.
enum msc_status msc_text_read_attrs(struct msc_text_attrs *attrs, struct msc_text_reader *r);
// Reads joints ("ID ..." or "ID_1 ...") up to a token that does not begin a joint, and appends
// them.
enum msc_status msc_text_read_joints(struct msc_text_joints *joints, struct msc_text_reader *r);
// Reads a graph with its notes, up to a token that cannot follow.
enum msc_status msc_text_read_graph(struct msc_text_graph *out, struct msc_text_reader *r);

// ---- Writing ----------------------------------------------------------------------------------

// Appends a name: as it is if it reads back as a word, else in quotes with escapes.
void msc_text_write_name(struct msc_str *out, const char *name);
// Appends the name of a symbol as a dimension: a symbol that looks like a number is quoted.
void msc_text_write_symbol(struct msc_str *out, const char *name);
// Appends the value of an attribute, which needs no quotes for commas, brackets and '='.
void msc_text_write_value(struct msc_str *out, const char *value);

#endif
