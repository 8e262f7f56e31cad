/* Few changes: their ranks within the class of the base's exponent, their signs, the larger ones. */
#include <stdlib.h>

#include "bits.h"

/* 99.9 % of the exponents of a sample are at most this. */
int difflens_top(const uint8_t *words, size_t n, struct kind kind)
{
    uint32_t counts[2048] = {0}, total = 0, above = 0;
    size_t stride = n / 4096 + 1;
    uint64_t mask = ((uint64_t)1 << kind.exponent) - 1;
    if (!kind.exponent) return 0;
    for (size_t i = 0; i < n; i += stride, total++)
        counts[load_word(words, i, kind.width) >> kind.mantissa & mask]++;
    for (int top = (int)mask; top > 0; top--) {
        above += counts[top];
        if (above > total / 1000) return top;
    }
    return 0;
}

static uint32_t fractions[257];

/* Of values above 0; a table of 256 steps is near enough to choose by. */
uint32_t difflens_log2(uint64_t value)
{
    if (!fractions[256]) { /* squaring gives a bit of the logarithm at a time: no libm, no rounding */
        for (int i = 0; i < 256; i++) {
            uint64_t x = ((uint64_t)(256 + i)) << 23, bits = 0; /* 1.31 */
            for (int bit = 15; bit >= 0; bit--) {
                x = x * x >> 31;
                if (x >> 32) x >>= 1, bits |= (uint64_t)1 << bit;
            }
            fractions[i] = (uint32_t)bits;
        }
        fractions[256] = 1;
    }
    int length = length_of(value);
    uint64_t top = length > 9 ? value >> (length - 9) : value << (9 - length);
    return (uint32_t)(length - 1) * 65536u + fractions[top & 255];
}

/* What the gaps of `m` of `n` elements take, about, in 1/65536 bits. */
static uint64_t guess(uint64_t m, uint64_t n)
{
    return m ? m * (uint64_t)((difflens_log2(n) - difflens_log2(m)) + 98304) + 12 * 65536 : 131072;
}

static int best_shift(const struct events *events, struct kind kind)
{
    uint64_t least = UINT64_MAX;
    int best = 4;
    if (!kind.exponent) return 4;
    for (int shift = 0; shift <= 4; shift++) {
        uint64_t bits = 0;
        for (int c = 0; c < CLASSES; c += 1 << shift) {
            uint64_t m = 0, n = 0;
            for (int i = c; i < c + (1 << shift); i++) m += events->of_class[i], n += events->seen[i];
            bits += guess(m, n);
        }
        if (bits < least) least = bits, best = shift;
    }
    return best;
}

struct scratch {
    struct events events;
    uint32_t *gaps, *moved, *longer;
    uint64_t *sizes, *rests;
    uint8_t *signs, *to;
};

static void clear(struct scratch *s)
{
    free(s->events.positions);
    free(s->events.gaps);
    free(s->events.classes);
    free(s->gaps);
    free(s->moved);
    free(s->longer);
    free(s->sizes);
    free(s->rests);
    free(s->signs);
    free(s->to);
}

static int reserve(struct scratch *s, size_t most)
{
    size_t room = most + 1;
    s->events.positions = malloc(room * 4);
    s->events.gaps = malloc(room * 4);
    s->events.classes = malloc(room);
    s->gaps = malloc(room * 4);
    s->moved = malloc(room * 4);
    s->longer = malloc(room * 4);
    s->sizes = malloc(room * 8);
    s->rests = malloc(room * 8);
    s->signs = malloc(room);
    s->to = malloc(room);
    return s->events.positions && s->events.gaps && s->events.classes && s->gaps
           && s->moved && s->longer && s->sizes && s->rests && s->signs && s->to;
}

