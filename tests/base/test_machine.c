// Free memory of the machine and its cgroups (versions 1 and 2), read from a made-up /proc and
// /sys. Expected values follow from the memory limits and usage that each case writes.
#include "base/machine_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

// A made-up /proc and /sys. The machine has 16 GiB available.
struct machine {
    struct msc_arena arena;
    char root[TEMP_FOLDER_BYTES];
};

static void put(struct machine *m, const char *path, const char *text) {
    char *full = msc_arena_printf(&m->arena, "%s/%s", m->root, path);
    assert_non_null(full);
    assert_ok(msc_file_make_folders(msc_path_folder(&m->arena, full)));
    assert_ok(msc_file_write(full, text, strlen(text)));
}

static void put_mib(struct machine *m, const char *folder, const char *name, uint64_t n_mib) {
    char text[32];
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)(n_mib * MIB));
    put(m, msc_arena_printf(&m->arena, "%s/%s", folder, name), text);
}

static void begin(struct machine *m) {
    *m = (struct machine){0};
    temp_folder_make(m->root);
    put(m, "proc/meminfo", "MemTotal: 33554432 kB\nMemFree: 1 kB\nMemAvailable:   16777216 kB\n");
}

static void end(struct machine *m) {
    // Recursive: the root has subfolders.
    char *command = msc_arena_printf(&m->arena, "rm -r '%s'", m->root);
    assert_int_equal(system(command), 0);
    msc_arena_finish(&m->arena);
}

static void expect_mib(const struct machine *m, uint64_t n_mib) {
    assert_int_equal(msc_machine__free_bytes(m->root) / MIB, n_mib);
}

// Writes the files of a cgroup of version 2. `limit_mib` 0 means no limit.
static void put_group(struct machine *m, const char *folder, uint64_t limit_mib, uint64_t used_mib,
                      uint64_t idle_mib) {
    put(m, msc_arena_printf(&m->arena, "%s/memory.max", folder), "max\n");
    put(m, msc_arena_printf(&m->arena, "%s/memory.high", folder), "max\n");
    if (limit_mib > 0) {
        put_mib(m, folder, "memory.max", limit_mib);
    }
    put_mib(m, folder, "memory.current", used_mib);
    put(m, msc_arena_printf(&m->arena, "%s/memory.stat", folder),
        msc_arena_printf(&m->arena,
                         "anon 1\nfile 2\ninactive_anon 3\nactive_file 4\ninactive_file %llu\n",
                         (unsigned long long)(idle_mib * MIB)));
}

#define MOUNT_2 "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate\n"

static void test_base_machine__without_groups(void **state) {
    (void)state;
    struct machine m;
    begin(&m);
    expect_mib(&m, 16384);
    put(&m, "proc/self/cgroup", "0::/\n");
    put(&m, "proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n" MOUNT_2);
    expect_mib(&m, 16384); // the root cgroup of a machine has no limit files
    put(&m, "proc/meminfo", "MemTotal: 33554432 kB\n");
    assert_int_equal(msc_machine__free_bytes(m.root), 0);
    end(&m);
}

// Cached files can fill a cgroup to its limit, but the kernel drops them when memory is needed.
static void test_base_machine__files_read_are_free(void **state) {
    (void)state;
    struct machine m;
    begin(&m);
    put(&m, "proc/self/cgroup", "0::/\n");
    put(&m, "proc/self/mountinfo", MOUNT_2);
    put_group(&m, "sys/fs/cgroup", 8192, 8190, 7000);
    expect_mib(&m, 7002);
    // memory.current and memory.stat are read at different moments, so the idle bytes may exceed
    // the used bytes.
    put_group(&m, "sys/fs/cgroup", 8192, 100, 200);
    expect_mib(&m, 8192);
    put_group(&m, "sys/fs/cgroup", 32768, 100, 0);
    expect_mib(&m, 16384);
    put_mib(&m, "sys/fs/cgroup", "memory.high", 4096);
    expect_mib(&m, 3996);
    put_group(&m, "sys/fs/cgroup", 8192, 9000, 0);
    // The result for a full cgroup is 1 byte, because 0 means unknown.
    assert_int_equal(msc_machine__free_bytes(m.root), 1);
    end(&m);
}

