#include "tools/equalizer_matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double ridge = 0.001;

double msc_equalizer__quadratic(const double m[], const double x[], size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double row = 0;
        for (size_t k = 0; k < n; k++) {
            row += m[i * n + k] * x[k];
        }
        sum += x[i] * row;
    }
    return sum;
}

void msc_equalizer__transform(float x[], int64_t stride, const double t[], size_t n) {
    double given[MSC_EQUALIZER_MOST_SIZE], made[MSC_EQUALIZER_MOST_SIZE];
    for (size_t i = 0; i < n; i++) {
        given[i] = x[(int64_t)i * stride];
    }
    for (size_t i = 0; i < n; i++) {
        made[i] = 0;
        for (size_t k = 0; k < n; k++) {
            made[i] += t[i * n + k] * given[k];
        }
    }
    for (size_t i = 0; i < n; i++) {
        x[(int64_t)i * stride] = (float)made[i];
    }
}

// Rotates rows p and q of m: row p becomes c p + s q, row q becomes c q - s p.
static void rotate_rows(double m[], size_t n, size_t p, size_t q, double c, double s) {
    for (size_t k = 0; k < n; k++) {
        double x = m[p * n + k], y = m[q * n + k];
        m[p * n + k] = c * x + s * y;
        m[q * n + k] = c * y - s * x;
    }
}

static void rotate_columns(double m[], size_t n, size_t p, size_t q, double c, double s) {
    for (size_t k = 0; k < n; k++) {
        double x = m[k * n + p], y = m[k * n + q];
        m[k * n + p] = c * x + s * y;
        m[k * n + q] = c * y - s * x;
    }
}

static void set_identity(double m[], size_t n) {
    memset(m, 0, n * n * sizeof(m[0]));
    for (size_t i = 0; i < n; i++) {
        m[i * n + i] = 1;
    }
}

// Jacobi's method: makes m diagonal; rows of v are its eigenvectors.
static void diagonalise(double m[], double v[], size_t n) {
    enum { MOST_SWEEPS = 60 };
    set_identity(v, n);
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        double off = 0, whole = 0;
        for (size_t i = 0; i < n * n; i++) {
            whole += m[i] * m[i];
            off += i % (n + 1) ? m[i] * m[i] : 0;
        }
        if (off <= 1e-24 * whole) {
            return;
        }
        for (size_t p = 0; p + 1 < n; p++) {
            for (size_t q = p + 1; q < n; q++) {
                double x = m[p * n + q];
                if (fabs(x) <= DBL_MIN) {
                    continue;
                }
                double theta = (m[p * n + p] - m[q * n + q]) / (2 * x);
                double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                rotate_rows(m, n, p, q, c, s);
                rotate_columns(m, n, p, q, c, s);
                rotate_rows(v, n, p, q, c, s);
            }
        }
    }
}

// Rotates m and the rows of a and b until all diagonal elements of m are equal: each rotation turns
// the least and the greatest so that one of them becomes the mean.
static void flatten(double m[], double a[], double b[], size_t n) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        mean += m[i * n + i] / (double)n;
    }
    for (size_t step = 0; step + 1 < n; step++) {
        size_t low = 0, high = 0;
        for (size_t i = 0; i < n; i++) {
            low = m[i * n + i] < m[low * n + low] ? i : low;
            high = m[i * n + i] > m[high * n + high] ? i : high;
        }
        double x = m[low * n + low], y = m[high * n + high], z = m[low * n + high];
        if (!(y - mean > 1e-12 * mean) || !(mean - x > 0)) {
            return;
        }
        // Row `low` becomes c low + s high with the diagonal element (x + 2 z t + y t^2) / (1 +
        // t^2).
        double t = (sqrt(z * z + (y - mean) * (mean - x)) - z) / (y - mean);
        double c = 1 / sqrt(t * t + 1), s = t * c;
        rotate_rows(m, n, low, high, c, s);
        rotate_columns(m, n, low, high, c, s);
        rotate_rows(a, n, low, high, c, s);
        rotate_rows(b, n, low, high, c, s);
    }
}

static double add_ridge(double m[], size_t n) {
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        mean += m[i * n + i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        m[i * n + i] += ridge * mean;
    }
    return mean;
}

// out = x y, or x y^T.
static void multiply(double out[], const double x[], const double y[], size_t n, int transposes) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            double sum = 0;
            for (size_t l = 0; l < n; l++) {
                sum += x[i * n + l] * (transposes ? y[k * n + l] : y[l * n + k]);
            }
            out[i * n + k] = sum;
        }
    }
}

// With b = V^T diag(e) V, and diag(e)^1/2 V a V^T diag(e)^1/2 = U^T diag(l) U, these have equal
// moments diag(l)^1/2:
//     t_a = diag(l)^-1/4 U diag(e)^1/2 V,    t_b = diag(l)^1/4 U diag(e)^-1/2 V
// A rotation of both keeps t_a^T t_b, and makes the diagonal of the moments flat.
void msc_equalizer__balance(double t_a[], double t_b[], double a[], double b[], size_t n,
                            double room[]) {
    double *v = room, *u = room + n * n, *x = room + 2 * n * n, *y = room + 3 * n * n;
    set_identity(t_a, n);
    set_identity(t_b, n);
    if (!(add_ridge(a, n) > 0) || !(add_ridge(b, n) > 0)) {
        return;
    }
    diagonalise(b, v, n);
    multiply(x, v, a, n, 0);
    multiply(y, x, v, n, 1);
    for (size_t i = 0; i < n * n; i++) {
        y[i] *= sqrt(b[i / n * (n + 1)]) * sqrt(b[i % n * (n + 1)]);
    }
    diagonalise(y, u, n);
    for (size_t i = 0; i < n * n; i++) {
        double root = sqrt(sqrt(y[i / n * (n + 1)])), e = sqrt(b[i % n * (n + 1)]);
        x[i] = u[i] * e / root;
        a[i] = u[i] / e * root;
    }
    multiply(t_a, x, v, n, 0);
    multiply(t_b, a, v, n, 0);
    for (size_t i = 0; i < n * n; i++) {
        y[i] = i % (n + 1) ? 0 : sqrt(y[i]);
    }
    flatten(y, t_a, t_b, n);
}
