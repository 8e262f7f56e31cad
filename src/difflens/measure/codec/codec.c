/* The choice between the methods, and the checksum. */
#include <stdlib.h>

#include "bits.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

const struct walks *difflens_pick_walks(const char *name)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")
               && __builtin_cpu_supports("popcnt");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                 && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
                 && __builtin_cpu_supports("avx512cd");
    if (avx512 && (!name || !strcmp(name, "avx512"))) return &difflens_walks_avx512;
    if (avx2 && (!name || !strcmp(name, "avx2"))) return &difflens_walks_avx2;
#endif
    return !name || !strcmp(name, "baseline") ? &difflens_walks_baseline : NULL;
}

static ptrdiff_t put_raw(const uint8_t *target, size_t n, struct kind kind, uint8_t *out)
{
    out[0] = RAW;
    memcpy(out + 1, target, n * (size_t)kind.width);
    return (ptrdiff_t)(n * (size_t)kind.width + 1);
}

static int runs_back(const uint8_t *data)
{
    int method = data[0] & 7;
    return (method == SPARSE || method == DENSE) && data[0] >> 6 & 1;
}

/* Keep the shorter of what is there and what a method wrote. Where going back shall be cheap, data
   that run backwards win while they take a tenth more at most, and no more than the words do. */
static void offer(uint8_t *out, ptrdiff_t *size, const uint8_t *other, ptrdiff_t length,
                  ptrdiff_t bytes, int back)
{
    if (length <= 0) return;
    int better = !*size || length < *size;
    if (*size && back == CHEAP && runs_back(out) != runs_back(other)) {
        ptrdiff_t with = runs_back(out) ? *size : length, without = runs_back(out) ? length : *size;
        int cheap = with <= without + without / 10 + 64 && with <= bytes + bytes / 1000 + 64;
        better = runs_back(other) ? cheap : !cheap;
    }
    if (!better) return;
    memcpy(out, other, (size_t)length);
    *size = length;
}

ptrdiff_t difflens_encode(const struct walks *walks, const uint8_t *base, const uint8_t *target,
                          size_t n, struct kind kind, int back, uint8_t *out, size_t room)
{
    int is_back = 0;
    size_t bytes = n * (size_t)kind.width;
    ptrdiff_t size = 0, length;
    if (base && memcmp(base, target, bytes) == 0) return 0;
    if (base) {
        size = difflens_sparse(walks, base, target, n, kind, back, out, room, &is_back);
        if (size < 0 || (size && (size_t)size < n / 64 + 16)) return size;
    }
    uint8_t *other = malloc(room);
    if (!other) return -1;
    if (base) {
        length = difflens_dense(walks, base, target, n, kind, back, other, room, &is_back);
        if (length < 0) size = -1;
        else offer(out, &size, other, length, (ptrdiff_t)bytes, back);
    }
    int can_be_alone = !base || back != ALWAYS;
    if (size >= 0 && can_be_alone && (!base || (size_t)size > bytes / 2)) {
        length = difflens_alone(target, n, kind, other, room);
        if (length < 0) size = -1;
        else offer(out, &size, other, length, (ptrdiff_t)bytes, back);
    }
    if (size >= 0 && can_be_alone && (!size || (size_t)size > bytes)) {
        length = put_raw(target, n, kind, other);
        offer(out, &size, other, length, (ptrdiff_t)bytes, back);
    }
    free(other);
    return size;
}

int difflens_decode(const struct walks *walks, const uint8_t *data, size_t size,
                    const uint8_t *base, uint8_t *out, size_t n, struct kind kind, int backwards)
{
    size_t bytes = n * (size_t)kind.width;
    if (!size) {
        if (base && base != out) memmove(out, base, bytes);
        return base != NULL;
    }
    int method = data[0] & 7;
    if ((method == SPARSE || method == DENSE) && !base) return 0;
    if ((method == RAW || method == ALONE) && backwards) return -2;
    if (method == RAW) {
        if (data[0] || size != bytes + 1) return 0;
        memcpy(out, data + 1, bytes);
        return 1;
    }
    if (method == SPARSE)
        return difflens_unsparse(walks, data, size, base, out, n, kind, backwards);
    if (method == DENSE || method == ALONE)
        return difflens_undense(walks, data, size, base, out, n, kind, backwards);
    return 0;
}

/* CRC-32C, the polynomial of Castagnoli. */
static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t state = value;
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (0x82F63B78u & (0u - (state & 1)));
        tables[0][value] = state;
    }
    for (int t = 1; t < 8; t++)
        for (int value = 0; value < 256; value++)
            tables[t][value] = tables[t - 1][value] >> 8 ^ tables[0][tables[t - 1][value] & 255];
}

static uint32_t crc_by_table(const uint8_t *data, size_t size, uint32_t state)
{
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        word ^= state;
        state = 0;
        for (int t = 0; t < 8; t++) state ^= tables[7 - t][word >> (8 * t) & 255];
    }
    for (; size; size--) state = state >> 8 ^ tables[0][(state ^ *data++) & 255];
    return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_by_hand(const uint8_t *data, size_t size,
                                                              uint32_t before)
{
    uint64_t state = before;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        state = _mm_crc32_u64(state, word);
    }
    for (; size; size--) state = _mm_crc32_u8((uint32_t)state, *data++);
    return (uint32_t)state;
}
#endif

uint32_t difflens_crc32c(const uint8_t *data, size_t size, uint32_t before)
{
    uint32_t state = ~before;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~crc_by_hand(data, size, state);
#endif
    return ~crc_by_table(data, size, state);
}

/* Make the tables once, before there are threads. */
void difflens_start_codec(void);
void difflens_start_codec(void)
{
    make_tables();
    difflens_log2(1);
}