// systemd and Slurm set the limit on the process's own cgroup or on one of its parents.
static void test_base_machine__groups_in_groups(void **state) {
    (void)state;
    struct machine m;
    begin(&m);
    put(&m, "proc/self/cgroup", "0::/system.slice/job_7/step_0\n");
    put(&m, "proc/self/mountinfo", MOUNT_2);
    put_group(&m, "sys/fs/cgroup/system.slice", 0, 12000, 0);
    put_group(&m, "sys/fs/cgroup/system.slice/job_7", 4096, 1000, 500);
    put_group(&m, "sys/fs/cgroup/system.slice/job_7/step_0", 0, 800, 0);
    // Another job, which must not count.
    put_group(&m, "sys/fs/cgroup/system.slice/job_70", 1, 1, 0);
    expect_mib(&m, 3596);
    put_group(&m, "sys/fs/cgroup/system.slice/job_7/step_0", 2048, 800, 0);
    expect_mib(&m, 1248);
    end(&m);
}

// A container sees only its own cgroup, while /proc gives the cgroup's path outside the container.
static void test_base_machine__a_mount_of_one_group(void **state) {
    (void)state;
    struct machine m;
    begin(&m);
    put(&m, "proc/self/cgroup", "0::/docker/abc/inner\n");
    put(&m, "proc/self/mountinfo",
        "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    put_group(&m, "sys/fs/cgroup", 4096, 96, 0);
    put_group(&m, "sys/fs/cgroup/inner", 2048, 48, 0);
    expect_mib(&m, 2000);
    put(&m, "proc/self/cgroup", "0::/docker/abc\n");
    expect_mib(&m, 4000);
    put(&m, "proc/self/cgroup", "0::/docker/abcde/inner\n"); // not inside the mounted cgroup
    expect_mib(&m, 4000);
    put(&m, "proc/self/cgroup", "0::/../other\n");
    put(&m, "proc/self/mountinfo", MOUNT_2);
    expect_mib(&m, 4000);
    end(&m);
}

// Version 1 of cgroups, by itself or next to a version 2 that has no memory controller.
static void test_base_machine__version_1(void **state) {
    (void)state;
    static const char job[] = "sys/fs/cgroup/memory/slurm/job_7";
    static const char step[] = "sys/fs/cgroup/memory/slurm/job_7/step";
    struct machine m;
    begin(&m);
    put(&m, "proc/self/cgroup",
        "9:name=systemd:/\n5:cpu,cpuacct:/other\n4:hugetlb,memory:/slurm/job_7/step\n0::/\n");
    put(&m, "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,hugetlb,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put(&m, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(&m, "sys/fs/cgroup/memory/memory.usage_in_bytes", "20000000000\n");
    put_mib(&m, job, "memory.limit_in_bytes", 8192);
    put_mib(&m, job, "memory.usage_in_bytes", 8000);
    put(&m, msc_arena_printf(&m.arena, "%s/memory.stat", job),
        "cache 0\ninactive_file 4096\ntotal_inactive_file 5242880000\n"); // 5000 MiB in total
    put(&m, msc_arena_printf(&m.arena, "%s/memory.limit_in_bytes", step), "9223372036854771712\n");
    put_mib(&m, step, "memory.usage_in_bytes", 7000);
    put_mib(&m, "sys/fs/cgroup/cpu/other", "memory.limit_in_bytes", 1); // not a memory cgroup
    put_mib(&m, "sys/fs/cgroup/cpu/other", "memory.usage_in_bytes", 1);
    expect_mib(&m, 5192);
    end(&m);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_machine__without_groups),
        cmocka_unit_test(test_base_machine__files_read_are_free),
        cmocka_unit_test(test_base_machine__groups_in_groups),
        cmocka_unit_test(test_base_machine__a_mount_of_one_group),
        cmocka_unit_test(test_base_machine__version_1),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
