/* Many changes: interleaved rANS of tokens under the class of the base's exponent, the low bits of
   long steps beside them. Without a base: tokens are the top eight bits of a value, no sign. */
#include <stdlib.h>

#include "bits.h"

static int lanes_of(size_t n) { return n < 4096 ? 4 : 32; }

/* Shares of 4096: a few leading bits each, the most frequent token takes what is left. */
static int normalise(const uint32_t *counts, uint16_t *shares, int *rest)
{
    uint64_t total = 0;
    int big = 0, used = 0, sum = 0;
    memset(shares, 0, TOKENS * sizeof *shares);
    for (int t = 0; t < TOKENS; t++) {
        total += counts[t];
        if (counts[t] > counts[big]) big = t;
        if (counts[t]) used = t + 1;
    }
    if (!used) return 0;
    for (int t = 0; t < used; t++) {
        if (!counts[t] || t == big) continue;
        uint32_t share = (uint32_t)(((uint64_t)counts[t] * SCALE + total / 2) / total);
        int length = length_of(share);
        if (length > 5) {
            share += 1u << (length - 5) >> 1;
            length = length_of(share);
            share = share >> (length - 5) << (length - 5);
        }
        shares[t] = (uint16_t)(share ? share : 1);
        sum += shares[t];
    }
    while (sum > SCALE - 1) {
        int most = -1;
        for (int t = 0; t < used; t++)
            if (t != big && (most < 0 || shares[t] > shares[most])) most = t;
        sum -= shares[most] - shares[most] / 2;
        shares[most] /= 2;
    }
    shares[big] = (uint16_t)(SCALE - sum);
    *rest = big;
    return used;
}

static void put_table(struct writer *w, const uint16_t *shares, int used, int big)
{
    int last = 0;
    put_few(w, (uint64_t)used, 9);
    if (!used) return;
    put_few(w, (uint64_t)big, 8);
    for (int t = 0; t < used; t++) {
        if (t == big) continue;
        int length = length_of(shares[t]), some = length < 5 ? length - 1 : 4;
        put_step(w, length - last);
        last = length;
        if (length > 1) put_few(w, shares[t] >> (length - 1 - some) & ((1u << some) - 1), some);
    }
}

static int take_table(struct reader *r, uint16_t *shares)
{
    int used = (int)take_few(r, 9), last = 0, sum = 0;
    memset(shares, 0, TOKENS * sizeof *shares);
    if (!used || r->bad) return !r->bad;
    int big = (int)take_few(r, 8);
    if (used > TOKENS || big >= used) return 0;
    for (int t = 0; t < used; t++) {
        if (t == big) continue;
        last += take_step(r);
        if (last < 0 || last > SCALE_BITS || r->bad) return 0;
        if (!last) continue;
        int some = last < 5 ? last - 1 : 4;
        shares[t] = (uint16_t)((take_few(r, some) | (uint64_t)1 << some) << (last - 1 - some));
        sum += shares[t];
    }
    if (sum > SCALE - 1 || r->bad) return 0;
    shares[big] = (uint16_t)(SCALE - sum);
    return 1;
}

/* What a context takes, about, in 1/65536 bits. */
static uint64_t cost_of(const uint32_t *counts)
{
    uint64_t total = 0, bits = 0, table = 9;
    for (int t = 0; t < TOKENS; t++) {
        if (!counts[t]) continue;
        total += counts[t];
        bits += counts[t] * (uint64_t)difflens_log2(counts[t]);
        table += 8;
    }
    return total ? total * difflens_log2(total) - bits + table * 65536 : table * 65536;
}

static void merge(uint32_t counts[CLASSES][TOKENS], int used)
{
    for (int c = 0; c < used; c++)
        for (int t = 0; t < TOKENS; t++)
            counts[c][t] = counts[2 * c][t] + counts[2 * c + 1][t];
}

/* Choose how many classes are one context: tables of small chunks cost more than they save.
   The counts are merged as far as was chosen. */
static int choose_shift(uint32_t counts[CLASSES][TOKENS], struct kind kind, uint64_t *least)
{
    uint32_t(*best)[TOKENS] = malloc(CLASSES * sizeof *best);
    int chosen = 4;
    if (!best) return -1;
    *least = UINT64_MAX;
    for (int shift = 0; shift <= 4; shift++) {
        uint64_t bits = 0;
        if (shift) merge(counts, CLASSES >> shift);
        if (shift < 4 && !kind.exponent) continue;
        for (int c = 0; c < CLASSES >> shift; c++) bits += cost_of(counts[c]);
        if (bits >= *least) continue;
        *least = bits;
        chosen = shift;
        memcpy(best, counts, (size_t)(CLASSES >> shift) * sizeof *best);
    }
    memcpy(counts, best, (size_t)(CLASSES >> chosen) * sizeof *best);
    free(best);
    return chosen;
}