/* Sort the events by class; they stay in order within one. */
static void by_class(struct scratch *s, const uint8_t *base, const uint8_t *target,
                     struct kind kind)
{
    uint32_t next[CLASSES], start = 0;
    for (int c = 0; c < CLASSES; start += s->events.of_class[c++]) next[c] = start;
    for (size_t e = 0; e < s->events.count; e++) {
        uint32_t j = next[s->events.classes[e]]++;
        size_t i = s->events.positions[e];
        uint64_t steps = unfolded(folded(order_of(load_word(base, i, kind.width), kind),
                                         order_of(load_word(target, i, kind.width), kind),
                                         kind.width));
        s->gaps[j] = s->events.gaps[e];
        s->signs[j] = steps >> 63;
        s->sizes[j] = steps >> 63 ? 0 - steps : steps;
    }
}

static inline int class_of(uint64_t word, struct view view)
{
    int below = view.top - (int)(word >> view.kind.mantissa & (((uint64_t)1 << view.kind.exponent) - 1));
    return (below < 0 ? 0 : below > CLASSES - 1 ? CLASSES - 1 : below) >> view.shift;
}

/* The elements whose class is another one in the target, with how far that is from the one they
   have in the base. */
static size_t list_moved(struct scratch *s, const uint8_t *target, struct view view)
{
    size_t moved = 0;
    uint32_t next = 0;
    if (!view.kind.exponent || view.shift == 4) return 0;
    for (size_t e = 0; e < s->events.count; e++) {
        uint32_t i = s->events.positions[e];
        int far = s->events.classes[e] - class_of(load_word(target, i, view.kind.width), view);
        if (!far) continue;
        s->moved[moved] = i - next;
        s->to[moved++] = (uint8_t)(far < 0 ? -2 * far - 1 : 2 * far - 2);
        next = i + 1;
    }
    return moved;
}

/* Exponential Golomb codes of what the steps of a class have beyond one. */
static uint64_t golomb_bits(const uint64_t *sizes, size_t m, int k)
{
    uint64_t bits = (uint64_t)m * (unsigned)(k + 1);
    for (size_t j = 0; j < m; j++)
        bits += 2 * (uint64_t)(length_of(((sizes[j] - 1) >> k) + 1) - 1);
    return bits;
}

/* The best parameter, near the mean length; -1 where each change is one step. */
static int golomb_parameter(const uint64_t *sizes, size_t m)
{
    uint64_t lengths = 0, least = UINT64_MAX;
    int best = -1, any = 0;
    for (size_t j = 0; j < m; j++) {
        lengths += (uint64_t)length_of(sizes[j] - 1);
        any |= sizes[j] != 1;
    }
    if (!any) return -1;
    int middle = (int)(lengths / m);
    for (int k = middle > 2 ? middle - 2 : 0; k <= middle && k < 64; k++) {
        uint64_t bits = golomb_bits(sizes, m, k);
        if (bits < least) least = bits, best = k;
    }
    return best;
}

static void put_golomb(struct writer *w, const uint64_t *sizes, size_t m, int k)
{
    for (size_t j = 0; j < m; j++) put(w, (sizes[j] - 1) & (((uint64_t)1 << k) - 1), k);
    for (size_t j = 0; j < m; j++) put_unary(w, (uint32_t)length_of(((sizes[j] - 1) >> k) + 1) - 1);
    for (size_t j = 0; j < m; j++) {
        uint64_t rest = ((sizes[j] - 1) >> k) + 1;
        int length = length_of(rest);
        put(w, rest ^ (uint64_t)1 << (length - 1), length - 1);
    }
}

/* List the changes of a class that are longer than one step: gaps, and their sizes less one. */
static size_t list_longer(struct scratch *s, const uint64_t *sizes, size_t m)
{
    size_t count = 0;
    uint32_t next = 0;
    for (size_t j = 0; j < m; j++) {
        if (sizes[j] == 1) continue;
        s->longer[count] = (uint32_t)j - next;
        s->rests[count++] = sizes[j] - 1;
        next = (uint32_t)j + 1;
    }
    return count;
}

