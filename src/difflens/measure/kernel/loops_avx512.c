/* The loops for x86-64 processors with AVX-512, where GCC's own choices cost a third:
   it widens floats in halves, counts in vectors instead of masks, finds the higher of two by a
   mask and a move, and unpacks BF16 the long way. */
#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt")))
#define LANES 8
#define SET avx512
#define SET_TEXT "avx512"
#define WIDEN(x) (vd) _mm512_cvtps_pd((__m256)(x))
#define FMA(a, b, c) (vd) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#define LARGER(a, b) (vd) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#define HIGHER(a, b) (vi) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define COUNT_ZEROS(count, bits)                                                                 \
    (vi) _mm512_mask_add_epi32((__m512i)(count), _mm512_testn_epi32_mask((__m512i)(bits),         \
                               (__m512i)(bits)), (__m512i)(count), _mm512_set1_epi32(1))
#define SUM_LANES(x) _mm512_reduce_add_ps((__m512)(x))
#define COUNT_LANES(x) _mm512_reduce_add_epi32((__m512i)(x))
#define HIGHEST_LANE(x) _mm512_reduce_max_epi32((__m512i)(x))
#define LOAD_F16(p) WIDEN(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))))

/* Two BF16 share a 32-bit word: shifting gives one F32, masking the other. Sums do not mind
   that the elements come in another order. */
#define ADD_ALL_BF16(pivoted)                                                                    \
    for (size_t i = 0; i < whole; i += 2 * LANES) {                                              \
        vu a, b;                                                                                 \
        memcpy(&a, left + i * 2, sizeof a);                                                      \
        memcpy(&b, right + i * 2, sizeof b);                                                     \
        NAME(add)(&sum, WIDEN(a << 16), WIDEN(b << 16), pivoted, left_pivot, right_pivot);       \
        NAME(add)(&sum, WIDEN(a & 0xffff0000u), WIDEN(b & 0xffff0000u), pivoted, left_pivot,     \
                  right_pivot);                                                                  \
    }

#define SUMS_BF16                                                                                \
    TARGET static void NAME(sums_bf16)(const uint8_t *left, const uint8_t *right, size_t n,      \
                                       const double *pivot, struct sums *out)                    \
    {                                                                                            \
        struct NAME(lanes) sum = {0};                                                            \
        vd left_pivot = (vd){0} + pivot[LEFT], right_pivot = (vd){0} + pivot[RIGHT];             \
        size_t whole = n - n % (2 * LANES);                                                      \
        if (pivot[LEFT] == 0 && pivot[RIGHT] == 0) {                                             \
            ADD_ALL_BF16(0)                                                                      \
        } else {                                                                                 \
            ADD_ALL_BF16(1)                                                                      \
        }                                                                                        \
        NAME(finish)(&sum, out);                                                                 \
        for (size_t part; whole < n; whole += part) {                                            \
            part = n - whole < LANES ? n - whole : LANES;                                        \
            NAME(add_tail)(BF16, left + whole * 2, right + whole * 2, part, pivot, out);         \
        }                                                                                        \
    }

/* The smaller and the larger, lane by lane, in the order of the numbers. F32 has instructions
   for it; they pass NaN over, which the sums then show. */
