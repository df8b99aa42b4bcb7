// The system's LZ4, for the encodings that are measured for comparison.
#ifndef BENCHMARKS_CLZ4RAW_SHIM_H
#define BENCHMARKS_CLZ4RAW_SHIM_H
#include <lz4.h>
#endif
