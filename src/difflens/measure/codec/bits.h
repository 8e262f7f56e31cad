/* Bits, lowest first, into a buffer of known room and out of one that nobody trusts. */
#ifndef DIFFLENS_BITS_H
#define DIFFLENS_BITS_H

#include "codec.h"

struct writer {
    uint8_t *out;
    size_t room, size;
    uint64_t held;
    int count, full; /* bits held; no room was left */
};

static inline void put_word(struct writer *w)
{
    if (w->size + 4 > w->room) {
        w->full = 1;
        return;
    }
    uint32_t low = (uint32_t)w->held;
    memcpy(w->out + w->size, &low, 4);
    w->size += 4;
}

/* At most 32 bits at a time. */
static inline void put_few(struct writer *w, uint64_t value, int bits)
{
    w->held |= value << w->count;
    w->count += bits;
    if (w->count >= 32) {
        put_word(w);
        w->held >>= 32;
        w->count -= 32;
    }
}

static inline void put(struct writer *w, uint64_t value, int bits)
{
    if (bits > 32) {
        put_few(w, value & 0xFFFFFFFFu, 32);
        value >>= 32;
        bits -= 32;
    }
    put_few(w, value, bits);
}

/* Zeros, then a one. */
static inline void put_unary(struct writer *w, uint32_t zeros)
{
    for (; zeros >= 31; zeros -= 31) put_few(w, 0, 31);
    put_few(w, (uint64_t)1 << zeros, (int)zeros + 1);
}

/* The number of bits of a value, then those below the highest. */
static inline void put_number(struct writer *w, uint64_t value)
{
    int length = length_of(value);
    put_few(w, (uint64_t)length, 6);
    if (length > 1) put(w, value ^ (uint64_t)1 << (length - 1), length - 1);
}

/* Zigzag of a small difference as unary. */
static inline void put_step(struct writer *w, int step)
{
    put_unary(w, (uint32_t)(step < 0 ? -2 * step - 1 : 2 * step));
}

/* Fill the last byte. */
static inline void put_end(struct writer *w)
{
    for (; w->count > 0; w->count -= 8, w->held >>= 8) {
        if (w->size == w->room) w->full = 1;
        else w->out[w->size++] = (uint8_t)w->held;
    }
    w->count = 0;
    w->held = 0;
}

struct reader {
    const uint8_t *data;
    size_t size;
    uint64_t at, end; /* in bits */
    int bad;
};

static inline struct reader reader_of(const uint8_t *data, size_t size)
{
    return (struct reader){data, size, 0, (uint64_t)size * 8, 0};
}

/* The 57 bits or more from a place on, zeros past the end. */
static inline uint64_t peek(const struct reader *r, uint64_t at)
{
    size_t byte = (size_t)(at >> 3);
    uint64_t word = 0;
    if (byte + 8 <= r->size) memcpy(&word, r->data + byte, 8);
    else if (byte < r->size) memcpy(&word, r->data + byte, r->size - byte);
    return word >> (at & 7);
}

static inline uint64_t take_few(struct reader *r, int bits)
{
    if ((uint64_t)bits > r->end - r->at) {
        r->bad = 1;
        return 0;
    }
    uint64_t value = peek(r, r->at) & (((uint64_t)1 << bits) - 1);
    r->at += (uint64_t)bits;
    return value;
}

static inline uint64_t take(struct reader *r, int bits)
{
    if (bits <= 32) return take_few(r, bits);
    uint64_t low = take_few(r, 32);
    return low | take_few(r, bits - 32) << 32;
}

static inline uint32_t take_unary(struct reader *r)
{
    uint64_t start = r->at;
    while (r->at < r->end) {
        uint64_t word = peek(r, r->at) & ~((uint64_t)0x7F << 57);
        if (word) {
            r->at += (uint64_t)__builtin_ctzll(word);
            if (r->at >= r->end || r->at - start > UINT32_MAX) break;
            return (uint32_t)(r->at++ - start);
        }
        r->at += 57;
    }
    r->at = r->end;
    r->bad = 1;
    return 0;
}

static inline uint64_t take_number(struct reader *r)
{
    int length = (int)take_few(r, 6);
    if (length < 2) return (uint64_t)length;
    return take(r, length - 1) | (uint64_t)1 << (length - 1);
}

static inline int take_step(struct reader *r)
{
    uint32_t value = take_unary(r);
    if (value > 4096) r->bad = 1;
    return value & 1 ? -(int)((value + 1) / 2) : (int)(value / 2);
}

/* Rice codes: the remainders of all, then the quotients of all. */
static inline uint64_t rice_bits(const uint32_t *gaps, size_t n, int k)
{
    uint64_t bits = (uint64_t)n * (unsigned)(k + 1);
    for (size_t i = 0; i < n; i++) bits += gaps[i] >> k;
    return bits;
}

/* The best parameter, near the logarithm of the mean. */
static inline int rice_parameter(const uint32_t *gaps, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += gaps[i];
    int middle = n ? length_of(sum / n) : 0, best = 0;
    uint64_t least = UINT64_MAX;
    for (int k = middle > 1 ? middle - 2 : 0; k <= middle && k < 32; k++) {
        uint64_t bits = rice_bits(gaps, n, k);
        if (bits < least) least = bits, best = k;
    }
    return best;
}

static inline void put_rests(struct writer *w, const uint32_t *gaps, size_t n, int k)
{
    uint32_t mask = ((uint32_t)1 << k) - 1;
    for (size_t i = 0; i < n; i++) put_few(w, gaps[i] & mask, k);
}

static inline void put_quotients(struct writer *w, const uint32_t *gaps, size_t n, int k)
{
    for (size_t i = 0; i < n; i++) put_unary(w, gaps[i] >> k);
}

/* A list of ascending places: how many, the parameter, the gaps. Places rise by 1 at least. */
static inline void put_list(struct writer *w, const uint32_t *gaps, size_t n)
{
    put_number(w, n);
    if (!n) return;
    int k = rice_parameter(gaps, n);
    put_few(w, (uint64_t)k, 5);
    put_rests(w, gaps, n, k);
    put_quotients(w, gaps, n, k);
}

static inline void take_rests(struct reader *r, uint32_t *gaps, size_t n, int k)
{
    if ((uint64_t)n * (unsigned)k > r->end - r->at) {
        r->bad = 1;
        return;
    }
    for (size_t i = 0; i < n; i++) gaps[i] = (uint32_t)take_few(r, k);
}

/* Turn remainders into ascending places below `limit`. */
static inline void take_places(struct reader *r, uint32_t *gaps, size_t n, int k, uint64_t limit)
{
    uint64_t next = 0;
    for (size_t i = 0; i < n && !r->bad; i++) {
        uint64_t place = next + ((uint64_t)take_unary(r) << k) + gaps[i];
        if (place >= limit) {
            r->bad = 1;
            return;
        }
        gaps[i] = (uint32_t)place;
        next = place + 1;
    }
}

#endif
