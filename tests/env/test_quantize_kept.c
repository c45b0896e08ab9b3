// Files kept next to a record: the moments of an interrupted preparation, and parameters prepared
// by an earlier launch. The result must equal the result of an undisturbed preparation.
#include "env/env.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tests/env/quantize_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDED                                                                                    \
    "{\"choices\":[{\"bits\":8},{\"bits\":4,\"observer\":\"hessian\",\"rounding\":\"gptq\"},"      \
    "{\"bits\":3,\"rounding\":\"descent\",\"correct\":\"affine\"}]}"

struct kept_case {
    struct bench b;
    const char *config; // the configuration that `prepare` uses
    struct msc_log log;
    char folder[32], parameters[64], moments[64], prepared[64];
    char told[4096];
};

static void keep_told(void *payload, enum msc_log_level level, const char *line) {
    struct kept_case *c = payload;
    size_t length = strlen(c->told);
    (void)level;
    snprintf(c->told + length, sizeof c->told - length, "%s\n", line);
}

static void open_case(struct kept_case *c) {
    *c = (struct kept_case){.folder = "/tmp/msc_kept_XXXXXX", .config = ROUNDED};
    assert_non_null(mkdtemp(c->folder));
    snprintf(c->parameters, sizeof c->parameters, "%s/record.params", c->folder);
    snprintf(c->moments, sizeof c->moments, "%s/record.moments", c->folder);
    snprintf(c->prepared, sizeof c->prepared, "%s/record.prepared", c->folder);
    prepare_bench(&c->b, 2, 4);
    c->log = (struct msc_log){.level = MSC_LOG_INFO, .write = keep_told, .payload = c};
    c->b.host.log = &c->log;
    c->b.host.parameters_path = c->parameters;
}

static void close_case(struct kept_case *c) {
    unlink(c->parameters);
    unlink(c->moments);
    unlink(c->prepared);
    rmdir(c->folder);
    close_bench(&c->b);
}

// Makes an environment from the files that exist and returns its identity. The environment must
// remove the .moments file itself. Afterwards .params and .prepared are removed.
static struct msc_hash prepare(struct kept_case *c) {
    struct msc_hash identity;
    c->told[0] = 0;
    assert_ok(create(&c->b, c->config));
    assert_ok(msc_env_identity(&identity, c->b.env));
    close_env(&c->b);
    assert_false(msc_file_exists(c->moments));
    unlink(c->prepared);
    assert_int_equal(unlink(c->parameters), 0);
    return identity;
}

// Interrupts a preparation before .params is written: the name of .params is so long that the
// longer name of its temporary file cannot be created.
static void interrupt(struct kept_case *c, const char *config) {
    char stem[241], path[300], moments[300];
    memset(stem, 'r', sizeof stem - 1);
    stem[sizeof stem - 1] = 0;
    snprintf(path, sizeof path, "%s/%s.params", c->folder, stem);
    snprintf(moments, sizeof moments, "%s/%s.moments", c->folder, stem);
    c->b.host.parameters_path = path;
    assert_int_equal(create(&c->b, config), MSC_E_IO);
    close_env(&c->b);
    c->b.host.parameters_path = c->parameters;
    assert_int_equal(rename(moments, c->moments), 0);
}

static bool was_told(const struct kept_case *c, const char *text) {
    return strstr(c->told, text) != NULL;
}

static void test_env_quantize_kept__goes_on(void **state) {
    struct kept_case c;
    (void)state;
    open_case(&c);
    struct msc_hash whole = prepare(&c);
    assert_false(was_told(&c, "interrupted launch"));
    interrupt(&c, ROUNDED);
    assert_true(msc_hash_equal(prepare(&c), whole));
    assert_true(was_told(&c, "interrupted launch"));
    assert_false(was_told(&c, "damaged") || was_told(&c, "incomplete"));
    // With memory for only one weight's moments at a time, and with one thread, the result is the
    // same.
    c.b.host.memory_bytes = (uint64_t)64 << 20;
    c.b.host.n_threads = 1;
    assert_true(msc_hash_equal(prepare(&c), whole));
    close_case(&c);
}

