/* One look at a tensor while it trains: sums, the largest, zeros, and how far it moved.

   Included by loops.h, once for each instruction set. Blocks are summed in floats while their
   largest value leaves room for its square, and in doubles where it does not: gradients of 1e-25
   are what a vanishing layer shows, and their squares are no floats. Doubles throughout would
   cost twice the time of a step's hottest read.

   Here the last digits may differ from one instruction set to another, other than in a scan: each
   has the lanes and the fused products that it is fastest with. A run is read on one machine. */

typedef float vw __attribute__((vector_size(LANES * 8)));
typedef int32_t vi __attribute__((vector_size(LANES * 8)));

enum { NAME(WIDE) = 2 * LANES, NAME(TURN) = 4 * 2 * LANES };

/* What a step leaves behind is not in the caches, and Intel's processors fetch too little of it on
   their own: told what comes two kilobytes ahead, they read in half the time. AMD's lose a third
   by being told. */
#ifndef WANTS_TELLING
#if defined(__x86_64__)
#define WANTS_TELLING __builtin_cpu_is("intel")
#else
#define WANTS_TELLING 0
#endif
#endif

/* The end of a tensor may be nearer: nobody reads there, and an address is not a pointer. */
INLINE void NAME(tell)(const float *now)
{
    __builtin_prefetch((const void *)((uintptr_t)now + 2048));
}

struct NAME(part) {
    double squares, magnitudes, moves;
    float largest, largest_move;
    int64_t zeros;
};

#ifndef FMA_FLOATS
#define FMA_FLOATS(a, b, c) ((a) * (b) + (c))
#endif
#ifndef HIGHER
INLINE vi NAME(higher)(vi a, vi b)
{
    vi pick = a > b;
    return (a & pick) | (b & ~pick);
}
#define HIGHER(a, b) NAME(higher)(a, b)
#endif
#ifndef COUNT_ZEROS
#define COUNT_ZEROS(count, bits) ((count) - ((bits) == 0))
#endif

#ifndef SUM_LANES
INLINE double NAME(sum_wide)(vw x)
{
    double sum = 0;
    for (int lane = 0; lane < NAME(WIDE); lane++) sum += x[lane];
    return sum;
}

INLINE int32_t NAME(count_wide)(vi x)
{
    int32_t sum = 0;
    for (int lane = 0; lane < NAME(WIDE); lane++) sum += x[lane];
    return sum;
}

INLINE int32_t NAME(most)(vi bits)
{
    int32_t most = 0;
    for (int lane = 0; lane < NAME(WIDE); lane++) most = bits[lane] > most ? bits[lane] : most;
    return most;
}
#define SUM_LANES(x) NAME(sum_wide)(x)
#define COUNT_LANES(x) NAME(count_wide)(x)
#define HIGHEST_LANE(x) NAME(most)(x)
#endif

/* The bits of magnitudes are in the order of the magnitudes, and a NaN is above them all. */
INLINE float NAME(top)(vi bits)
{
    int32_t most = HIGHEST_LANE(bits);
    float value;
    memcpy(&value, &most, 4);
    return value;
}

/* `moving` and `telling` are constants where this is inlined: without a copy there is nothing to
   subtract. */
INLINE struct NAME(part) NAME(part_of)(const float *x, const float *copy, size_t n, int moving,
                                       int telling)
{
    vw squares[4] = {0}, magnitudes[2] = {0}, moves[4] = {0};
    vi largest[2] = {0}, far[2] = {0}, zeros[2] = {0};
    size_t whole = n - n % NAME(TURN);
    for (size_t i = 0; i < whole; i += NAME(TURN)) {
        for (int k = 0; k < 4; k++) {
            vw value, before;
            size_t at = i + k * NAME(WIDE);
            memcpy(&value, x + at, sizeof value);
            if (telling) NAME(tell)(x + at);
            vi bits = (vi)value & INT32_MAX;
            squares[k] = FMA_FLOATS(value, value, squares[k]);
            if (moving) {
                memcpy(&before, copy + at, sizeof before);
                if (telling) NAME(tell)(copy + at);
                vw move = value - before;
                moves[k] = FMA_FLOATS(move, move, moves[k]);
                far[k & 1] = HIGHER((vi)move & INT32_MAX, far[k & 1]);
            } else {
                magnitudes[k & 1] += (vw)bits;
                zeros[k & 1] = COUNT_ZEROS(zeros[k & 1], bits);
            }
            largest[k & 1] = HIGHER(bits, largest[k & 1]);
        }
    }
    struct NAME(part) part = {
        SUM_LANES((squares[0] + squares[1]) + (squares[2] + squares[3])),
        SUM_LANES(magnitudes[0] + magnitudes[1]),
        SUM_LANES((moves[0] + moves[1]) + (moves[2] + moves[3])),
        NAME(top)(HIGHER(largest[0], largest[1])),
        NAME(top)(HIGHER(far[0], far[1])), COUNT_LANES(zeros[0] + zeros[1])};
    for (size_t i = whole; i < n; i++) {
        float size = __builtin_fabsf(x[i]), move = moving ? __builtin_fabsf(x[i] - copy[i]) : 0;
        part.squares += (double)size * size;
        part.magnitudes += size;
        part.moves += (double)move * move;
        part.zeros += size == 0;
        /* A NaN is larger than all, here as among the bits above, and stays so. */
        if (size > part.largest || size != size) part.largest = size;
        if (move > part.largest_move || move != move) part.largest_move = move;
    }
    return part;
}

