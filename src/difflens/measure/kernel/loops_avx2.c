/* The loops for x86-64 processors with AVX2, FMA and F16C (2013 and later). */
#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define LANES 4
#define SET avx2
#define SET_TEXT "avx2"
#define LARGER(a, b) (vd) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#define HIGHER(a, b) (vi) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define LOAD_F16(p) (vd) _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(p))))
#include "loops.h"
#else
typedef int nothing_to_compile;
#endif
