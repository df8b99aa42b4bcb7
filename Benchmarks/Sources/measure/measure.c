// Runs a program and writes its time and its peak memory.
//
// usage: measure RESULT PROGRAM [ARGUMENT…]
//
// RESULT gets one line: wall-clock seconds, processor seconds, peak resident kilobytes, exit status. This is a separate program because
// Linux attributes the memory of a parent process to its child at first: this parent has almost none.

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: measure RESULT PROGRAM [ARGUMENT...]\n");
    return 64;
  }
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  pid_t child = fork();
  if (child < 0) {
    perror("measure: fork");
    return 1;
  }
  if (child == 0) {
    execvp(arguments[2], arguments + 2);
    fprintf(stderr, "measure: %s: %s\n", arguments[2], strerror(errno));
    _exit(127);
  }
  int status;
  struct rusage usage;
  while (wait4(child, &status, 0, &usage) < 0) {
    if (errno != EINTR) {
      perror("measure: wait4");
      return 1;
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
#ifdef __APPLE__
  long kilobytes = usage.ru_maxrss / 1024;
#else
  long kilobytes = usage.ru_maxrss;
#endif
  FILE *result = fopen(arguments[1], "w");
  if (result == NULL) {
    perror(arguments[1]);
    return 1;
  }
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  double processor = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  fprintf(result, "%.6f %.6f %ld %d\n", seconds, processor, kilobytes, code);
  return fclose(result) == 0 ? 0 : 1;
}
