#include "graph/einsum.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

// A symbol is a letter or an axis of "...". The axes of "..." are numbered from the last axis,
// starting at N_LETTERS.
enum { N_LETTERS = 128, N_SYMBOLS = N_LETTERS + MSC_MAX_DIMS };

struct parse {
    int symbols[MSC_EINSUM_OPERANDS][MSC_MAX_DIMS];
    int n_symbols[MSC_EINSUM_OPERANDS];
    int counts[N_SYMBOLS];
    int n_hidden; // largest number of axes that "..." has in any operand
    int output[MSC_EINSUM_AXES];
    int n_output;
};

// Reads the symbols of one term, which ends at ',' or '-' or at the end of the text. "..." gives
// `n_hidden` symbols.
static const char *parse_term(int symbols[], int *n, int most, const char **text, int n_hidden) {
    const char *at = *text;
    *n = 0;
    for (; *at != '\0' && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') {
            continue;
        }
        if (*at == '.') {
            if (strncmp(at, "...", 3) != 0 || n_hidden < 0 || *n + n_hidden > most) {
                return "has an invalid '...'";
            }
            for (int i = n_hidden - 1; i >= 0; i--) {
                symbols[(*n)++] = N_LETTERS + i;
            }
            at += 2;
        } else if (isalpha((unsigned char)*at) && *n < most) {
            symbols[(*n)++] = (unsigned char)*at;
        } else {
            return isalpha((unsigned char)*at) ? "names too many axes" : "has an unknown character";
        }
    }
    *text = at;
    return NULL;
}

// Counts the letters of a term. Its "..." covers the operand's other axes.
static int count_letters(const char *text) {
    int n = 0;
    for (; *text != '\0' && *text != ',' && *text != '-'; text++) {
        n += isalpha((unsigned char)*text) != 0;
    }
    return n;
}

static bool has_dots(const char *text) {
    const char *end = text + strcspn(text, ",-");
    const char *dots = strstr(text, "...");
    return dots != NULL && dots < end;
}

static const char *parse_operands(struct parse *p, const char **text, int n_operands,
                                  const int ranks[]) {
    for (int k = 0; k < n_operands; k++) {
        int n_hidden = has_dots(*text) ? ranks[k] - count_letters(*text) : 0;
        const char *error =
            parse_term(p->symbols[k], &p->n_symbols[k], MSC_MAX_DIMS, text, n_hidden);
        if (error != NULL) {
            return error;
        }
        if (p->n_symbols[k] != ranks[k]) {
            return "names a different number of axes than an operand has";
        }
        p->n_hidden = n_hidden > p->n_hidden ? n_hidden : p->n_hidden;
        for (int i = 0; i < ranks[k]; i++) {
            p->counts[p->symbols[k][i]]++;
        }
        if ((**text == ',') != (k + 1 < n_operands)) {
            return "has a different number of terms than operands";
        }
        *text += **text == ',';
    }
    return NULL;
}

static const char *parse_output(struct parse *p, const char *text) {
    if (*text == '\0') {
        for (int i = p->n_hidden - 1; i >= 0; i--) {
            p->output[p->n_output++] = N_LETTERS + i;
        }
        for (int letter = 'A'; letter <= 'z'; letter++) {
            if (p->counts[letter] == 1 && p->n_output < MSC_MAX_DIMS) {
                p->output[p->n_output++] = letter;
            }
        }
        return NULL;
    }
    if (strncmp(text, "->", 2) != 0) {
        return "has '-' without '>'";
    }
    text += 2;
    const char *error = parse_term(p->output, &p->n_output, MSC_MAX_DIMS, &text, p->n_hidden);
    for (int i = 0; error == NULL && i < p->n_output; i++) {
        error = p->counts[p->output[i]] == 0 ? "has an output axis that no operand has" : NULL;
        for (int k = 0; k < i; k++) {
            error = p->output[k] == p->output[i] ? "has an output axis twice" : error;
        }
    }
    return error != NULL || *text == '\0' ? error : "continues after its output";
}

const char *msc_einsum_parse(struct msc_einsum *out, const char *equation, int n_operands,
                             const int ranks[]) {
    struct parse p = {.n_hidden = 0};
    int numbers[N_SYMBOLS];
    memset(out, 0, sizeof(*out));
    if (n_operands < 1 || n_operands > MSC_EINSUM_OPERANDS) {
        return "has too many operands";
    }
    const char *error = parse_operands(&p, &equation, n_operands, ranks);
    error = error == NULL ? parse_output(&p, equation) : error;
    if (error != NULL) {
        return error;
    }
    memset(numbers, 0xff, sizeof(numbers));
    for (int i = 0; i < p.n_output; i++) {
        numbers[p.output[i]] = out->n_axes++;
    }
    out->n_output_axes = out->n_axes;
    for (int k = 0; k < n_operands; k++) {
        for (int i = 0; i < p.n_symbols[k]; i++) {
            int symbol = p.symbols[k][i];
            if (numbers[symbol] < 0) {
                if (out->n_axes == MSC_EINSUM_AXES) {
                    return "names too many axes";
                }
                numbers[symbol] = out->n_axes++;
            }
            out->axes[k][i] = numbers[symbol];
        }
    }
    return NULL;
}
