/* Adds runs of elements to a state, and states to states.

   Moments are kept about the running mean, and each block's powers are summed
   about a pivot near that mean: sums about zero would lose everything on data
   like 1e8 + noise, and a second pass over the bytes would cost the time of the
   first. The pivot is zero itself where the mean is small beside the spread. */

#include "parts.h"

#include <math.h>
#include <string.h>

enum { FEW = 512 };

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

/* Up to n pairs of a run, from the first on. */
static struct run part(const struct run *run, size_t first, size_t n)
{
    struct run piece = *run;
    piece.n = n < run->n - first ? n : run->n - first;
    for (int side = LEFT; side < SIDES; side++)
        piece.bytes[side] += first * difflens_bits[run->type[side]] / 8;
    return piece;
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
                        const struct run *run)
{
    if (state->pairs > 0)
        return pivot_near(state->pair_mean[side], state->pair_m2[side], (double)state->pairs);
    double values[FEW], squares[WAYS] = {0};
    size_t few = run->n < FEW ? run->n : FEW;
    loops->decode(run->type[side], run->bytes[side], few, values);
    double mean = difflens_mean(values, values, few);
    for (size_t i = 0; i < few; i++)
        squares[i % WAYS] += (values[i] - mean) * (values[i] - mean);
    return isfinite(mean) ? pivot_near(mean, difflens_add_up(squares), (double)few) : 0;
}

