/* Scans a small block one element at a time: where values are not finite, or integers too large. */

#include "parts.h"

#include <math.h>
#include <string.h>

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

/* A small block, and the numbers it stands for. */
struct decoded {
    const struct run *run;
    double value[SIDES][SMALL_BLOCK];
};

int difflens_exact(const struct run *run)
{
    return run->type[LEFT] == run->type[RIGHT]
           && (run->type[LEFT] == I64 || run->type[LEFT] == U64);
}

static double difference(const struct decoded *in, size_t i)
{
    const struct run *run = in->run;
    if (difflens_exact(run))
        return exact_difference(run->type[LEFT], run->bytes[LEFT] + 8 * i,
                                run->bytes[RIGHT] + 8 * i);
    return in->value[RIGHT][i] - in->value[LEFT][i];
}

static void count_side(const struct decoded *in, int side, struct state *block)
{
    struct side_counts *counts = &block->counts[side];
    struct side_values *values = &block->values[side];
    int64_t finite = 0;
    for (size_t i = 0; i < in->run->n; i++) {
        double x = in->value[side][i];
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
static void sum_side(const struct decoded *in, int side, struct state *block)
{
    struct lanes lanes = {0};
    struct sums sums;
    int64_t finite = 0;
    double pivot = difflens_mean(in->value[side], in->value[side], in->run->n);
    for (size_t i = 0; i < in->run->n; i++) {
        if (!isfinite(in->value[side][i])) continue;
        difflens_add_value(&lanes, side, i % WAYS, in->value[side][i], pivot);
        finite++;
    }
    if (finite == 0) return;
    difflens_add_lanes(&lanes, &sums);
    struct side_values all = difflens_centred(&sums, side, finite, pivot);
    all.min = block->values[side].min;
    all.max = block->values[side].max;
    block->values[side] = all;
}

static void sum_pairs(const struct decoded *in, struct state *block)
{
    double pivot[SIDES] = {difflens_mean(in->value[LEFT], in->value[RIGHT], in->run->n),
                           difflens_mean(in->value[RIGHT], in->value[LEFT], in->run->n)};
    struct lanes lanes = {0};
    struct sums sums;
    for (size_t i = 0; i < in->run->n; i++) {
        double left = in->value[LEFT][i], right = in->value[RIGHT][i];
        if (!isfinite(left) || !isfinite(right)) continue;
        double d = difference(in, i), move = magnitude(d);
        difflens_add_pair(&lanes, i % WAYS, left, right, d, pivot);
        block->pairs++;
        block->sign_flips += (left < 0 && right > 0) || (left > 0 && right < 0);
        if (move > block->max_abs) {
            block->max_abs = move;
            block->max_abs_at = (int64_t)i;
        }
    }
    if (block->pairs == 0) return;
    difflens_add_lanes(&lanes, &sums);
    double n = (double)block->pairs;
    block->abs_sum = sums.move;
    block->square_sum = sums.move2;
    block->comoment = sums.cross - sums.s1[LEFT] * (sums.s1[RIGHT] / n);
    for (int side = LEFT; side < SIDES; side++) {
        struct side_values paired = difflens_centred(&sums, side, block->pairs, pivot[side]);
        block->pair_mean[side] = paired.mean;
        block->pair_m2[side] = paired.m2;
    }
}

/* Which elements are equal, and which moved too far, each pair on its own. */
static void compare_pairs(const struct loops *loops, const struct decoded *in, double epsilon,
                          struct state *block)
{
    const enum dtype *type = in->run->type;
    int same_type = type[LEFT] == type[RIGHT];
    struct rounding rounding[SIDES] = {difflens_rounding[type[LEFT]], difflens_rounding[type[RIGHT]]};
    for (size_t i = 0; i < in->run->n; i++) {
        double left = in->value[LEFT][i], right = in->value[RIGHT][i];
        int finite = isfinite(left) && isfinite(right), both_nan = isnan(left) && isnan(right);
        double d = finite ? difference(in, i) : 0;
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

int64_t difflens_equal_bits(const struct loops *loops, const struct run *run)
{
    enum dtype type = run->type[LEFT];
    if (type != F4)
        return loops->equal(run->bytes[LEFT], run->bytes[RIGHT], run->n, difflens_bits[type] / 8u);
    int64_t same = 0;
    for (size_t i = 0; i < run->n / 2; i++) {
        uint8_t other = run->bytes[LEFT][i] ^ run->bytes[RIGHT][i];
        same += ((other & 0x0f) == 0) + ((other & 0xf0) == 0);
    }
    return same;
}

void difflens_careful(const struct loops *loops, const struct run *run, double epsilon,
                      struct state *block)
{
    struct decoded in;
    in.run = run;
    for (int side = LEFT; side < SIDES; side++)
        loops->decode(run->type[side], run->bytes[side], run->n, in.value[side]);
    block->count = (int64_t)run->n;
    for (int side = LEFT; side < SIDES; side++) {
        count_side(&in, side, block);
        sum_side(&in, side, block);
    }
    sum_pairs(&in, block);
    compare_pairs(loops, &in, epsilon, block);
    if (run->type[LEFT] == run->type[RIGHT]) block->bit_equal = difflens_equal_bits(loops, run);
}
