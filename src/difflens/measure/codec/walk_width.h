/* The loops of walk.h for one width of a word. Buffers may be unaligned: blocks are copied. */

TARGET static inline void OF(block)(const WORD *words, struct view view, uint8_t *out)
{
    if (!view.kind.exponent) {
        memset(out, 0, 64);
        return;
    }
    const HALF top = (HALF)view.top, mask = (HALF)((1 << view.kind.exponent) - 1);
    const int low = view.kind.mantissa, shift = view.shift;
    for (int i = 0; i < 64; i++) {
        HALF below = (HALF)(top - (HALF)((HALF)(words[i] >> low) & mask));
        below = below < 0 ? 0 : below > CLASSES - 1 ? CLASSES - 1 : below;
        out[i] = (uint8_t)(below >> shift);
    }
}

/* Load up to 64 words; what is missing are zeros. */
TARGET static inline size_t OF(fetch)(const uint8_t *words, size_t start, size_t n, WORD *out)
{
    size_t count = n - start < 64 ? n - start : 64;
    if (count == 64) {
        memcpy(out, words + start * sizeof(WORD), 64 * sizeof(WORD));
    } else {
        memset(out, 0, 64 * sizeof(WORD));
        memcpy(out, words + start * sizeof(WORD), count * sizeof(WORD));
    }
    return count;
}

TARGET static int OF(find)(const void *base, const void *target, size_t n, struct view view,
                           size_t most, struct events *events)
{
    WORD left[64], right[64];
    uint8_t classes[64], differs[64];
    uint32_t last[CLASSES];
    const int used = CLASSES >> view.shift;
    memset(events->of_class, 0, sizeof events->of_class);
    memset(events->seen, 0, sizeof events->seen);
    for (int c = 0; c < CLASSES; c++) last[c] = (uint32_t)-1;
    events->count = 0;
    for (size_t start = 0; start < n; start += 64) {
        size_t count = OF(fetch)(base, start, n, left);
        OF(fetch)(target, start, n, right);
        OF(block)(left, view, classes);
        for (size_t i = count; i < 64; i++) classes[i] = 0xFF;
        for (int i = 0; i < 64; i++) differs[i] = left[i] == right[i];
        uint64_t changed = EQUAL(differs, 0), masks[CLASSES];
        for (int c = 0; c < used; c++) masks[c] = EQUAL(classes, (char)c);
        if (changed) {
            if (events->count + (size_t)__builtin_popcountll(changed) > most) return 0;
            for (; changed; changed &= changed - 1) {
                int i = __builtin_ctzll(changed), c = classes[i];
                uint32_t rank = events->seen[c] + (uint32_t)__builtin_popcountll(
                                    masks[c] & (((uint64_t)1 << i) - 1));
                events->positions[events->count] = (uint32_t)(start + (size_t)i);
                events->gaps[events->count] = rank - last[c] - 1;
                events->classes[events->count++] = (uint8_t)c;
                events->of_class[c]++;
                last[c] = rank;
            }
        }
        for (int c = 0; c < used; c++)
            events->seen[c] += (uint32_t)__builtin_popcountll(masks[c]);
    }
    return 1;
}

/* Most blocks have no change in most classes: four at a time are counted, and then passed over. */
TARGET static int OF(apply)(const void *base, void *out, size_t n, struct view view,
                            const struct changes *changes)
{
    enum { GROUP = 256 };
    const uint8_t *from = base;
    WORD words[64];
    uint8_t classes[GROUP];
    uint32_t next[CLASSES], seen[CLASSES] = {0}, index[CLASSES];
    int active[CLASSES], used = 0;
    const struct kind kind = {(int)sizeof(WORD), view.kind.mantissa, view.kind.exponent};
    size_t moved = 0, left = changes->starts[CLASSES];
    for (int c = 0; c < CLASSES; c++) {
        index[c] = changes->starts[c];
        if (index[c] == changes->starts[c + 1]) continue;
        if (c >= CLASSES >> view.shift) return 0;
        next[c] = changes->ranks[index[c]];
        active[used++] = c;
    }
    memmove(out, base, n * sizeof(WORD));
    for (size_t start = 0; start < n && left; start += GROUP) {
        size_t count = n - start < GROUP ? n - start : GROUP;
        for (size_t at = 0; at < count; at += 64) {
            OF(fetch)(from, start + at, n, words);
            OF(block)(words, view, classes + at);
        }
        memset(classes + count, 0xFF, GROUP - count);
        for (; moved < changes->moved && changes->moved_at[moved] < start + GROUP; moved++)
            classes[changes->moved_at[moved] - start] = changes->moved_to[moved];
        for (int a = 0; a < used; a++) {
            const int c = active[a];
            uint64_t masks[4];
            uint32_t after = seen[c];
            for (int b = 0; b < 4; b++) {
                masks[b] = EQUAL(classes + 64 * b, (char)c);
                after += (uint32_t)__builtin_popcountll(masks[b]);
            }
            if (next[c] >= after) {
                seen[c] = after;
                continue;
            }
            uint32_t before = seen[c];
            for (int b = 0; b < 4; b++) {
                uint32_t end = before + (uint32_t)__builtin_popcountll(masks[b]);
                while (next[c] < end) {
                    size_t i = start + 64 * (size_t)b + SELECT(masks[b], next[c] - before);
                    size_t j = index[c]++;
                    uint64_t steps = changes->sizes ? changes->sizes[j] : 1;
                    if ((changes->signs[j >> 3] >> (j & 7) & 1) != changes->backwards)
                        steps = 0 - steps;
                    WORD word;
                    memcpy(&word, from + i * sizeof(WORD), sizeof(WORD));
                    word = (WORD)word_at((order_of(word, kind) + steps) & mask_of(kind.width), kind);
                    memcpy((uint8_t *)out + i * sizeof(WORD), &word, sizeof(WORD));
                    left--;
                    next[c] = index[c] < changes->starts[c + 1] ? changes->ranks[index[c]]
                                                                : UINT32_MAX;
                }
                before = end;
            }
            seen[c] = after;
            if (index[c] == changes->starts[c + 1]) active[a--] = active[--used];
        }
    }
    return !left;
}

TARGET static void OF(classify)(const void *words, size_t n, struct view view, uint8_t *out)
{
    WORD some[64];
    uint8_t classes[64];
    for (size_t start = 0; start < n; start += 64) {
        size_t count = OF(fetch)(words, start, n, some);
        OF(block)(some, view, classes);
        memcpy(out + start, classes, count);
    }
}

TARGET static void OF(tokens)(const void *base, const void *target, size_t n, struct kind kind,
                              uint8_t *out)
{
    WORD left[64], right[64];
    const struct kind own = {(int)sizeof(WORD), kind.mantissa, kind.exponent};
    for (size_t start = 0; start < n; start += 64) {
        size_t count = OF(fetch)(base, start, n, left);
        OF(fetch)(target, start, n, right);
        for (size_t i = 0; i < count; i++)
            out[start + i] = (uint8_t)token_of(
                folded(order_of(left[i], own), order_of(right[i], own), own.width));
    }
}