/* By how many steps: all changes of a class or, where that takes less, the longer ones listed. */
static void put_sizes(struct writer *w, struct scratch *s, int shift)
{
    int parameters[CLASSES], listed[CLASSES], last = 0;
    const uint64_t *sizes = s->sizes;
    for (int c = 0; c < CLASSES >> shift; sizes += s->events.of_class[c++]) {
        uint32_t m = s->events.of_class[c];
        listed[c] = 0;
        if (!m) continue;
        parameters[c] = golomb_parameter(sizes, m);
        put_few(w, parameters[c] >= 0, 1);
        if (parameters[c] < 0) continue;
        size_t count = list_longer(s, sizes, m);
        int k = golomb_parameter(s->rests, count);
        if (k < 0) k = 0;
        listed[c] = golomb_bits(s->rests, count, k) + 16
                    + rice_bits(s->longer, count, rice_parameter(s->longer, count))
                    < golomb_bits(sizes, m, parameters[c]);
        if (listed[c]) parameters[c] = k;
        put_few(w, (uint64_t)listed[c], 1);
        put_step(w, parameters[c] - last);
        last = parameters[c];
    }
    sizes = s->sizes;
    for (int c = 0; c < CLASSES >> shift; sizes += s->events.of_class[c++]) {
        uint32_t m = s->events.of_class[c];
        if (!m || parameters[c] < 0) continue;
        if (!listed[c]) {
            put_golomb(w, sizes, m, parameters[c]);
            continue;
        }
        size_t count = list_longer(s, sizes, m);
        put_list(w, s->longer, count);
        put_golomb(w, s->rests, count, parameters[c]);
    }
}

static void write_sparse(struct writer *w, struct scratch *s, const uint8_t *target,
                         struct view view, int back, int *is_back)
{
    size_t start = 0;
    int parameters[CLASSES], length = 0, last = 0;
    size_t moved = back == NEVER ? 0 : list_moved(s, target, view);
    put_few(w, SPARSE, 3);
    put_few(w, (uint64_t)view.shift, 3);
    put_few(w, back != NEVER, 1);
    if (view.shift < 4) put_few(w, (uint64_t)view.top, view.kind.exponent);
    for (int c = 0; c < CLASSES >> view.shift; start += s->events.of_class[c++]) {
        uint32_t m = s->events.of_class[c];
        put_step(w, length_of(m) - length);
        length = length_of(m);
        parameters[c] = 0;
        if (!m) continue;
        put_few(w, m ^ (uint32_t)1 << (length - 1), length - 1);
        parameters[c] = rice_parameter(s->gaps + start, m);
        put_step(w, parameters[c] - last);
        last = parameters[c];
    }
    start = 0;
    for (int c = 0; c < CLASSES >> view.shift; start += s->events.of_class[c++])
        put_rests(w, s->gaps + start, s->events.of_class[c], parameters[c]);
    start = 0;
    for (int c = 0; c < CLASSES >> view.shift; start += s->events.of_class[c++])
        put_quotients(w, s->gaps + start, s->events.of_class[c], parameters[c]);
    for (size_t j = 0; j < s->events.count; j++) put_few(w, s->signs[j], 1);
    put_sizes(w, s, view.shift);
    if (back != NEVER) {
        put_list(w, s->moved, moved);
        for (size_t i = 0; i < moved; i++) put_unary(w, s->to[i] >> 1);
        for (size_t i = 0; i < moved; i++) put_few(w, s->to[i] & 1, 1);
    }
    *is_back = back != NEVER;
    put_end(w);
}

ptrdiff_t difflens_sparse(const struct walks *walks, const uint8_t *base, const uint8_t *target,
                          size_t n, struct kind kind, int back, uint8_t *out, size_t room,
                          int *is_back)
{
    struct scratch s = {0};
    struct view view = {kind, difflens_top(base, n, kind), 0};
    struct writer w = {out, room, 0, 0, 0, 0};
    size_t most = n / 8 + 1;
    int which = slot_of(kind.width);
    ptrdiff_t size = -1;
    if (reserve(&s, most)) {
        size = 0;
        int few = walks->find[which](base, target, n, view, most, &s.events);
        if (few) {
            view.shift = best_shift(&s.events, kind);
            if (view.shift && kind.exponent)
                walks->find[which](base, target, n, view, most, &s.events);
            by_class(&s, base, target, kind);
            write_sparse(&w, &s, target, view, back, is_back);
            size = w.full ? 0 : (ptrdiff_t)w.size;
        }
    }
    clear(&s);
    return size;
}