struct share {
    uint64_t reciprocal;
    uint16_t share, start;
};

/* Encode backwards, so that decoding runs forwards; -1 where there is no room. */
static ptrdiff_t put_tokens(const uint16_t shares[CLASSES][TOKENS], const uint8_t *classes,
                            const uint8_t *tokens, size_t n, int shift, uint8_t *out, size_t room)
{
    int lanes = lanes_of(n), used = CLASSES >> shift;
    uint32_t states[32];
    struct share *table = malloc((size_t)used * TOKENS * sizeof *table);
    uint16_t *words = malloc(n * 2 + 2), *word = words + n;
    ptrdiff_t size = -1;
    if (table && words) {
        for (int c = 0; c < used; c++) {
            uint32_t start = 0;
            for (int t = 0; t < TOKENS; start += shares[c][t++]) {
                uint32_t share = shares[c][t];
                table[c * TOKENS + t] =
                    (struct share){share ? (((uint64_t)1 << 44) + share - 1) / share : 0,
                                   (uint16_t)share, (uint16_t)start};
            }
        }
        for (int l = 0; l < lanes; l++) states[l] = LOWEST;
        for (size_t i = n; i-- > 0;) {
            const struct share *s = table + ((classes ? classes[i] >> shift : 0) * TOKENS + tokens[i]);
            uint32_t x = states[i & (size_t)(lanes - 1)];
            if (x >> 20 >= s->share) {
                *--word = (uint16_t)x;
                x >>= 16;
            }
            uint32_t q = (uint32_t)((unsigned __int128)x * s->reciprocal >> 44);
            states[i & (size_t)(lanes - 1)] = (q << SCALE_BITS) + (x - q * s->share) + s->start;
        }
        size_t count = (size_t)(words + n - word), wanted = 4 + (size_t)lanes * 4 + count * 2;
        size = 0;
        if (wanted <= room) {
            uint32_t number = (uint32_t)count;
            memcpy(out, &number, 4);
            memcpy(out + 4, states, (size_t)lanes * 4);
            memcpy(out + 4 + lanes * 4, word, count * 2);
            size = (ptrdiff_t)wanted;
        }
    }
    free(table);
    free(words);
    return size;
}

/* Gaps between the elements whose class differs in the target, and their class in the base. */
static size_t list_moved(const uint8_t *left, const uint8_t *right, size_t n, int shift,
                         uint32_t *gaps, uint8_t *to)
{
    size_t moved = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        if (left[i] >> shift == right[i] >> shift) continue;
        gaps[moved] = (uint32_t)(i - next);
        to[moved++] = left[i] >> shift;
        next = i + 1;
    }
    return moved;
}

struct dense {
    uint32_t (*counts)[TOKENS];
    uint16_t (*shares)[TOKENS];
    uint8_t *classes, *shown, *tokens, *to;
    uint32_t *gaps;
};

static void clear(struct dense *d)
{
    free(d->counts);
    free(d->shares);
    free(d->classes);
    free(d->shown);
    free(d->tokens);
    free(d->to);
    free(d->gaps);
}

static int reserve(struct dense *d, size_t n)
{
    d->counts = calloc(CLASSES, sizeof *d->counts);
    d->shares = calloc(CLASSES, sizeof *d->shares);
    d->classes = malloc(n + 1);
    d->shown = malloc(n + 1);
    d->tokens = malloc(n + 1);
    d->to = malloc(n + 1);
    d->gaps = malloc(n * 4 + 4);
    return d->counts && d->shares && d->classes && d->shown && d->tokens && d->to && d->gaps;
}

static void put_tables(struct writer *w, struct dense *d, int shift)
{
    for (int c = 0; c < CLASSES >> shift; c++) {
        int big = 0, used = normalise(d->counts[c], d->shares[c], &big);
        put_table(w, d->shares[c], used, big);
    }
}

