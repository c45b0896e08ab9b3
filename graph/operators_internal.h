// The plug-ins of a graph: which operators they compute, and calls of them. Only graph/ and the
// code that opens plug-ins (model/) include this header.
//
// A graph retains its plug-ins, and graphs made from it retain the same ones.
#ifndef MSC_GRAPH_OPERATORS_INTERNAL_H
#define MSC_GRAPH_OPERATORS_INTERNAL_H

#include "base/hash.h"
#include "graph/graph.h"
#include "graph/operators.h"

struct msc_operators;

// One plug-in. All functions may be called from several threads.
struct msc_operators_source {
    const char *name; // for messages: path or command; borrowed until `close`
    int n_operators;
    const struct msc_operator_def *operators; // borrowed until `close`
    // For plug-ins whose functions need a state (programs): used in place of the functions of
    // `operators`; NULL: not used. `infers` [n_operators] tells which operators have an `infer`.
    enum msc_status (*call)(void *state, bool infers, const struct msc_operator_call *call);
    const bool *infers;
    struct msc_hash identity; // of all that can change a result
    void *state;
    void (*close)(void *state); // may be NULL
};

// A set of plug-ins, empty. *out is owned by the caller.
enum msc_status msc_operators_create(struct msc_operators **out);
// The set owns the source from now on, also if the call fails. MSC_E_INVALID: another plug-in of
// the set computes one of its operators.
enum msc_status msc_operators_add(struct msc_operators *set,
                                  const struct msc_operators_source *source);
struct msc_operators *msc_operators_retain(struct msc_operators *set); // accepts NULL
void msc_operators_release(struct msc_operators *set);                 // accepts NULL

// An operator of a plug-in.
struct msc_operators_entry {
    const struct msc_operators_source *source;
    const struct msc_operator_def *def;
    bool infers;
};
// The entry that computes a joint; NULL if no plug-in does. `set` may be NULL.
const struct msc_operators_entry *msc_operators__find(const struct msc_operators *set,
                                                      const char *domain, const char *op);
const struct msc_operators_entry *msc_operators__find_joint(const struct msc_operators *set,
                                                            const struct msc_joint *j);
// Fails with MSC_E_UNSUPPORTED: no plug-in computes the external joint.
enum msc_status msc_operators__fail_absent(const struct msc_joint *j);
// Calls a plug-in for a joint. The caller has filled inputs, outputs, `allocate` and `host` of
// `call`; the other members are set from the joint.
enum msc_status msc_operators__call(const struct msc_operators_entry *entry, bool infers,
                                    struct msc_operator_call *call, const struct msc_joint *j);
// Identity of the plug-ins that compute joints of the graph; zero if there are none.
struct msc_hash msc_operators__identity(const struct msc_graph *g);

#endif
