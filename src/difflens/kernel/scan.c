/* Adds runs of elements to a state, and states to states.

   Moments are kept about the running mean, and each block's powers are summed
   about a pivot near that mean: sums about zero would lose everything on data
   like 1e8 + noise, and a second pass over the bytes would cost the time of the
   first. The pivot is zero itself where the mean is small beside the spread. */

#include "scan.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8192, SMALL_BLOCK = 1024 };

static const uint64_t infinity_bits[DTYPES] = {
    [F16] = 0x7c00, [BF16] = 0x7f80, [F32] = 0x7f800000, [F64] = 0x7ff0000000000000,
};

static const uint8_t bits_of[DTYPES] = {
    [BOOL] = 8, [U8] = 8, [I8] = 8, [U16] = 16, [I16] = 16, [U32] = 32, [I32] = 32, [U64] = 64,
    [I64] = 64, [F4] = 4, [F8_E4M3] = 8, [F8_E5M2] = 8, [F8_E4M3FNUZ] = 8, [F8_E5M2FNUZ] = 8,
    [F8_E8M0] = 8, [F16] = 16, [BF16] = 16, [F32] = 32, [F64] = 64,
};

/* Integers step by nothing less than one, so they add no rounding of their own. */
static const struct rounding rounding_of[DTYPES] = {
    [F4] = {0x1p0, 0x1p-2}, [F8_E4M3] = {0x1p-6, 0x1p-4}, [F8_E5M2] = {0x1p-14, 0x1p-3},
    [F8_E4M3FNUZ] = {0x1p-7, 0x1p-4}, [F8_E5M2FNUZ] = {0x1p-15, 0x1p-3},
    [F8_E8M0] = {0x1p-127, 0x1p-1}, [F16] = {0x1p-14, 0x1p-11}, [BF16] = {0x1p-126, 0x1p-8},
    [F32] = {0x1p-126, 0x1p-24}, [F64] = {0x1p-1022, 0x1p-53},
};

size_t difflens_size(enum dtype type, size_t n)
{
    if (bits_of[type] == 4) return n % 2 ? (size_t)-1 : n / 2;
    return n * (bits_of[type] / 8);
}

static const uint8_t *at(enum dtype type, const uint8_t *bytes, size_t i)
{
    return bytes + i * bits_of[type] / 8;
}

static int is_hot(const struct loops *loops, enum dtype type)
{
    return loops->sums[type] != NULL;
}

/* Moments: count, mean, and sums of powers about the mean. */

static int64_t finite_count(const struct state *state, int side)
{
    const struct side_counts *c = &state->counts[side];
    return state->count - c->nan - c->positive_infinite - c->negative_infinite;
}

/* Turn sums about a pivot into moments about the mean of the n values themselves. */
static struct side_values centred(const struct sums *sums, int side, int64_t n, double pivot)
{
    double shift = sums->s1[side] / (double)n, s2 = sums->s2[side], s3 = sums->s3[side];
    double s4 = sums->s4[side], square = shift * shift, count = (double)n;
    struct side_values v = {.mean = pivot + shift, .abs_sum = sums->magnitude[side]};
    v.m2 = s2 - count * square;
    v.m3 = s3 - 3 * shift * s2 + 2 * count * square * shift;
    v.m4 = s4 - 4 * shift * s3 + 6 * square * s2 - 3 * count * square * square;
    if (v.m2 < 0) v.m2 = 0;
    if (v.m4 < 0) v.m4 = 0;
    return v;
}

/* Pébay 2008, "Formulas for robust, one-pass parallel computation of covariances and
   arbitrary-order statistical moments". */
static void merge_values(struct side_values *a, int64_t a_count, const struct side_values *b,
                         int64_t b_count)
{
    if (b_count == 0) return;
    if (a_count == 0) {
        *a = *b;
        return;
    }
    double na = (double)a_count, nb = (double)b_count, n = na + nb;
    double d = b->mean - a->mean, step = d / n, cross = na * nb * d * step;
    a->m4 += b->m4 + cross * step * step * (na * na - na * nb + nb * nb)
           + 6 * step * step * (na * na * b->m2 + nb * nb * a->m2)
           + 4 * step * (na * b->m3 - nb * a->m3);
    a->m3 += b->m3 + cross * step * (na - nb) + 3 * step * (na * b->m2 - nb * a->m2);
    a->m2 += b->m2 + cross;
    a->mean += nb * step;
    a->abs_sum += b->abs_sum;
    if (b->min < a->min) a->min = b->min;
    if (b->max > a->max) a->max = b->max;
}

