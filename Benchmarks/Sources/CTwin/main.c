// The twins in C, with the same SQLite.

#include "twin.h"

static int usage(void) {
  fprintf(stderr,
          "usage: CTwin fetch DATABASE CONDITION\n"
          "       CTwin update DATABASE CONDITION\n"
          "       CTwin naive DATABASE three|declared|all\n"
          "       CTwin best DATABASE three|all\n");
  return 64;
}

int main(int count, char **arguments) {
  if (count != 4) return usage();
  const char *what = arguments[1], *path = arguments[2], *how = arguments[3];
  if (strcmp(what, "fetch") == 0) return fetch(path, how);
  if (strcmp(what, "update") == 0) return update(path, how);
  int all = strcmp(how, "all") == 0;
  if (strcmp(what, "naive") == 0) return transform_naive(path, all, strcmp(how, "declared") != 0);
  if (strcmp(what, "best") == 0) return transform_best(path, all);
  return usage();
}
