// A table for people: columns that line up, safe to show (base/shown.h), folded to a width.
//
//     struct msc_table t = {.n_columns = 3, .indent = 2};
//     msc_table_add(&t, "size_bytes");   // cell by cell, row by row
//     ...
//     msc_table_write(&text, &t, 80);
//     msc_table_finish(&t);
//
// Columns that do not fit the width continue in further blocks below, after an empty line; each
// block repeats the key column first. A column that is wider than the width gets a block of its
// own.
#ifndef MSC_BASE_TABLE_H
#define MSC_BASE_TABLE_H

#include "base/alloc.h"
#include "base/style.h"

#include <stdbool.h>
#include <stddef.h>

struct msc_str;

struct msc_table_cell {
    const char *shown;
    enum msc_style style;
};

struct msc_table {
    size_t n_columns;
    size_t key;           // the column that every block repeats; not the last one
    size_t indent;        // blanks before a line
    size_t least_columns; // minimum width of all columns but the first
    bool is_left;         // align all columns left, not only the first
    // Private; zero at first.
    struct msc_arena arena;
    struct msc_table_cell *cells;
    size_t n_cells, capacity;
    bool failed; // out of memory; msc_table_write forwards it
};

// The text is copied. The first row is a heading.
void msc_table_add(struct msc_table *table, const char *text);
void msc_table_add_styled(struct msc_table *table, const char *text, enum msc_style style);
// Appends the table; n_columns 0: one block of any width. Two blanks separate columns.
void msc_table_write(struct msc_str *out, const struct msc_table *table, size_t n_columns);
void msc_table_finish(struct msc_table *table);

// The width of a text in columns, once it is safe to show.
size_t msc_table_width(const char *text);

#endif
