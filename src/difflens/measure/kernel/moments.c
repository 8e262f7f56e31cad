/* Moments: count, mean, and sums of powers about the mean, and how they merge. */

#include "parts.h"

#include <math.h>
#include <string.h>

void difflens_add_lanes(const struct lanes *lanes, struct sums *out)
{
    for (int side = LEFT; side < SIDES; side++) {
        out->s1[side] = difflens_add_up(lanes->s1[side]);
        out->s2[side] = difflens_add_up(lanes->s2[side]);
        out->s3[side] = difflens_add_up(lanes->s3[side]);
        out->s4[side] = difflens_add_up(lanes->s4[side]);
        out->magnitude[side] = difflens_add_up(lanes->magnitude[side]);
    }
    out->cross = difflens_add_up(lanes->cross);
    out->move = difflens_add_up(lanes->move);
    out->move2 = difflens_add_up(lanes->move2);
    out->largest_move = 0;
    for (int lane = 0; lane < WAYS; lane++)
        if (lanes->largest_move[lane] > out->largest_move)
            out->largest_move = lanes->largest_move[lane];
}

int64_t difflens_finite(const struct state *state, int side)
{
    const struct side_counts *c = &state->counts[side];
    return state->count - c->nan - c->positive_infinite - c->negative_infinite;
}

struct side_values difflens_centred(const struct sums *sums, int side, int64_t n, double pivot)
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

/* Processors differ in the sign of the NaN that an overflow leaves: a state knows one NaN. */
static void unify_nans(struct state *state)
{
    unsigned char *values = (unsigned char *)state;
    for (size_t at = offsetof(struct state, values); at < sizeof *state; at += sizeof(double)) {
        static const uint64_t nan = 0x7ff8000000000000u;
        double value;
        memcpy(&value, values + at, sizeof value);
        if (isnan(value)) memcpy(values + at, &nan, sizeof nan);
    }
}

void difflens_merge(struct state *a, const struct state *b)
{
    for (int side = LEFT; side < SIDES; side++)
        merge_values(&a->values[side], difflens_finite(a, side), &b->values[side],
                     difflens_finite(b, side));
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
    unify_nans(a);
}

/* Rounding may carry a mean beyond the values: that of a constant is the constant. */
double difflens_mean(const double *values, const double *partners, size_t n)
{
    double sums[WAYS] = {0}, low = INFINITY, high = -INFINITY, finite = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]) || !isfinite(partners[i])) continue;
        sums[i % WAYS] += values[i];
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
        finite++;
    }
    if (finite == 0) return 0;
    double mean = difflens_add_up(sums) / finite;
    return mean < low ? low : mean > high ? high : mean;
}
