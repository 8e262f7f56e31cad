/* The loops for x86-64 processors with AVX2, FMA and F16C (2013 and later). */
#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LANES 4
#define SET avx2
#define SET_TEXT "avx2"
#define FMA(a, b, c) (vd) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#define FMA_FLOATS(a, b, c) (vw) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#define LARGER(a, b) (vd) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#define HIGHER(a, b) (vi) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define WIDEN(x) (vd) _mm256_cvtps_pd((__m128)(x))
#define FLOATS_OF_F16(p) (vf) _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(p)))

/* BF16 is the upper half of F32. */
#define SPREAD_BF16 _mm_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7)
#define LOAD_BF16(p)                                                                             \
    WIDEN(_mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(p)), SPREAD_BF16))

#include "loops.h"
#else
typedef int nothing_to_compile;
#endif
