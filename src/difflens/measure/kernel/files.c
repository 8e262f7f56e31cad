/* Reads two files side by side and scans them: the same as reading in Python and scanning here,
   but in steps small enough to stay in the processor's own cache, which Python's calls would
   outweigh. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scan.h"

enum { STEP = 1 << 15 }; /* elements; an even number, so that no F4 byte is torn apart */

/* Read n elements from the first on. */
static enum reading fill(const struct place *place, size_t first, size_t n, uint8_t *buffer)
{
    size_t start = difflens_size(place->type, first), size = difflens_size(place->type, n);
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(place->descriptor, buffer + done, size - done,
                            (off_t)(place->offset + start + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return FAILED;
        if (got == 0) return SHORT;
        done += (size_t)got;
    }
    return DONE;
}

/* While both sides are the same, only bytes are compared; the first difference starts again from
   the beginning, because the statistics are over all of it. */
static enum reading scan_steps(const struct loops *loops, struct state *state,
                               const struct place *left, const struct place *right, size_t n,
                               double epsilon, int *looking, uint8_t *a, uint8_t *b)
{
    for (size_t i = 0; i < n;) {
        size_t some = n - i < STEP ? n - i : STEP;
        enum reading read = fill(left, i, some, a);
        if (read == DONE) read = fill(right, i, some, b);
        if (read != DONE) return read;
        if (*looking && memcmp(a, b, difflens_size(left->type, some)) == 0) {
            i += some;
            continue;
        }
        if (*looking) {
            *looking = 0;
            if (i > 0) {
                i = 0;
                continue;
            }
        }
        difflens_scan(loops, state, left->type, a, right->type, b, some, epsilon);
        i += some;
    }
    return DONE;
}

enum reading difflens_scan_files(const struct loops *loops, struct state *state,
                                 const struct place *left, const struct place *right, size_t n,
                                 double epsilon, int *looking)
{
    uint8_t *buffers = malloc(2 * STEP * 8);
    if (!buffers) return FAILED;
    enum reading done = scan_steps(loops, state, left, right, n, epsilon, looking, buffers,
                                   buffers + STEP * 8);
    int number = errno;
    free(buffers);
    errno = number;
    return done;
}