static ptrdiff_t put_body(struct writer *w, struct dense *d, int shift, size_t n)
{
    if (w->full) return 0;
    ptrdiff_t size = put_tokens((const uint16_t(*)[TOKENS])d->shares, d->classes, d->tokens, n,
                                shift, w->out + w->size, w->room - w->size);
    if (size > 0) w->size += (size_t)size;
    return size;
}

static void put_rest(struct writer *w, const uint8_t *base, const uint8_t *target, size_t n,
                     struct kind kind, const uint8_t *tokens)
{
    for (size_t i = 0; i < n && !w->full; i++) {
        if (tokens[i] < 16) continue;
        uint64_t value = folded(order_of(load_word(base, i, kind.width), kind),
                                order_of(load_word(target, i, kind.width), kind), kind.width);
        int bits = rest_bits(tokens[i]);
        put(w, value & (((uint64_t)1 << bits) - 1), bits);
    }
    put_end(w);
}

ptrdiff_t difflens_dense(const struct walks *walks, const uint8_t *base, const uint8_t *target,
                         size_t n, struct kind kind, int back, uint8_t *out, size_t room,
                         int *is_back)
{
    struct dense d = {0};
    struct view view = {kind, difflens_top(base, n, kind), 0};
    struct writer w = {out, room, 0, 0, 0, 0};
    ptrdiff_t size = -1;
    int which = slot_of(kind.width);
    if (!reserve(&d, n)) goto end;
    walks->classify[which](base, n, view, d.classes);
    walks->tokens[which](base, target, n, kind, d.tokens);
    for (size_t i = 0; i < n; i++) d.counts[d.classes[i]][d.tokens[i]]++;
    uint64_t bits;
    view.shift = choose_shift(d.counts, kind, &bits);
    if (view.shift < 0) goto end;
    size_t moved = 0;
    if (back != NEVER && kind.exponent && view.shift < 4) {
        walks->classify[which](target, n, view.kind.exponent ? (struct view){kind, view.top, 0} : view,
                               d.shown);
        moved = list_moved(d.classes, d.shown, n, view.shift, d.gaps, d.to);
        uint64_t list = moved ? moved * ((uint64_t)difflens_log2(n) - difflens_log2(moved) + 6 * 65536)
                              : 0;
        if (back == CHEAP && list > bits / 10 + 512 * 65536) back = NEVER;
    }
    put_few(&w, DENSE, 3);
    put_few(&w, (uint64_t)view.shift, 3);
    put_few(&w, back != NEVER, 1);
    if (view.shift < 4) put_few(&w, (uint64_t)view.top, kind.exponent);
    put_tables(&w, &d, view.shift);
    if (back != NEVER) {
        put_list(&w, d.gaps, moved);
        for (size_t i = 0; i < moved; i++) put_few(&w, d.to[i], 4);
    }
    put_end(&w);
    *is_back = back != NEVER;
    size = put_body(&w, &d, view.shift, n);
    if (size > 0) {
        put_rest(&w, base, target, n, kind, d.tokens);
        size = w.full ? 0 : (ptrdiff_t)w.size;
    }
end:
    clear(&d);
    return size;
}

/* Put the sign last, so that the exponent comes first. */
static inline uint64_t turned(uint64_t word, struct kind kind)
{
    if (!kind.exponent) return word;
    return (word << 1 | word >> (8 * kind.width - 1)) & mask_of(kind.width);
}

static inline uint64_t turned_back(uint64_t word, struct kind kind)
{
    if (!kind.exponent) return word;
    return (word >> 1 | word << (8 * kind.width - 1)) & mask_of(kind.width);
}

ptrdiff_t difflens_alone(const uint8_t *target, size_t n, struct kind kind, uint8_t *out,
                         size_t room)
{
    struct dense d = {0};
    struct writer w = {out, room, 0, 0, 0, 0};
    int rest = 8 * kind.width - 8;
    ptrdiff_t size = -1;
    if (!reserve(&d, n)) goto end;
    memset(d.classes, 0, n);
    for (size_t i = 0; i < n; i++) {
        d.tokens[i] = (uint8_t)(turned(load_word(target, i, kind.width), kind) >> rest);
        d.counts[0][d.tokens[i]]++;
    }
    put_few(&w, ALONE, 3);
    put_few(&w, 4, 3);
    put_few(&w, 0, 1);
    put_tables(&w, &d, 4);
    put_end(&w);
    size = put_body(&w, &d, 4, n);
    if (size > 0) {
        for (size_t i = 0; i < n && rest; i++)
            put(&w, turned(load_word(target, i, kind.width), kind) & (((uint64_t)1 << rest) - 1),
                rest);
        put_end(&w);
        size = w.full ? 0 : (ptrdiff_t)w.size;
    }
end:
    clear(&d);
    return size;
}

