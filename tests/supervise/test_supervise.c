// Supervised searches in trouble: processes are killed or interrupted, crash or hang. The real
// parent and worker processes of search_worker.c are used.
#include "../processes.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "records/record_query.h"
#include "tests/search/search_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT "{\"type\":\"evolutionary\",\"population\":8}"

struct program {
    const char *record;
    int trials;
    const char *env;
    const char *agent;
    const char *limit_s;
    const char *quiet_s;
    char output[FIXTURE_PATH_BYTES]; // file that gets stdout and stderr
};

static struct program program_of(const struct fixture *f, int trials, const char *env) {
    struct program p = {.record = f->path,
                        .trials = trials,
                        .env = env,
                        .agent = AGENT,
                        .limit_s = "0",
                        .quiet_s = "0"};
    fixture_join(p.output, f, "output.txt");
    return p;
}

static pid_t start(const struct program *p) {
    char trials[32];
    snprintf(trials, sizeof trials, "%d", p->trials);
    pid_t child = fork();
    if (child == 0) {
        int output = open(p->output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(output, 1);
        dup2(output, 2);
        unsetenv("OMP_WAIT_POLICY");
        execl(MSC_SEARCH_WORKER, MSC_SEARCH_WORKER, p->record, trials, p->env, p->agent, p->limit_s,
              p->quiet_s, (char *)NULL);
        _exit(99);
    }
    assert_true(child > 0);
    return child;
}

static int wait_for(pid_t program) {
    int status = 0;
    assert_int_equal(waitpid(program, &status, 0), program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run(const struct program *p) {
    return wait_for(start(p));
}

static void assert_output(const struct program *p, const char *part) {
    char *text = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&text, &n_bytes, p->output));
    if (!strstr(text, part)) {
        print_error("output \"%s\" lacks \"%s\"\n", text, part);
    }
    assert_non_null(strstr(text, part));
    msc_free(text);
}

static struct msc_record *read_record(const char *path) {
    struct msc_record *record = NULL;
    assert_ok(msc_record_open(&record, path, MSC_RECORD_READ, NULL));
    return record;
}

static off_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : 0;
}

// Returns true once the record has grown by n_bytes, false if the program ended before.
static bool wait_for_growth(pid_t program, const char *path, off_t n_bytes) {
    off_t begin = size_of(path);
    for (int i = 0; i < 20000 && size_of(path) < begin + n_bytes; i++) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == program) {
            return false;
        }
        sleep_ms(1);
    }
    return true;
}

// Waits until the worker has released its lock on the record.
static void assert_worker_dies(const char *path) {
    struct msc_record *record = NULL;
    enum msc_status status = MSC_E_STATE;
    for (int i = 0; i < 500 && status == MSC_E_STATE; i++) {
        status = msc_record_open(&record, path, MSC_RECORD_APPEND, NULL);
        sleep_ms(10);
    }
    assert_true(status == MSC_OK || status == MSC_E_NOT_FOUND);
    msc_record_close(record);
}

static pid_t worker_of(pid_t program) {
    char path[64];
    int worker = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)program, (int)program);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%d", &worker) != 1) {
            worker = 0;
        }
        fclose(file);
    }
    return worker;
}

static void make_whole(const struct fixture *f, char whole[FIXTURE_PATH_BYTES],
                       const struct program *p) {
    fixture_join(whole, f, "whole.jsonl");
    struct program all = *p;
    all.record = whole;
    assert_int_equal(run(&all), 0);
}

// At random lengths of the record, kills the parent (then the worker ends, too) or the worker (then
// the parent starts another).
static void test_search_supervise__killed_anywhere(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct msc_rng rng;
    struct program p =
        program_of(f, 400, "{\"tasks\":8,\"choices\":3,\"delay_us\":200,\"interaction\":0.5}");
    msc_rng_seed(&rng, 11, 0);
    make_whole(f, whole, &p);
    int n_kills = 0;
    for (int code = -1; code != 0;) {
        pid_t program = start(&p);
        for (bool is_running = true; is_running;) {
            off_t growth = 1 + (off_t)msc_rng_below(&rng, 10000);
            is_running = wait_for_growth(program, p.record, growth);
            bool is_parent = msc_rng_below(&rng, 3) == 0;
            pid_t victim = is_parent ? program : worker_of(program);
            if (is_running && victim > 0) {
                kill(victim, SIGKILL);
                n_kills++;
            }
            is_running = is_running && !is_parent;
        }
        code = wait_for(program);
        assert_true(code == 0 || code == 128 + SIGKILL);
        assert_worker_dies(p.record);
        assert_true(size_of(p.record) == 0 || is_prefix(p.record, whole));
    }
    assert_true(n_kills > 3);
    assert_same_record(p.record, whole);
}

