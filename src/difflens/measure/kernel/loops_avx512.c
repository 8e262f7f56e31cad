/* The loops for x86-64 processors with AVX-512, where GCC's own choices cost a third:
   it widens floats in halves, makes masks where none are needed, finds the higher of two by a
   mask and a move, and unpacks BF16 the long way. */
#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,popcnt")))
#define LANES 8
#define SET avx512
#define SET_TEXT "avx512"
#define WIDEN(x) (vd) _mm512_cvtps_pd((__m256)(x))
#define FMA(a, b, c) (vd) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#define FMA_FLOATS(a, b, c) (vw) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#define LARGER(a, b) (vd) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#define HIGHER(a, b) (vi) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define COUNT_ZEROS(count, bits)                                                                 \
    (vi) _mm512_mask_add_epi32((__m512i)(count), _mm512_testn_epi32_mask((__m512i)(bits),         \
                               (__m512i)(bits)), (__m512i)(count), _mm512_set1_epi32(1))
#define SUM_LANES(x) _mm512_reduce_add_ps((__m512)(x))
#define COUNT_LANES(x) _mm512_reduce_add_epi32((__m512i)(x))
#define HIGHEST_LANE(x) _mm512_reduce_max_epi32((__m512i)(x))
#define FLOATS_OF_F16(p) (vf) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))


/* BF16 is the upper half of F32: each half of the vector has all eight, and moves its own four to
   where they belong. */
#define SPREAD_BF16                                                                              \
    _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,                      \
                     -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15)
#define LOAD_BF16(p)                                                                             \
    WIDEN(_mm256_shuffle_epi8(                                                                   \
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p))), SPREAD_BF16))

/* One step of a tally, over the elements that are live. Counts stay in vectors: a mask that is
   counted on its own costs three instructions. */
#define TALLY_STEP(WIDTH, MASK, INTEGER, UNSIGNED_INTEGER, live)                                 \
    do {                                                                                         \
        __m512i a = _mm512_maskz_loadu_##INTEGER(live, left + i * WIDTH);                        \
        __m512i b = _mm512_maskz_loadu_##INTEGER(live, right + i * WIDTH);                       \
        __m512i other = _mm512_xor_si512(a, b);                                                  \
        least_a = _mm512_mask_min_##INTEGER(least_a, live, least_a, a);                          \
        least_b = _mm512_mask_min_##INTEGER(least_b, live, least_b, b);                          \
        most_a = _mm512_mask_max_##INTEGER(most_a, live, most_a, a);                             \
        most_b = _mm512_mask_max_##INTEGER(most_b, live, most_b, b);                             \
        far_a = _mm512_max_##UNSIGNED_INTEGER(far_a, a);                                     \
        far_b = _mm512_max_##UNSIGNED_INTEGER(far_b, b);                                     \
        MASK a_zero = _mm512_mask_testn_##INTEGER##_mask(live, a, magnitude);                    \
        MASK b_zero = _mm512_mask_testn_##INTEGER##_mask(live, b, magnitude);                    \
        MASK both_zero = _mm512_mask_testn_##INTEGER##_mask(a_zero, b, magnitude);               \
        MASK same = _mm512_mask_testn_##INTEGER##_mask(live, other, other);                      \
        MASK signs = _mm512_mov##INTEGER##_mask(other);                                          \
        MASK unlike = both_zero & signs, flip = signs & (MASK)~(a_zero | b_zero);                \
        zeros_a = _mm512_mask_add_##INTEGER(zeros_a, a_zero, zeros_a, one);                      \
        zeros_b = _mm512_mask_add_##INTEGER(zeros_b, b_zero, zeros_b, one);                      \
        equal = _mm512_mask_add_##INTEGER(equal, same, equal, one);                              \
        zero_sign = _mm512_mask_add_##INTEGER(zero_sign, unlike, zero_sign, one);                \
        flips = _mm512_mask_add_##INTEGER(flips, flip, flips, one);                              \
    } while (0)

