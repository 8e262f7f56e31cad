/* Drives the sketch over all forms, sizes and alignments under the sanitizers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sketch.h"

int main(void)
{
    static const size_t sizes[] = {0, 1, 2, 3, 1022, 1023, 1024, 1025, 5000};
    double table[256], sums[BUCKETS] = {0};
    uint64_t seed = 1;
    for (int i = 0; i < 256; i++) table[i] = i - 128.0;
    for (int form = 0; form < FORMS; form++) {
        for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
            size_t n = form == NIBBLES ? sizes[which] / 2 * 2 : sizes[which];
            size_t bytes = n * difflens_form_bits[form] / 8;
            /* Off by one, and with nothing behind: what is read past the end or unaligned is seen. */
            uint8_t *data = malloc(bytes + 1);
            for (size_t i = 0; i < bytes; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                data[i + 1] = (uint8_t)(seed >> 56);
            }
            difflens_sketch(form, data + 1, n, which % 2 ? UINT64_MAX / 1024 : 0, table, sums);
            free(data);
        }
    }
    for (int i = 0; i < BUCKETS; i++)
        if (isnan(sums[i])) return 1;
    puts("done");
    return 0;
}