#define TURN(WIDTH, INTEGER, x)                                                                  \
    _mm512_xor_si512(x, _mm512_and_si512(_mm512_srai_##INTEGER(x, WIDTH * 8 - 1), magnitude))
#define LEAST_INTEGER(WIDTH, INTEGER, live, low, x)                                              \
    _mm512_mask_min_##INTEGER(low, live, low, TURN(WIDTH, INTEGER, x))
#define MOST_INTEGER(WIDTH, INTEGER, live, high, x)                                              \
    _mm512_mask_max_##INTEGER(high, live, high, TURN(WIDTH, INTEGER, x))
#define LEAST_FLOAT(WIDTH, INTEGER, live, low, x)                                                \
    (__m512i) _mm512_mask_min_ps((__m512)(low), live, (__m512)(x), (__m512)(low))
#define MOST_FLOAT(WIDTH, INTEGER, live, high, x)                                                \
    (__m512i) _mm512_mask_max_ps((__m512)(high), live, (__m512)(x), (__m512)(high))

/* Masks of a few lanes are counted with popcnt while the vector units go on. `ORDERED` says
   whether low and high are kept as ordered integers or as numbers, where the start is infinite. */
#define MASKED_TALLY(NAME_, WIDTH, MASK, SIGNED, INTEGER, KIND, START, ORDERED)                  \
    TARGET static void NAME(NAME_)(const uint8_t *left, const uint8_t *right, size_t n,          \
                                   struct tally *out)                                            \
    {                                                                                            \
        const SIGNED rest = (SIGNED)(((uint64_t)1 << (WIDTH * 8 - 1)) - 1);                      \
        const __m512i magnitude = _mm512_set1_##INTEGER(rest);                                   \
        __m512i low_a = _mm512_set1_##INTEGER((SIGNED)(START)), low_b = low_a;                   \
        __m512i high_a = _mm512_set1_##INTEGER((SIGNED)((START) | ~rest)), high_b;               \
        if (ORDERED) high_a = _mm512_set1_##INTEGER((SIGNED)~rest);                              \
        high_b = high_a;                                                                         \
        const size_t step = 64 / WIDTH;                                                          \
        int64_t zeros_a = 0, zeros_b = 0, equal = 0, zero_sign = 0, flips = 0;                   \
        for (size_t i = 0; i < n; i += step) {                                                   \
            MASK live = n - i < step ? (MASK)(((uint64_t)1 << (n - i)) - 1) : (MASK)~(MASK)0;    \
            __m512i a = _mm512_maskz_loadu_##INTEGER(live, left + i * WIDTH);                    \
            __m512i b = _mm512_maskz_loadu_##INTEGER(live, right + i * WIDTH);                   \
            low_a = LEAST_##KIND(WIDTH, INTEGER, live, low_a, a);                                \
            high_a = MOST_##KIND(WIDTH, INTEGER, live, high_a, a);                               \
            low_b = LEAST_##KIND(WIDTH, INTEGER, live, low_b, b);                                \
            high_b = MOST_##KIND(WIDTH, INTEGER, live, high_b, b);                               \
            MASK a_some = _mm512_test_##INTEGER##_mask(a, magnitude);                            \
            MASK b_some = _mm512_test_##INTEGER##_mask(b, magnitude);                            \
            MASK other_sign = _mm512_mov##INTEGER##_mask(_mm512_xor_si512(a, b));                \
            MASK same = _mm512_mask_cmpeq_##INTEGER##_mask(live, a, b);                          \
            zeros_a += _mm_popcnt_u64((MASK)(live & ~a_some));                                   \
            zeros_b += _mm_popcnt_u64((MASK)(live & ~b_some));                                   \
            equal += _mm_popcnt_u64(same);                                                       \
            zero_sign += _mm_popcnt_u64((MASK)(other_sign & ~(a_some | b_some)));                \
            flips += _mm_popcnt_u64((MASK)(other_sign & a_some & b_some));                       \
        }                                                                                        \
        SIGNED lows[SIDES][64 / WIDTH], highs[SIDES][64 / WIDTH];                                \
        memcpy(lows[LEFT], &low_a, 64), memcpy(lows[RIGHT], &low_b, 64);                         \
        memcpy(highs[LEFT], &high_a, 64), memcpy(highs[RIGHT], &high_b, 64);                     \
        *out = (struct tally){{rest, rest}, {~rest, ~rest}, {zeros_a, zeros_b},                  \
                              equal, zero_sign, flips};                                          \
        for (int side = LEFT; side < SIDES; side++)                                              \
            for (size_t i = 0; i < step; i++) {                                                  \
                SIGNED low = lows[side][i], high = highs[side][i];                               \
                if (!ORDERED) low ^= (low >> (WIDTH * 8 - 1)) & rest;                            \
                if (!ORDERED) high ^= (high >> (WIDTH * 8 - 1)) & rest;                          \
                if (low < out->low[side]) out->low[side] = low;                                  \
                if (high > out->high[side]) out->high[side] = high;                              \
            }                                                                                    \
    }

#define OWN_TALLIES                                                                              \
    MASKED_TALLY(tally_16, 2, __mmask32, int16_t, epi16, INTEGER, rest, 1)                       \
    MASKED_TALLY(tally_32, 4, __mmask16, int32_t, epi32, FLOAT, 0x7f800000, 0)                   \
    MASKED_TALLY(tally_64, 8, __mmask8, int64_t, epi64, INTEGER, rest, 1)

#include "loops.h"
#else
typedef int nothing_to_compile;
#endif
