// Requests of chains, their answers and faulty answers. Shell scripts replace mscgym-runtime.
// Expected messages are written by hand.
#include "tools/runtime_chains.h"

#include "base/alloc.h"

#include "tests/msc_test.h"
#include "tests/tools/runtime_script.h"

#include <stdio.h>

#define PATIENCE_S 30.0

static const char *const names[] = {"t"};
static const char *const others[] = {"cpu"};
static const struct msc_runtime_piece pieces[] = {
    {.model = "a.onnx", .backend = "onnxruntime", .outputs = names, .n_outputs = 1},
    {.model = "b.onnx",
     .backend = "cpu",
     .may_fail = true,
     .outputs = names,
     .n_outputs = 1,
     .copy = 1},
};

struct bench {
    struct msc_arena arena;
    double us[2][3];
    struct msc_runtime_part parts[2];
    struct msc_runtime *runtime;
    struct msc_runtime_chain chains[2];
    struct msc_runtime_chains job;
    struct msc_latency latency;
};

static void bench_open(struct bench *b, const char *script) {
    *b = (struct bench){.job = MSC_RUNTIME_CHAINS_INIT};
    assert_ok(start_script(&b->runtime, script, PATIENCE_S));
    b->chains[0] = (struct msc_runtime_chain){.pieces = pieces, .n_pieces = 2};
    b->chains[1] = (struct msc_runtime_chain){.pieces = &pieces[1], .n_pieces = 1};
    b->job.values = pieces;
    b->job.n_values = 1;
    b->job.others = others;
    b->job.n_others = 1;
    b->job.chains = b->chains;
    b->job.n_chains = 2;
    b->job.n_rounds = 3;
    b->job.arena = &b->arena;
}

// The first chain is divided.
static void bench_divide(struct bench *b) {
    for (size_t i = 0; i < 2; i++) {
        b->parts[i].us = b->us[i];
    }
    b->chains[0].parts = b->parts;
    b->chains[0].most_error = 0.5;
}

static void bench_close(struct bench *b) {
    msc_latency_finish(&b->latency);
    msc_runtime_stop(b->runtime);
    msc_arena_finish(&b->arena);
}

static void test_tools_runtime_chains__sends_what_is_documented(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, AFTER_HELLO "while read -r b; do printf '%s\\n' \"$b\" | "
                               "sed 's/\"/`/g; s/^/{\"error\":\"/; s/$/\"}/'; done");
    assert_int_equal(msc_runtime_chains(&b.latency, b.runtime, &b.job), MSC_E_STATE);
    assert_string_equal(
        msc_status_message(),
        "mscgym-runtime, chains: it reported: {`chains`:[{`pieces`:[{`model`:`a.onnx`,"
        "`backend`:`onnxruntime`,`outputs`:[`t`]},{`model`:`b.onnx`,`backend`:`cpu`,"
        "`outputs`:[`t`],`may_fail`:true,`copy`:1}]},{`pieces`:[{`model`:`b.onnx`,`backend`:`cpu`,"
        "`outputs`:[`t`],`may_fail`:true,`copy`:1}]}],`values`:[{`model`:`a.onnx`,`backend`:`"
        "onnxruntime`,"
        "`outputs`:[`t`]}],`others`:[`cpu`],`threads`:1,`batch`:1,`rounds`:3,`lengths`:{},"
        "`method`:`chains`}");
    assert_true(msc_runtime_is_alive(b.runtime));
    bench_close(&b);
}

static void test_tools_runtime_chains__reads_rows(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, AFTER_HELLO "read -r b; echo '{\"chains\":[{\"missing\":\"a.onnx: no\"},"
                               "{\"runs\":4,\"error\":0.25,\"us\":[3,1,2]}]}'; read -r c");
    assert_ok(msc_runtime_chains(&b.latency, b.runtime, &b.job));
    assert_string_equal(b.chains[0].missing, "a.onnx: no");
    assert_null(b.chains[1].missing);
    assert_true(b.chains[1].error == 0.25 && b.latency.us[4] == 1 && b.latency.runs[1] == 4);
    bench_close(&b);
}

