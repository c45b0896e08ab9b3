// Outcomes that an agent observes in a race (trials are eliminated after a few batches). A scripted
// agent logs what it observes.
#include "../msc_test.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "batch_env.h"
#include "records/race.h"
#include "search_fixture.h"

#include <stdio.h>
#include <unistd.h>

// Two rounds of the same points, so that the second repeats the trials that the first eliminated.
#define ROUND                                                                                      \
    "[{\"choices\":[0,1,2,0,1]},{\"choices\":[1,1,1,2,2]},{\"choices\":[2,0,2,0,2]},"              \
    "{\"choices\":[0,0,0,1,1]}]"

struct told {
    char log[FIXTURE_PATH_BYTES];
    char agent[FIXTURE_PATH_BYTES * 2 + 1024];
    struct msc_race race;
    struct launch launch;
};

static void prepare(struct told *t, const struct fixture *f) {
    cJSON *race = NULL;
    const char text[] = "{\"rungs\":[1],\"margin\":false}";
    fixture_join(t->log, f, "told.txt");
    snprintf(t->agent, sizeof t->agent,
             "{\"type\":\"library\",\"path\":\"%s\",\"log\":\"%s\",\"script\":[" ROUND "," ROUND
             "]}",
             MSC_SCRIPTED_AGENT, t->log);
    assert_ok(msc_json_parse(&race, text, strlen(text), "race"));
    assert_ok(msc_race_read(&t->race, race, 6, "race"));
    cJSON_Delete(race);
    t->launch = (struct launch){.path = f->path,
                                .env = "{}",
                                .def = &msc_env_batch,
                                .agent = t->agent,
                                .options = LAUNCH_TRIALS(-1)};
    t->launch.options.parallel = 4;
    t->launch.options.race = &t->race;
}

// Finds the log line about trial `id` and copies the text after the id.
static void read_told(char out[64], const struct told *t, int id) {
    char *text = NULL;
    char start[32];
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&text, &n_bytes, t->log));
    snprintf(start, sizeof start, "tell %d ", id);
    const char *line = strstr(text, start);
    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen(start), "%63[^\n]", out), 1);
    msc_free(text);
}

// Two of the four trials are eliminated. The agent observes an estimate of their full loss, and the
// same estimate when they are repeated.
static void assert_repeats_told(const struct told *t) {
    int n_estimates = 0;
    for (int id = 0; id < 4; id++) {
        char first[64], again[64];
        read_told(first, t, id);
        read_told(again, t, id + 4);
        n_estimates += strstr(first, " for ") != NULL;
        assert_string_equal(again, first);
    }
    assert_int_equal(n_estimates, 2);
}

// Runs the search in one launch. Then runs it again, stops it within the second round, and
// continues it. The trials of the second round are repeats, and their lines have no rungs.
static void launch_thrice(struct told *t) {
    struct search_run run;
    for (int n = 0; n < 3; n++) {
        unlink(t->log);
        t->launch.options.budget.trials = n == 1 ? 6 : -1;
        run_launch(&run, &t->launch);
        assert_ok(run.status);
        for (size_t id = 4; id < msc_record_n_trials(run.result.record); id++) {
            const struct msc_record_line line = msc_record_trial(run.result.record, id);
            assert_int_equal(line.repeat_of, id - 4);
            assert_int_equal(line.n_rungs, 0);
        }
        run_finish(&run);
        if (n != 1) {
            assert_repeats_told(t);
        }
        if (n == 0) {
            remove_record(t->launch.path);
        }
    }
}

static void test_search_races__repeats_are_told_as_estimates(void **state) {
    struct told t;
    prepare(&t, *state);
    launch_thrice(&t);
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_races__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(repeats_are_told_as_estimates),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