/* Fill a block's moments from sums over n pairs that are all finite. */
static void take_sums(struct state *block, const struct sums *sums, size_t n, const double *pivot)
{
    double count = (double)n;
    for (int side = LEFT; side < SIDES; side++) {
        double low = block->values[side].min, high = block->values[side].max;
        block->values[side] = difflens_centred(sums, side, (int64_t)n, pivot[side]);
        block->values[side].min = low;
        block->values[side].max = high;
        block->pair_mean[side] = block->values[side].mean;
        block->pair_m2[side] = block->values[side].m2;
    }
    block->count = block->pairs = (int64_t)n;
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

/* Second looks at a block, decoded piece by piece: where the largest move is, and how many
   moves are over epsilon. Both are rare beside the sums, so they pay for themselves. */
static void look_again(const struct loops *loops, const struct run *run, double epsilon, int find,
                       struct state *block)
{
    double a[SMALL_BLOCK], b[SMALL_BLOCK];
    for (size_t i = 0; i < run->n; i += SMALL_BLOCK) {
        struct run piece = part(run, i, SMALL_BLOCK);
        loops->decode(piece.type[LEFT], piece.bytes[LEFT], piece.n, a);
        loops->decode(piece.type[RIGHT], piece.bytes[RIGHT], piece.n, b);
        if (epsilon > 0) block->over_epsilon += loops->over(a, b, piece.n, epsilon);
        if (find) {
            int64_t place = first_move(a, b, piece.n, block->max_abs);
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

static int is_finite(enum dtype type, const struct tally *tally)
{
    int64_t infinity = (int64_t)infinity_bits[type];
    for (int side = LEFT; side < SIDES; side++)
        if (tally->high[side] >= infinity || tally->low[side] <= ~infinity) return 0;
    return 1;
}

/* Fill a block from what was counted and summed over it, as numbers of a type; 0 where the sums
   show that a value was not finite, or overflow. */
static int fill(const struct loops *loops, const struct state *state, const struct run *run,
                enum dtype type, const struct tally *tally, const struct lanes *lanes,
                const double *pivot, double epsilon, struct state *block)
{
    struct sums sums;
    difflens_add_lanes(lanes, &sums);
    if (!isfinite(sums.magnitude[LEFT]) || !isfinite(sums.magnitude[RIGHT])) return 0;
    for (int side = LEFT; side < SIDES; side++) {
        block->values[side].min = from_order(loops, type, tally->low[side]);
        block->values[side].max = from_order(loops, type, tally->high[side]);
        block->counts[side].zeros = tally->zeros[side];
    }
    take_sums(block, &sums, run->n, pivot);
    block->bit_equal = tally->bit_equal;
    block->value_equal = tally->bit_equal + tally->zero_sign;
    block->sign_flips = tally->sign_flips;
    block->over_rounding = block->over_epsilon = block->count - block->value_equal;
    if (epsilon > 0) block->over_epsilon = 0;
    int find = block->max_abs > state->max_abs;
    if (find || epsilon > 0) look_again(loops, run, epsilon, find, block);
    return 1;
}

/* A block of one float type, finite throughout; 0 where it is not. */
static int scan_hot(const struct loops *loops, const struct state *state, const struct run *run,
                    double epsilon, struct state *block)
{
    enum dtype type = run->type[LEFT];
    const uint8_t *left = run->bytes[LEFT], *right = run->bytes[RIGHT];
    struct tally tally;
    struct lanes lanes = {0};
    loops->tally[type](left, right, run->n, &tally);
    if (!is_finite(type, &tally)) return 0;
    double pivot[SIDES] = {pivot_for(loops, state, LEFT, run), pivot_for(loops, state, RIGHT, run)};
    loops->sums[type](left, right, run->n, pivot, &lanes);
    return fill(loops, state, run, type, &tally, &lanes, pivot, epsilon, block);
}

static void join(struct tally *tally, const struct tally *later)
{
    for (int side = LEFT; side < SIDES; side++) {
        if (later->low[side] < tally->low[side]) tally->low[side] = later->low[side];
        if (later->high[side] > tally->high[side]) tally->high[side] = later->high[side];
        tally->zeros[side] += later->zeros[side];
    }
    tally->bit_equal += later->bit_equal;
    tally->zero_sign += later->zero_sign;
    tally->sign_flips += later->sign_flips;
}

/* Integers above 2^53 are more than their doubles. */
static int holds_all(const struct run *run, const struct state *block)
{
    if (!difflens_exact(run)) return 1;
    for (int side = LEFT; side < SIDES; side++)
        if (block->values[side].min <= -0x1p53 || block->values[side].max >= 0x1p53) return 0;
    return 1;
}

/* A block of any types, decoded piece by piece to doubles that all are finite; 0 where not. */
static int scan_decoded(const struct loops *loops, const struct state *state,
                        const struct run *run, double epsilon, struct state *block)
{
    double values[SIDES][SMALL_BLOCK];
    const uint8_t *left = (const uint8_t *)values[LEFT], *right = (const uint8_t *)values[RIGHT];
    struct tally tally = {{INT64_MAX, INT64_MAX}, {INT64_MIN, INT64_MIN}, {0}, 0, 0, 0};
    struct lanes lanes = {0};
    struct rounding rounding[SIDES] = {difflens_rounding[run->type[LEFT]],
                                       difflens_rounding[run->type[RIGHT]]};
    int same_type = run->type[LEFT] == run->type[RIGHT];
    int64_t over_rounding = 0;
    double pivot[SIDES] = {pivot_for(loops, state, LEFT, run), pivot_for(loops, state, RIGHT, run)};
    for (size_t i = 0; i < run->n; i += SMALL_BLOCK) {
        struct run piece = part(run, i, SMALL_BLOCK);
        struct tally some;
        for (int side = LEFT; side < SIDES; side++)
            loops->decode(piece.type[side], piece.bytes[side], piece.n, values[side]);
        loops->tally[F64](left, right, piece.n, &some);
        if (!is_finite(F64, &some)) return 0;
        join(&tally, &some);
        loops->sums[F64](left, right, piece.n, pivot, &lanes);
        if (!same_type)
            over_rounding += loops->over_rounding(values[LEFT], values[RIGHT], piece.n, rounding);
    }
    if (!fill(loops, state, run, F64, &tally, &lanes, pivot, epsilon, block)
        || !holds_all(run, block))
        return 0;
    if (same_type) block->bit_equal = difflens_equal_bits(loops, run);
    else block->over_rounding = over_rounding;
    return 1;
}

static void count_odd(const struct run *run, struct state *block)
{
    for (int side = LEFT; side < SIDES; side++)
        if (run->type[side] == BOOL)
            for (size_t i = 0; i < run->n; i++)
                block->counts[side].odd += run->bytes[side][i] > 1;
}

/* Add a block to the state. A large one with values that are not finite, or too wide, is refused:
   0. A small one is scanned with care. */
static int add(const struct loops *loops, struct state *state, const struct run *run,
               double epsilon, int small)
{
    struct state block = {0};
    int hot = run->type[LEFT] == run->type[RIGHT] && loops->sums[run->type[LEFT]];
    if (!(hot ? scan_hot : scan_decoded)(loops, state, run, epsilon, &block)) {
        if (!small) return 0;
        block = (struct state){0};
        difflens_careful(loops, run, epsilon, &block);
    }
    count_odd(run, &block);
    difflens_merge(state, &block);
    return 1;
}

/* Blocks end at fixed places, so that the bits of the result do not depend on how the caller cut
   what it read. */
void difflens_scan(const struct loops *loops, struct state *state, enum dtype left_type,
                   const uint8_t *left, enum dtype right_type, const uint8_t *right, size_t n,
                   double epsilon)
{
    const struct run all = {{left_type, right_type}, {left, right}, n};
    for (size_t i = 0; i < n;) {
        struct run block = part(&all, i, BLOCK - (size_t)state->count % BLOCK);
        i += block.n;
        if (add(loops, state, &block, epsilon, 0)) continue;
        for (size_t k = 0; k < block.n;) {
            struct run small = part(&block, k, SMALL_BLOCK - (size_t)state->count % SMALL_BLOCK);
            k += small.n;
            add(loops, state, &small, epsilon, 1);
        }
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
