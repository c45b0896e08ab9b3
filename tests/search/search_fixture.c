#include "search_fixture.h"

#include "../temp_folder.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record_query.h"

#include <stdio.h>
#include <stdlib.h>

int fixture_setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    temp_folder_make(f->folder);
    fixture_join(f->path, f, "a.jsonl");
    *state = f;
    return 0;
}

int fixture_teardown(void **state) {
    struct fixture *f = *state;
    temp_folder_remove(f->folder);
    free(f);
    return 0;
}

void fixture_join(char path[FIXTURE_PATH_BYTES], const struct fixture *f, const char *name) {
    snprintf(path, FIXTURE_PATH_BYTES, "%s/%.60s", f->folder, name);
}

static struct cJSON *parse(const char *text) {
    struct cJSON *value = NULL;
    assert_ok(msc_json_parse(&value, text, strlen(text), "launch"));
    return value;
}

void run_launch(struct search_run *run, const struct launch *launch) {
    struct msc_search_options options = launch->options;
    const struct msc_env_host host = {.cancel = options.cancel};
    *run = (struct search_run){0};
    run->env_config = parse(launch->env ? launch->env : "{\"tasks\":10,\"choices\":3}");
    run->agent_config = parse(launch->agent ? launch->agent : "{\"type\":\"evolutionary\"}");
    assert_ok(msc_env_create(&run->env, launch->def ? launch->def : msc_env_find("toy"),
                             run->env_config, &host));
    assert_ok(msc_env_read_goal(&run->goal, msc_env_space(run->env), run->env_config));
    options.env = run->env;
    options.agent_config = run->agent_config;
    options.goal = &run->goal;
    options.record_path = launch->path;
    run->status = msc_search_run(&run->result, &options);
}

void run_finish(struct search_run *run) {
    msc_search_result_finish(&run->result);
    msc_env_destroy(run->env);
    cJSON_Delete(run->env_config);
    cJSON_Delete(run->agent_config);
}

enum msc_search_end launch(const struct launch *launch) {
    struct search_run run;
    run_launch(&run, launch);
    assert_ok(run.status);
    enum msc_search_end end = run.result.end;
    run_finish(&run);
    return end;
}

static enum msc_status gather(void *payload, const char *line, size_t length) {
    struct msc_str *text = payload;
    msc_str_append_n(text, line, length);
    msc_str_char(text, '\n');
    return msc_str_status(text);
}

char *canonical(const char *path) {
    struct msc_str text = {0};
    assert_ok(msc_record_canonical(path, NULL, gather, &text));
    char *copy = strdup(msc_str_text(&text));
    msc_str_finish(&text);
    return copy;
}

char *canonical_lines(const char *path) {
    char *text = canonical(path);
    char *rest = strdup(strchr(text, '\n') + 1);
    free(text);
    return rest;
}

void assert_same_record(const char *path, const char *expected_path) {
    char *found = canonical(path);
    char *expected = canonical(expected_path);
    if (strcmp(found, expected) != 0) {
        size_t n = 0;
        while (found[n] && found[n] == expected[n]) {
            n++;
        }
        print_error("records differ at \"%.60s\" and \"%.60s\"\n", found + n, expected + n);
    }
    assert_true(strcmp(found, expected) == 0);
    free(found);
    free(expected);
}

bool is_prefix(const char *shorter, const char *longer) {
    char *a = canonical(shorter);
    char *b = canonical(longer);
    bool is_same = strncmp(a, b, strlen(a)) == 0;
    free(a);
    free(b);
    return is_same;
}

void remove_record(const char *path) {
    char attempt[FIXTURE_PATH_BYTES + 16];
    snprintf(attempt, sizeof attempt, "%s.attempt", path);
    unlink(path);
    unlink(attempt);
}

void cut_record(const char *path, size_t n) {
    char *text = NULL;
    size_t n_bytes = 0;
    assert_ok(msc_file_read(&text, &n_bytes, path));
    const char *at = text;
    for (size_t i = 0; i < n + 1; i++) {
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(truncate(path, at - text), 0);
    msc_free(text);
}