/* One step of the decoder's tables: token, share less 1, place within the share. */
struct slot {
    uint16_t share, place;
    uint8_t token;
};

static struct slot *slots_of(struct reader *r, int used)
{
    struct slot *slots = calloc((size_t)used * SCALE, sizeof *slots);
    uint16_t shares[TOKENS];
    for (int c = 0; slots && c < used; c++) {
        if (!take_table(r, shares)) {
            r->bad = 1;
            break;
        }
        struct slot *next = slots + (size_t)c * SCALE;
        for (int t = 0; t < TOKENS; t++)
            for (int i = 0; i < shares[t]; i++)
                *next++ = (struct slot){shares[t], (uint16_t)i, (uint8_t)t};
    }
    return slots;
}

/* Move one block of elements by what the tokens and the bits of the reader say. */
static inline __attribute__((always_inline)) void settle(struct reader *r, const uint8_t *tokens,
                                                         const uint8_t *base, uint8_t *out,
                                                         size_t count, struct kind kind, int width,
                                                         int backwards)
{
    const struct kind own = {width, kind.mantissa, kind.exponent};
    for (size_t i = 0; i < count; i++) {
        uint64_t value = tokens[i], word = load_word(base, i, width);
        if (value >= 16) {
            int bits = rest_bits(tokens[i]);
            if (bits > 8 * width - 3 + 1) r->bad = 1, bits = 0;
            value = value_of(tokens[i], take(r, bits));
        }
        uint64_t steps = unfolded(value);
        if (backwards) steps = 0 - steps;
        word = word_at((order_of(word, own) + steps) & mask_of(width), own);
        store_word(out, i, width, word);
    }
}

static inline __attribute__((always_inline)) void settle_alone(struct reader *r,
                                                               const uint8_t *tokens, uint8_t *out,
                                                               size_t count, struct kind kind,
                                                               int width)
{
    const struct kind own = {width, kind.mantissa, kind.exponent};
    int rest = 8 * width - 8;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = (uint64_t)tokens[i] << rest;
        if (rest) word |= take(r, rest);
        store_word(out, i, width, turned_back(word, own));
    }
}

struct body {
    uint32_t states[32];
    uint16_t *words; /* with room for one more step behind them */
    size_t count, next;
    int lanes;
};

/* Copy the words: the buffer is not ours and may be unaligned. */
static int take_body(struct reader *r, struct body *body, size_t n)
{
    size_t at = (size_t)((r->at + 7) / 8), lanes = (size_t)lanes_of(n);
    uint32_t count;
    if (r->size - at < 4 + lanes * 4) return 0;
    memcpy(&count, r->data + at, 4);
    memcpy(body->states, r->data + at + 4, lanes * 4);
    at += 4 + lanes * 4;
    if (count > n || (r->size - at) / 2 < count) return 0;
    body->words = calloc((size_t)count + 64, 2);
    if (!body->words) return -1;
    memcpy(body->words, r->data + at, (size_t)count * 2);
    body->count = count;
    body->next = 0;
    body->lanes = (int)lanes;
    r->at = (uint64_t)(at + (size_t)count * 2) * 8;
    return 1;
}

static inline __attribute__((always_inline)) void take_tokens(struct body *body,
                                                              const struct slot *slots,
                                                              const uint8_t *classes,
                                                              uint8_t *tokens, size_t count,
                                                              int lanes)
{
    for (size_t i = 0; i < count;) {
        const uint16_t *word = body->words + body->next;
        for (int l = 0; l < lanes && i < count; l++, i++) {
            uint32_t x = body->states[l];
            const struct slot *s = slots + ((size_t)classes[i] << SCALE_BITS) + (x & (SCALE - 1));
            tokens[i] = s->token;
            x = s->share * (x >> SCALE_BITS) + s->place;
            uint32_t longer = x << 16 | *word;
            int low = x < LOWEST;
            word += low;
            body->states[l] = low ? longer : x;
        }
        body->next = (size_t)(word - body->words);
        if (body->next > body->count) body->next = body->count;
    }
}

