/* A library that is loaded before all others (LD_PRELOAD), and has the n-th call of one kind fail.
 *
 * FAULT_CALL is open, write, fsync, send, mmap, malloc or thread; FAULT_NTH is n, 0 for none.
 * FAULT_REPORT is a file, to which it adds a line when the call fails, "failed KIND" and the frames
 * that called, the innermost first, as OBJECT+OFFSET; before it a line "of FILE", where the call
 * was about one; a line "aborted" with frames, where the process calls abort() after that; and at
 * the end, for each kind, "calls KIND" and their number. Calls that the C library makes itself,
 * such as mmap for a thread's stack or the write of a stream, are not seen. */
#undef _FORTIFY_SOURCE /* with which some of these are inline functions */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

enum { PLACE_FRAMES = 10 };
enum { OPEN_CALL, WRITE_CALL, FSYNC_CALL, SEND_CALL, MMAP_CALL, MALLOC_CALL, THREAD_CALL, KINDS };
static const char* const names[KINDS] = {"open", "write",  "fsync", "send",
                                         "mmap", "malloc", "thread"};

static int chosen = -1; /* until setup() has run: nothing is counted before */
static long nth;
static const char* report_file;
static atomic_long calls;
static atomic_int has_failed;

static void add_line(const char* text) {
  const int file = (int)syscall(SYS_openat, AT_FDCWD, report_file,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, text, strlen(text));
  syscall(SYS_close, file);
}

static void report(const char* what) {
  char line[8192];
  void* frames[48];
  size_t used = (size_t)snprintf(line, sizeof line, "%s", what);
  const int count = backtrace(frames, 48);
  for (int i = 2; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == NULL) continue;
    if (used + strlen(info.dli_fname) + 24 > sizeof line) break;
    /* A return address is of the instruction after the call. */
    used += (size_t)snprintf(line + used, sizeof line - used, " %s+0x%zx", info.dli_fname,
                             (size_t)((char*)frames[i] - (char*)info.dli_fbase) - 1);
  }
  line[used] = '\n';
  line[used + 1] = '\0';
  add_line(line);
}

static void tell_file(const char* path) {
  char line[4200];
  snprintf(line, sizeof line, "of %s\n", path);
  add_line(line);
}

static void tell_descriptor(int file) {
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const long bytes = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  path[bytes < 0 ? 0 : bytes] = '\0';
  tell_file(path);
}

/* Whether what is written lacks a disk when it fails: else it goes to a socket, a pipe or an event.
 */
