/* The loops for x86-64 processors with AVX2 and BMI2 (2013 and later). */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>
#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))

TARGET static inline uint64_t equal(const uint8_t *bytes, char value)
{
    __m256i wanted = _mm256_set1_epi8(value);
    __m256i low = _mm256_loadu_si256((const __m256i *)bytes);
    __m256i high = _mm256_loadu_si256((const __m256i *)(bytes + 32));
    uint32_t first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted));
    uint32_t second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted));
    return first | (uint64_t)second << 32;
}

#define SET avx2
#define SET_TEXT "avx2"
#define EQUAL(bytes, value) equal(bytes, value)
#define SELECT(mask, k) (size_t)_tzcnt_u64(_pdep_u64((uint64_t)1 << (k), mask))
#include "walk.h"
#else
typedef int nothing_to_compile;
#endif
