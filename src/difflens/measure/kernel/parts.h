/* What the kernel's own files share: element types as tables, and a block decoded to doubles. */
#ifndef DIFFLENS_PARTS_H
#define DIFFLENS_PARTS_H

#include "scan.h"

extern const uint8_t difflens_bits[DTYPES];
extern const struct rounding difflens_rounding[DTYPES];

/* A block of pairs, encoded and decoded. */
struct decoded {
    enum dtype type[SIDES];
    const uint8_t *bytes[SIDES];
    size_t n;
    double *value[SIDES];
};

static inline double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* How many values of a side were finite. */
int64_t difflens_finite(const struct state *state, int side);

/* The mean of the values that are finite, as are their partners. */
double difflens_mean(const double *values, const double *partners, size_t n);

/* Turn sums about a pivot into moments about the mean of the n values themselves. */
struct side_values difflens_centred(const struct sums *sums, int side, int64_t n, double pivot);

/* Are these 64-bit integers of one type, whose differences doubles may lose? */
int difflens_exact(const struct decoded *run);

/* How many elements of a block of one type have the same bits. */
int64_t difflens_equal_bits(const struct loops *loops, const struct decoded *run);

/* Scan a block of any values, one by one. */
void difflens_careful(const struct loops *loops, const struct decoded *run, double epsilon,
                      struct state *block);

#endif
