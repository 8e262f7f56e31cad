/* The loops as any processor of this architecture runs them. */
#define TARGET
#define LANES 2
#define SET baseline
#define SET_TEXT "baseline"
#include "loops.h"
