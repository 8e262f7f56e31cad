/* The loops as any processor of this architecture runs them. */
#include <stdint.h>
#include <string.h>

/* Which of 64 bytes have the value: eight at a time, the highest bit of each gathered. */
static inline uint64_t equal(const uint8_t *bytes, uint8_t value)
{
    const uint64_t ones = 0x0101010101010101u, low = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t mask = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        word ^= ones * value;
        uint64_t zero = ~(((word & low) + low) | word | low); /* 0x80 where a byte is zero */
        mask |= ((zero >> 7) * 0x0102040810204080u >> 56) << (8 * i);
    }
    return mask;
}

static inline size_t place(uint64_t mask, uint32_t k)
{
    for (; k; k--) mask &= mask - 1;
    return (size_t)__builtin_ctzll(mask);
}

#define TARGET
#define SET baseline
#define SET_TEXT "baseline"
#define EQUAL(bytes, value) equal(bytes, (uint8_t)(value))
#define SELECT(mask, k) place(mask, k)
#include "walk.h"