static void test_tools_runtime_chains__asks_for_parts(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, AFTER_HELLO "while read -r b; do printf '%s\\n' \"$b\" | "
                               "sed 's/\"/`/g; s/^/{\"error\":\"/; s/$/\"}/'; done");
    bench_divide(&b);
    assert_int_equal(msc_runtime_chains(&b.latency, b.runtime, &b.job), MSC_E_STATE);
    assert_message("`may_fail`:true,`copy`:1}],`parts`:0.5},{`pieces`:[{`model`:`b.onnx`");
    bench_close(&b);
}

#define DIVIDED(parts)                                                                             \
    "{\"chains\":[{\"runs\":4,\"error\":0,\"us\":[9,9,9],\"parts\":" parts                         \
    "},{\"missing\":\"no\"}]}"

static void test_tools_runtime_chains__reads_parts(void **state) {
    (void)state;
    struct bench b;
    bench_open(
        &b,
        AFTER_HELLO "read -r b; echo '" DIVIDED(
            "[{\"error\":0.25,\"bytes\":64,\"us\":[5,6,7.5]},"
            "{\"missing\":\"b.onnx: wrong\",\"error\":0.75}]") "'; "
                                                               "read -r c; echo "
                                                               "'{\"chains\":[{\"missing\":"
                                                               "\"none\"},{\"missing\":\"no\"}]}'; "
                                                               "read -r d");
    bench_divide(&b);
    assert_ok(msc_runtime_chains(&b.latency, b.runtime, &b.job));
    assert_null(b.parts[0].missing);
    assert_true(b.parts[0].error == 0.25 && b.parts[0].bytes == 64 && b.us[0][2] == 7.5);
    assert_string_equal(b.parts[1].missing, "b.onnx: wrong");
    assert_true(b.parts[1].error == 0.75);
    msc_latency_finish(&b.latency);
    assert_ok(msc_runtime_chains(&b.latency, b.runtime, &b.job));
    assert_string_equal(b.parts[0].missing, "none"); // as the whole chain is
    bench_close(&b);
}

// Checks that an answer ends the runtime, with a message.
static void refuses(const char *answer, const char *message, bool is_divided) {
    struct bench b;
    char script[512];
    snprintf(script, sizeof script, AFTER_HELLO "read -r b; echo '%s'; read -r c", answer);
    bench_open(&b, script);
    if (is_divided) {
        bench_divide(&b);
    }
    assert_int_equal(msc_runtime_chains(&b.latency, b.runtime, &b.job), MSC_E_FORMAT);
    assert_message(message);
    assert_false(msc_runtime_is_alive(b.runtime));
    bench_close(&b);
}

static void test_tools_runtime_chains__refuses_nonsense_of_parts(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {DIVIDED("7"), "\"parts\""},
        {DIVIDED("[{\"missing\":\"no\"}]"), "chain 0 has 1 parts, expected 2"},
        {DIVIDED("[{\"missing\":\"no\"},{\"us\":[1,2]}]"), "a part has 2 rounds, expected 3"},
        {DIVIDED("[{\"missing\":\"no\"},{\"us\":[1,-2,3]}]"),
         "round 1 of a part is not a duration"},
        {DIVIDED("[{\"missing\":\"no\"},{}]"), "\"us\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuses(cases[i].answer, cases[i].message, true);
    }
}

static void test_tools_runtime_chains__refuses_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"{\"chains\":[]}", "0 chains, expected 2"},
        {"{}", "\"chains\" is missing"},
        {"{\"chains\":[{\"missing\":\"no\"},{\"runs\":4,\"us\":[3,1,2]}]}", "chain 1 has no error"},
        {"{\"chains\":[{\"missing\":\"no\"},{\"runs\":4,\"error\":0,\"us\":[3,1]}]}",
         "2 rounds of 4 runs, expected 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuses(cases[i].answer, cases[i].message, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_runtime_chains__sends_what_is_documented),
        cmocka_unit_test(test_tools_runtime_chains__reads_rows),
        cmocka_unit_test(test_tools_runtime_chains__refuses_nonsense),
        cmocka_unit_test(test_tools_runtime_chains__asks_for_parts),
        cmocka_unit_test(test_tools_runtime_chains__reads_parts),
        cmocka_unit_test(test_tools_runtime_chains__refuses_nonsense_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
