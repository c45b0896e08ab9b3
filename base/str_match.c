#include "base/str.h"

#include <string.h>

#define SUGGEST_LENGTH 64 // longer words are never suggested

bool msc_glob_match(const char *pattern, const char *text) {
    const char *star = NULL;   // the last '*' seen
    const char *resume = NULL; // end of that star's match so far
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            // Lets the last star match one more character. Earlier stars never need to match more.
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// The number of insertions, deletions, replacements and swaps of adjacent letters (the usual typing
// errors) that turn one word into the other. Both words are shorter than SUGGEST_LENGTH.
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    size_t rows[3][SUGGEST_LENGTH];
    for (size_t j = 0; j <= n_b; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = smaller(best, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = smaller(best, second[j - 2] + 1);
            }
            row[j] = best;
        }
    }
    return rows[n_a % 3][n_b];
}

const char *msc_suggest(const char *word, const char *const candidates[], size_t n) {
    const char *nearest = NULL;
    size_t length = strlen(word);
    if (length == 0 || length >= SUGGEST_LENGTH) {
        return NULL;
    }
    // A quarter of the letters may be wrong, but never all of them.
    size_t limit = smaller(1 + length / 4, length - 1);
    for (size_t i = 0; i < n; i++) {
        size_t candidate_length = strlen(candidates[i]);
        if (candidate_length >= SUGGEST_LENGTH) {
            continue;
        }
        size_t distance = edit_distance(word, length, candidates[i], candidate_length);
        if (distance < limit || (distance == limit && !nearest)) {
            nearest = candidates[i];
            limit = distance;
        }
    }
    return nearest;
}