static void merge_pairs(struct state *a, const struct state *b)
{
    if (b->pairs == 0) return;
    double na = (double)a->pairs, nb = (double)b->pairs, n = na + nb;
    double left = b->pair_mean[LEFT] - a->pair_mean[LEFT];
    double right = b->pair_mean[RIGHT] - a->pair_mean[RIGHT];
    double weight = na == 0 ? 0 : na * nb / n;
    a->pair_m2[LEFT] += b->pair_m2[LEFT] + weight * left * left;
    a->pair_m2[RIGHT] += b->pair_m2[RIGHT] + weight * right * right;
    a->comoment += b->comoment + weight * left * right;
    a->pair_mean[LEFT] = na == 0 ? b->pair_mean[LEFT] : a->pair_mean[LEFT] + left * (nb / n);
    a->pair_mean[RIGHT] = na == 0 ? b->pair_mean[RIGHT] : a->pair_mean[RIGHT] + right * (nb / n);
    a->abs_sum += b->abs_sum;
    a->square_sum += b->square_sum;
    if (b->max_abs > a->max_abs) {
        a->max_abs = b->max_abs;
        a->max_abs_at = a->count + b->max_abs_at;
    }
    a->pairs += b->pairs;
}

void difflens_merge(struct state *a, const struct state *b)
{
    for (int side = LEFT; side < SIDES; side++)
        merge_values(&a->values[side], finite_count(a, side), &b->values[side],
                     finite_count(b, side));
    merge_pairs(a, b);
    for (int side = LEFT; side < SIDES; side++) {
        struct side_counts *mine = &a->counts[side];
        const struct side_counts *theirs = &b->counts[side];
        mine->nan += theirs->nan;
        mine->positive_infinite += theirs->positive_infinite;
        mine->negative_infinite += theirs->negative_infinite;
        mine->zeros += theirs->zeros;
        mine->odd += theirs->odd;
    }
    a->bit_equal += b->bit_equal;
    a->value_equal += b->value_equal;
    a->over_epsilon += b->over_epsilon;
    a->over_rounding += b->over_rounding;
    a->sign_flips += b->sign_flips;
    a->count += b->count;
}

/* A block is scanned into a state of its own, which is then merged like any other. */

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* Zero, where summing about it loses nothing: the mean is small beside the spread. */
static double pivot_near(double mean, double m2, double n)
{
    return n * mean * mean <= 4 * m2 ? 0 : mean;
}

/* The mean of the values that are finite, as are their partners. */
static double finite_mean(const double *values, const double *partners, size_t n)
{
    double sum = 0, finite = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]) && isfinite(partners[i])) sum += values[i], finite++;
    return finite > 0 ? sum / finite : 0;
}

/* Where to sum a finite block about: near the mean of the pairs so far, or of its own first few.
   The mean of a side would not do: it knows values whose partners are not finite, and one
   large one among them would swallow the digits of every pair. */
static double pivot_for(const struct loops *loops, const struct state *state, int side,
                        enum dtype type, const uint8_t *bytes, size_t n)
{
    if (state->pairs > 0)
        return pivot_near(state->pair_mean[side], state->pair_m2[side], (double)state->pairs);
    double values[512], m2 = 0;
    size_t few = n < 512 ? n : 512;
    loops->decode(type, bytes, few, values);
    double mean = finite_mean(values, values, few);
    for (size_t i = 0; i < few; i++) m2 += (values[i] - mean) * (values[i] - mean);
    return isfinite(mean) ? pivot_near(mean, m2, (double)few) : 0;
}

