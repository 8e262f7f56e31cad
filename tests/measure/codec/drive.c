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

int main(void)
{
    static const char *const names[] = {"baseline", "avx2", "avx512"};
    static const struct kind kinds[] = {{8, 52, 11}, {4, 23, 8}, {2, 10, 5}, {2, 7, 8},
                                        {1, 3, 4},   {1, 2, 5},  {8, 0, 0},  {4, 0, 0},
                                        {2, 0, 0},   {1, 0, 0}};
    static const size_t sizes[] = {1, 2, 63, 64, 65, 130, 1000, 4096, 9001};
    difflens_start_codec();
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
