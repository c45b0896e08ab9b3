// The criteria that rank channels (tools/pruner.h) or single weights (tools/sparsity.h) for
// removal.
#ifndef MSC_TOOLS_CRITERION_H
#define MSC_TOOLS_CRITERION_H

#define MSC_CRITERION_LIST(X)                                                                      \
    X(MSC_CRITERION_L1, "l1")                                                                      \
    X(MSC_CRITERION_L2, "l2")                                                                      \
    X(MSC_CRITERION_ENERGY, "energy")                                                              \
    X(MSC_CRITERION_HESSIAN, "hessian")                                                            \
    X(MSC_CRITERION_LOSS, "loss")

#define MSC_CRITERION_ENUMERATOR(criterion, name) criterion,
enum msc_criterion { MSC_CRITERION_LIST(MSC_CRITERION_ENUMERATOR) MSC_N_CRITERIA };
#undef MSC_CRITERION_ENUMERATOR

const char *msc_criterion_name(enum msc_criterion criterion);

#endif
