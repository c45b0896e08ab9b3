// A table for people: aligned columns, safe to show (base/shown.h), folded to a width.
//
//     struct msc_table t = {.n_columns = 3, .indent = 2};
//     msc_table_add(&t, "size_bytes");   // cell by cell, row by row
//     ...
//     msc_table_write(&text, &t, 80);
//     msc_table_finish(&t);
//
// Columns that do not fit the width continue in further blocks, each after an empty line. Each
// block begins with the key column. A column that is wider than the width gets a block of its own.
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
// Appends the table, at most `n_columns` wide; 0: any width, in a single block. Two blanks separate
// columns.
void msc_table_write(struct msc_str *out, const struct msc_table *table, size_t n_columns);
void msc_table_finish(struct msc_table *table);

// The width of a text in columns after it is made safe to show.
size_t msc_table_width(const char *text);

#endif
