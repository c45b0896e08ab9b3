// A measured table of placement (docs/placement.md): a network as a chain of groups of joints, and
// the latency of every run of neighbouring groups on every backend. A point gives each group a
// backend. Groups that are neighbours and have the same backend are one piece, so the latency of a
// point is the sum of its pieces' latencies and of the prices of the cuts between them. A price is
// what longer a piece takes after another backend than after its own, so it may be negative.
//
// A table may have variants of the network: models with the same tensors at the cuts, such as one
// of 8 bits. Each pair of a runtime and a variant is then a backend of its own. Losses of
// combinations of variants are kept in the table.
//
//     MSC_TRY(msc_place_table_load(&p, "placement.json"));
//     MSC_TRY(msc_place_table_best(&us, p, choices));               // [p->n_groups]
//     msc_place_table_close(p);
#ifndef MSC_ENV_PLACEMENT_PLACE_TABLE_H
#define MSC_ENV_PLACEMENT_PLACE_TABLE_H

#include "base/alloc.h"
#include "base/hash.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define MSC_PLACE_SCHEMA "mscgym.placement"

enum {
    MSC_PLACE_MOST_GROUPS = 64,
    MSC_PLACE_MOST_BACKENDS = 16,
    MSC_PLACE_MOST_VARIANTS = 8,
    MSC_PLACE_MOST_COMBINATIONS = 1 << 17, // of variants, for msc_place_table_best_within
};

struct msc_place_backend {
    const char *name; // "onnxruntime", "openvino", or a device of mscgym
    const char *version;
    const char *label; // the name, and the variant's model if it is not the network
    uint32_t variant;
};

struct msc_place_variant {
    const char *model; // path, relative to the table's file
    const char *hash;  // of the model's file
};

// The loss of a network whose groups come from these variants.
struct msc_place_loss {
    uint32_t *variants; // [n_groups]
    double loss;
};

struct msc_place_group {
    const char *name; // of its first joint
    int64_t n_joints;
    double macs; // multiply-accumulates of one sample
};

// Open structure. Everything is in the arena.
struct msc_place_table {
    struct msc_arena arena;
    size_t n_variants;                                          // at least 1
    struct msc_place_variant variants[MSC_PLACE_MOST_VARIANTS]; // the first is the network itself
    size_t n_losses;
    struct msc_place_loss *losses; // [n_losses], each combination once
    const char *samples;           // hash of the samples of the losses; NULL: no losses
    const char *processor;
    int64_t n_threads, n_rounds, batch;
    size_t n_groups, n_backends;
    struct msc_place_group *groups;     // [n_groups]
    struct msc_place_backend *backends; // [n_backends]
    // [n_groups, n_groups, n_backends] microseconds of groups first ... last in one piece; NaN: the
    // backend cannot run it, or last < first.
    double *us;
    // [n_groups, n_backends, n_backends] price of the cut before a group, from one backend to
    // another; 0 for the first group and for equal backends.
    double *cut_us;
    double *cut_bytes; // [n_groups] that pass the cut before a group; 0: unknown
};

// Makes an empty table: all latencies are NaN, all prices 0, names NULL, one variant. *out is owned
// by the caller (msc_place_table_close). MSC_E_INVALID: a number is 0 or too large.
enum msc_status msc_place_table_create(struct msc_place_table **out, size_t n_groups,
                                       size_t n_backends);
void msc_place_table_close(struct msc_place_table *p); // accepts NULL

static inline double *msc_place_table_us(const struct msc_place_table *p, size_t first, size_t last,
                                         size_t backend) {
    return &p->us[(first * p->n_groups + last) * p->n_backends + backend];
}
static inline double *msc_place_table_cut(const struct msc_place_table *p, size_t group,
                                          size_t from, size_t to) {
    return &p->cut_us[(group * p->n_backends + from) * p->n_backends + to];
}

// The predicted latency of a point, in microseconds; NaN if a piece has no latency.
double msc_place_table_predict(const struct msc_place_table *p, const uint32_t choices[]);
size_t msc_place_table_n_pieces(const struct msc_place_table *p, const uint32_t choices[]);
// The last group of the piece that begins with `first`.
size_t msc_place_table_end(const struct msc_place_table *p, const uint32_t choices[], size_t first);
// The variant of each group.
void msc_place_table_variants(uint32_t variants[], const struct msc_place_table *p,
                              const uint32_t choices[]);
// The point of least predicted latency, by a dynamic program over the ends of pieces; exact, in
// O(n_groups^2 n_backends + n_groups n_backends^2). Of equal points, one with longer pieces is
// taken. MSC_E_NOT_FOUND: every point has a piece without a latency.
enum msc_status msc_place_table_best(double *us, const struct msc_place_table *p,
                                     uint32_t choices[]);

// A bound on the loss. `measure` gives the loss of a combination that the table lacks, or NaN, if
// it cannot be measured; NULL: nothing is measured. What it gives is added to the table.
struct msc_place_bound {
    double most; // INFINITY: none
    enum msc_status (*measure)(double *loss, void *payload, const uint32_t variants[]);
    void *payload;
};
// The loss of a combination: 0 for the network itself, else the table's, else measured; NaN:
// unknown.
enum msc_status msc_place_table_loss(double *loss, struct msc_place_table *p,
                                     const struct msc_place_bound *bound,
                                     const uint32_t variants[]);
// Adds the loss of a combination, which the table lacks; the variants are copied.
enum msc_status msc_place_table_add_loss(struct msc_place_table *p, const uint32_t variants[],
                                         double loss);
// The number of combinations. MSC_E_INVALID: there are more than MSC_PLACE_MOST_COMBINATIONS.
enum msc_status msc_place_count_combinations(size_t *n, size_t n_variants, size_t n_groups);
// The point of least predicted latency among those whose loss is known and within the bound; exact
// if every loss is known: combinations of variants are visited in the order of their least latency,
// until one has such a loss. MSC_E_NOT_FOUND as above. MSC_E_INVALID: there are too many
// combinations.
enum msc_status msc_place_table_best_within(double *us, struct msc_place_table *p,
                                            const struct msc_place_bound *bound,
                                            uint32_t choices[]);

// Sets the label of a backend from its name and variant.
enum msc_status msc_place_table_label(struct msc_place_table *p, size_t backend);
// MSC_E_INVALID: the variant of the table is another network than this file's. `path` is the
// table's.
enum msc_status msc_place_table_check(const struct msc_place_table *p, size_t variant,
                                      const char *model, const char *path);

// MSC_E_FORMAT names the place of a mistake in the file.
enum msc_status msc_place_table_load(struct msc_place_table **out, const char *path);
enum msc_status msc_place_table_save(const struct msc_place_table *p, const char *path);
// Hash of everything in the table that results depend on.
struct msc_hash msc_place_table_hash(const struct msc_place_table *p);

#endif
