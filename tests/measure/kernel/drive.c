/* Drives the kernel over every dtype, size and alignment, for the sanitizers to watch.

   Buffers lie on the heap and end where their elements end, so that one byte read too
   far is seen. Half of them hold any bits, half only finite numbers: those two kinds
   take different roads through the kernel. Each level prints a hash of all states it filled:
   they are the same bits on all of them. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

static const size_t sizes[] = {0,  1,  2,   3,   5,    7,    8,    9,    15,   16,   17,
                               31, 33, 64,  127, 512,  1023, 1024, 1025, 2050, 4097, 8191,
                               8192, 8193, 16390};
static const size_t offsets[] = {0, 1, 3, 6};

static uint64_t seed, hash;

static uint8_t random_byte(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint8_t)(seed >> 32);
}

/* FNV-1a, by words: a state has nothing else. */
static void add_to_hash(const struct state *state)
{
    uint64_t words[sizeof *state / 8];
    memcpy(words, state, sizeof words);
    for (size_t i = 0; i < sizeof words / 8; i++) hash = (hash ^ words[i]) * 0x100000001b3u;
}

struct buffer {
    uint8_t *start, *elements;
};

/* Clearing the exponent's top bit in every byte leaves no infinity and no NaN. */
static struct buffer make(size_t size, size_t offset, int finite)
{
    struct buffer made = {.start = malloc(offset + size)};
    if (!made.start && offset + size) exit(3);
    made.elements = made.start + offset;
    for (size_t i = 0; i < size; i++) made.elements[i] = random_byte() & (finite ? 0xbf : 0xff);
    return made;
}

static void expect(int good, const char *what, const char *level, int left, int right, size_t n)
{
    if (good) return;
    fprintf(stderr, "%s: %s, dtypes %d and %d, %zu elements\n", what, level, left, right, n);
    exit(1);
}

static void drive(const struct loops *loops, enum dtype left, enum dtype right, size_t n,
                  size_t offset, int finite)
{
    struct buffer a = make(difflens_size(left, n), offset, finite);
    struct buffer b = make(difflens_size(right, n), offsets[3] - offset, finite);
    struct state state = {0}, later = {0}, itself = {0};
    difflens_scan(loops, &state, left, a.elements, right, b.elements, n, 0.0);
    expect(state.count == (int64_t)n, "lost elements", loops->name, left, right, n);
    later = state;
    difflens_scan(loops, &state, left, a.elements, right, b.elements, n, 0.25);
    difflens_merge(&later, &state);
    expect(later.count == 3 * (int64_t)n, "lost elements", loops->name, left, right, n);
    expect(later.pairs * 2 == state.pairs * 3, "lost pairs", loops->name, left, right, n);
    difflens_scan(loops, &itself, left, a.elements, left, a.elements, n, 0.0);
    expect(itself.bit_equal == (int64_t)n && itself.max_abs == 0, "not itself", loops->name, left,
           left, n);
    add_to_hash(&state);
    add_to_hash(&later);
    add_to_hash(&itself);
    free(a.start);
    free(b.start);
}

/* One look at a tensor, alone and against a copy, which then is the tensor. */
static void drive_read(const struct loops *loops, enum dtype type, size_t n, int finite)
{
    size_t size = difflens_size(type, n);
    struct buffer a = make(size, 0, finite), copy = make(size, 0, finite);
    struct look look;
    loops->read(type, a.elements, NULL, n, &look);
    expect(!finite || look.nonfinite == 0, "not finite", loops->name, type, type, n);
    loops->read(type, a.elements, copy.elements, n, &look);
    expect(!size || memcmp(a.elements, copy.elements, size) == 0, "no copy", loops->name, type,
           type, n);
    loops->read(type, a.elements, copy.elements, n, &look);
    expect(!finite || look.moves == 0, "moved", loops->name, type, type, n);
    free(a.start);
    free(copy.start);
}

static void drive_all(const struct loops *loops)
{
    seed = 88172645463325252u;
    hash = 0xcbf29ce484222325u;
    for (int type = F16; type <= F64; type++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int finite = 0; finite < 2; finite++)
                drive_read(loops, (enum dtype)type, sizes[s], finite);
    for (int left = 0; left < DTYPES; left++)
        for (int right = 0; right < DTYPES; right++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (size_t o = 0; o < (left == right ? sizeof offsets / sizeof *offsets : 1); o++)
                    for (int finite = 0; finite < 2; finite++) {
                        size_t n = sizes[s];
                        if (left != right && n > 2050) continue; /* nothing new beyond a block */
                        if ((left == F4 || right == F4) && n % 2) n++;
                        drive(loops, (enum dtype)left, (enum dtype)right, n, offsets[left == right ? o : 1], finite);
                    }
}

int main(void)
{
    static const char *const levels[] = {"baseline", "avx2", "avx512"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const struct loops *loops = difflens_pick(levels[i]);
        if (!loops) continue;
        drive_all(loops);
        printf("%s %016llx\n", loops->name, (unsigned long long)hash);
    }
    return 0;
}
