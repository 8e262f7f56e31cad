/* The kernel's nouns: element types, the state of a scan, and the loops that fill it. */
#ifndef DIFFLENS_SCAN_H
#define DIFFLENS_SCAN_H

#include <stddef.h>
#include <stdint.h>

enum dtype {
    BOOL, U8, I8, U16, I16, U32, I32, U64, I64,
    F4, F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F8_E8M0,
    F16, BF16, F32, F64, DTYPES
};

enum { LEFT, RIGHT, SIDES };

struct side_counts {
    int64_t nan, positive_infinite, negative_infinite, zeros, odd;
};

struct side_values {
    double min, max, mean, m2, m3, m4, abs_sum;
};

/* What was seen so far: the order of layout.py. All zeros is "nothing yet". */
struct state {
    int64_t count;
    struct side_counts counts[SIDES];
    int64_t pairs, bit_equal, value_equal, over_epsilon, over_rounding, sign_flips, max_abs_at;
    struct side_values values[SIDES];
    double pair_mean[SIDES], pair_m2[SIDES], comoment, max_abs, abs_sum, square_sum;
};

/* Element i of a block adds to lane i % WAYS, and the lanes are added up first to last: a vector
   of eight doubles, vectors of two and NumPy's columns then round alike. */
enum { WAYS = 8 };

/* Sums over one block of finite pairs while it is scanned, in lanes. */
struct lanes {
    double s1[SIDES][WAYS], s2[SIDES][WAYS], s3[SIDES][WAYS], s4[SIDES][WAYS];
    double magnitude[SIDES][WAYS], cross[WAYS], move[WAYS], move2[WAYS], largest_move[WAYS];
};

/* These sums, the lanes added up; powers are taken about a pivot near the mean. */
struct sums {
    double s1[SIDES], s2[SIDES], s3[SIDES], s4[SIDES], magnitude[SIDES];
    double cross, move, move2, largest_move;
};

/* Counts over one block, taken on the encoded bits of a sign-and-magnitude float type.
   `low` and `high` are bits in the order of the numbers they stand for. */
struct tally {
    int64_t low[SIDES], high[SIDES];
    int64_t zeros[SIDES], bit_equal, zero_sign, sign_flips;
};

/* How a format rounds: its smallest normal number, and half a unit in the last place of 1. */
struct rounding {
    double least, half_ulp;
};

/* What one look at a tensor tells: sums of squares and magnitudes, the largest magnitude, counts,
   and the sum of the squares it moved by since its copy was taken. Magnitudes are over finite
   values; squares and moves are over all of them, and so not finite where one is not. */
struct look {
    double squares, magnitudes, largest, nonfinite, zeros, moves;
};

enum { READ_BLOCK = 1024 };

/* The loops exist once for each instruction set; scan.c picks a set at run time. */
struct loops {
    const char *name;
    void (*decode)(enum dtype type, const uint8_t *bytes, size_t n, double *out);
    /* Add n pairs, a multiple of WAYS but at the end of a block, to its sums. */
    void (*sums[DTYPES])(const uint8_t *left, const uint8_t *right, size_t n,
                         const double *pivot, struct lanes *lanes);
    void (*tally[DTYPES])(const uint8_t *left, const uint8_t *right, size_t n, struct tally *out);
    int64_t (*equal)(const uint8_t *left, const uint8_t *right, size_t n, size_t width);
    int64_t (*over)(const double *left, const double *right, size_t n, double epsilon);
    int64_t (*over_rounding)(const double *left, const double *right, size_t n,
                             const struct rounding *rounding);
    /* Read n floats of F16, BF16, F32 or F64, each at its alignment; a copy is compared with and
       refreshed, and then only squares, largest, nonfinite and moves are told. */
    void (*read)(enum dtype type, const uint8_t *bytes, uint8_t *copy, size_t n,
                 struct look *out);
};

extern const struct loops difflens_baseline;
#if defined(__x86_64__)
extern const struct loops difflens_avx2, difflens_avx512;
#endif

/* Pick the best loops this processor runs, or the named ones; NULL where it cannot run them. */
const struct loops *difflens_pick(const char *name);

/* Bytes of n elements; (size_t)-1 where they do not fill whole bytes. */
size_t difflens_size(enum dtype type, size_t n);

/* Add n pairs of elements to the state, as following those already seen. */
void difflens_scan(const struct loops *loops, struct state *state,
                   enum dtype left_type, const uint8_t *left,
                   enum dtype right_type, const uint8_t *right, size_t n, double epsilon);

/* Where a tensor lies as plain bytes in an open file. */
struct place {
    int descriptor;
    uint64_t offset;
    enum dtype type;
};

enum reading { DONE, SHORT, FAILED }; /* FAILED leaves the reason in errno */

/* Read n pairs of elements and add them to the state. While `looking`, equal bytes are passed
   over; it stays set, and the state untouched, where all of them are equal. */
enum reading difflens_scan_files(const struct loops *loops, struct state *state,
                                 const struct place *left, const struct place *right, size_t n,
                                 double epsilon, int *looking);

/* Add the state of the elements that follow. */
void difflens_merge(struct state *state, const struct state *later);

#endif
