/* The loops of the sketch. A sum gets one element of each row, and rows are added in their order:
   the result has the same bits whatever the width of the processor's vectors. */
#include "sketch.h"

#include <string.h>

const unsigned char difflens_form_bits[FORMS] = {
    [F64] = 64, [F32] = 32, [F16] = 16, [BF16] = 16, [I64] = 64, [U64] = 64, [I32] = 32,
    [U32] = 32, [I16] = 16, [U16] = 16, [BYTES] = 8, [NIBBLES] = 4,
};

static const uint64_t GOLDEN = 0x9e3779b97f4a7c15u;

static inline uint64_t draw(uint64_t counter)
{
    uint64_t z = (counter + 1) * GOLDEN;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Of a row: 32 words of signs, and the rotation. The first row stays where it is, so that a tensor
   of fewer elements needs fewer sums. */
static unsigned randomness(uint64_t row, uint32_t words[WORDS])
{
    uint64_t first = row * (WORDS / 2 + 1);
    for (int k = 0; k < WORDS / 2; k++) {
        uint64_t both = draw(first + (uint64_t)k);
        words[2 * k] = (uint32_t)both;
        words[2 * k + 1] = (uint32_t)(both >> 32);
    }
    return row ? (unsigned)(draw(first + WORDS / 2) >> 54) : 0;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static void decode_f32(const uint8_t *data, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, data + 4 * i, 4);
        uint32_t finite = (bits & 0x7f800000u) == 0x7f800000u ? 0 : bits;
        out[i] = float_of(finite);
    }
}

static void decode_bf16(const uint8_t *data, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, data + 2 * i, 2);
        uint32_t bits = (uint32_t)half << 16;
        uint32_t finite = (bits & 0x7f800000u) == 0x7f800000u ? 0 : bits;
        out[i] = float_of(finite);
    }
}

/* The bits of a half stand for 2^112 times less where they are read as a float. */
static void decode_f16(const uint8_t *data, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, data + 2 * i, 2);
        uint32_t size = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
        uint32_t finite = (half & 0x7c00) == 0x7c00 ? 0 : size | sign;
        out[i] = (double)float_of(finite) * 0x1p112;
    }
}

static void decode_f64(const uint8_t *data, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, data + 8 * i, 8);
        bits = (bits & 0x7ff0000000000000u) == 0x7ff0000000000000u ? 0 : bits;
        memcpy(out + i, &bits, 8);
    }
}

#define DECODE_INTEGERS(name, type)                                     \
    static void name(const uint8_t *data, size_t n, double *out)        \
    {                                                                   \
        for (size_t i = 0; i < n; i++) {                                \
            type value;                                                 \
            memcpy(&value, data + sizeof value * i, sizeof value);      \
            out[i] = (double)value;                                     \
        }                                                               \
    }
DECODE_INTEGERS(decode_i64, int64_t)
DECODE_INTEGERS(decode_u64, uint64_t)
DECODE_INTEGERS(decode_i32, int32_t)
DECODE_INTEGERS(decode_u32, uint32_t)
DECODE_INTEGERS(decode_i16, int16_t)
DECODE_INTEGERS(decode_u16, uint16_t)

typedef void (*decoder)(const uint8_t *, size_t, double *);

static const decoder decoders[FORMS] = {
    [F64] = decode_f64, [F32] = decode_f32, [F16] = decode_f16, [BF16] = decode_bf16,
    [I64] = decode_i64, [U64] = decode_u64, [I32] = decode_i32, [U32] = decode_u32,
    [I16] = decode_i16, [U16] = decode_u16,
};

static void look_up(enum form form, const uint8_t *data, size_t n, const double *table, double *out)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t code = form == BYTES ? data[i] : (data[i / 2] >> 4 * (i % 2)) & 15;
        out[i] = table[code];
    }
}

/* Sign j of a row is bit 31 - j / 32 of word j % 32: a shift of whole words brings it to the top. */
static void add_row(double *values, uint64_t row, double *sums)
{
    uint32_t words[WORDS];
    unsigned rotation = randomness(row, words);
    for (int t = 0; t < BUCKETS / WORDS; t++) {
        for (int k = 0; k < WORDS; k++) {
            uint64_t bits, sign = (uint64_t)(words[k] << t & 0x80000000u) << 32;
            memcpy(&bits, values + t * WORDS + k, 8);
            bits ^= sign;
            memcpy(values + t * WORDS + k, &bits, 8);
        }
    }
    for (unsigned j = 0; j < BUCKETS - rotation; j++) sums[j + rotation] += values[j];
    for (unsigned j = 0; j < rotation; j++) sums[j] += values[BUCKETS - rotation + j];
}

void difflens_sketch(enum form form, const uint8_t *data, size_t n, uint64_t row,
                     const double *table, double *sums)
{
    double values[BUCKETS];
    for (size_t i = 0; i < n; i += BUCKETS, row++) {
        size_t some = n - i < BUCKETS ? n - i : BUCKETS;
        const uint8_t *at = data + i * difflens_form_bits[form] / 8;
        if (form >= BYTES) look_up(form, at, some, table, values);
        else decoders[form](at, some, values);
        for (size_t j = some; j < BUCKETS; j++) values[j] = 0;
        add_row(values, row, sums);
    }
}
