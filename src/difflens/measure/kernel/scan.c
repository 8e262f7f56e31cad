/* Adds runs of elements to a state, and states to states.

   Moments are kept about the running mean, and each block's powers are summed
   about a pivot near that mean: sums about zero would lose everything on data
   like 1e8 + noise, and a second pass over the bytes would cost the time of the
   first. The pivot is zero itself where the mean is small beside the spread. */

#include "parts.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8192, SMALL_BLOCK = 1024, FEW = 512 };

static const uint64_t infinity_bits[DTYPES] = {
    [F16] = 0x7c00, [BF16] = 0x7f80, [F32] = 0x7f800000, [F64] = 0x7ff0000000000000,
};

const uint8_t difflens_bits[DTYPES] = {
    [BOOL] = 8, [U8] = 8, [I8] = 8, [U16] = 16, [I16] = 16, [U32] = 32, [I32] = 32, [U64] = 64,
    [I64] = 64, [F4] = 4, [F8_E4M3] = 8, [F8_E5M2] = 8, [F8_E4M3FNUZ] = 8, [F8_E5M2FNUZ] = 8,
    [F8_E8M0] = 8, [F16] = 16, [BF16] = 16, [F32] = 32, [F64] = 64,
};

/* Integers step by nothing less than one, so they add no rounding of their own. */
const struct rounding difflens_rounding[DTYPES] = {
    [F4] = {0x1p0, 0x1p-2}, [F8_E4M3] = {0x1p-6, 0x1p-4}, [F8_E5M2] = {0x1p-14, 0x1p-3},
    [F8_E4M3FNUZ] = {0x1p-7, 0x1p-4}, [F8_E5M2FNUZ] = {0x1p-15, 0x1p-3},
    [F8_E8M0] = {0x1p-127, 0x1p-1}, [F16] = {0x1p-14, 0x1p-11}, [BF16] = {0x1p-126, 0x1p-8},
    [F32] = {0x1p-126, 0x1p-24}, [F64] = {0x1p-1022, 0x1p-53},
};

size_t difflens_size(enum dtype type, size_t n)
{
    if (difflens_bits[type] == 4) return n % 2 ? (size_t)-1 : n / 2;
    return n * (difflens_bits[type] / 8);
}

static const uint8_t *at(enum dtype type, const uint8_t *bytes, size_t i)
{
    return bytes + i * difflens_bits[type] / 8;
}

static int is_hot(const struct loops *loops, enum dtype type)
{
    return loops->sums[type] != NULL;
}

/* Zero, where summing about it loses nothing: the mean is small beside the spread. */
static double pivot_near(double mean, double m2, double n)
{
    return n * mean * mean <= 4 * m2 ? 0 : mean;
}

/* Where to sum a finite block about: near the mean of the pairs so far, or of its own first few.
   The mean of a side would not do: it knows values whose partners are not finite, and one
   large one among them would swallow the digits of every pair. */
static double pivot_for(const struct loops *loops, const struct state *state, int side,
                        enum dtype type, const uint8_t *bytes, size_t n)
{
    if (state->pairs > 0)
        return pivot_near(state->pair_mean[side], state->pair_m2[side], (double)state->pairs);
    double values[FEW], squares[WAYS] = {0};
    size_t few = n < FEW ? n : FEW;
    loops->decode(type, bytes, few, values);
    double mean = difflens_mean(values, values, few);
    for (size_t i = 0; i < few; i++)
        squares[i % WAYS] += (values[i] - mean) * (values[i] - mean);
    return isfinite(mean) ? pivot_near(mean, difflens_add_up(squares), (double)few) : 0;
}

