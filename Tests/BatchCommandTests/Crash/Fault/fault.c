// Stands between a program and the system, by LD_PRELOAD: counts the calls that change or lock files,
// ends the process at one of them or has it fail, and keeps a log of what was written.
//
// Calls go to the system by syscall(2), so nothing has to be looked up and nothing recurs. What is
// counted: writes, syncs, truncations, renames, links, removals, creations, locks and mappings of
// regular files, syncs of folders, and writes to standard output and standard error. Everything else,
// pipes to other programs above all, passes.
//
// The variables are removed as the library is loaded, so that programs that are started run without:
//
//   BATCH_FAULT_COUNTER  a file that keeps a `struct counter`; without it nothing is done at all
//   BATCH_FAULT_KIND     kill, eio, enospc, eintr or short; calls that it cannot befall do not count
//   BATCH_FAULT_AT       at which call, counted from 1; 0: at none, but calls are counted as if
//   BATCH_FAULT_REPEATS  1: at every call from then on
//   BATCH_FAULT_TRACE    a file that gets a line for each call: its number, its kind, its path
//   BATCH_FAULT_LOG      a file that gets a `struct entry` for each call that had an effect
//   BATCH_FAULT_SECONDS  after how many seconds the process is ended, by SIGALRM
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC, TRUNCATE, RENAME, LINK, UNLINK, CREATE, LOCK, MAP, ALLOCATE };
static const char *const kind_names[] = {"",     "write",  "sync",   "truncate", "rename",  "link",
                                         "unlink", "create", "lock", "map",      "allocate"};

enum fault { NONE, KILL, EIO_FAULT, ENOSPC_FAULT, EINTR_FAULT, SHORT };

// What the driver reads once the process has ended. Little-endian, as all of this machine.
struct counter {
  uint64_t calls;  // how many were counted
  uint64_t hits;   // how many of them came to grief
};

// A call that had an effect, followed by its paths and the bytes written.
struct entry {
  uint32_t kind;
  uint32_t path_length;
  uint32_t other_length;  // the new name, of a rename or link
  uint32_t reserved;
  uint64_t number;
  uint64_t inode;  // 0: standard output or standard error
  int64_t offset;  // of a write; the length after a truncation
  uint64_t length;  // of the bytes
};

static struct counter *counter;
static enum fault fault = NONE;
static uint64_t fault_at;
static int repeats;
static int trace = -1;
static int record = -1;    // the log
static dev_t proc_device;  // what is written to /proc is no file
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int is_inside;

// MARK: Raw calls, for the library itself

static long raw_open(const char *path, int flags) {
  return syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
}

static void raw_write(int descriptor, const void *bytes, size_t count) {
  const char *rest = bytes;
  while (count > 0) {
    long done = syscall(SYS_write, descriptor, rest, count);
    if (done <= 0) return;
    rest += done;
    count -= done;
  }
}

// MARK: Beginning and end

static void forget_in_child(void) { counter = NULL; }