static int is_file(int file) {
  struct stat status;
  return syscall(SYS_fstat, file, &status) == 0 &&
         (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

static void tell_place(long number) {
  void* frames[3 + PLACE_FRAMES];
  char line[64];
  unsigned long hash = 0xCBF29CE484222325;
  const int count = backtrace(frames, 3 + PLACE_FRAMES);
  for (int i = 3; i < count; ++i) hash = (hash ^ (unsigned long)frames[i]) * 0x100000001B3;
  snprintf(line, sizeof line, "place %ld %lx\n", number, hash);
  add_line(line);
}

static __attribute__((noinline)) int is_nth(int kind) {
  if (kind != chosen) return 0;
  const long number = atomic_fetch_add(&calls, 1) + 1;
  if (nth == 0) tell_place(number);
  if (number != nth) return 0;
  atomic_store(&has_failed, 1);
  return 1;
}

static __attribute__((noinline)) int fails(int kind) {
  char what[32];
  if (!is_nth(kind)) return 0;
  snprintf(what, sizeof what, "failed %s", names[kind]);
  report(what);
  return 1;
}

static __attribute__((noinline)) int fails_at(int kind, const char* path, int file) {
  char what[32];
  if (!is_nth(kind)) return 0;
  if (path != NULL) {
    tell_file(path);
  } else {
    tell_descriptor(file);
  }
  snprintf(what, sizeof what, "failed %s", names[kind]);
  report(what);
  return 1;
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void setup(void) {
  void* frames[2];
  backtrace(frames, 2); /* loads what it needs now */
  report_file = getenv("FAULT_REPORT");
  const char* kind = getenv("FAULT_CALL");
  const char* number = getenv("FAULT_NTH");
  nth = number == NULL ? 0 : atol(number);
  for (int i = 0; i < KINDS && report_file != NULL && kind != NULL; ++i) {
    if (strcmp(kind, names[i]) == 0) chosen = i;
  }
}

__attribute__((destructor)) static void tell_calls(void) {
  char line[64];
  if (chosen < 0) return;
  snprintf(line, sizeof line, "calls %ld\n", atomic_load(&calls));
  add_line(line);
}

void abort(void) {
  REAL(abort);
  if (atomic_load(&has_failed)) report("aborted");
  real();
  __builtin_unreachable();
}

#define FAIL(failing, code, result) \
  if (failing) {                    \
    errno = code;                   \
    return result;                  \
  }

#define OPEN(name)                                  \
  int name(const char* path, int flags, ...) {      \
    REAL(name);                                     \
    va_list rest;                                   \
    va_start(rest, flags);                          \
    const mode_t mode = va_arg(rest, mode_t);       \
    va_end(rest);                                   \
    FAIL(fails_at(OPEN_CALL, path, -1), EMFILE, -1) \
    return real(path, flags, mode);                 \
  }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                       \
  int name(int folder, const char* path, int flags, ...) { \
    REAL(name);                                            \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    const mode_t mode = va_arg(rest, mode_t);              \
    va_end(rest);                                          \
    FAIL(fails_at(OPEN_CALL, path, -1), EMFILE, -1)        \
    return real(folder, path, flags, mode);                \
  }
OPENAT(openat)
OPENAT(openat64)

#define FAIL_WRITE(file)                               \
  if (is_file(file)) {                                 \
    FAIL(fails_at(WRITE_CALL, NULL, file), ENOSPC, -1) \
  } else {                                             \
    FAIL(fails_at(SEND_CALL, NULL, file), ENOBUFS, -1) \
  }

ssize_t write(int file, const void* bytes, size_t count) {
  REAL(write);
  FAIL_WRITE(file)
  return real(file, bytes, count);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  REAL(pwrite64);
  FAIL_WRITE(file)
  return real(file, bytes, count, at);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  REAL(pwrite);
  FAIL_WRITE(file)
  return real(file, bytes, count, at);
}
ssize_t writev(int file, const struct iovec* pieces, int count) {
  REAL(writev);
  FAIL_WRITE(file)
  return real(file, pieces, count);
}

ssize_t send(int file, const void* bytes, size_t count, int flags) {
  REAL(send);
  FAIL(fails_at(SEND_CALL, NULL, file), ENOBUFS, -1)
  return real(file, bytes, count, flags);
}
ssize_t sendto(int file, const void* bytes, size_t count, int flags, const struct sockaddr* to,
               socklen_t to_bytes) {
  REAL(sendto);
  FAIL(fails_at(SEND_CALL, NULL, file), ENOBUFS, -1)
  return real(file, bytes, count, flags, to, to_bytes);
}
ssize_t sendmsg(int file, const struct msghdr* message, int flags) {
  REAL(sendmsg);
  FAIL(fails_at(SEND_CALL, NULL, file), ENOBUFS, -1)
  return real(file, message, flags);
}

int fsync(int file) {
  REAL(fsync);
  FAIL(fails_at(FSYNC_CALL, NULL, file), EIO, -1)
  return real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  FAIL(fails_at(FSYNC_CALL, NULL, file), EIO, -1)
  return real(file);
}
int msync(void* begin, size_t bytes, int flags) {
  REAL(msync);
  FAIL(fails(FSYNC_CALL), EIO, -1)
  return real(begin, bytes, flags);
}

void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off64_t offset) {
  REAL(mmap64);
  FAIL(fails(MMAP_CALL), ENOMEM, MAP_FAILED)
  return real(at, bytes, protection, flags, file, offset);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  REAL(mmap);
  FAIL(fails(MMAP_CALL), ENOMEM, MAP_FAILED)
  return real(at, bytes, protection, flags, file, offset);
}

void* malloc(size_t bytes) {
  FAIL(fails(MALLOC_CALL), ENOMEM, NULL)
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  FAIL(fails(MALLOC_CALL), ENOMEM, NULL)
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  FAIL(fails(MALLOC_CALL), ENOMEM, NULL)
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  FAIL(fails(MALLOC_CALL), ENOMEM, NULL)
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  FAIL(fails(MALLOC_CALL), ENOMEM, NULL)
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** into, size_t alignment, size_t bytes) {
  if (fails(MALLOC_CALL)) return ENOMEM;
  *into = __libc_memalign(alignment, bytes);
  return *into == NULL ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  REAL(pthread_create);
  if (fails(THREAD_CALL)) return EAGAIN;
  return real(thread, attributes, run, argument);
}
