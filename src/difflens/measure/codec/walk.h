/* The loops over all elements of a chunk, 64 at a time, for one instruction set.
   The file that includes this defines TARGET, SET, SET_TEXT, EQUAL(bytes, value): which of the 64
   bytes have the value, and SELECT(mask, k): the place of bit k of those that are set. */
#include "codec.h"

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)

#define WORD uint8_t
#define HALF int16_t
#define OF(name) JOIN(name, 1)
#include "walk_width.h"
#undef WORD
#undef HALF
#undef OF
#define WORD uint16_t
#define HALF int16_t
#define OF(name) JOIN(name, 2)
#include "walk_width.h"
#undef WORD
#undef HALF
#undef OF
#define WORD uint32_t
#define HALF int32_t
#define OF(name) JOIN(name, 4)
#include "walk_width.h"
#undef WORD
#undef HALF
#undef OF
#define WORD uint64_t
#define HALF int64_t
#define OF(name) JOIN(name, 8)
#include "walk_width.h"

const struct walks JOIN(difflens_walks, SET) = {
    SET_TEXT,
    {find_1, find_2, find_4, find_8},
    {apply_1, apply_2, apply_4, apply_8},
    {classify_1, classify_2, classify_4, classify_8},
    {tokens_1, tokens_2, tokens_4, tokens_8},
};