// One trial crashes the worker. That trial is found and recorded as failed; all other trials are
// complete.
static void test_search_supervise__crash(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 60, "{\"tasks\":8,\"choices\":3,\"crash_at\":17}");
    assert_int_equal(run(&p), 0);
    assert_output(&p, "died of signal 6");
    struct msc_record *record = read_record(p.record);
    assert_int_equal(msc_record_n_trials(record), 63);
    for (size_t i = 0; i < 63; i++) {
        const struct msc_record_line line = msc_record_trial(record, i);
        assert_int_equal(line.trial.outcome.state, i == 17 ? MSC_TRIAL_FAILED : MSC_TRIAL_COMPLETE);
    }
    assert_int_equal(msc_record_trial(record, 17).trial.outcome.cause, MSC_CAUSE_TRIAL);
    assert_non_null(strstr(msc_record_trial(record, 17).trial.outcome.reason, "signal 6"));
    msc_record_close(record);
    char attempt[FIXTURE_PATH_BYTES + 16];
    snprintf(attempt, sizeof attempt, "%s.attempt", p.record);
    assert_false(msc_file_exists(attempt));
}

static void test_search_supervise__hang(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 30, "{\"tasks\":8,\"choices\":3,\"hang_at\":12}");
    p.limit_s = "0.05";
    assert_int_equal(run(&p), 0);
    assert_output(&p, "time limit");
    struct msc_record *record = read_record(p.record);
    assert_int_equal(msc_record_n_trials(record), 33);
    assert_int_equal(msc_record_trial(record, 12).trial.outcome.state, MSC_TRIAL_FAILED);
    assert_int_equal(msc_record_trial(record, 12).trial.outcome.cause, MSC_CAUSE_ENVIRONMENT);
    assert_string_equal(msc_record_trial(record, 12).trial.outcome.reason,
                        "alone, it took longer than 50 ms, 3 times");
    assert_int_equal(msc_record_trial(record, 13).trial.outcome.state, MSC_TRIAL_COMPLETE);
    msc_record_close(record);
}

// A worker stopped by SIGSTOP shows no sign of life. Another worker repeats its round, and the
// record is the same.
static void test_search_supervise__stopped_worker(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct program p = program_of(f, 100, "{\"tasks\":8,\"choices\":3,\"delay_us\":1000}");
    make_whole(f, whole, &p);
    p.quiet_s = "2";
    pid_t program = start(&p);
    assert_true(wait_for_growth(program, p.record, 2000));
    kill(worker_of(program), SIGSTOP);
    assert_int_equal(wait_for(program), 0);
    assert_output(&p, "showed no sign of life for 2 s and is restarted");
    assert_same_record(p.record, whole);
}

// A worker that hangs before its search begins is noticed as well.
static void test_search_supervise__hung_setup(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 1, "{}");
    p.record = "hang";
    assert_int_equal(run(&p), 1);
    assert_output(&p, "showed no sign of life for 0.2 s, and 4 restarts brought no new trial");
}

// If the same signal comes twice within a few milliseconds, it is one request: the round is
// finished. The next launch continues.
static void test_search_supervise__interrupted(void **state) {
    const struct fixture *f = *state;
    char whole[FIXTURE_PATH_BYTES];
    struct program p = program_of(f, 200, "{\"tasks\":8,\"choices\":3,\"delay_us\":2000}");
    make_whole(f, whole, &p);
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        pid_t program = start(&p);
        assert_true(wait_for_growth(program, p.record, i == 0 ? 4000 : 1));
        kill(program, signals[i]);
        sleep_ms(1);
        kill(program, signals[i]);
        assert_int_equal(wait_for(program), 0);
        assert_output(&p, "cancelled");
        struct msc_record *record = read_record(p.record);
        assert_int_equal((msc_record_n_trials(record) - 3) % 8, 0);
        assert_true(msc_record_n_trials(record) < 203);
        msc_record_close(record);
    }
    assert_int_equal(run(&p), 0);
    assert_same_record(p.record, whole);
}

// A second signal that comes later stops the round at once, although the round would take minutes.
static void test_search_supervise__stopped_at_once(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 100, "{\"tasks\":8,\"choices\":3,\"delay_us\":20000000}");
    pid_t program = start(&p);
    assert_true(wait_for_growth(program, p.record, 1)); // waits until the header is written
    double begin_s = msc_clock_seconds();
    sleep_ms(200);
    kill(program, SIGINT);
    sleep_ms(200);
    kill(program, SIGINT);
    assert_int_equal(wait_for(program), 0);
    assert_true(msc_clock_seconds() - begin_s < 10.0);
    assert_output(&p, "cancelled");
    msc_record_close(read_record(p.record));
}

