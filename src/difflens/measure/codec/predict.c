/* What a recipe predicts of a tensor: its base times a factor, or plus a product of two matrices.

   Every machine must predict the same bits: doubles in a fixed order, products never fused with
   sums (setup.py forbids it), rounding by integers, and what the sign and the payload of a NaN are
   is decided here and not by the processor. */
#include "codec.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* Floats of one byte with four bits of exponent use the highest one for numbers. */
INLINE int is_finite_only(struct kind kind) { return kind.width == 1 && kind.exponent == 4; }

INLINE uint64_t nan_of(struct kind kind)
{
    uint64_t top = (((uint64_t)1 << kind.exponent) - 1) << kind.mantissa;
    return is_finite_only(kind) ? top | 7 : top | (uint64_t)1 << (kind.mantissa - 1);
}

INLINE int is_nan(uint64_t word, struct kind kind)
{
    uint64_t top = (((uint64_t)1 << kind.exponent) - 1) << kind.mantissa;
    word &= mask_of(kind.width) >> 1;
    return is_finite_only(kind) ? word == (top | 7) : word > top;
}

INLINE double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* The value of a word that is no NaN. */
INLINE double wide(uint64_t word, struct kind kind)
{
    if (kind.width == 8) return from_bits(word);
    const uint64_t most = ((uint64_t)1 << kind.exponent) - 1;
    const int bias = (1 << (kind.exponent - 1)) - 1, low = 52 - kind.mantissa;
    uint64_t sign = word >> (8 * kind.width - 1) << 63;
    uint64_t exponent = word >> kind.mantissa & most;
    uint64_t mantissa = word & (((uint64_t)1 << kind.mantissa) - 1);
    if (exponent == most && !is_finite_only(kind)) return from_bits(sign | (uint64_t)0x7FF << 52);
    if (exponent) return from_bits(sign | (exponent + 1023 - bias) << 52 | mantissa << low);
    double value = (double)mantissa * from_bits((uint64_t)(1024 - bias - kind.mantissa) << 52);
    return sign ? -value : value;
}

/* The nearest word, ties to even. */
INLINE uint64_t narrow(double value, struct kind kind)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    const uint64_t infinite = (uint64_t)0x7FF << 52, magnitude = bits & ~((uint64_t)1 << 63);
    if (magnitude > infinite) return nan_of(kind);
    if (kind.width == 8) return bits;
    const int bias = (1 << (kind.exponent - 1)) - 1, low = 52 - kind.mantissa;
    const uint64_t top = (((uint64_t)1 << kind.exponent) - 1) << kind.mantissa;
    const uint64_t largest = is_finite_only(kind) ? top | 6 : top;
    const uint64_t sign = bits >> 63 << (8 * kind.width - 1);
    int64_t exponent = (int64_t)(magnitude >> 52) - 1023 + bias;
    uint64_t word = magnitude & ~infinite;
    int shift = low;
    if (exponent <= 0) {
        if (exponent < -kind.mantissa - 1) return sign;
        word |= (uint64_t)1 << 52;
        shift += 1 - (int)exponent;
    } else {
        word |= (uint64_t)exponent << 52;
    }
    word = (word + (((uint64_t)1 << (shift - 1)) - 1) + (word >> shift & 1)) >> shift;
    return sign | (word > largest ? largest : word);
}

/* A thread may have been set to treat small numbers as zeros: not while we count. */
#if defined(__x86_64__)
#define BEGIN unsigned int before = _mm_getcsr(); _mm_setcsr(0x1F80)
#define END _mm_setcsr(before)
#else
#define BEGIN
#define END
#endif

INLINE uint64_t sign_of(uint64_t word, struct kind kind) { return word >> (8 * kind.width - 1); }

INLINE uint64_t signed_nan(uint64_t word, struct kind from, struct kind to)
{
    return nan_of(to) | sign_of(word, from) << (8 * to.width - 1);
}

INLINE uint64_t scaled(uint64_t word, struct kind from, struct kind to, double factor)
{
    if (is_nan(word, from)) return signed_nan(word, from, to);
    return narrow(wide(word, from) * factor, to);
}

/* The word that the factor turns into this one, or one beside it. */
INLINE uint64_t unscaled(uint64_t word, struct kind from, struct kind to, double factor)
{
    if (is_nan(word, to)) return signed_nan(word, to, from);
    uint64_t guess = narrow(wide(word, to) / factor, from);
    if (scaled(guess, from, to, factor) == word) return guess;
    for (int step = 0; step < 2; step++) {
        uint64_t other = word_at((order_of(guess, from) + (step ? 1 : mask_of(from.width)))
                                     & mask_of(from.width), from);
        if (scaled(other, from, to, factor) == word) return other;
    }
    return guess;
}

INLINE void scale_all(const uint8_t *in, uint8_t *out, size_t n, struct kind from, struct kind to,
                      double factor, int times, int backwards)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t word = load_word(in, i, backwards ? to.width : from.width);
        for (int t = 0; t < times; t++)
            word = backwards ? unscaled(word, from, to, factor) : scaled(word, from, to, factor);
        store_word(out, i, backwards ? from.width : to.width, word);
    }
}

static const struct kind BF16 = {2, 7, 8}, F16 = {2, 10, 5}, F32 = {4, 23, 8}, F64 = {8, 52, 11};

