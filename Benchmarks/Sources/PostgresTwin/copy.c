// Writes the result of a query to a file by COPY, as fast as libpq delivers it.
//
// usage: copy URL QUERY FORMAT FILE
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(PGconn *connection) {
  fprintf(stderr, "copy: %s", PQerrorMessage(connection));
  exit(1);
}

int main(int count, char **arguments) {
  if (count != 5) return 64;
  PGconn *connection = PQconnectdb(arguments[1]);
  if (PQstatus(connection) != CONNECTION_OK) fail(connection);
  FILE *file = fopen(arguments[4], "w");
  if (file == NULL) return 1;
  setvbuf(file, NULL, _IOFBF, 1 << 20);
  char statement[4096];
  snprintf(statement, sizeof statement, "COPY (%s) TO STDOUT (FORMAT %s)", arguments[2], arguments[3]);
  PGresult *result = PQexec(connection, statement);
  if (PQresultStatus(result) != PGRES_COPY_OUT) fail(connection);
  PQclear(result);
  char *piece;
  int length;
  while ((length = PQgetCopyData(connection, &piece, 0)) > 0) {
    if (fwrite(piece, 1, length, file) != (size_t)length) return 1;
    PQfreemem(piece);
  }
  if (length != -1 || PQresultStatus(PQgetResult(connection)) != PGRES_COMMAND_OK) fail(connection);
  return fclose(file) == 0 ? 0 : 1;
}