// The first signal stops the round, if the worker says that nothing of it would be kept.
static void test_search_supervise__stopped_by_one_signal(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 100, "{\"tasks\":8,\"choices\":3,\"delay_us\":20000000}");
    setenv("STOPS_AT_ONCE", "1", 1);
    pid_t program = start(&p);
    unsetenv("STOPS_AT_ONCE");
    assert_true(wait_for_growth(program, p.record, 1)); // waits until the header is written
    double begin_s = msc_clock_seconds();
    sleep_ms(200);
    kill(program, SIGINT);
    assert_int_equal(wait_for(program), 0);
    assert_true(msc_clock_seconds() - begin_s < 10.0);
    assert_output(&p, "cancelled");
    msc_record_close(read_record(p.record));
}

static void test_search_supervise__gives_up(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 1, "{}");
    p.record = "crash";
    assert_int_equal(run(&p), 1);
    assert_output(&p, "4 restarts brought no new trial");
    p.record = "exit";
    assert_int_equal(run(&p), 42);
    p.record = "vanish"; // a library calls exit(0), which must not count as a finished search
    assert_int_equal(run(&p), 1);
    assert_output(&p, "exited before its end (code 0), and 4 restarts brought no new trial");
    p.record = f->path;
    p.env = "{\"no\":1}";
    assert_int_equal(run(&p), 1);
    assert_output(&p, "no");
}

// A worker that lost its device exits, and another is started. If that worker cannot open the
// device, it exits, too. After 4 restarts without progress the parent gives up.
static void test_search_supervise__lost(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 1, "{}");
    p.record = "lost 3";
    assert_int_equal(run(&p), 0);
    assert_output(&p, "has lost its device (it is gone) and is restarted");
    assert_output(&p, "has lost its device (it cannot be opened) and is restarted");
    assert_output(&p, "after 3, ok");
    // If the device cannot be opened in the first place, it is not treated as lost.
    p.record = "lost 1";
    assert_int_equal(run(&p), 0);
    assert_output(&p, "after 0, device error");
    p.record = "lost";
    assert_int_equal(run(&p), 1);
    assert_output(&p, "the search process has lost its device (it is gone), and 4 restarts brought "
                      "no new trial; the record is intact");
}

// An agent process that notes a process id (its own or a child's) and then never finishes its
// answer.
static void make_agent(char *json, size_t n_bytes, const char *script, const char *note) {
    snprintf(json, n_bytes,
             "{\"type\":\"process\",\"command\":[\"/bin/sh\",\"-c\",\"read a; echo '{}'; read b; "
             "%s >%s; sleep 600\"]}",
             script, note);
}

// If the parent is killed, the processes that the worker started end with the worker.
static void test_search_supervise__agent_ends_with_the_parent(void **state) {
    const struct fixture *f = *state;
    char note[FIXTURE_PATH_BYTES];
    char agent[FIXTURE_PATH_BYTES + 200];
    struct program p = program_of(f, 60, "{}");
    fixture_join(note, f, "pid");
    const char *const scripts[] = {"echo $$", "sleep 600 & echo $!"};
    for (size_t i = 0; i < 2; i++) {
        make_agent(agent, sizeof agent, scripts[i], note);
        p.agent = agent;
        pid_t program = start(&p);
        pid_t pid = process_noted(note);
        assert_true(process_runs(pid));
        kill(program, SIGKILL);
        assert_int_equal(wait_for(program), 128 + SIGKILL);
        assert_process_ends(pid);
        remove(note);
        assert_worker_dies(p.record);
    }
}

// If the worker is killed, the parent ends the processes that the worker left, and only then starts
// another worker.
static void test_search_supervise__agent_ends_with_the_worker(void **state) {
    const struct fixture *f = *state;
    char note[FIXTURE_PATH_BYTES];
    char agent[FIXTURE_PATH_BYTES + 200];
    struct program p = program_of(f, 60, "{}");
    fixture_join(note, f, "pid");
    make_agent(agent, sizeof agent, "(trap '' TERM; exec sleep 600) & echo $!", note);
    p.agent = agent;
    pid_t program = start(&p);
    pid_t pid = process_noted(note);
    assert_true(process_runs(pid));
    kill(program, SIGINT); // so that no other worker is started
    pid_t worker = worker_of(program);
    assert_true(worker > 0);
    kill(worker, SIGKILL);
    assert_int_equal(wait_for(program), 1);
    assert_false(process_runs(pid));
}

static void test_search_supervise__environment(void **state) {
    const struct fixture *f = *state;
    struct program p = program_of(f, 1, "{}");
    p.record = "environment";
    assert_int_equal(run(&p), 0);
    assert_output(&p, "passive 0");
}

int main(int argc, char **argv) {
#define CASE(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_search_supervise__##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(killed_anywhere),
        CASE(crash),
        CASE(hang),
        CASE(interrupted),
        CASE(stopped_at_once),
        CASE(stopped_by_one_signal),
        CASE(gives_up),
        CASE(lost),
        CASE(environment),
        CASE(agent_ends_with_the_parent),
        CASE(agent_ends_with_the_worker),
        CASE(stopped_worker),
        CASE(hung_setup),
    };
#undef CASE
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