enum { BLOCK = 256 };

INLINE uint32_t order_of_single(uint32_t word) { return word >> 31 ? ~word : word | 1u << 31; }

INLINE uint32_t word_at_single(uint32_t order) { return order >> 31 ? order & ~(1u << 31) : ~order; }

static int same_kind(struct kind a, struct kind b)
{
    return a.width == b.width && a.mantissa == b.mantissa;
}

/* What `unscaled` does, for a block and without a branch. */
INLINE void unscale_block(float *values, float factor)
{
    uint32_t words[BLOCK], made;
    memcpy(words, values, sizeof words);
    for (int i = 0; i < BLOCK; i++) {
        float guess = values[i] / factor, below, above;
        uint32_t word, low, high, best;
        memcpy(&word, &guess, 4);
        low = word_at_single(order_of_single(word) - 1);
        high = word_at_single(order_of_single(word) + 1);
        memcpy(&below, &low, 4);
        memcpy(&above, &high, 4);
        best = word;
        above *= factor, below *= factor, guess *= factor;
        memcpy(&made, &above, 4);
        best = made == words[i] ? high : best;
        memcpy(&made, &below, 4);
        best = made == words[i] ? low : best;
        memcpy(&made, &guess, 4);
        best = made == words[i] ? word : best;
        memcpy(values + i, &best, 4);
    }
}

/* Products and quotients of F32 are rounded once: floats give what doubles would. */
static void scale_singles(const uint8_t *in, uint8_t *out, size_t n, float factor, int times,
                          int backwards)
{
    float values[BLOCK];
    for (size_t start = 0; start < n; start += BLOCK) {
        size_t count = n - start < BLOCK ? n - start : BLOCK;
        memset(values, 0, sizeof values);
        memcpy(values, in + start * 4, count * 4);
        for (int t = 0; t < times; t++) {
            if (backwards) unscale_block(values, factor);
            else
                for (int i = 0; i < BLOCK; i++) values[i] *= factor;
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t word = load_word(in, start + i, 4);
            if (is_nan(word, F32)) word = signed_nan(word, F32, F32), memcpy(values + i, &word, 4);
        }
        memcpy(out + start * 4, values, count * 4);
    }
}

void difflens_scale(const uint8_t *in, uint8_t *out, size_t n, struct kind from, struct kind to,
                    double factor, int times, int backwards)
{
    BEGIN;
    int single = same_kind(from, F32) && same_kind(to, F32);
    if (single && (double)(float)factor == factor)
        scale_singles(in, out, n, (float)factor, times, backwards);
    else if (single) scale_all(in, out, n, F32, F32, factor, times, backwards);
    else if (same_kind(from, F32) && same_kind(to, BF16) && !backwards)
        scale_all(in, out, n, F32, BF16, factor, times, 0);
    else if (same_kind(from, F32) && same_kind(to, F16) && !backwards)
        scale_all(in, out, n, F32, F16, factor, times, 0);
    else if (same_kind(from, BF16) && same_kind(to, BF16))
        scale_all(in, out, n, BF16, BF16, factor, times, backwards);
    else scale_all(in, out, n, from, to, factor, times, backwards);
    END;
}

INLINE void add_block(const uint8_t *in, uint8_t *out, size_t count, struct kind kind,
                      const double *left, const double *right, size_t stride, size_t rank,
                      int rounded)
{
    double sums[64] = {0};
    for (size_t k = 0; k < rank; k++)
        for (size_t j = 0; j < count; j++) sums[j] += left[k] * right[k * stride + j];
    for (size_t j = 0; j < count; j++) {
        uint64_t word = load_word(in, j, kind.width);
        double sum = sums[j];
        if (rounded && sum == sum) sum = wide(narrow(sum, kind), kind);
        store_word(out, j, kind.width,
                   is_nan(word, kind) ? signed_nan(word, kind, kind)
                                      : narrow(wide(word, kind) + sum, kind));
    }
}

/* Elements `start` and following of a matrix, row by row: each plus left[row] . right[column]. */
void difflens_add_product(const uint8_t *in, uint8_t *out, size_t n, struct kind kind,
                          uint64_t start, size_t columns, const double *left, const double *right,
                          size_t rank, int rounded)
{
    BEGIN;
    for (size_t i = 0; i < n;) {
        uint64_t row = (start + i) / columns;
        size_t column = (size_t)((start + i) % columns), count = columns - column;
        if (count > 64) count = 64;
        if (count > n - i) count = n - i;
        const uint8_t *from = in + i * (size_t)kind.width;
        uint8_t *to = out + i * (size_t)kind.width;
        const double *factors = left + row * rank;
        if (same_kind(kind, BF16))
            add_block(from, to, count, BF16, factors, right + column, columns, rank, rounded);
        else if (same_kind(kind, F16))
            add_block(from, to, count, F16, factors, right + column, columns, rank, rounded);
        else if (same_kind(kind, F32))
            add_block(from, to, count, F32, factors, right + column, columns, rank, rounded);
        else if (same_kind(kind, F64))
            add_block(from, to, count, F64, factors, right + column, columns, rank, rounded);
        else add_block(from, to, count, kind, factors, right + column, columns, rank, rounded);
        i += count;
    }
    END;
}