static int open_apart(const char *name) {
  const char *path = getenv(name);
  if (!path) return -1;
  int low = raw_open(path, O_WRONLY | O_CREAT | O_APPEND);
  // The program finds the numbers free that it finds free without the library.
  int high = syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 700);
  if (high < 0) return low;
  syscall(SYS_close, low);
  return high;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("BATCH_FAULT_COUNTER");
  if (path) {
    const char *kind = getenv("BATCH_FAULT_KIND");
    const char *at = getenv("BATCH_FAULT_AT");
    const char *seconds = getenv("BATCH_FAULT_SECONDS");
    const char *again = getenv("BATCH_FAULT_REPEATS");
    if (kind) {
      fault = !strcmp(kind, "kill")     ? KILL
              : !strcmp(kind, "eio")    ? EIO_FAULT
              : !strcmp(kind, "enospc") ? ENOSPC_FAULT
              : !strcmp(kind, "eintr")  ? EINTR_FAULT
              : !strcmp(kind, "short")  ? SHORT
                                        : NONE;
      if (fault == NONE) abort();
    }
    fault_at = at ? strtoull(at, NULL, 10) : 0;
    repeats = again && *again == '1';
    trace = open_apart("BATCH_FAULT_TRACE");
    record = open_apart("BATCH_FAULT_LOG");
    if (seconds) alarm(atoi(seconds));
    int descriptor = raw_open(path, O_RDWR | O_CREAT);
    if (descriptor < 0 || syscall(SYS_ftruncate, descriptor, sizeof(struct counter)) != 0) abort();
    // The offset travels on the stack, where an int leaves the upper half undefined.
    void *region = (void *)syscall(
        SYS_mmap, NULL, sizeof(struct counter), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
        (off_t)0);
    syscall(SYS_close, descriptor);
    if (region == MAP_FAILED) abort();
    struct stat status;
    if (stat("/proc/self", &status) == 0) proc_device = status.st_dev;
    counter = region;
    pthread_atfork(NULL, NULL, forget_in_child);
  }
  const char *names[] = {"LD_PRELOAD",          "BATCH_FAULT_COUNTER", "BATCH_FAULT_KIND",
                         "BATCH_FAULT_AT",      "BATCH_FAULT_REPEATS", "BATCH_FAULT_TRACE",
                         "BATCH_FAULT_LOG",     "BATCH_FAULT_SECONDS"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

// MARK: Files

static int is_counted_file(int descriptor, uint64_t *inode) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return 0;
  *inode = status.st_ino;
  return S_ISREG(status.st_mode) && status.st_dev != proc_device;
}

static void path_of(int descriptor, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
}

// The absolute path of a name; what leads to it is not resolved.
static void absolute(int folder, const char *name, char *path) {
  if (name[0] == '/') {
    snprintf(path, PATH_MAX, "%s", name);
    return;
  }
  char base[PATH_MAX] = "";
  if (folder == AT_FDCWD) {
    if (syscall(SYS_getcwd, base, sizeof base) < 0) base[0] = 0;
  } else {
    path_of(folder, base);
  }
  if (strncmp(name, "./", 2) == 0) name += 2;
  size_t length = strlen(base);
  if (length + strlen(name) + 2 > PATH_MAX) {
    path[0] = 0;
    return;
  }
  memcpy(path, base, length);
  path[length] = '/';
  strcpy(path + length + 1, name);
}

// MARK: Counting

// What is to become of a call.
struct verdict {
  int error;     // why it fails, or 0
  int is_short;  // whether half of it is done
  uint64_t number;
};

static int befalls(enum kind kind) {
  switch (fault) {
  case NONE:
  case KILL: return 1;
  case EIO_FAULT: return kind != MAP;
  case ENOSPC_FAULT: return kind != LOCK && kind != MAP && kind != UNLINK;
  case EINTR_FAULT: return kind != MAP && kind != RENAME && kind != LINK && kind != UNLINK;
  case SHORT: return kind == WRITE;
  }
  return 0;
}

// Counts a call, with the lock held; does not return where the process ends here.
static struct verdict count(enum kind kind, const char *path) {
  struct verdict verdict = {0, 0, 0};
  if (!befalls(kind)) return verdict;
  uint64_t number = ++counter->calls;
  verdict.number = number;
  if (trace >= 0) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%llu %s %s\n", (unsigned long long)number,
                          kind_names[kind], path);
    raw_write(trace, line, length);
  }
  int is_its_turn = number == fault_at || (repeats && number > fault_at);
  if (fault != NONE && fault_at > 0 && is_its_turn) {
    counter->hits++;
    switch (fault) {
    case KILL:
      // The other threads wait for the lock, so nothing comes after this.
      syscall(SYS_kill, getpid(), SIGKILL);
      for (;;) pause();
    case EIO_FAULT: verdict.error = EIO; break;
    case ENOSPC_FAULT: verdict.error = ENOSPC; break;
    case EINTR_FAULT: verdict.error = EINTR; break;
    case SHORT: verdict.is_short = 1; break;
    case NONE: break;
    }
  }
  return verdict;
}

