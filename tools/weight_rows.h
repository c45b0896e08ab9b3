// A joint's weight as rows, one per output channel, and their rounded integers. Rows of one
// convolution group are multiplied by the same inputs. A struct msc_moment has the second moments
// of these inputs; the columns of the rows are in the order of the moment's columns.
//
//     struct msc_arena arena = {0};
//     MSC_TRY(msc_weight_rows_init(&rows, tensor, slot, moment, &arena));
//     MSC_TRY(msc_rounded_rows_init(&rounded, &rows, now, scheme, has_shifts, &arena));
//     MSC_TRY(msc_weight_rows_factor(&orders, &rows, h, n_threads));
//     MSC_TRY(msc_weight_rows_each(&rounded, h, n_threads, round_some, payload));
//     MSC_TRY(msc_rounded_rows_give(&quant, &rounded, true));
//     msc_gptq_orders_destroy(orders, rows.n_orders);
#ifndef MSC_TOOLS_WEIGHT_ROWS_H
#define MSC_TOOLS_WEIGHT_ROWS_H

#include "graph/site.h"
#include "tools/rounding.h"
#include "tools/second_moment.h"

// Open structure.
struct msc_weight_rows {
    const struct msc_array *array; // the weight
    bool is_input_first;           // the weight is [columns, rows]
    int64_t n_groups, n_rows, n_columns;
    int64_t block_columns; // of the moment's blocks
    int64_t n_orders;      // groups and blocks
    float *values;         // [n_rows, n_columns], in the arena
};

// Integers of all rows. Open structure; its pointers are in the arena.
struct msc_rounded_rows {
    const struct msc_weight_rows *rows;
    struct msc_quant form; // the layout of scales
    struct msc_scheme scheme;
    int64_t n_blocks;     // scales per row
    float *scales;        // [n_rows, n_blocks]
    int32_t *zero_points; // [n_rows, n_blocks]
    int32_t *integers;    // [n_rows, n_columns]
    float *shifts;        // [n_rows]; NULL: none
};

// `weight` must have elements, `slot` is a use of the weight, and `moment` is the second moment of
// this use's inputs. MSC_E_NOMEM.
enum msc_status msc_weight_rows_init(struct msc_weight_rows *out, const struct msc_tensor *weight,
                                     const struct msc_slot *slot, const struct msc_moment *moment,
                                     struct msc_arena *arena);
// The index of a row's column k among the elements of the weight.
int64_t msc_weight_rows_element(const struct msc_weight_rows *w, int64_t row, int64_t k);

// Copies the scales of `now` as a start. MSC_E_NOMEM.
enum msc_status msc_rounded_rows_init(struct msc_rounded_rows *out,
                                      const struct msc_weight_rows *rows,
                                      const struct msc_quant *now, struct msc_scheme scheme,
                                      bool has_shifts, struct msc_arena *arena);
// The result as a quantisation, in the order of the weight's elements, with the integers if
// requested. *out is owned by the caller (msc_quant_finish), sealed. MSC_E_NOMEM.
enum msc_status msc_rounded_rows_give(struct msc_quant *out, const struct msc_rounded_rows *r,
                                      bool has_integers);

// Prepares GPTQ for the blocks of each group's h; *out [n_orders], groups first, is owned by the
// caller. Damping is 0.01 of the mean of the diagonal, as in the paper, multiplied by ten up
// to ten times until h is definite. MSC_E_INVALID: h never is; MSC_E_NOMEM.
enum msc_status msc_weight_rows_factor(struct msc_gptq_order ***out,
                                       const struct msc_weight_rows *w, const float h[],
                                       int n_threads);
void msc_gptq_orders_destroy(struct msc_gptq_order **orders, int64_t n); // accepts NULL

// Calls `work` in parallel, for up to MSC_ROUNDING_ROWS rows of one group per call, from row
// `first` on; h may be NULL. Returns the status of a call that failed, without a message, because
// messages are local to their thread.
typedef enum msc_status (*msc_weight_rows_work)(void *payload, struct msc_rounding_rows *rows,
                                                int64_t group, int64_t first);
enum msc_status msc_weight_rows_each(const struct msc_rounded_rows *r, const float h[],
                                     int n_threads, msc_weight_rows_work work, void *payload);

#endif