/* Among the bits of one sign-and-magnitude type the largest negative number is the smallest
   integer, and the smallest number the largest unsigned one: no bits need be turned round. */
#define TALLY_WITH_MASKS(NAME_, WIDTH, MASK, SIGNED, UNSIGNED, INTEGER, UNSIGNED_INTEGER)        \
    TARGET static void NAME(NAME_)(const uint8_t *left, const uint8_t *right, size_t n,          \
                                   struct tally *out)                                            \
    {                                                                                            \
        enum { STEP = 64 / WIDTH };                                                              \
        const SIGNED rest = (SIGNED)(((uint64_t)1 << (WIDTH * 8 - 1)) - 1);                      \
        const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_##INTEGER(1);             \
        const __m512i magnitude = _mm512_set1_##INTEGER(rest);                                   \
        __m512i least_a = magnitude, least_b = magnitude, far_a = zero, far_b = zero;        \
        __m512i most_a = _mm512_set1_##INTEGER((SIGNED)~rest), most_b = most_a, equal = zero;    \
        __m512i zeros_a = zero, zeros_b = zero, zero_sign = zero, flips = zero;                  \
        size_t i = 0;                                                                            \
        for (; i + STEP <= n; i += STEP)                                                         \
            TALLY_STEP(WIDTH, MASK, INTEGER, UNSIGNED_INTEGER, (MASK)~(MASK)0);                  \
        if (i < n)                                                                               \
            TALLY_STEP(WIDTH, MASK, INTEGER, UNSIGNED_INTEGER,                                   \
                       (MASK)(((uint64_t)1 << (n - i)) - 1));                                    \
        SIGNED least[SIDES][STEP], most[SIDES][STEP];                                            \
        UNSIGNED far[SIDES][STEP], counts[5][STEP];                                            \
        memcpy(least[LEFT], &least_a, 64), memcpy(least[RIGHT], &least_b, 64);                   \
        memcpy(most[LEFT], &most_a, 64), memcpy(most[RIGHT], &most_b, 64);                       \
        memcpy(far[LEFT], &far_a, 64), memcpy(far[RIGHT], &far_b, 64);                   \
        memcpy(counts[0], &zeros_a, 64), memcpy(counts[1], &zeros_b, 64);                        \
        memcpy(counts[2], &equal, 64), memcpy(counts[3], &zero_sign, 64);                        \
        memcpy(counts[4], &flips, 64);                                                           \
        *out = (struct tally){0};                                                                \
        for (int side = LEFT; side < SIDES; side++) {                                            \
            SIGNED low = rest, high = (SIGNED)~rest;                                             \
            UNSIGNED farthest = 0;                                                               \
            for (size_t k = 0; k < STEP; k++) {                                                  \
                low = least[side][k] < low ? least[side][k] : low;                               \
                high = most[side][k] > high ? most[side][k] : high;                              \
                farthest = far[side][k] > farthest ? far[side][k] : farthest;                \
                out->zeros[side] += (int64_t)counts[side][k];                                    \
            }                                                                                    \
            out->low[side] = low < 0 ? (SIGNED)(farthest ^ rest) : low;                          \
            out->high[side] = high < 0 ? (SIGNED)(low ^ rest) : high;                            \
        }                                                                                        \
        for (size_t k = 0; k < STEP; k++) {                                                      \
            out->bit_equal += (int64_t)counts[2][k];                                             \
            out->zero_sign += (int64_t)counts[3][k];                                             \
            out->sign_flips += (int64_t)counts[4][k];                                            \
        }                                                                                        \
    }

#define OWN_TALLIES                                                                              \
    TALLY_WITH_MASKS(tally_16, 2, __mmask32, int16_t, uint16_t, epi16, epu16)                    \
    TALLY_WITH_MASKS(tally_32, 4, __mmask16, int32_t, uint32_t, epi32, epu32)                    \
    TALLY_WITH_MASKS(tally_64, 8, __mmask8, int64_t, uint64_t, epi64, epu64)

#include "loops.h"
#else
typedef int nothing_to_compile;
#endif
