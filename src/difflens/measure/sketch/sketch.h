/* The sketch: every element is added, with a random sign, to one of 1024 sums.

   Row r is elements 1024 r to 1024 r + 1023 of a tensor. All elements of a row go to different
   sums: element j to sum (j + rotation of the row) modulo 1024. Signs and rotations come from
   splitmix64, counted by row, so that elements may be added from any row on. */
#ifndef DIFFLENS_SKETCH_H
#define DIFFLENS_SKETCH_H

#include <stddef.h>
#include <stdint.h>

enum { BUCKETS = 1024, WORDS = 32 };

enum form { F64, F32, F16, BF16, I64, U64, I32, U32, I16, U16, BYTES, NIBBLES, FORMS };

/* Bits of an element of each form. */
extern const unsigned char difflens_form_bits[FORMS];

/* Add n elements from row `row` on to the sums; `table` has what bytes or nibbles stand for.
   Elements that are not finite are left out. */
void difflens_sketch(enum form form, const uint8_t *data, size_t n, uint64_t row,
                     const double *table, double *sums);

#endif
