// The system's libpq, with nothing of our own.
#ifndef CPOSTGRES_SHIM_H
#define CPOSTGRES_SHIM_H
// Debian keeps it in a folder, since it installs what servers are built with beside it.
#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#include <libpq-fe.h>
#endif
#endif
