/* A chunk of a tensor, coded against the chunk of another one. docs/patches.md draws the bytes. */
#ifndef DIFFLENS_CODEC_H
#define DIFFLENS_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CLASSES = 16, TOKENS = 256, SCALE_BITS = 12, SCALE = 1 << SCALE_BITS, LOWEST = 1 << 16 };
enum { RAW = 0, SPARSE = 1, DENSE = 2, ALONE = 3 };
enum { NEVER = 0, CHEAP = 1, ALWAYS = 2 }; /* when to add the list that decoding backwards needs */
enum { MOST = 1 << 22 };                   /* elements of a chunk */

/* How to read a word: `exponent` bits above `mantissa` bits below a sign; 0 bits for integers. */
struct kind {
    int width, mantissa, exponent;
};

/* The context of an element is its class: how far its exponent lies below the top, merged 2^shift
   to one. */
struct view {
    struct kind kind;
    int top, shift;
};

struct events {
    size_t count;
    uint32_t *positions, *gaps; /* within the chunk; within the class, less 1 */
    uint8_t *classes;
    uint32_t of_class[CLASSES], seen[CLASSES]; /* changed elements; all of them */
};

/* What `apply` needs: for every class, the ranks of its changed elements, ascending. */
struct changes {
    const uint32_t *ranks;
    const uint64_t *sizes; /* NULL where all of them are 1 */
    const uint8_t *signs;
    uint32_t starts[CLASSES + 1];
    const uint32_t *moved_at; /* elements whose class is not the one they show, for going back */
    const uint8_t *moved_to;
    size_t moved;
    int backwards;
};

/* The loops that pay for wide registers; each once for every width of a word (1, 2, 4, 8 bytes). */
struct walks {
    const char *name;
    /* List what differs; 0 where it is more than `most`. */
    int (*find[4])(const void *base, const void *target, size_t n, struct view, size_t most,
                   struct events *);
    /* Move the changed elements; 0 where a rank is past its class. */
    int (*apply[4])(const void *base, void *out, size_t n, struct view, const struct changes *);
    void (*classify[4])(const void *words, size_t n, struct view, uint8_t *out);
    void (*tokens[4])(const void *base, const void *target, size_t n, struct kind, uint8_t *out);
};

extern const struct walks difflens_walks_baseline;
#if defined(__x86_64__)
extern const struct walks difflens_walks_avx2, difflens_walks_avx512;
#endif
const struct walks *difflens_pick_walks(const char *name);

static inline int slot_of(int width) { return width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3; }

static inline uint64_t load_word(const uint8_t *words, size_t i, int width)
{
    if (width == 1) return words[i];
    if (width == 2) {
        uint16_t word;
        memcpy(&word, words + i * 2, 2);
        return word;
    }
    if (width == 4) {
        uint32_t word;
        memcpy(&word, words + i * 4, 4);
        return word;
    }
    uint64_t word;
    memcpy(&word, words + i * 8, 8);
    return word;
}

static inline void store_word(uint8_t *words, size_t i, int width, uint64_t word)
{
    memcpy(words + i * (size_t)width, &word, (size_t)width); /* little-endian */
}

static inline uint64_t mask_of(int width) { return ~(uint64_t)0 >> (64 - 8 * width); }

/* The place of a value in the order of all values of its type. */
static inline uint64_t order_of(uint64_t word, struct kind kind)
{
    if (!kind.exponent) return word;
    uint64_t sign = (uint64_t)1 << (8 * kind.width - 1);
    return word & sign ? ~word & mask_of(kind.width) : word | sign;
}

static inline uint64_t word_at(uint64_t order, struct kind kind)
{
    if (!kind.exponent) return order;
    uint64_t sign = (uint64_t)1 << (8 * kind.width - 1);
    return order & sign ? order & ~sign : ~order & mask_of(kind.width);
}

/* Steps between two values, 0 -1 1 -2 2 ... as 0 1 2 3 4 ... */
static inline uint64_t folded(uint64_t from, uint64_t to, int width)
{
    int spare = 64 - 8 * width;
    int64_t steps = (int64_t)((to - from) << spare) >> spare;
    return ((uint64_t)steps << 1 ^ (uint64_t)(steps >> 63)) & mask_of(width);
}

static inline uint64_t unfolded(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

static inline int length_of(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

/* Values below 16 are tokens; larger ones give their length and the next two bits. */
static inline unsigned token_of(uint64_t value)
{
    if (value < 16) return (unsigned)value;
    int length = length_of(value);
    return (unsigned)(16 + (length - 5) * 4 + (int)(value >> (length - 3) & 3));
}

static inline int rest_bits(unsigned token) { return token < 16 ? 0 : (int)(token - 16) / 4 + 2; }

static inline uint64_t value_of(unsigned token, uint64_t rest)
{
    if (token < 16) return token;
    return ((uint64_t)(4 + (token - 16) % 4) << rest_bits(token)) | rest;
}

/* sparse.c, dense.c: the length, 0 where it would not fit into `room`, -1 where memory is short. */
struct estimate {
    uint64_t bits;
    int shift;
    int back; /* with the list for going backwards */
};
int difflens_top(const uint8_t *words, size_t n, struct kind kind);
uint32_t difflens_log2(uint64_t value); /* in 1/65536 */
ptrdiff_t difflens_encode(const struct walks *, const uint8_t *base, const uint8_t *target,
                          size_t n, struct kind, int back, uint8_t *out, size_t room);
/* 1 done, 0 the bytes are none of ours, -1 memory is short, -2 it cannot run backwards. */
int difflens_decode(const struct walks *, const uint8_t *data, size_t size, const uint8_t *base,
                    uint8_t *out, size_t n, struct kind, int backwards);

ptrdiff_t difflens_sparse(const struct walks *, const uint8_t *base, const uint8_t *target,
                          size_t n, struct kind, int back, uint8_t *out, size_t room,
                          int *is_back);
int difflens_unsparse(const struct walks *, const uint8_t *data, size_t size, const uint8_t *base,
                      uint8_t *out, size_t n, struct kind, int backwards);
ptrdiff_t difflens_dense(const struct walks *, const uint8_t *base, const uint8_t *target,
                         size_t n, struct kind, int back, uint8_t *out, size_t room, int *is_back);
ptrdiff_t difflens_alone(const uint8_t *target, size_t n, struct kind, uint8_t *out, size_t room);
int difflens_undense(const struct walks *, const uint8_t *data, size_t size, const uint8_t *base,
                     uint8_t *out, size_t n, struct kind, int backwards);

/* predict.c: what a recipe predicts. */
void difflens_scale(const uint8_t *in, uint8_t *out, size_t n, struct kind from, struct kind to,
                    double factor, int times, int backwards);
void difflens_add_product(const uint8_t *in, uint8_t *out, size_t n, struct kind, uint64_t start,
                          size_t columns, const double *left, const double *right, size_t rank,
                          int rounded);

uint32_t difflens_crc32c(const uint8_t *data, size_t size, uint32_t before);

#endif
