// CRoaring, the bitmap library that lists of identifiers are measured against.
#ifndef BENCHMARKS_CROARING_SHIM_H
#define BENCHMARKS_CROARING_SHIM_H
#include <roaring/roaring.h>
#endif
