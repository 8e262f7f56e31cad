/* The vector loops, written once and compiled for each instruction set.

   The including file defines TARGET (the function attribute), LANES (doubles in
   a vector), SET (a name) and, where the compiler's own choice is poor, the
   operations WIDEN, FMA, LARGER, FLOATS_OF_F16 and LOAD_BF16.

   Why not one loop over decoded doubles for every type: storing and reloading
   the doubles costs a third of the time, so the four float types that models
   are made of decode in registers, and everything else goes through memory. */

#include <string.h>

#include "parts.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, SET)
#define INLINE TARGET static inline __attribute__((always_inline, unused))

typedef double vd __attribute__((vector_size(LANES * 8)));
typedef int64_t vl __attribute__((vector_size(LANES * 8)));
typedef uint64_t vq __attribute__((vector_size(LANES * 8)));
typedef float vf __attribute__((vector_size(LANES * 4)));
typedef uint32_t vu __attribute__((vector_size(LANES * 4)));
typedef uint16_t vh __attribute__((vector_size(LANES * 2)));

#ifndef WIDEN
#define WIDEN(x) __builtin_convertvector(x, vd)
#endif
#ifndef FMA
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#ifndef LARGER
INLINE vd NAME(larger)(vd a, vd b)
{
    vl pick = a > b;
    return (vd)(((vl)a & pick) | ((vl)b & ~pick));
}
#define LARGER(a, b) NAME(larger)(a, b)
#endif

/* One element, decoded. */

