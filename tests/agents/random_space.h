// Random small spaces and their optimum by brute force. Costs are sums, or sums of products over
// two tasks.
#ifndef MSC_TESTS_AGENTS_RANDOM_SPACE_H
#define MSC_TESTS_AGENTS_RANDOM_SPACE_H

#include "base/alloc.h"
#include "base/rng.h"
#include "env/api/trial.h"

struct random_space {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal; // objective: metric 0; a bound on each cost
    double *losses;       // [sum of n_choices], the loss of each choice by itself
    size_t n_entries;
};

struct random_space_options {
    uint64_t seed;
    size_t n_tasks;
    uint32_t max_choices;
    size_t n_costs;    // number of costs, which are metrics 1 … n_costs
    bool has_products; // half of the terms multiply two tasks
    double tightness;  // position of the bounds between the least (0) and the greatest cost (1)
};

void random_space_init(struct random_space *r, const struct random_space_options *options);
void random_space_finish(struct random_space *r);
// The sum of the losses of a point's choices.
double random_space_loss(const struct random_space *r, const uint32_t choices[]);
// The least loss within the bounds, found by trying every point; +inf if no point meets them.
double random_space_optimum(const struct random_space *r);

#endif