/* Fill a block's moments from sums over values that are all finite. */
static void take_sums(struct state *block, const struct sums *sums, int64_t n, const double *pivot)
{
    double count = (double)n;
    for (int side = LEFT; side < SIDES; side++) {
        double low = block->values[side].min, high = block->values[side].max;
        block->values[side] = difflens_centred(sums, side, n, pivot[side]);
        block->values[side].min = low;
        block->values[side].max = high;
        block->pair_mean[side] = block->values[side].mean;
        block->pair_m2[side] = block->values[side].m2;
    }
    block->pairs = n;
    block->comoment = sums->cross - sums->s1[LEFT] * (sums->s1[RIGHT] / count);
    block->abs_sum = sums->move;
    block->square_sum = sums->move2;
    block->max_abs = sums->largest_move;
}

static int64_t first_move(const double *left, const double *right, size_t n, double size)
{
    for (size_t i = 0; i < n; i++)
        if (magnitude(right[i] - left[i]) == size) return (int64_t)i;
    return -1;
}

/* Second looks at a hot block, decoded piece by piece: where the largest move is, and how many
   moves are over epsilon. Both are rare beside the sums, so they pay for themselves. */
static void look_again(const struct loops *loops, enum dtype type, const uint8_t *left,
                       const uint8_t *right, size_t n, double epsilon, int find,
                       struct state *block)
{
    double a[SMALL_BLOCK], b[SMALL_BLOCK];
    for (size_t i = 0; i < n; i += SMALL_BLOCK) {
        size_t m = n - i < SMALL_BLOCK ? n - i : SMALL_BLOCK;
        loops->decode(type, at(type, left, i), m, a);
        loops->decode(type, at(type, right, i), m, b);
        if (epsilon > 0) block->over_epsilon += loops->over(a, b, m, epsilon);
        if (find) {
            int64_t place = first_move(a, b, m, block->max_abs);
            if (place >= 0) {
                block->max_abs_at = (int64_t)i + place;
                find = 0;
            }
        }
        if (!find && epsilon == 0) return;
    }
}

/* From bits in the order of their numbers back to the number; a zero has no sign here. */
static double from_order(const struct loops *loops, enum dtype type, int64_t order)
{
    int width = difflens_bits[type];
    uint64_t rest = ((uint64_t)1 << (width - 1)) - 1;
    uint64_t bits = (uint64_t)order;
    if (order < 0) bits ^= rest;
    double value;
    uint8_t bytes[8];
    memcpy(bytes, &bits, 8); /* little-endian, as every processor this is built for */
    loops->decode(type, bytes, 1, &value);
    return value + 0.0;
}

/* A block of one float type, finite throughout; 0 where it is not, which either the tally or
   the sums show. */
static int scan_hot(const struct loops *loops, const struct state *state, enum dtype type,
                    const uint8_t *left, const uint8_t *right, size_t n, double epsilon,
                    struct state *block)
{
    struct tally tally;
    loops->tally[type](left, right, n, &tally);
    int64_t infinity = (int64_t)infinity_bits[type];
    for (int side = LEFT; side < SIDES; side++)
        if (tally.high[side] >= infinity || tally.low[side] <= ~infinity) return 0;
    for (int side = LEFT; side < SIDES; side++) {
        block->values[side].min = from_order(loops, type, tally.low[side]);
        block->values[side].max = from_order(loops, type, tally.high[side]);
        block->counts[side].zeros = tally.zeros[side];
    }
    double pivot[SIDES] = {pivot_for(loops, state, LEFT, type, left, n),
                           pivot_for(loops, state, RIGHT, type, right, n)};
    struct sums sums;
    loops->sums[type](left, right, n, pivot, &sums);
    if (!isfinite(sums.magnitude[LEFT]) || !isfinite(sums.magnitude[RIGHT])) return 0;
    block->count = (int64_t)n;
    take_sums(block, &sums, block->count, pivot);
    block->bit_equal = tally.bit_equal;
    block->value_equal = tally.bit_equal + tally.zero_sign;
    block->sign_flips = tally.sign_flips;
    block->over_rounding = block->over_epsilon = block->count - block->value_equal;
    if (epsilon > 0) block->over_epsilon = 0;
    int find = block->max_abs > state->max_abs;
    if (find || epsilon > 0)
        look_again(loops, type, left, right, n, epsilon, find, block);
    return 1;
}

