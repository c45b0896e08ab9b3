// What other searches teach about the features of choices: how strongly the losses of single
// choices depend on each feature. A new search takes this as the prior of its own regression
// (agents/feature_prior.h), also where no task of it has the name of a task of the other search.
//
//     struct msc_feature_study study;
//     MSC_TRY(msc_feature_study_open(&study, space, "distill_loss", 1.0));    // of one search
//     msc_feature_study_tell(&study, choices, loss);                          // each of its trials
//     MSC_TRY(msc_feature_study_close(&study, &lessons, arena));
//     MSC_TRY(msc_feature_lessons_write(&object, &lessons, "distill_loss"));  // after all searches
//
// Coefficients are per unit of a feature, or of its logarithm, so that networks can be compared.
// The normal equations of all searches are added, each without its own level. The coefficients that
// solve them, and their variances, are written as JSON:
//
//     {"metric": "distill_loss", "losses": 37,
//      "features": [{"feature": "weight_error", "of": "choice", "log": true,
//                    "mean": 0.93, "variance": 0.02}, ...]}
#ifndef MSC_AGENTS_FEATURE_LESSONS_H
#define MSC_AGENTS_FEATURE_LESSONS_H

#include "agents/feature_prior.h"

struct cJSON;

#define MSC_FEATURE_LESSONS_MOST 32

struct msc_feature_lesson {
    struct msc_feature_kind kind; // `name` is in the arena of msc_feature_study_close
    double squares;               // sum over searches of the squared deviation
    double expected; // sum over searches of the squared deviation times the coefficient
                     // that is expected without lessons
};

struct msc_feature_lessons {
    size_t n_losses, n;
    struct msc_feature_lesson features[MSC_FEATURE_LESSONS_MOST];
    // Normal equations: [MSC_FEATURE_LESSONS_MOST, MSC_FEATURE_LESSONS_MOST] and
    // [MSC_FEATURE_LESSONS_MOST]
    double matrix[MSC_FEATURE_LESSONS_MOST * MSC_FEATURE_LESSONS_MOST];
    double vector[MSC_FEATURE_LESSONS_MOST];
};

// The trials of one search.
struct msc_feature_study {
    struct msc_arena arena;
    struct msc_goal goal; // without bounds
    struct msc_exact_bounds bounds;
    struct msc_sensitivity sensitivity;
    struct msc_feature_prior prior;
    double sign;
};

// `space` is borrowed until close; its features must be known. `sign` is -1 if the metric is
// maximised, else 1. Close the study even if this fails.
enum msc_status msc_feature_study_open(struct msc_feature_study *study,
                                       const struct msc_space *space, const char *metric,
                                       double sign);
// Observes the metric of a point.
void msc_feature_study_tell(struct msc_feature_study *study, const uint32_t choices[],
                            double value);
// Adds what the trials teach to `lessons` (NULL: nothing), and frees the study. `arena` keeps
// names.
enum msc_status msc_feature_study_close(struct msc_feature_study *study,
                                        struct msc_feature_lessons *lessons,
                                        struct msc_arena *arena);
// *out is owned by the caller.
enum msc_status msc_feature_lessons_write(struct cJSON **out,
                                          const struct msc_feature_lessons *lessons,
                                          const char *metric);
// Makes the written lessons (NULL: none) the prior of a regression of `metric`; of another metric,
// they are ignored. MSC_E_FORMAT: they are damaged.
enum msc_status msc_feature_lessons_use(const struct cJSON *lessons, struct msc_feature_prior *f,
                                        const char *metric);

#endif
