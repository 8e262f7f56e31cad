/* The loops for x86-64 processors with AVX-512 on bytes. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>
#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi,bmi2,popcnt,lzcnt,"     \
                          "prefer-vector-width=512")))
#define SET avx512
#define SET_TEXT "avx512"
#define EQUAL(bytes, value) _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes), _mm512_set1_epi8(value))
#define SELECT(mask, k) (size_t)_tzcnt_u64(_pdep_u64((uint64_t)1 << (k), mask))
#include "walk.h"
#else
typedef int nothing_to_compile;
#endif
