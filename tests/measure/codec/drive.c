/* Drives the codec over all kinds, sizes and alignments, and over damage, under the sanitizers. */
#include <stdio.h>
#include <stdlib.h>

#include "codec.h"

void difflens_start_codec(void);

static uint64_t seed = 1;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void fill(uint8_t *left, uint8_t *right, size_t n, struct kind kind, int way)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t word = way & 1 ? draw() : draw() & draw() & draw();
        uint64_t other = word;
        if (way == 2 || way == 3) other += draw() % 200 == 0 ? draw() % 3 - 1 : 0;
        if (way == 4 || way == 5) other += draw() % 40;
        if (way >= 6) other = draw();
        store_word(left, i, kind.width, word);
        store_word(right, i, kind.width, other);
    }
}

static int check(const struct walks *walks, size_t n, struct kind kind, int way)
{
    size_t bytes = n * (size_t)kind.width, room = bytes * 2 + 16384;
    /* Exact sizes, and off by one: what is read past the end or unaligned is seen. */
    uint8_t *left = malloc(bytes + 1), *right = malloc(bytes + 1), *out = malloc(bytes + 1);
    uint8_t *data = malloc(room), *exact;
    fill(left + 1, right + 1, n, kind, way);
    for (int back = NEVER; back <= ALWAYS; back++) {
        ptrdiff_t size = difflens_encode(walks, left + 1, right + 1, n, kind, back, data, room);
        if (size < 0) return 1;
        exact = malloc((size_t)size + 1);
        memcpy(exact, data, (size_t)size);
        if (difflens_decode(walks, exact, (size_t)size, left + 1, out + 1, n, kind, 0) != 1) return 2;
        if (memcmp(out + 1, right + 1, bytes)) return 3;
        if (back == ALWAYS) {
            if (difflens_decode(walks, exact, (size_t)size, right + 1, out + 1, n, kind, 1) != 1)
                return 4;
            if (memcmp(out + 1, left + 1, bytes)) return 5;
        }
        for (int flips = 0; size && flips < 60; flips++) {
            size_t at = (size_t)(draw() % (uint64_t)size);
            uint8_t was = exact[at];
            exact[at] ^= (uint8_t)(1u << draw() % 8);
            size_t some = flips % 4 ? (size_t)size : (size_t)(draw() % (uint64_t)size);
            uint8_t *cut = malloc(some + 1);
            memcpy(cut, exact, some);
            difflens_decode(walks, cut, some, left + 1, out + 1, n, kind, flips & 1);
            free(cut);
            if (flips % 3) exact[at] = was;
        }
        free(exact);
    }
    free(left);
    free(right);
    free(out);
    free(data);
    return 0;
}

/* Any bits are predicted from, in buffers that end where the words do. */
static void predict(struct kind from, struct kind to, size_t n)
{
    static const double factors[] = {1.0, 0.9999999f, -3.5, 1e300, 1e-300};
    uint8_t *in = malloc(n * 8), *out = malloc(n * 8), *exact = malloc(n * (size_t)from.width);
    double *left = malloc((n + 6) * 3 * sizeof *left), *right = malloc(21 * sizeof *right);
    for (size_t i = 0; i < n * 8; i++) in[i] = (uint8_t)draw();
    for (size_t i = 0; i < (n + 6) * 3; i++) left[i] = (double)(int64_t)draw() * 1e-20;
    for (size_t i = 0; i < 21; i++) right[i] = factors[i % 5];
    for (size_t f = 0; f < 5; f++) {
        int times = from.width == to.width && from.mantissa == to.mantissa ? 3 : 1;
        difflens_scale(in, out, n, from, to, factors[f], times, 0);
        difflens_scale(out, exact, n, from, to, factors[f], times, 1);
    }
    memcpy(exact, in, n * (size_t)from.width);
    difflens_add_product(exact, exact, n, from, 5, 7, left, right, 3, (int)(n & 1));
    free(in);
    free(out);
    free(exact);
    free(left);
    free(right);
}

int main(void)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    static const struct kind kinds[] = {{8, 52, 11}, {4, 23, 8}, {2, 10, 5}, {2, 7, 8},
                                        {1, 3, 4},   {1, 2, 5},  {8, 0, 0},  {4, 0, 0},
                                        {2, 0, 0},   {1, 0, 0}};
    static const size_t sizes[] = {1, 2, 63, 64, 65, 130, 1000, 4096, 9001};
    difflens_start_codec();
    for (size_t from = 0; from < 6; from++)
        for (size_t to = 0; to < 6; to++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                predict(kinds[from], kinds[to], sizes[s]);
    for (size_t l = 0; l < 3; l++) {
        const struct walks *walks = difflens_pick_walks(names[l]);
        if (!walks) continue;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (int way = 0; way < 8; way++) {
                    int wrong = check(walks, sizes[s], kinds[k], way);
                    if (wrong) {
                        printf("%s kind %zu, %zu words, way %d: %d\n", names[l], k, sizes[s], way,
                               wrong);
                        return 1;
                    }
                }
        printf("%s\n", names[l]);
    }
    return 0;
}