static void note(enum kind kind, struct verdict verdict, uint64_t inode, const char *path,
                 const char *other, int64_t offset, const void *bytes, size_t length) {
  if (record < 0) return;
  struct entry entry = {kind,  strlen(path), other ? strlen(other) : 0, 0, verdict.number, inode,
                        offset, length};
  raw_write(record, &entry, sizeof entry);
  raw_write(record, path, entry.path_length);
  if (other) raw_write(record, other, entry.other_length);
  if (length > 0) raw_write(record, bytes, length);
}

// Whether calls are counted now, in this thread; if so the lock is held until `leave`.
static int enter(void) {
  if (!counter || is_inside) return 0;
  is_inside = 1;
  pthread_mutex_lock(&mutex);
  return 1;
}

static void leave(void) {
  // Neither may hide why the call failed.
  int error = errno;
  pthread_mutex_unlock(&mutex);
  is_inside = 0;
  errno = error;
}

static long fail(int error) {
  errno = error;
  return -1;
}

// MARK: Writing

typedef long (*write_call)(int, const void *, size_t, off_t);

static long plain(int descriptor, const void *bytes, size_t length, off_t offset) {
  (void)offset;
  return syscall(SYS_write, descriptor, bytes, length);
}

static long positioned(int descriptor, const void *bytes, size_t length, off_t offset) {
  return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

static long write_counted(int descriptor, const void *bytes, size_t length, off_t offset,
                          write_call call) {
  if (!enter()) return call(descriptor, bytes, length, offset);
  uint64_t inode = 0;
  char path[PATH_MAX];
  int is_standard = descriptor == 1 || descriptor == 2;
  if (is_standard) {
    strcpy(path, descriptor == 1 ? "standard output" : "standard error");
  } else if (is_counted_file(descriptor, &inode)) {
    path_of(descriptor, path);
  } else {
    leave();
    return call(descriptor, bytes, length, offset);
  }
  struct verdict verdict = count(WRITE, path);
  long result;
  if (verdict.error) {
    result = fail(verdict.error);
  } else {
    size_t part = verdict.is_short && length > 1 ? length / 2 : length;
    result = call(descriptor, bytes, part, offset);
    if (result > 0) {
      if (call == plain && !is_standard) offset = lseek(descriptor, 0, SEEK_CUR) - result;
      note(WRITE, verdict, inode, path, NULL, offset, bytes, result);
    }
  }
  leave();
  return result;
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
  return write_counted(descriptor, bytes, length, 0, plain);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return write_counted(descriptor, bytes, length, offset, positioned);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off_t offset) {
  return write_counted(descriptor, bytes, length, offset, positioned);
}

// Several parts are one call here as well, of their bytes put together.
static long write_parts(int descriptor, const struct iovec *parts, int number, off_t offset,
                        write_call call) {
  size_t length = 0;
  for (int i = 0; i < number; i++) length += parts[i].iov_len;
  char *bytes = malloc(length ? length : 1);
  if (!bytes) return fail(ENOMEM);
  size_t end = 0;
  for (int i = 0; i < number; i++) {
    memcpy(bytes + end, parts[i].iov_base, parts[i].iov_len);
    end += parts[i].iov_len;
  }
  long result = write_counted(descriptor, bytes, length, offset, call);
  int error = errno;
  free(bytes);
  errno = error;
  return result;
}

ssize_t writev(int descriptor, const struct iovec *parts, int number) {
  uint64_t inode;
  // Messages through sockets and pipes keep their form.
  if (!counter || is_inside
      || (descriptor != 1 && descriptor != 2 && !is_counted_file(descriptor, &inode)))
    return syscall(SYS_writev, descriptor, parts, number);
  return write_parts(descriptor, parts, number, 0, plain);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int number, off_t offset) {
  return write_parts(descriptor, parts, number, offset, positioned);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int number, off_t offset) {
  return write_parts(descriptor, parts, number, offset, positioned);
}

// MARK: Syncing

static long sync_counted(int descriptor, long call) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
      || !enter())
    return syscall(call, descriptor);
  char path[PATH_MAX];
  path_of(descriptor, path);
  struct verdict verdict = count(SYNC, path);
  long result = verdict.error ? fail(verdict.error) : syscall(call, descriptor);
  if (result == 0) note(SYNC, verdict, status.st_ino, path, NULL, 0, NULL, 0);
  leave();
  return result;
}

