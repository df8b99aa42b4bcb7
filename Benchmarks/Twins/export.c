// Exports all rows of a table as CSV or NDJSON, in two threads of which each takes half of the rowids.
//
// usage: export DATABASE TABLE csv|ndjson THREADS FILE
//
// Does nothing but read, format and write: no list, no checkpoint, no order of the parts to keep, a text that needs no
// escape is copied. This is the limit of an export.
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static char *integer(char *p, sqlite3_int64 v) {
  char b[24]; int n = 0; sqlite3_uint64 u = v < 0 ? -(sqlite3_uint64)v : v;
  do b[n++] = '0' + u % 10; while (u /= 10);
  if (v < 0) *p++ = '-';
  while (n) *p++ = b[--n];
  return p;
}
struct job { const char *path, *table, *file; int csv; sqlite3_int64 from, to; };
static void *run(void *a) {
  struct job *j = a; sqlite3 *db; sqlite3_stmt *q; char sql[200], name[64][80]; int length[64];
  sqlite3_open_v2(j->path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, 0);
  sqlite3_exec(db, "PRAGMA mmap_size=4000000000", 0, 0, 0);
  snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE rowid BETWEEN %lld AND %lld", j->table, j->from, j->to);
  sqlite3_prepare_v2(db, sql, -1, &q, 0);
  int columns = sqlite3_column_count(q);
  for (int i = 0; i < columns; i++)
    length[i] = snprintf(name[i], 80, "%s\"%s\":", i ? "," : "{", sqlite3_column_name(q, i));
  int out = open(j->file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  size_t size = 1 << 18; char *buffer = malloc(size + (1 << 16)), *p = buffer;
  while (sqlite3_step(q) == SQLITE_ROW) {
    for (int i = 0; i < columns; i++) {
      if (j->csv) { if (i) *p++ = ','; } else { memcpy(p, name[i], length[i]); p += length[i]; }
      switch (sqlite3_column_type(q, i)) {
      case SQLITE_INTEGER: p = integer(p, sqlite3_column_int64(q, i)); break;
      case SQLITE_FLOAT: {
        double d = sqlite3_column_double(q, i);
        if (d == floor(d) && fabs(d) < 1e15) { p = integer(p, d); *p++ = '.'; *p++ = '0'; }
        else p += sprintf(p, "%.17g", d);
        break; }
      case SQLITE_TEXT: {
        const char *t = (const char *)sqlite3_column_text(q, i); int n = sqlite3_column_bytes(q, i), plain = 1;
        for (int k = 0; k < n; k++) plain &= t[k] >= ' ' && t[k] != '"' && t[k] != '\\' && t[k] != ',';
        if (j->csv && plain) { memcpy(p, t, n); p += n; break; }
        *p++ = '"';
        if (plain) { memcpy(p, t, n); p += n; }
        else for (int k = 0; k < n; k++) { if (t[k] == '"') *p++ = j->csv ? '"' : '\\'; *p++ = t[k]; }
        *p++ = '"'; break; }
      default: if (!j->csv) { memcpy(p, "null", 4); p += 4; }
      }
    }
    if (!j->csv) *p++ = '}';
    *p++ = '\n';
    if ((size_t)(p - buffer) >= size) { if (write(out, buffer, p - buffer) < 0) exit(1); p = buffer; }
  }
  if (write(out, buffer, p - buffer) < 0) exit(1);
  if (getenv("SYNC")) fsync(out);
  close(out); sqlite3_close(db);
  return 0;
}
int main(int c, char **v) {
  if (c != 6) return 64;
  double start = now(); int threads = atoi(v[4]); sqlite3 *db; sqlite3_stmt *q; char sql[200];
  sqlite3_open_v2(v[1], &db, SQLITE_OPEN_READONLY, 0);
  snprintf(sql, sizeof sql, "SELECT min(rowid), max(rowid) FROM %s", v[2]);
  sqlite3_prepare_v2(db, sql, -1, &q, 0); sqlite3_step(q);
  sqlite3_int64 low = sqlite3_column_int64(q, 0), high = sqlite3_column_int64(q, 1);
  pthread_t t[16]; struct job j[16]; char file[16][300];
  for (int i = 0; i < threads; i++) {
    snprintf(file[i], 300, "%s.%d", v[5], i);
    j[i] = (struct job){v[1], v[2], file[i], !strcmp(v[3], "csv"), low + (high - low + 1) * i / threads, low + (high - low + 1) * (i + 1) / threads - 1};
    pthread_create(&t[i], 0, run, &j[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(t[i], 0);
  struct rusage u; getrusage(RUSAGE_SELF, &u);
  printf("%s, %d threads: wall %.2f cpu %.2f, %ld kB\n", v[3], threads, now() - start, u.ru_utime.tv_sec + u.ru_utime.tv_usec * 1e-6 + u.ru_stime.tv_sec + u.ru_stime.tv_usec * 1e-6, u.ru_maxrss);
}