// A .moments file cut or damaged anywhere does not change the result.
static void test_env_quantize_kept__of_any_file(void **state) {
    struct kept_case c;
    char *bytes;
    size_t n_bytes;
    (void)state;
    open_case(&c);
    struct msc_hash whole = prepare(&c);
    interrupt(&c, ROUNDED);
    assert_ok(msc_file_read(&bytes, &n_bytes, c.moments));
    for (size_t i = 0; i < 12; i++) {
        assert_ok(msc_file_write(c.moments, bytes, n_bytes * i / 12));
        assert_true(msc_hash_equal(prepare(&c), whole));
        size_t at = 16 + (n_bytes - 17) * i / 11; // after the head that identifies the file
        bytes[at] ^= 0x10;
        assert_ok(msc_file_write(c.moments, bytes, n_bytes));
        bytes[at] ^= 0x10;
        assert_true(msc_hash_equal(prepare(&c), whole));
        assert_true(was_told(&c, "record.moments"));
    }
    msc_free(bytes);
    // A file of another configuration is not used.
    interrupt(&c, "{\"choices\":[{\"bits\":6,\"rounding\":\"gptq\"}]}");
    assert_true(msc_hash_equal(prepare(&c), whole));
    assert_true(was_told(&c, "belongs to another configuration"));
    // The file cannot be created, because a folder has its name.
    assert_int_equal(mkdir(c.moments, 0700), 0);
    c.told[0] = 0;
    assert_ok(create(&c.b, ROUNDED));
    assert_true(was_told(&c, "the preparation starts again"));
    close_env(&c.b);
    assert_int_equal(rmdir(c.moments), 0);
    close_case(&c);
}

// Prepared parameters are used if they come from the same configuration and samples and are
// complete.
static void test_env_quantize_kept__prepared(void **state) {
    static const char taken[] = "complete preparation of an earlier launch";
    struct kept_case c;
    char *bytes;
    size_t n_bytes;
    (void)state;
    open_case(&c);
    struct msc_hash whole = prepare(&c);
    assert_ok(create(&c.b, ROUNDED));
    close_env(&c.b);
    assert_ok(msc_file_read(&bytes, &n_bytes, c.parameters));
    assert_ok(msc_file_rename(c.parameters, c.prepared));
    assert_true(msc_hash_equal(prepare(&c), whole));
    assert_true(was_told(&c, taken));
    for (size_t i = 0; i < 12; i++) {
        size_t at = (n_bytes - 1) * i / 11;
        bytes[at] ^= 0x10;
        assert_ok(msc_file_write(c.prepared, bytes, n_bytes));
        bytes[at] ^= 0x10;
        assert_true(msc_hash_equal(prepare(&c), whole));
        assert_false(was_told(&c, taken));
        assert_true(was_told(&c, "are computed again"));
    }
    msc_free(bytes);
    // Parameters prepared for other choices, and then for other samples, are not used.
    assert_ok(create(&c.b, "{\"choices\":[{\"bits\":6,\"rounding\":\"gptq\"}]}"));
    close_env(&c.b);
    assert_ok(msc_file_rename(c.parameters, c.prepared));
    assert_true(msc_hash_equal(prepare(&c), whole));
    assert_false(was_told(&c, taken));
    struct msc_dataset *part, *all = c.b.c.data;
    assert_ok(msc_dataset_create_part(&part, all, 0, 8));
    c.b.host.dataset = part;
    assert_ok(create(&c.b, ROUNDED));
    close_env(&c.b);
    c.b.host.dataset = all;
    assert_ok(msc_file_rename(c.parameters, c.prepared));
    assert_true(msc_hash_equal(prepare(&c), whole));
    assert_false(was_told(&c, taken));
    msc_dataset_destroy(part);
    close_case(&c);
}

// Moments and losses of channels are kept, too. If bits are searched as well, the same file keeps
// their moments.
static void test_env_quantize_kept__channels(void **state) {
    static const char *const configs[] = {
        "{\"type\":\"prune\",\"choices\":[{\"density\":1},{\"density\":0.6},"
        "{\"density\":0.6,\"criterion\":\"loss\"}]}",
        "{\"type\":\"joint\",\"prune\":{\"choices\":[{\"density\":1},{\"density\":0.6},"
        "{\"density\":0.6,\"criterion\":\"loss\"}]},"
        "\"choices\":[{\"bits\":8},{\"bits\":4,\"rounding\":\"descent\"}]}"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct kept_case c;
        char *bytes;
        size_t n_bytes;
        open_case(&c);
        c.config = configs[i];
        struct msc_hash whole = prepare(&c);
        assert_true(was_told(&c, "losses without one channel: group 1"));
        interrupt(&c, configs[i]);
        assert_ok(msc_file_read(&bytes, &n_bytes, c.moments));
        assert_true(msc_hash_equal(prepare(&c), whole));
        assert_false(was_told(&c, "losses without"));
        for (size_t k = 0; k < 12; k++) {
            assert_ok(msc_file_write(c.moments, bytes, n_bytes * k / 12));
            assert_true(msc_hash_equal(prepare(&c), whole));
        }
        msc_free(bytes);
        close_case(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_kept__goes_on),
        cmocka_unit_test(test_env_quantize_kept__of_any_file),
        cmocka_unit_test(test_env_quantize_kept__prepared),
        cmocka_unit_test(test_env_quantize_kept__channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