INLINE double NAME(from_bits)(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* A small float: shift its bits to where a double keeps them, then scale by the
   difference of the exponent biases; subnormals come out right by themselves. */
INLINE double NAME(small_float)(uint32_t bits, int width, int mantissa, int bias)
{
    uint64_t sign = (uint64_t)(bits >> (width - 1)) << 63;
    uint64_t rest = (uint64_t)(bits & ((1u << (width - 1)) - 1)) << (52 - mantissa);
    double scale = NAME(from_bits)((uint64_t)(1023 + 1023 - bias) << 52);
    return NAME(from_bits)(sign | rest) * scale;
}

#define NOT_A_NUMBER 0x7ff8000000000000u
#define INFINITE 0x7ff0000000000000u

INLINE double NAME(one_f16)(uint16_t h)
{
    uint64_t sign = (uint64_t)(h >> 15) << 63;
    if ((h & 0x7c00) == 0x7c00)
        return NAME(from_bits)(sign | (h & 0x3ff ? NOT_A_NUMBER : INFINITE));
    return NAME(small_float)(h, 16, 10, 15);
}

INLINE double NAME(one_e4m3)(uint8_t b)
{
    return (b & 0x7f) == 0x7f ? NAME(from_bits)(NOT_A_NUMBER) : NAME(small_float)(b, 8, 3, 7);
}

INLINE double NAME(one_e4m3fnuz)(uint8_t b)
{
    return b == 0x80 ? NAME(from_bits)(NOT_A_NUMBER) : NAME(small_float)(b, 8, 3, 8);
}

INLINE double NAME(one_e5m2fnuz)(uint8_t b)
{
    return b == 0x80 ? NAME(from_bits)(NOT_A_NUMBER) : NAME(small_float)(b, 8, 2, 16);
}

INLINE double NAME(one_e8m0)(uint8_t b)
{
    return b == 0xff ? NAME(from_bits)(NOT_A_NUMBER)
                     : NAME(from_bits)((uint64_t)(b + 1023 - 127) << 52);
}

INLINE double NAME(one_f4)(uint8_t nibble)
{
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return nibble & 8 ? -magnitude[nibble & 7] : magnitude[nibble & 7];
}

/* A run of elements, decoded. */

#define EACH(TYPE, EXPRESSION)                                                                   \
    for (size_t i = 0; i < n; i++) {                                                             \
        TYPE x;                                                                                  \
        memcpy(&x, bytes + i * sizeof x, sizeof x);                                              \
        out[i] = (EXPRESSION);                                                                   \
    }                                                                                            \
    return;

INLINE double NAME(one_bf16)(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

TARGET static void NAME(decode)(enum dtype type, const uint8_t *restrict bytes, size_t n,
                                double *restrict out)
{
    switch (type) {
    case BOOL: EACH(uint8_t, x != 0)
    case U8: EACH(uint8_t, x)
    case I8: EACH(int8_t, x)
    case U16: EACH(uint16_t, x)
    case I16: EACH(int16_t, x)
    case U32: EACH(uint32_t, x)
    case I32: EACH(int32_t, x)
    case U64: EACH(uint64_t, (double)x)
    case I64: EACH(int64_t, (double)x)
    case F8_E4M3: EACH(uint8_t, NAME(one_e4m3)(x))
    case F8_E5M2: EACH(uint8_t, NAME(one_f16)((uint16_t)(x << 8)))
    case F8_E4M3FNUZ: EACH(uint8_t, NAME(one_e4m3fnuz)(x))
    case F8_E5M2FNUZ: EACH(uint8_t, NAME(one_e5m2fnuz)(x))
    case F8_E8M0: EACH(uint8_t, NAME(one_e8m0)(x))
    case F16: EACH(uint16_t, NAME(one_f16)(x))
    case BF16: EACH(uint16_t, NAME(one_bf16)(x))
    case F32: EACH(float, x)
    case F64: EACH(double, x)
    case F4: /* two to a byte, the first in the low half */
        for (size_t i = 0; i < n; i++)
            out[i] = NAME(one_f4)(i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15);
        return;
    case DTYPES: return;
    }
}

/* Sums over finite pairs. */

INLINE vd NAME(magnitude)(vd x)
{
    return (vd)((vl)x & INT64_MAX);
}

INLINE vd NAME(load_f64)(const uint8_t *p)
{
    vd x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE vd NAME(load_f32)(const uint8_t *p)
{
    vf x;
    memcpy(&x, p, sizeof x);
    return WIDEN(x);
}

/* BF16 is the upper half of F32. */
INLINE vd NAME(load_bf16)(const uint8_t *p)
{
#ifdef LOAD_BF16
    return LOAD_BF16(p);
#else
    vh x;
    memcpy(&x, p, sizeof x);
    vu wide = __builtin_convertvector(x, vu) << 16;
    return WIDEN((vf)wide);
#endif
}

/* Only finite values come here: the all-ones exponent needs no care. */
INLINE vd NAME(load_f16)(const uint8_t *p)
{
#ifdef FLOATS_OF_F16
    return WIDEN(FLOATS_OF_F16(p));
#else
    vh x;
    memcpy(&x, p, sizeof x);
    vq wide = __builtin_convertvector(x, vq);
    vq bits = (wide >> 15) << 63 | (wide & 0x7fff) << 42;
    return (vd)bits * 0x1p1008;
#endif
}

struct NAME(lanes) {
    vd s1[SIDES], s2[SIDES], s3[SIDES], s4[SIDES], magnitude[SIDES];
    vd cross, move, move2, largest_move;
};

/* Every instruction set must round alike, and only some fuse a product with a sum. A product that
   is exact rounds alike both ways: it may be fused where there is an instruction for it. */
#define ADD_PRODUCT(exact, a, b, sum) ((exact) ? FMA(a, b, sum) : (sum) + (a) * (b))

/* `pivoted` is a constant where this is inlined: sums about zero need no subtraction. So is
   `factors`: how many values of the type multiply to a product that is exact. */
INLINE void NAME(add)(struct NAME(lanes) *sum, vd left, vd right, int factors, int pivoted,
                      vd left_pivot, vd right_pivot)
{
    vd a = pivoted ? left - left_pivot : left, b = pivoted ? right - right_pivot : right;
    vd d = right - left;
    vd a2 = a * a, b2 = b * b, move = NAME(magnitude)(d);
    int two = factors >= 2 && !pivoted, four = factors >= 4 && !pivoted;
    sum->s1[LEFT] += a;
    sum->s1[RIGHT] += b;
    sum->s2[LEFT] = ADD_PRODUCT(two, a, a, sum->s2[LEFT]);
    sum->s2[RIGHT] = ADD_PRODUCT(two, b, b, sum->s2[RIGHT]);
    sum->s3[LEFT] = ADD_PRODUCT(four, a2, a, sum->s3[LEFT]);
    sum->s3[RIGHT] = ADD_PRODUCT(four, b2, b, sum->s3[RIGHT]);
    sum->s4[LEFT] = ADD_PRODUCT(four, a2, a2, sum->s4[LEFT]);
    sum->s4[RIGHT] = ADD_PRODUCT(four, b2, b2, sum->s4[RIGHT]);
    sum->magnitude[LEFT] += NAME(magnitude)(left);
    sum->magnitude[RIGHT] += NAME(magnitude)(right);
    sum->cross = ADD_PRODUCT(two, a, b, sum->cross);
    sum->move += move;
    sum->move2 += d * d;
    sum->largest_move = LARGER(move, sum->largest_move);
}

#define EVERY_SUM(DO)                                                                            \
    DO(s1[LEFT]) DO(s1[RIGHT]) DO(s2[LEFT]) DO(s2[RIGHT]) DO(s3[LEFT]) DO(s3[RIGHT])             \
    DO(s4[LEFT]) DO(s4[RIGHT]) DO(magnitude[LEFT]) DO(magnitude[RIGHT])                          \
    DO(cross) DO(move) DO(move2) DO(largest_move)
#define FETCH(name) memcpy(&sum.name, lanes->name + first, sizeof sum.name);
#define PUT_BACK(name) memcpy(lanes->name + first, &sum.name, sizeof sum.name);

#define ADD_ALL(type, WIDTH, factors, pivoted)                                                   \
    for (size_t i = first; i < whole; i += WAYS)                                                 \
        NAME(add)(&sum, NAME(load_##type)(left + i * WIDTH), NAME(load_##type)(right + i * WIDTH), \
                  factors, pivoted, left_pivot, right_pivot);

/* A vector that is narrower than all lanes goes over the block once for each part of them: the
   sums of one part fill the registers. */
#define SUMS(TYPE, type, WIDTH, factors)                                                         \
    TARGET static void NAME(sums_##type)(const uint8_t *left, const uint8_t *right, size_t n,    \
                                         const double *pivot, struct lanes *lanes)               \
    {                                                                                            \
        vd left_pivot = (vd){0} + pivot[LEFT], right_pivot = (vd){0} + pivot[RIGHT];             \
        size_t whole = n - n % WAYS;                                                             \
        for (size_t first = 0; first < WAYS; first += LANES) {                                   \
            struct NAME(lanes) sum;                                                              \
            EVERY_SUM(FETCH)                                                                     \
            if (pivot[LEFT] == 0 && pivot[RIGHT] == 0) {                                         \
                ADD_ALL(type, WIDTH, factors, 0)                                                 \
            } else {                                                                             \
                ADD_ALL(type, WIDTH, factors, 1)                                                 \
            }                                                                                    \
            EVERY_SUM(PUT_BACK)                                                                  \
        }                                                                                        \
        double a[WAYS], b[WAYS];                                                                 \
        NAME(decode)(TYPE, left + whole * WIDTH, n - whole, a);                                  \
        NAME(decode)(TYPE, right + whole * WIDTH, n - whole, b);                                 \
        for (size_t i = 0; i < n - whole; i++)                                                   \
            difflens_add_pair(lanes, i, a[i], b[i], b[i] - a[i], pivot);                         \
    }

SUMS(F64, f64, 8, 1)
SUMS(F32, f32, 4, 2)
SUMS(F16, f16, 2, 4)
SUMS(BF16, bf16, 2, 4)

/* Counts on encoded bits. Read as signed integers, floats of one type are in order but for
   the negative ones, which run backwards: flipping their lower bits turns them round. */
#define TALLY(NAME_, SIGNED, UNSIGNED)                                                           \
    TARGET static void NAME(NAME_)(const uint8_t *restrict left, const uint8_t *restrict right,  \
                                   size_t n, struct tally *out)                                  \
    {                                                                                            \
        const int top = sizeof(SIGNED) * 8 - 1;                                                  \
        const SIGNED rest = (SIGNED)(((uint64_t)1 << top) - 1);                                  \
        SIGNED low_a = rest, high_a = (SIGNED)~rest, low_b = rest, high_b = (SIGNED)~rest;       \
        UNSIGNED zeros_a = 0, zeros_b = 0, equal = 0, zero_sign = 0, flips = 0;                  \
        for (size_t i = 0; i < n; i++) {                                                         \
            SIGNED a, b;                                                                         \
            memcpy(&a, left + i * sizeof a, sizeof a);                                           \
            memcpy(&b, right + i * sizeof b, sizeof b);                                          \
            SIGNED a_order = (SIGNED)(a ^ ((a >> top) & rest));                                  \
            SIGNED b_order = (SIGNED)(b ^ ((b >> top) & rest));                                  \
            low_a = a_order < low_a ? a_order : low_a;                                           \
            high_a = a_order > high_a ? a_order : high_a;                                        \
            low_b = b_order < low_b ? b_order : low_b;                                           \
            high_b = b_order > high_b ? b_order : high_b;                                        \
            UNSIGNED a_zero = (a & rest) == 0, b_zero = (b & rest) == 0;                         \
            UNSIGNED other_sign = (SIGNED)(a ^ b) < 0;                                           \
            zeros_a = (UNSIGNED)(zeros_a + a_zero);                                              \
            zeros_b = (UNSIGNED)(zeros_b + b_zero);                                              \
            equal = (UNSIGNED)(equal + (a == b));                                                \
            zero_sign = (UNSIGNED)(zero_sign + (other_sign & a_zero & b_zero));                  \
            flips = (UNSIGNED)(flips + (other_sign & !a_zero & !b_zero));                        \
        }                                                                                        \
        *out = (struct tally){{low_a, low_b}, {high_a, high_b}, {zeros_a, zeros_b},              \
                              equal, zero_sign, flips};                                          \
    }

#ifndef OWN_TALLIES
TALLY(tally_64, int64_t, uint64_t)
TALLY(tally_16, int16_t, uint16_t)
TALLY(tally_32, int32_t, uint32_t)
#else
OWN_TALLIES
#endif

#define EQUAL(TYPE)                                                                              \
    for (size_t i = 0; i < n; i++) {                                                             \
        TYPE a, b;                                                                               \
        memcpy(&a, left + i * sizeof a, sizeof a);                                               \
        memcpy(&b, right + i * sizeof b, sizeof b);                                              \
        same += a == b;                                                                          \
    }                                                                                            \
    return same;

TARGET static int64_t NAME(equal)(const uint8_t *restrict left, const uint8_t *restrict right,
                                  size_t n, size_t width)
{
    int64_t same = 0;
    switch (width) {
    case 1: EQUAL(uint8_t)
    case 2: EQUAL(uint16_t)
    case 4: EQUAL(uint32_t)
    default: EQUAL(uint64_t)
    }
}

TARGET static int64_t NAME(over)(const double *left, const double *right, size_t n, double epsilon)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double d = right[i] - left[i];
        count += (d < 0 ? -d : d) > epsilon;
    }
    return count;
}

/* A power of two is what is left of a double when its sign and mantissa are cleared. */
TARGET static int64_t NAME(over_rounding)(const double *left, const double *right, size_t n,
                                          const struct rounding *rounding)
{
    const struct rounding l = rounding[LEFT], r = rounding[RIGHT];
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double d = right[i] - left[i], a = left[i], b = right[i];
        a = a < 0 ? -a : a;
        b = b < 0 ? -b : b;
        double size = a < b ? a : b;
        uint64_t bits;
        memcpy(&bits, &size, 8);
        double power = NAME(from_bits)(bits & INFINITE);
        double left_half = (power > l.least ? power : l.least) * l.half_ulp;
        double right_half = (power > r.least ? power : r.least) * r.half_ulp;
        count += (d < 0 ? -d : d) > (left_half > right_half ? left_half : right_half);
    }
    return count;
}

#include "readings.h"

const struct loops NAME(difflens) = {
    .name = SET_TEXT,
    .decode = NAME(decode),
    .sums = {[F16] = NAME(sums_f16), [BF16] = NAME(sums_bf16), [F32] = NAME(sums_f32),
             [F64] = NAME(sums_f64)},
    .tally = {[F16] = NAME(tally_16), [BF16] = NAME(tally_16), [F32] = NAME(tally_32),
              [F64] = NAME(tally_64)},
    .equal = NAME(equal),
    .over = NAME(over),
    .over_rounding = NAME(over_rounding),
    .read = NAME(read),
};