/* Read the header: how many changes each class has, and their parameter. */
static size_t take_counts(struct reader *r, struct changes *changes, int shift, int *parameters,
                          size_t n)
{
    uint64_t total = 0;
    int length = 0, last = 0;
    for (int c = 0; c < CLASSES; c++) {
        changes->starts[c] = (uint32_t)total;
        parameters[c] = 0;
        if (c >= CLASSES >> shift || r->bad) continue;
        length += take_step(r);
        if (length < 0 || length > 23) return r->bad = 1, 0;
        if (!length) continue;
        total += take_few(r, length - 1) | (uint64_t)1 << (length - 1);
        last += take_step(r);
        parameters[c] = last;
        if (last < 0 || last > 31) return r->bad = 1, 0;
    }
    changes->starts[CLASSES] = (uint32_t)total;
    if (total > n) r->bad = 1;
    return (size_t)total;
}

static void take_ranks(struct reader *r, struct changes *changes, uint32_t *ranks,
                       const int *parameters, size_t n)
{
    for (int c = 0; c < CLASSES && !r->bad; c++) {
        uint32_t start = changes->starts[c];
        take_rests(r, ranks + start, changes->starts[c + 1] - start, parameters[c]);
    }
    for (int c = 0; c < CLASSES && !r->bad; c++) {
        uint32_t start = changes->starts[c];
        take_places(r, ranks + start, changes->starts[c + 1] - start, parameters[c], n);
    }
}

static uint32_t *take_list(struct reader *r, size_t *count, size_t limit)
{
    uint64_t n = take_number(r);
    uint32_t *places = NULL;
    *count = 0;
    if (r->bad || n > limit) r->bad = 1;
    if (r->bad || !n) return NULL;
    places = malloc(n * 4);
    if (!places) return NULL;
    int k = (int)take_few(r, 5);
    take_rests(r, places, n, k);
    take_places(r, places, n, k, limit);
    *count = (size_t)n;
    return places;
}

static void take_golomb(struct reader *r, uint64_t *sizes, uint8_t *lengths, size_t m, int k)
{
    for (size_t j = 0; j < m && !r->bad; j++) sizes[j] = take(r, k);
    for (size_t j = 0; j < m && !r->bad; j++) {
        uint32_t length = take_unary(r);
        if (length > 63) r->bad = 1;
        lengths[j] = (uint8_t)(length & 63);
    }
    for (size_t j = 0; j < m && !r->bad; j++) {
        uint64_t rest = take(r, lengths[j]) | (uint64_t)1 << lengths[j];
        sizes[j] = ((rest - 1) << k | sizes[j]) + 1;
    }
}

/* The sizes of listed changes; the others of the class are one step. */
static void take_longer(struct reader *r, uint64_t *sizes, uint8_t *lengths, size_t m, int k,
                        int *short_of_memory)
{
    size_t count;
    uint32_t *at = take_list(r, &count, m);
    uint64_t *rests = malloc(count * 8 + 8);
    if (!rests || (count && !at)) *short_of_memory = 1;
    if (!r->bad && !*short_of_memory) {
        take_golomb(r, rests, lengths, count, k);
        for (size_t j = 0; j < count && !r->bad; j++) sizes[at[j]] = rests[j] + 1;
    }
    free(at);
    free(rests);
}