/* Integers above 2^53 are more than their doubles. */
static int holds_all(const struct decoded *run, const struct state *block)
{
    if (!difflens_exact(run)) return 1;
    for (int side = LEFT; side < SIDES; side++)
        if (block->values[side].min <= -0x1p53 || block->values[side].max >= 0x1p53) return 0;
    return 1;
}

/* A block decoded to doubles that are all finite is hot like any block of doubles; 0 where not. */
static int scan_decoded(const struct loops *loops, const struct state *state,
                        const struct decoded *run, double epsilon, struct state *block)
{
    const uint8_t *left = (const uint8_t *)run->value[LEFT];
    const uint8_t *right = (const uint8_t *)run->value[RIGHT];
    if (!scan_hot(loops, state, F64, left, right, run->n, epsilon, block)
        || !holds_all(run, block))
        return 0;
    if (run->type[LEFT] == run->type[RIGHT]) {
        block->bit_equal = difflens_equal_bits(loops, run);
    } else {
        struct rounding rounding[SIDES] = {difflens_rounding[run->type[LEFT]],
                                           difflens_rounding[run->type[RIGHT]]};
        block->over_rounding = loops->over_rounding(run->value[LEFT], run->value[RIGHT], run->n,
                                                    rounding);
    }
    return 1;
}

static void scan_any(const struct loops *loops, const struct state *state,
                     const struct decoded *run, double epsilon, struct state *block)
{
    for (int side = LEFT; side < SIDES; side++)
        loops->decode(run->type[side], run->bytes[side], run->n, run->value[side]);
    if (!scan_decoded(loops, state, run, epsilon, block)) {
        *block = (struct state){0};
        difflens_careful(loops, run, epsilon, block);
    }
    for (int side = LEFT; side < SIDES; side++)
        if (run->type[side] == BOOL)
            for (size_t i = 0; i < run->n; i++)
                block->counts[side].odd += run->bytes[side][i] > 1;
}

/* How many elements go into the next block. Blocks end at fixed places, so that the bits of the
   result do not depend on how the caller cut what it read. */
static size_t room(const struct state *state, size_t block, size_t left)
{
    size_t length = block - (size_t)state->count % block;
    return length < left ? length : left;
}

void difflens_scan(const struct loops *loops, struct state *state, enum dtype left_type,
                   const uint8_t *left, enum dtype right_type, const uint8_t *right, size_t n,
                   double epsilon)
{
    double values[SIDES][SMALL_BLOCK];
    int hot = left_type == right_type && is_hot(loops, left_type);
    size_t small = hot ? 0 : n; /* up to here go small blocks */
    for (size_t i = 0, length; i < n; i += length) {
        struct state block = {0};
        const uint8_t *a = at(left_type, left, i), *b = at(right_type, right, i);
        length = room(state, BLOCK, n - i);
        if (i < small || !scan_hot(loops, state, left_type, a, b, length, epsilon, &block)) {
            if (i >= small) small = i + length;
            length = room(state, SMALL_BLOCK, n - i);
            block = (struct state){0};
            struct decoded run = {{left_type, right_type}, {a, b}, length,
                                  {values[LEFT], values[RIGHT]}};
            scan_any(loops, state, &run, epsilon, &block);
        }
        difflens_merge(state, &block);
    }
}

const struct loops *difflens_pick(const char *name)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               && __builtin_cpu_supports("f16c");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                 && __builtin_cpu_supports("popcnt");
    if (avx512 && (!name || !strcmp(name, "avx512"))) return &difflens_avx512;
    if (avx2 && (!name || !strcmp(name, "avx2"))) return &difflens_avx2;
#endif
    return !name || !strcmp(name, "baseline") ? &difflens_baseline : NULL;
}
