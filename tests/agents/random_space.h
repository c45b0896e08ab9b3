// Random small spaces whose costs are sums, or sums of products over two tasks, and what brute
// force says of them.
#ifndef MSC_TESTS_AGENTS_RANDOM_SPACE_H
#define MSC_TESTS_AGENTS_RANDOM_SPACE_H

#include "base/alloc.h"
#include "base/rng.h"
#include "env/api/trial.h"

struct random_space {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal; // objective: metric 0; a bound on each cost
    double *losses;       // [sum of n_choices], of each choice alone
    size_t n_entries;
};

struct random_space_options {
    uint64_t seed;
    size_t n_tasks;
    uint32_t max_choices;
    size_t n_costs;    // metrics 1 … n_costs
    bool has_products; // half of the terms multiply two tasks
    double tightness;  // bounds lie this far from the least (0) to the greatest cost (1)
};

void random_space_init(struct random_space *r, const struct random_space_options *options);
void random_space_finish(struct random_space *r);
// Sum of the isolated losses of a point.
double random_space_loss(const struct random_space *r, const uint32_t choices[]);
// The least loss within the bounds by trying every point; +inf when there is none.
double random_space_optimum(const struct random_space *r);

#endif
