#include "tools/moment_file.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "moments/"

// Names of the arrays for one use of a weight: triangles [n_groups, n (n + 1) / 2], means
// [n_groups, n], the number of rows, and the rows held back [n_groups, n_held, n].
struct names {
    char triangles[48], means[48], n_rows[48], held[48];
};

static void name_arrays(struct names *out, const char *of, int32_t slot) {
    snprintf(out->triangles, sizeof out->triangles, PREFIX "%s%d/triangles", of, (int)slot);
    snprintf(out->means, sizeof out->means, PREFIX "%s%d/means", of, (int)slot);
    snprintf(out->held, sizeof out->held, PREFIX "%s%d/held", of, (int)slot);
    snprintf(out->n_rows, sizeof out->n_rows, PREFIX "%s%d/rows", of, (int)slot);
}

bool msc_moment_is_name(const char *name) {
    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
}

// ---- Saving -----------------------------------------------------------------------------------

static enum msc_status save_triangles(struct msc_array_log *log, const char *name,
                                      const struct msc_moment *m) {
    int64_t n = m->n_columns;
    struct msc_array *array;
    MSC_TRY(msc_array_create(&array, MSC_DTYPE_F32, 2,
                             (const int64_t[]){m->n_groups, n * (n + 1) / 2}));
    float *to = msc_array_data(array);
    for (int64_t i = 0; i < m->n_groups * n; i++) {
        for (int64_t k = i % n; k < n; k++) {
            *to++ = m->h[i * n + k];
        }
    }
    enum msc_status status = msc_array_log_add(log, name, array);
    msc_array_release(array);
    return status;
}

static enum msc_status save_data(struct msc_array_log *log, const char *name, enum msc_dtype dtype,
                                 int n_dims, const int64_t dims[], const void *data) {
    struct msc_array *array;
    MSC_TRY(msc_array_create_from(&array, dtype, n_dims, dims, data));
    enum msc_status status = msc_array_log_add(log, name, array);
    msc_array_release(array);
    return status;
}

enum msc_status msc_moment_save(struct msc_array_log *log, const char *of, int32_t slot,
                                const struct msc_moment *m) {
    struct names names;
    name_arrays(&names, of, slot);
    if (m->h) {
        MSC_TRY(save_triangles(log, names.triangles, m));
        MSC_TRY(save_data(log, names.means, MSC_DTYPE_F64, 2,
                          (const int64_t[]){m->n_groups, m->n_columns}, m->means));
        const int64_t dims[3] = {m->n_groups, m->n_held, m->n_columns};
        MSC_TRY(save_data(log, names.held, MSC_DTYPE_F32, 3, dims, m->held));
    }
    return save_data(log, names.n_rows, MSC_DTYPE_I64, 0, NULL, &m->n_rows);
}

// ---- Loading ----------------------------------------------------------------------------------

static bool is_of(const struct msc_array *array, enum msc_dtype dtype, int n_dims) {
    return msc_array_dtype(array) == dtype && msc_array_n_dims(array) == n_dims;
}

// Sets groups and columns from the shape of the means. False if the shapes do not fit n_elements
// weights.
static bool find_shape(struct msc_moment *m, const struct msc_array *triangles,
                       const struct msc_array *means, int64_t n_elements) {
    if (!is_of(triangles, MSC_DTYPE_F32, 2) || !is_of(means, MSC_DTYPE_F64, 2)) {
        return false;
    }
    int64_t groups = msc_array_dim(means, 0), n = msc_array_dim(means, 1);
    m->n_groups = groups;
    m->n_columns = n;
    m->block_columns = n;
    return groups > 0 && n > 0 && n <= n_elements && n_elements % n == 0 &&
           n_elements / n % groups == 0 && msc_array_dim(triangles, 0) == groups &&
           msc_array_dim(triangles, 1) == n * (n + 1) / 2;
}

static enum msc_status fill_moment(struct msc_moment *m, const struct msc_array *triangles,
                                   const struct msc_array *means) {
    int64_t n = m->n_columns;
    size_t n_means = (size_t)(m->n_groups * n);
    const float *from = msc_array_data(triangles);
    m->h = msc_alloc(n_means * (size_t)n * sizeof(m->h[0]));
    m->means = msc_alloc(n_means * sizeof(m->means[0]));
    if (!m->h || !m->means) {
        msc_moment_finish(m);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    memcpy(m->means, msc_array_data(means), n_means * sizeof(m->means[0]));
    for (int64_t i = 0; i < m->n_groups * n; i++) {
        float *h = m->h + i / n * n * n;
        for (int64_t k = i % n; k < n; k++) {
            h[i % n * n + k] = h[k * n + i % n] = *from++;
        }
    }
    return MSC_OK;
}

static enum msc_status fill_held(struct msc_moment *m, const struct msc_array *held) {
    size_t n = (size_t)msc_array_n_elements(held);
    bool fits = is_of(held, MSC_DTYPE_F32, 3) && msc_array_dim(held, 0) == m->n_groups &&
                msc_array_dim(held, 2) == m->n_columns && msc_array_dim(held, 1) <= m->n_rows;
    if (!fits) {
        return MSC_FAIL(MSC_E_FORMAT, "expected rows that were held back");
    }
    m->held = msc_alloc(n * sizeof(m->held[0]) + 1);
    MSC_TRY(MSC_ALLOCATED(m->held));
    m->n_held = msc_array_dim(held, 1);
    if (n > 0) {
        memcpy(m->held, msc_array_data(held), n * sizeof(m->held[0]));
    }
    return MSC_OK;
}

static enum msc_status load_arrays(struct msc_moment *m, const struct msc_array_log *log,
                                   const struct names *names, int64_t n_elements) {
    struct msc_array *triangles = NULL, *means = NULL, *held = NULL;
    enum msc_status status = msc_array_log_read(&means, log, names->means);
    if (status == MSC_OK) {
        status = msc_array_log_read(&triangles, log, names->triangles);
    }
    if (status == MSC_OK) {
        status = msc_array_log_read(&held, log, names->held);
    }
    if (status == MSC_OK) {
        status = find_shape(m, triangles, means, n_elements)
                     ? fill_moment(m, triangles, means)
                     : MSC_FAIL(MSC_E_FORMAT, "expected second moments of %lld weights",
                                (long long)n_elements);
    }
    if (status == MSC_OK) {
        status = fill_held(m, held);
    }
    if (status != MSC_OK) {
        msc_moment_finish(m);
    }
    msc_array_release(triangles);
    msc_array_release(means);
    msc_array_release(held);
    return status;
}

enum msc_status msc_moment_load(struct msc_moment *out, const struct msc_array_log *log,
                                const char *of, int32_t slot, int64_t n_elements) {
    struct msc_array *n_rows;
    struct names names;
    name_arrays(&names, of, slot);
    MSC_TRY(msc_array_log_read(&n_rows, log, names.n_rows));
    bool is_number = is_of(n_rows, MSC_DTYPE_I64, 0) && msc_array_get_i64(n_rows, 0) >= 0;
    *out = (struct msc_moment){.n_rows = is_number ? msc_array_get_i64(n_rows, 0) : 0};
    msc_array_release(n_rows);
    if (!is_number) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: expected a number of rows", names.n_rows);
    }
    return out->n_rows > 0 ? load_arrays(out, log, &names, n_elements) : MSC_OK;
}
