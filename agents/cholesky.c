#include "agents/cholesky.h"

#include <math.h>

bool msc_cholesky_factorise(double u[], size_t n, size_t stride) {
    for (size_t k = 0; k < n; k++) {
        double *row = u + k * stride;
        if (!(row[k] > 0.0)) {
            return false;
        }
        double root = sqrt(row[k]);
        for (size_t j = k; j < n; j++) {
            row[j] /= root;
        }
        for (size_t i = k + 1; i < n; i++) {
            double factor = row[i];
            double *below = u + i * stride;
            for (size_t j = i; j < n; j++) {
                below[j] -= factor * row[j];
            }
        }
    }
    return true;
}

void msc_cholesky_solve_lower(const double u[], double x[], size_t n, size_t stride) {
    for (size_t k = 0; k < n; k++) {
        const double *row = u + k * stride;
        x[k] /= row[k];
        for (size_t j = k + 1; j < n; j++) {
            x[j] -= row[j] * x[k];
        }
    }
}

void msc_cholesky_solve_upper(const double u[], double x[], size_t n, size_t stride) {
    for (size_t k = n; k-- > 0;) {
        const double *row = u + k * stride;
        double sum = x[k];
        for (size_t j = k + 1; j < n; j++) {
            sum -= row[j] * x[j];
        }
        x[k] = sum / row[k];
    }
}