int fsync(int descriptor) { return sync_counted(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return sync_counted(descriptor, SYS_fdatasync); }

// It begins to write and promises nothing, so it is counted and is none in the log.
int sync_file_range(int descriptor, off64_t offset, off64_t length, unsigned flags) {
  uint64_t inode;
  if (is_counted_file(descriptor, &inode) && enter()) {
    char path[PATH_MAX];
    path_of(descriptor, path);
    struct verdict verdict = count(SYNC, path);
    leave();
    if (verdict.error) return fail(verdict.error);
  }
  return syscall(SYS_sync_file_range, descriptor, offset, length, flags);
}

// MARK: Lengths

int ftruncate(int descriptor, off_t length) {
  uint64_t inode;
  if (!is_counted_file(descriptor, &inode) || !enter())
    return syscall(SYS_ftruncate, descriptor, length);
  char path[PATH_MAX];
  path_of(descriptor, path);
  struct verdict verdict = count(TRUNCATE, path);
  long result = verdict.error ? fail(verdict.error) : syscall(SYS_ftruncate, descriptor, length);
  if (result == 0) note(TRUNCATE, verdict, inode, path, NULL, length, NULL, 0);
  leave();
  return result;
}

int ftruncate64(int descriptor, off64_t length) { return ftruncate(descriptor, length); }

int truncate(const char *name, off_t length) {
  struct stat status;
  if (stat(name, &status) != 0 || !S_ISREG(status.st_mode) || !enter())
    return syscall(SYS_truncate, name, length);
  char path[PATH_MAX];
  absolute(AT_FDCWD, name, path);
  struct verdict verdict = count(TRUNCATE, path);
  long result = verdict.error ? fail(verdict.error) : syscall(SYS_truncate, name, length);
  if (result == 0) note(TRUNCATE, verdict, status.st_ino, path, NULL, length, NULL, 0);
  leave();
  return result;
}

int truncate64(const char *name, off64_t length) { return truncate(name, length); }

static int allocate(int descriptor, int mode, off_t offset, off_t length) {
  uint64_t inode;
  if (!is_counted_file(descriptor, &inode) || !enter())
    return syscall(SYS_fallocate, descriptor, mode, offset, length);
  char path[PATH_MAX];
  path_of(descriptor, path);
  struct verdict verdict = count(ALLOCATE, path);
  long result = verdict.error ? fail(verdict.error)
                              : syscall(SYS_fallocate, descriptor, mode, offset, length);
  // Where it makes the file longer, that is all it does to the content.
  struct stat status;
  if (result == 0 && fstat(descriptor, &status) == 0)
    note(TRUNCATE, verdict, inode, path, NULL, status.st_size, NULL, 0);
  leave();
  return result;
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  return allocate(descriptor, mode, offset, length);
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t length) {
  return allocate(descriptor, mode, offset, length);
}

int posix_fallocate(int descriptor, off_t offset, off_t length) {
  return allocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
}

int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
  return posix_fallocate(descriptor, offset, length);
}

// MARK: Names

static int rename_counted(int from, const char *old, int to, const char *new, unsigned flags) {
  if (!enter()) return syscall(SYS_renameat2, from, old, to, new, flags);
  char path[PATH_MAX], other[PATH_MAX];
  absolute(from, old, path);
  absolute(to, new, other);
  struct verdict verdict = count(RENAME, path);
  long result = verdict.error ? fail(verdict.error)
                              : syscall(SYS_renameat2, from, old, to, new, flags);
  if (result == 0) note(RENAME, verdict, 0, path, other, 0, NULL, 0);
  leave();
  return result;
}

int rename(const char *old, const char *new) {
  return rename_counted(AT_FDCWD, old, AT_FDCWD, new, 0);
}