/* Squares of these are floats with all their digits, and a block of them too. */
INLINE int NAME(is_easy)(float largest)
{
    return largest == 0 || (largest > 1e-15f && largest < 1e15f);
}

INLINE void NAME(read_carefully)(enum dtype type, const uint8_t *bytes, const uint8_t *copy,
                                 size_t n, struct look *out)
{
    double value[READ_BLOCK], before[READ_BLOCK];
    NAME(decode)(type, bytes, n, value);
    if (copy) NAME(decode)(type, copy, n, before);
    for (size_t i = 0; i < n; i++) {
        double size = __builtin_fabs(value[i]), move = copy ? value[i] - before[i] : 0;
        out->squares += size * size; /* a norm that hid a NaN would call a lost gradient healthy */
        out->moves += move * move;
        if (!__builtin_isfinite(size)) {
            out->nonfinite++;
            continue;
        }
        if (!copy) {
            out->magnitudes += size;
            out->zeros += size == 0;
        }
        if (size > out->largest) out->largest = size;
    }
}

/* Give a block as floats, without a copy where it is; NULL where it has a NaN or an infinity
   that the quick decoders do not know. */
INLINE const float *NAME(as_floats)(enum dtype type, const uint8_t *bytes, size_t n, float *room)
{
    if (type == F32) return (const float *)(const void *)bytes;
    if (type == BF16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, bytes + 2 * i, 2);
            uint32_t bits = (uint32_t)half << 16;
            memcpy(room + i, &bits, 4);
        }
        return room;
    }
    uint16_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, 2);
        half &= 0x7fff;
        most = half > most ? half : most;
    }
    if (most >= 0x7c00) return NULL;
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
#ifdef FLOATS_OF_F16
        vf some = FLOATS_OF_F16(bytes + 2 * i);
#else
        vf some = __builtin_convertvector(NAME(load_f16)(bytes + 2 * i), vf);
#endif
        memcpy(room + i, &some, sizeof some);
    }
    double rest[LANES] = {0};
    NAME(decode)(F16, bytes + 2 * whole, n - whole, rest);
    for (size_t i = whole; i < n; i++) room[i] = (float)rest[i - whole];
    return room;
}

TARGET static void NAME(read)(enum dtype type, const uint8_t *bytes, uint8_t *copy, size_t n,
                              struct look *out)
{
    float room[READ_BLOCK], copy_room[READ_BLOCK];
    const size_t width = type == F64 ? 8 : type == F32 ? 4 : 2;
    const int telling = type == F32 && WANTS_TELLING;
    *out = (struct look){0};
    for (size_t i = 0; i < n; i += READ_BLOCK) {
        size_t some = n - i < READ_BLOCK ? n - i : READ_BLOCK;
        const uint8_t *at = bytes + i * width;
        uint8_t *before = copy ? copy + i * width : NULL;
        const float *x = NULL, *then = NULL;
        if (type != F64) x = NAME(as_floats)(type, at, some, room);
        if (x && copy) then = NAME(as_floats)(type, before, some, copy_room);
        int easy = x && (!copy || then);
        if (easy) {
            struct NAME(part) part;
            if (telling)
                part = copy ? NAME(part_of)(x, then, some, 1, 1) : NAME(part_of)(x, x, some, 0, 1);
            else
                part = copy ? NAME(part_of)(x, then, some, 1, 0) : NAME(part_of)(x, x, some, 0, 0);
            easy = NAME(is_easy)(part.largest) && NAME(is_easy)(part.largest_move);
            if (easy) {
                out->squares += part.squares;
                out->moves += part.moves;
                if (!copy) {
                    out->magnitudes += part.magnitudes;
                    out->zeros += (double)part.zeros;
                }
                if (part.largest > out->largest) out->largest = part.largest;
            }
        }
        if (!easy) NAME(read_carefully)(type, at, before, some, out);
        if (copy) memcpy(before, at, some * width);
    }
}