/* Fill a block's moments from sums over values that are all finite. */
static void take_sums(struct state *block, const struct sums *sums, int64_t n, const double *pivot)
{
    double count = (double)n;
    for (int side = LEFT; side < SIDES; side++) {
        double low = block->values[side].min, high = block->values[side].max;
        block->values[side] = centred(sums, side, n, pivot[side]);
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
    int width = bits_of[type];
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

/* The difference of two 64-bit integers, rounded once: their doubles may be equal when they are not. */
static double exact_difference(enum dtype type, const uint8_t *left, const uint8_t *right)
{
    if (type == I64) {
        int64_t a, b;
        memcpy(&a, left, 8);
        memcpy(&b, right, 8);
        return b >= a ? (double)((uint64_t)b - (uint64_t)a) : -(double)((uint64_t)a - (uint64_t)b);
    }
    uint64_t a, b;
    memcpy(&a, left, 8);
    memcpy(&b, right, 8);
    return b >= a ? (double)(b - a) : -(double)(a - b);
}

struct decoded {
    enum dtype type[SIDES];
    const uint8_t *bytes[SIDES];
    size_t n;
    double *value[SIDES];
};

static int exact_integers(const struct decoded *run)
{
    return run->type[LEFT] == run->type[RIGHT]
           && (run->type[LEFT] == I64 || run->type[LEFT] == U64);
}

static double difference(const struct decoded *run, size_t i)
{
    if (exact_integers(run))
        return exact_difference(run->type[LEFT], run->bytes[LEFT] + 8 * i,
                                run->bytes[RIGHT] + 8 * i);
    return run->value[RIGHT][i] - run->value[LEFT][i];
}

static void count_side(const struct decoded *run, int side, struct state *block)
{
    struct side_counts *counts = &block->counts[side];
    struct side_values *values = &block->values[side];
    int64_t finite = 0;
    for (size_t i = 0; i < run->n; i++) {
        double x = run->value[side][i];
        if (isfinite(x)) {
            x += 0.0; /* a zero has no sign here */
            counts->zeros += x == 0;
            if (finite == 0 || x < values->min) values->min = x;
            if (finite == 0 || x > values->max) values->max = x;
            finite++;
        } else {
            counts->nan += isnan(x);
            counts->positive_infinite += x > 0;
            counts->negative_infinite += x < 0;
        }
    }
}

/* Sums of one side's finite values: the other side may be anything. */
static void sum_side(const struct decoded *run, int side, struct state *block)
{
    struct sums sums = {0};
    int64_t finite = 0;
    double pivot = finite_mean(run->value[side], run->value[side], run->n);
    for (size_t i = 0; i < run->n; i++) {
        double value = run->value[side][i], x = value - pivot, square = x * x;
        if (!isfinite(value)) continue;
        finite++;
        sums.s1[side] += x;
        sums.s2[side] += square;
        sums.s3[side] += square * x;
        sums.s4[side] += square * square;
        sums.magnitude[side] += magnitude(value);
    }
    if (finite == 0) return;
    struct side_values whole = centred(&sums, side, finite, pivot);
    whole.min = block->values[side].min;
    whole.max = block->values[side].max;
    block->values[side] = whole;
}

static void sum_pairs(const struct decoded *run, struct state *block)
{
    double pivot[SIDES] = {finite_mean(run->value[LEFT], run->value[RIGHT], run->n),
                           finite_mean(run->value[RIGHT], run->value[LEFT], run->n)};
    double s1[SIDES] = {0}, s2[SIDES] = {0}, cross = 0, n = 0;
    for (size_t i = 0; i < run->n; i++) {
        double left = run->value[LEFT][i], right = run->value[RIGHT][i];
        if (!isfinite(left) || !isfinite(right)) continue;
        double a = left - pivot[LEFT], b = right - pivot[RIGHT];
        double d = difference(run, i), move = magnitude(d);
        n++;
        s1[LEFT] += a, s1[RIGHT] += b;
        s2[LEFT] += a * a, s2[RIGHT] += b * b;
        cross += a * b;
        block->abs_sum += move;
        block->square_sum += d * d;
        block->sign_flips += (left < 0 && right > 0) || (left > 0 && right < 0);
        if (move > block->max_abs) {
            block->max_abs = move;
            block->max_abs_at = (int64_t)i;
        }
    }
    if (n == 0) return;
    block->pairs = (int64_t)n;
    block->comoment = cross - s1[LEFT] * (s1[RIGHT] / n);
    for (int side = LEFT; side < SIDES; side++) {
        double m2 = s2[side] - s1[side] * (s1[side] / n);
        block->pair_mean[side] = pivot[side] + s1[side] / n;
        block->pair_m2[side] = m2 < 0 ? 0 : m2;
    }
}

/* Which elements are equal, and which moved too far, each pair on its own. */
static void compare_pairs(const struct loops *loops, const struct decoded *run, double epsilon,
                          struct state *block)
{
    int same_type = run->type[LEFT] == run->type[RIGHT];
    struct rounding rounding[SIDES] = {rounding_of[run->type[LEFT]], rounding_of[run->type[RIGHT]]};
    for (size_t i = 0; i < run->n; i++) {
        double left = run->value[LEFT][i], right = run->value[RIGHT][i];
        int finite = isfinite(left) && isfinite(right), both_nan = isnan(left) && isnan(right);
        double d = finite ? difference(run, i) : 0;
        int equal = finite ? d == 0 : left == right, alike = equal || both_nan;
        block->value_equal += equal;
        block->over_epsilon += finite ? magnitude(d) > epsilon : !alike;
        if (same_type) {
            block->over_rounding += !alike;
            continue;
        }
        block->bit_equal += both_nan || (equal && !signbit(left) == !signbit(right));
        block->over_rounding += finite ? loops->over_rounding(&left, &right, 1, rounding) : !alike;
    }
}

static int64_t equal_bits(const struct loops *loops, const struct decoded *run)
{
    enum dtype type = run->type[LEFT];
    if (type != F4)
        return loops->equal(run->bytes[LEFT], run->bytes[RIGHT], run->n, bits_of[type] / 8u);
    int64_t same = 0;
    for (size_t i = 0; i < run->n / 2; i++) {
        uint8_t other = run->bytes[LEFT][i] ^ run->bytes[RIGHT][i];
        same += ((other & 0x0f) == 0) + ((other & 0xf0) == 0);
    }
    return same;
}

/* Integers above 2^53 are more than their doubles. */
static int holds_all(const struct decoded *run, const struct state *block)
{
    if (!exact_integers(run)) return 1;
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
        block->bit_equal = equal_bits(loops, run);
    } else {
        struct rounding rounding[SIDES] = {rounding_of[run->type[LEFT]],
                                           rounding_of[run->type[RIGHT]]};
        block->over_rounding = loops->over_rounding(run->value[LEFT], run->value[RIGHT], run->n,
                                                    rounding);
    }
    return 1;
}

/* A block of any values, one by one. */
static void scan_careful(const struct loops *loops, const struct decoded *run, double epsilon,
                         struct state *block)
{
    block->count = (int64_t)run->n;
    for (int side = LEFT; side < SIDES; side++) {
        count_side(run, side, block);
        sum_side(run, side, block);
    }
    sum_pairs(run, block);
    compare_pairs(loops, run, epsilon, block);
    if (run->type[LEFT] == run->type[RIGHT]) block->bit_equal = equal_bits(loops, run);
}

static void scan_any(const struct loops *loops, const struct state *state,
                     const struct decoded *run, double epsilon, struct state *block)
{
    for (int side = LEFT; side < SIDES; side++)
        loops->decode(run->type[side], run->bytes[side], run->n, run->value[side]);
    if (!scan_decoded(loops, state, run, epsilon, block)) {
        *block = (struct state){0};
        scan_careful(loops, run, epsilon, block);
    }
    for (int side = LEFT; side < SIDES; side++)
        if (run->type[side] == BOOL)
            for (size_t i = 0; i < run->n; i++)
                block->counts[side].odd += run->bytes[side][i] > 1;
}

void difflens_scan(const struct loops *loops, struct state *state, enum dtype left_type,
                   const uint8_t *left, enum dtype right_type, const uint8_t *right, size_t n,
                   double epsilon)
{
    double values[SIDES][SMALL_BLOCK];
    int hot = left_type == right_type && is_hot(loops, left_type);
    for (size_t i = 0; i < n;) {
        struct state block = {0};
        /* Blocks end at fixed places, so that the bits of the result do not depend on how the
           caller cut what it read, nor on where a NaN made a block a short one. */
        size_t length = BLOCK - (size_t)(state->count % BLOCK);
        if (length > n - i) length = n - i;
        const uint8_t *a = at(left_type, left, i), *b = at(right_type, right, i);
        if (!hot || !scan_hot(loops, state, left_type, a, b, length, epsilon, &block)) {
            if (length > SMALL_BLOCK) length = SMALL_BLOCK;
            block = (struct state){0};
            struct decoded run = {{left_type, right_type}, {a, b}, length,
                                  {values[LEFT], values[RIGHT]}};
            scan_any(loops, state, &run, epsilon, &block);
        }
        difflens_merge(state, &block);
        i += length;
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