int renameat(int from, const char *old, int to, const char *new) {
  return rename_counted(from, old, to, new, 0);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  return rename_counted(from, old, to, new, flags);
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
  if (!enter()) return syscall(SYS_linkat, from, old, to, new, flags);
  char path[PATH_MAX], other[PATH_MAX];
  absolute(from, old, path);
  absolute(to, new, other);
  struct verdict verdict = count(LINK, path);
  long result = verdict.error ? fail(verdict.error)
                              : syscall(SYS_linkat, from, old, to, new, flags);
  if (result == 0) note(LINK, verdict, 0, path, other, 0, NULL, 0);
  leave();
  return result;
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *name, int flags) {
  if ((flags & AT_REMOVEDIR) || !enter()) return syscall(SYS_unlinkat, folder, name, flags);
  char path[PATH_MAX];
  absolute(folder, name, path);
  struct verdict verdict = count(UNLINK, path);
  long result = verdict.error ? fail(verdict.error) : syscall(SYS_unlinkat, folder, name, flags);
  if (result == 0) note(UNLINK, verdict, 0, path, NULL, 0, NULL, 0);
  leave();
  return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

static int open_counted(int folder, const char *name, int flags, mode_t mode) {
  // A file without a name has the bits of a folder.
  if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_DIRECTORY) || !enter())
    return syscall(SYS_openat, folder, name, flags, mode);
  struct stat status;
  int was_there = fstatat(folder, name, &status, 0) == 0;
  int result;
  if (was_there && !S_ISREG(status.st_mode)) {
    result = syscall(SYS_openat, folder, name, flags, mode);
  } else {
    char path[PATH_MAX];
    absolute(folder, name, path);
    if (strncmp(path, "/proc/", 6) == 0) {
      leave();
      return syscall(SYS_openat, folder, name, flags, mode);
    }
    struct verdict verdict = count(CREATE, path);
    result = verdict.error ? fail(verdict.error)
                           : syscall(SYS_openat, folder, name, flags, mode);
    if (result >= 0 && fstat(result, &status) == 0) {
      if (!was_there) {
        note(CREATE, verdict, status.st_ino, path, NULL, 0, NULL, 0);
      } else if (flags & O_TRUNC) {
        note(TRUNCATE, verdict, status.st_ino, path, NULL, 0, NULL, 0);
      }
    }
  }
  leave();
  return result;
}

#define MODE(flags)                                     \
  mode_t mode = 0;                                      \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {              \
    va_list arguments;                                  \
    va_start(arguments, flags);                         \
    mode = va_arg(arguments, mode_t);                   \
    va_end(arguments);                                  \
  }

int open(const char *name, int flags, ...) {
  MODE(flags)
  return open_counted(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
  MODE(flags)
  return open_counted(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}

int openat(int folder, const char *name, int flags, ...) {
  MODE(flags)
  return open_counted(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...) {
  MODE(flags)
  return open_counted(folder, name, flags | O_LARGEFILE, mode);
}

int creat(const char *name, mode_t mode) {
  return open_counted(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

// MARK: Locks and mappings

static int control(int descriptor, int command, void *argument) {
  int is_lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK
                || command == F_OFD_SETLKW;
  uint64_t inode;
  if (is_lock && is_counted_file(descriptor, &inode) && enter()) {
    char path[PATH_MAX];
    path_of(descriptor, path);
    struct verdict verdict = count(LOCK, path);
    // Whoever waits for a lock must not keep the others from letting go of it.
    leave();
    if (verdict.error) return fail(verdict.error);
  }
  return syscall(SYS_fcntl, descriptor, command, argument);
}

int fcntl(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  return control(descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  return control(descriptor, command, argument);
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  uint64_t inode;
  if (descriptor >= 0 && !(flags & MAP_ANONYMOUS) && is_counted_file(descriptor, &inode)
      && enter()) {
    char path[PATH_MAX];
    path_of(descriptor, path);
    count(MAP, path);
    leave();
  }
  return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int descriptor,
             off64_t offset) {
  return mmap(address, length, protection, flags, descriptor, offset);
}
