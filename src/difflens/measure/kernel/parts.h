/* What the kernel's own files share: element types as tables, and a block decoded to doubles. */
#ifndef DIFFLENS_PARTS_H
#define DIFFLENS_PARTS_H

#include "scan.h"

extern const uint8_t difflens_bits[DTYPES];
extern const struct rounding difflens_rounding[DTYPES];

/* Pairs of encoded elements. */
struct run {
    enum dtype type[SIDES];
    const uint8_t *bytes[SIDES];
    size_t n;
};

enum { BLOCK = 8192, SMALL_BLOCK = 1024 };

static inline double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* Add a value to a lane of the sums of its side. */
static inline void difflens_add_value(struct lanes *lanes, int side, size_t lane, double value,
                                      double pivot)
{
    double x = value - pivot, square = x * x;
    lanes->s1[side][lane] += x;
    lanes->s2[side][lane] += square;
    lanes->s3[side][lane] += square * x;
    lanes->s4[side][lane] += square * square;
    lanes->magnitude[side][lane] += magnitude(value);
}

/* Add a pair that moved by d to a lane of all sums. */
static inline void difflens_add_pair(struct lanes *lanes, size_t lane, double left, double right,
                                     double d, const double *pivot)
{
    double move = magnitude(d);
    difflens_add_value(lanes, LEFT, lane, left, pivot[LEFT]);
    difflens_add_value(lanes, RIGHT, lane, right, pivot[RIGHT]);
    lanes->cross[lane] += (left - pivot[LEFT]) * (right - pivot[RIGHT]);
    lanes->move[lane] += move;
    lanes->move2[lane] += d * d;
    if (move > lanes->largest_move[lane]) lanes->largest_move[lane] = move;
}

/* Add up a sum's lanes, first to last. */
static inline double difflens_add_up(const double *lanes)
{
    double sum = 0;
    for (int lane = 0; lane < WAYS; lane++) sum += lanes[lane];
    return sum;
}

/* Add up the lanes of all sums. */
void difflens_add_lanes(const struct lanes *lanes, struct sums *out);

/* How many values of a side were finite. */
int64_t difflens_finite(const struct state *state, int side);

/* The mean of the values that are finite, as are their partners; it lies between them. */
double difflens_mean(const double *values, const double *partners, size_t n);

/* Turn sums about a pivot into moments about the mean of the n values themselves. */
struct side_values difflens_centred(const struct sums *sums, int side, int64_t n, double pivot);

/* Are these 64-bit integers of one type, whose differences doubles may lose? */
int difflens_exact(const struct run *run);

/* How many elements of a block of one type have the same bits. */
int64_t difflens_equal_bits(const struct loops *loops, const struct run *run);

/* Scan a small block of any values, one by one. */
void difflens_careful(const struct loops *loops, const struct run *run, double epsilon,
                      struct state *block);

#endif
