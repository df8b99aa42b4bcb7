// What Glibc and Musl declare under _GNU_SOURCE only, which Swift's import of them does not set, and
// a header of Glibc that is no part of it.
#include <spawn.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#if defined(__linux__)
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *, const char *);
int pipe2(int ends[2], int flags);
#endif