/* The sizes of all changes; NULL where each is one step. */
static uint64_t *take_sizes(struct reader *r, const struct changes *changes, int *short_of_memory)
{
    int parameters[CLASSES], listed[CLASSES] = {0}, any = 0, last = 0;
    uint32_t total = changes->starts[CLASSES];
    for (int c = 0; c < CLASSES; c++) {
        parameters[c] = -1;
        if (changes->starts[c + 1] == changes->starts[c] || !take_few(r, 1)) continue;
        listed[c] = (int)take_few(r, 1);
        parameters[c] = last += take_step(r);
        if (last < 0 || last > 63) r->bad = 1;
        if (r->bad) return NULL;
        any = 1;
    }
    if (!any || r->bad) return NULL;
    uint64_t *sizes = malloc((size_t)total * 8);
    uint8_t *lengths = malloc(total);
    if (!sizes || !lengths) *short_of_memory = 1;
    for (uint32_t j = 0; sizes && lengths && j < total; j++) sizes[j] = 1;
    for (int c = 0; sizes && lengths && c < CLASSES && !r->bad; c++) {
        uint32_t start = changes->starts[c], m = changes->starts[c + 1] - start;
        if (parameters[c] < 0) continue;
        if (listed[c]) take_longer(r, sizes + start, lengths, m, parameters[c], short_of_memory);
        else take_golomb(r, sizes + start, lengths, m, parameters[c]);
    }
    free(lengths);
    return sizes;
}

/* The list for going backwards. What it was made of, the target, shows the classes it starts from:
   there they become those of the base. */
static int take_moved(struct reader *r, struct changes *changes, uint32_t **at, uint8_t **to,
                      const uint8_t *target, size_t n, struct view view)
{
    uint64_t before = r->at;
    *at = take_list(r, &changes->moved, n);
    if (!*at) return r->bad || r->at == before + 6;
    *to = malloc(changes->moved);
    if (!*to) return 0;
    for (size_t i = 0; i < changes->moved && !r->bad; i++) {
        uint32_t far = take_unary(r);
        if (far >= CLASSES) r->bad = 1;
        (*to)[i] = (uint8_t)(far & (CLASSES - 1));
    }
    for (size_t i = 0; i < changes->moved && !r->bad; i++) {
        int far = (*to)[i] + 1, back = (int)take_few(r, 1);
        if (!changes->backwards) continue;
        int class = class_of(load_word(target, (*at)[i], view.kind.width), view)
                    + (back ? -far : far);
        if (class < 0 || class >= CLASSES >> view.shift) r->bad = 1;
        (*to)[i] = (uint8_t)class;
    }
    changes->moved_at = *at;
    changes->moved_to = *to;
    return 1;
}

int difflens_unsparse(const struct walks *walks, const uint8_t *data, size_t size,
                      const uint8_t *base, uint8_t *out, size_t n, struct kind kind, int backwards)
{
    struct reader r = reader_of(data, size);
    struct changes changes = {.backwards = backwards};
    int parameters[CLASSES], done = -1, short_of_memory = 0;
    take_few(&r, 3);
    struct view view = {kind, 0, (int)take_few(&r, 3)};
    int can_go_back = (int)take_few(&r, 1);
    if (view.shift > 4 || (!kind.exponent && view.shift < 4)) return 0;
    if (backwards && !can_go_back) return -2;
    if (view.shift < 4) view.top = (int)take_few(&r, kind.exponent);
    size_t total = take_counts(&r, &changes, view.shift, parameters, n);
    if (r.bad) return 0;
    uint32_t *ranks = malloc(total * 4 + 4), *at = NULL;
    uint8_t *signs = malloc(total / 8 + 9), *to = NULL;
    uint64_t *sizes = NULL;
    if (ranks && signs) {
        take_ranks(&r, &changes, ranks, parameters, n);
        memset(signs, 0, total / 8 + 1);
        for (size_t j = 0; j < total; j += 32) {
            int some = total - j < 32 ? (int)(total - j) : 32;
            uint32_t word = (uint32_t)take_few(&r, some);
            memcpy(signs + j / 8, &word, 4);
        }
        if (!r.bad) sizes = take_sizes(&r, &changes, &short_of_memory);
        if (!r.bad && !short_of_memory && can_go_back)
            short_of_memory = !take_moved(&r, &changes, &at, &to, base, n, view);
        if (!backwards) changes.moved = 0;
        if (r.end - r.at >= 8) r.bad = 1;
        changes.ranks = ranks;
        changes.sizes = sizes;
        changes.signs = signs;
        if (!short_of_memory)
            done = !r.bad
                   && walks->apply[slot_of(kind.width)](base, out, n, view, &changes);
    }
    free(ranks);
    free(signs);
    free(sizes);
    free(at);
    free(to);
    return done;
}
