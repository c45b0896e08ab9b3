#include "tools/linear_algebra.h"

#include "base/platform.h"

#include <cblas.h>
#include <lapacke.h>
#include <stdio.h>
#include <string.h>

void msc_linear_algebra_begin(void) {
    openblas_set_num_threads(1);
}

// openblas_get_config returns "OpenBLAS 0.3.21 NO_LAPACKE …".
const char *msc_linear_algebra_name(char out[], size_t n_bytes) {
    const char *version = strchr(openblas_get_config(), ' ');
    version = version ? version + 1 : "";
    snprintf(out, n_bytes, "openblas-%.*s %s", (int)strcspn(version, " "), version,
             openblas_get_corename());
    return out;
}

void msc_linear_algebra_versions(msc_version_take take, void *payload) {
    char name[128], lapack[48];
    lapack_int major = 0, minor = 0, patch = 0;
    const char *dash = strchr(msc_linear_algebra_name(name, sizeof name), '-');
    take(payload, "OpenBLAS", dash ? dash + 1 : name);
    LAPACKE_ilaver(&major, &minor, &patch);
    snprintf(lapack, sizeof lapack, "%d.%d.%d", (int)major, (int)minor, (int)patch);
    take(payload, "LAPACK", lapack);
}

double msc_dot(const float a[], const float b[], int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)a[i] * b[i];
    }
    return sum;
}

double msc_dot_means(const float a[], const double means[], int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * means[i];
    }
    return sum;
}

void msc_product_f32(float out[], const float a[], const float b[], int64_t m, int64_t k,
                     int64_t n) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b,
                (int)n, 0, out, (int)n);
}

void msc_product_rows_f32(float out[], const float a[], int64_t stride, const float b[], int64_t m,
                          int64_t k, int64_t n) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a,
                (int)stride, b, (int)n, 0, out, (int)stride);
}

MSC_SIMD static void add_scaled_clones(double out[], const double x[], double scale, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += scale * x[i];
    }
}

void msc_add_scaled(double out[], const double x[], double scale, int64_t n) {
    add_scaled_clones(out, x, scale, n);
}

MSC_SIMD static void add_scaled_f32_clones(double out[], const float x[], double scale, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        out[i] += scale * (double)x[i];
    }
}

void msc_add_scaled_f32(double out[], const float x[], double scale, int64_t n) {
    add_scaled_f32_clones(out, x, scale, n);
}

void msc_product_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                     int64_t n) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b,
                (int)n, 0, out, (int)n);
}

void msc_subtract_product_f64(double out[], int64_t stride, const double a[], int64_t a_stride,
                              const double b[], int64_t b_stride, int64_t m, int64_t k, int64_t n) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, -1, a,
                (int)a_stride, b, (int)b_stride, 1, out, (int)stride);
}

void msc_subtract_cross_f64(double out[], const double a[], const double b[], int64_t m, int64_t k,
                            int64_t n) {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n, (int)k, -1, a, (int)m, b,
                (int)n, 1, out, (int)n);
}

void msc_subtract_gram_f64(double out[], const double x[], int64_t m, int64_t n) {
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)n, (int)m, -1, x, (int)n, 1, out,
                (int)n);
}

void msc_add_gram_f32(float out[], const float x[], int64_t stride, int64_t m, int64_t n) {
    cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)n, (int)m, 1, x, (int)stride, 1, out,
                (int)n);
}

void msc_add_cross_f32(float out[], const float a[], const float b[], int64_t m, int64_t n) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)n, (int)m, 1, a, (int)n, b,
                (int)n, 1, out, (int)n);
}

static enum msc_status not_definite(void) {
    return MSC_FAIL(MSC_E_INVALID, "a matrix of second moments is not positive definite");
}

enum msc_status msc_cholesky_f64(double a[], int64_t n) {
    lapack_int order = (lapack_int)n;
    return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', order, a, order) == 0 ? MSC_OK : not_definite();
}

enum msc_status msc_invert_f64(double a[], int64_t n) {
    lapack_int order = (lapack_int)n;
    MSC_TRY(msc_cholesky_f64(a, n));
    if (LAPACKE_dpotri(LAPACK_COL_MAJOR, 'U', order, a, order) != 0) {
        return not_definite();
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) {
            a[k * n + i] = a[i * n + k];
        }
    }
    return MSC_OK;
}

void msc_solve_lower_f64(const double l[], int64_t n, double b[], int64_t n_columns) {
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n,
                (int)n_columns, 1, l, (int)n, b, (int)n_columns);
}

enum msc_status msc_solve_right(double a[], double b[], int64_t n_rows, int64_t n) {
    lapack_int order = (lapack_int)n;
    // In column-major order the rows of b are right-hand sides.
    if (LAPACKE_dposv(LAPACK_COL_MAJOR, 'L', order, (lapack_int)n_rows, a, order, b, order) != 0) {
        return not_definite();
    }
    return MSC_OK;
}
