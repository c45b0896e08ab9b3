#include "base/table.h"

#include "base/shown.h"
#include "base/str.h"

#include <string.h>

#define BETWEEN 2 // blanks

// The number of characters of a text that is already safe to show.
static size_t table_count(const char *shown) {
    size_t n = 0;
    for (; *shown; shown++) {
        n += ((unsigned char)*shown & 0xc0) != 0x80;
    }
    return n;
}

size_t msc_table_width(const char *text) {
    return msc_shown_width(text);
}

void msc_table_add(struct msc_table *table, const char *text) {
    bool is_heading = table->n_cells < table->n_columns;
    msc_table_add_styled(table, text, is_heading ? MSC_STYLE_HEADING : MSC_STYLE_PLAIN);
}

void msc_table_add_styled(struct msc_table *table, const char *text, enum msc_style style) {
    struct msc_str shown = {0};
    msc_shown_append(&shown, text);
    char *copy = msc_arena_strdup(&table->arena, msc_str_text(&shown));
    if (shown.failed || !copy ||
        msc_grow(&table->cells, &table->capacity, table->n_cells + 1, sizeof table->cells[0]) !=
            MSC_OK) {
        table->failed = true;
    } else {
        table->cells[table->n_cells++] = (struct msc_table_cell){copy, style};
    }
    msc_str_finish(&shown);
}

void msc_table_finish(struct msc_table *table) {
    msc_free(table->cells);
    msc_arena_finish(&table->arena);
    *table = (struct msc_table){0};
}

static void table_measure(size_t widths[], const struct msc_table *t) {
    for (size_t i = 0; i < t->n_columns; i++) {
        widths[i] = i > 0 ? t->least_columns : 0;
    }
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t *width = &widths[i % t->n_columns], n = table_count(t->cells[i].shown);
        *width = n > *width ? n : *width;
    }
}

// Columns that are written together: the key column, unless this is the first block, and the
// columns [first, end).
struct block {
    const struct msc_table *table;
    const size_t *widths;
    size_t first, end;
};

static bool is_first(const struct block *b) {
    return b->first == 0;
}

static bool table_holds(const struct block *b, size_t column) {
    return is_first(b) || column != b->table->key;
}

// Takes as many columns as fit into the block, and at least one besides the key column.
static void find_end(struct block *b, size_t n_columns) {
    size_t used = b->table->indent + (is_first(b) ? 0 : b->widths[b->table->key] + BETWEEN);
    bool is_empty = true;
    for (b->end = b->first; b->end < b->table->n_columns; b->end++) {
        if (!table_holds(b, b->end)) {
            continue;
        }
        used += b->widths[b->end];
        if (n_columns > 0 && used > n_columns && !is_empty) {
            return;
        }
        used += BETWEEN;
        is_empty = is_empty && b->end == b->table->key;
    }
}

static void write_text(struct msc_str *out, const struct msc_table_cell *cell) {
    bool is_styled = cell->style != MSC_STYLE_PLAIN && cell->shown[0];
    if (is_styled) {
        msc_style_begin(out, cell->style);
    }
    msc_str_append(out, cell->shown);
    if (is_styled) {
        msc_style_end(out);
    }
}

static void write_cell(struct msc_str *out, const struct block *b, size_t column,
                       const struct msc_table_cell *cell, bool is_last) {
    int blanks = (int)(b->widths[column] - table_count(cell->shown));
    bool is_right = column > 0 && !b->table->is_left;
    msc_str_printf(out, "%*s", is_right ? blanks : 0, "");
    write_text(out, cell);
    msc_str_printf(out, "%*s", is_last ? 0 : (is_right ? 0 : blanks) + BETWEEN, "");
}

static void write_row(struct msc_str *out, const struct block *b,
                      const struct msc_table_cell cells[]) {
    size_t last = b->end - 1;
    last -= !table_holds(b, last);
    msc_str_printf(out, "%*s", (int)b->table->indent, "");
    if (!is_first(b)) {
        write_cell(out, b, b->table->key, &cells[b->table->key], false);
    }
    for (size_t i = b->first; i < b->end; i++) {
        if (table_holds(b, i)) {
            write_cell(out, b, i, &cells[i], i == last);
        }
    }
    msc_str_char(out, '\n');
}

void msc_table_write(struct msc_str *out, const struct msc_table *table, size_t n_columns) {
    size_t *widths = msc_alloc_zero(table->n_columns + 1, sizeof widths[0]);
    struct block b = {.table = table, .widths = widths};
    if (!widths || table->failed) {
        out->failed = true;
        msc_free(widths);
        return;
    }
    table_measure(widths, table);
    for (; b.first < table->n_columns; b.first = b.end) {
        msc_str_append(out, is_first(&b) ? "" : "\n");
        find_end(&b, n_columns);
        for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns) {
            write_row(out, &b, table->cells + i);
        }
    }
    msc_free(widths);
}
