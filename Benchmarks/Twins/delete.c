// Deletes the rows of half of a table in transactions of N rows, by ranges of rowids or of another key.
//
// usage: delete DATABASE N [PAGES [KEY]]
//
// The log is emptied at PAGES pages, by default 1,000, which are 4 MB.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec*1e-9;}
int main(int c,char**v){
  sqlite3*db;int n=atoi(v[2]);long lim=c>3?atol(v[3]):1000;
  sqlite3_open(v[1],&db);
  sqlite3_exec(db,"PRAGMA journal_mode=WAL",0,0,0);sqlite3_exec(db,"PRAGMA synchronous=NORMAL",0,0,0);
  const char*key=c>4?v[4]:"rowid";char s[300];sprintf(s,"PRAGMA wal_autocheckpoint=%ld",lim);sqlite3_exec(db,s,0,0,0);
  sqlite3_exec(db,"PRAGMA cache_size=-8000",0,0,0);
  double t=now();
  sqlite3_stmt*q;sprintf(s,"SELECT %s FROM t WHERE n<500 ORDER BY %s",key,key);sqlite3_prepare_v2(db,s,-1,&q,0);
  long cap=1<<20,k=0;sqlite3_value**r=malloc(cap*8);
  while(sqlite3_step(q)==SQLITE_ROW){if(k==cap)r=realloc(r,(cap*=2)*8);r[k++]=sqlite3_value_dup(sqlite3_column_value(q,0));}
  sqlite3_finalize(q);
  sprintf(s,"DELETE FROM t WHERE %s BETWEEN ? AND ? AND n<500",key);sqlite3_prepare_v2(db,s,-1,&q,0);
  for(long i=0;i<k;i+=n){long e=i+n<k?i+n:k;
    sqlite3_exec(db,"BEGIN IMMEDIATE",0,0,0);
    sqlite3_bind_value(q,1,r[i]);sqlite3_bind_value(q,2,r[e-1]);
    if(sqlite3_step(q)!=SQLITE_DONE)puts(sqlite3_errmsg(db));sqlite3_reset(q);
    sqlite3_exec(db,"COMMIT",0,0,0);}
  sqlite3_finalize(q);
  struct rusage u;sqlite3_close(db);getrusage(RUSAGE_SELF,&u);
  printf("%ld rows, %d a transaction: wall %.2f cpu %.2f\n",k,n,now()-t,u.ru_utime.tv_sec+u.ru_utime.tv_usec*1e-6+u.ru_stime.tv_sec+u.ru_stime.tv_usec*1e-6);
}
