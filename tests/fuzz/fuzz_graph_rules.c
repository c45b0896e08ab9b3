// The bytes are rules. Rules that can be read are applied to a small network.
#include "graph/rules/rules.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char network[] = "g <OUTPUTS: y,s:1>\n"
                              "ID x OUT: x<N,4|float32> OPTYPE: input\n"
                              "ID a IN: x OPTYPE: negative ID b IN: a OPTYPE: exp\n"
                              "ID c IN: a OPTYPE: tanh ID d IN: b,c OPTYPE: multiply\n"
                              "ID e IN: d,x OPTYPE: add ID f IN: e OPTYPE: nn.relu\n"
                              "ID t IN: f OPTYPE: permute_dims ATTRS: axes=1,0\n"
                              "ID u IN: t OPTYPE: permute_dims ATTRS: axes=1,0\n"
                              "ID s IN: x OUT: s:0,s:1 OPTYPE: split ATTRS: axis=1 "
                              "indices_or_sections=2\n"
                              "ID y IN: u OPTYPE: nn.softmax ATTRS: axis=-1\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    struct msc_rules *rules = NULL;
    struct msc_graph *g = NULL;
    struct msc_array_list example = {0};
    if (n_bytes > FUZZ_MAX_BYTES) {
        return -1;
    }
    if (fuzz_check(msc_rules_read(&rules, (const char *)data, n_bytes, "rules.msc")) != MSC_OK) {
        return 0;
    }
    if (msc_graph_read_text(&g, network, strlen(network), "network", NULL, NULL) != MSC_OK) {
        fuzz_fail("the network is refused");
    }
    fuzz_check(msc_rules_apply(
        g, NULL, rules, &(struct msc_rules_options){.most = 20, .counterexample = &example}));
    msc_array_list_finish(&example);
    msc_graph_destroy(g);
    msc_rules_destroy(rules);
    return 0;
}