/* Blocks of 64 after blocks of 64: classes, tokens, words. */
static int run(const struct walks *walks, struct reader *r, struct body *body,
               const struct slot *slots, const uint8_t *base, uint8_t *out, size_t n,
               struct view view, int method, const struct changes *changes)
{
    uint8_t classes[64] = {0}, tokens[64];
    int width = view.kind.width;
    size_t moved = 0, used = (size_t)CLASSES >> view.shift;
    for (size_t start = 0; start < n; start += 64) {
        size_t count = n - start < 64 ? n - start : 64, at = start * (size_t)width;
        if (method == DENSE && view.shift < 4) {
            walks->classify[slot_of(width)](base + at, count, view, classes);
            for (; moved < changes->moved && changes->moved_at[moved] < start + 64; moved++)
                classes[changes->moved_at[moved] - start] = changes->moved_to[moved];
        }
        if (used > 1)
            for (size_t i = 0; i < count; i++)
                if (!slots[(size_t)classes[i] << SCALE_BITS].share) return 0; /* no such context */
        if (body->lanes == 32) take_tokens(body, slots, classes, tokens, count, 32);
        else take_tokens(body, slots, classes, tokens, count, 4);
        if (method == ALONE) {
            if (width == 1) settle_alone(r, tokens, out + at, count, view.kind, 1);
            else if (width == 2) settle_alone(r, tokens, out + at, count, view.kind, 2);
            else if (width == 4) settle_alone(r, tokens, out + at, count, view.kind, 4);
            else settle_alone(r, tokens, out + at, count, view.kind, 8);
        } else if (width == 1) {
            settle(r, tokens, base + at, out + at, count, view.kind, 1, changes->backwards);
        } else if (width == 2) {
            settle(r, tokens, base + at, out + at, count, view.kind, 2, changes->backwards);
        } else if (width == 4) {
            settle(r, tokens, base + at, out + at, count, view.kind, 4, changes->backwards);
        } else {
            settle(r, tokens, base + at, out + at, count, view.kind, 8, changes->backwards);
        }
        if (r->bad) return 0;
    }
    for (int l = 0; l < body->lanes; l++)
        if (body->states[l] != LOWEST) return 0;
    return body->next == body->count && r->end - r->at < 8;
}

static int take_moved(struct reader *r, struct changes *changes, uint32_t **at, uint8_t **to,
                      size_t n, int shift)
{
    uint64_t count = take_number(r);
    if (r->bad || count > n) return 0;
    changes->moved = (size_t)count;
    if (!count) return 1;
    *at = malloc(count * 4);
    *to = malloc(count);
    if (!*at || !*to) return -1;
    int k = (int)take_few(r, 5);
    take_rests(r, *at, count, k);
    take_places(r, *at, count, k, n);
    for (size_t i = 0; i < count; i++) {
        (*to)[i] = (uint8_t)take_few(r, 4);
        if ((*to)[i] >= CLASSES >> shift) r->bad = 1;
    }
    changes->moved_at = *at;
    changes->moved_to = *to;
    return !r->bad;
}

int difflens_undense(const struct walks *walks, const uint8_t *data, size_t size,
                     const uint8_t *base, uint8_t *out, size_t n, struct kind kind, int backwards)
{
    struct reader r = reader_of(data, size);
    struct changes changes = {.backwards = backwards};
    struct body body = {.words = NULL};
    struct slot *slots = NULL;
    uint32_t *at = NULL;
    uint8_t *to = NULL;
    int method = (int)take_few(&r, 3);
    struct view view = {kind, 0, (int)take_few(&r, 3)};
    int can_go_back = (int)take_few(&r, 1), done = 0;
    if (view.shift > 4 || r.bad) return 0;
    if (view.shift < 4 && (!kind.exponent || method == ALONE)) return 0;
    if (backwards && !can_go_back) return -2;
    if (view.shift < 4) view.top = (int)take_few(&r, kind.exponent);
    slots = slots_of(&r, CLASSES >> view.shift);
    if (!slots) return -1;
    if (!r.bad && method == DENSE && can_go_back) {
        done = take_moved(&r, &changes, &at, &to, n, view.shift);
        if (done <= 0) goto end;
        if (!backwards) changes.moved = 0;
    }
    done = r.bad ? 0 : take_body(&r, &body, n);
    if (done == 1)
        done = run(walks, &r, &body, slots, base, out, n, view, method, &changes);
end:
    free(slots);
    free(body.words);
    free(at);
    free(to);
    return done;
}
