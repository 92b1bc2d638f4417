/* A library that is loaded before all others (LD_PRELOAD), and has the n-th call of one kind fail.
 *
 * FAULT_CALL is open, write, fsync, mmap, malloc or thread; FAULT_NTH is n, 0 for none.
 * FAULT_REPORT is a file, to which it adds a line when the call fails, "failed KIND" and the
 * objects that called, the innermost first; and one at the end, "calls" and their number. Calls
 * that the C library makes itself, such as mmap for a thread's stack, are not seen. */
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static const char* chosen; /* null until setup() has run: nothing is counted before */
static long nth;
static const char* report_file;
static atomic_long calls;

static void add_line(const char* text) {
  const int file = (int)syscall(SYS_openat, AT_FDCWD, report_file,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, text, strlen(text));
  syscall(SYS_close, file);
}

static void report(void) {
  char line[1024];
  void* frames[40];
  const char* last = "";
  size_t used = (size_t)snprintf(line, sizeof line, "failed %s", chosen);
  const int count = backtrace(frames, 40);
  for (int i = 2; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == NULL) continue;
    const char* slash = strrchr(info.dli_fname, '/');
    const char* name = slash == NULL ? info.dli_fname : slash + 1;
    if (strcmp(name, last) == 0 || used + strlen(name) + 3 > sizeof line) continue;
    used += (size_t)snprintf(line + used, sizeof line - used, " %s", name);
    last = name;
  }
  line[used] = '\n';
  line[used + 1] = '\0';
  add_line(line);
}

/* A write to a pipe, an event or a socket within the process: such a one lacks no disk. */
static int is_file(int file) {
  struct stat status;
  return syscall(SYS_fstat, file, &status) == 0 &&
         (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

static int fails(const char* kind) {
  if (chosen == NULL || strcmp(kind, chosen) != 0) return 0;
  if (atomic_fetch_add(&calls, 1) + 1 != nth) return 0;
  report();
  return 1;
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void setup(void) {
  void* frames[2];
  backtrace(frames, 2); /* loads what it needs now */
  report_file = getenv("FAULT_REPORT");
  const char* number = getenv("FAULT_NTH");
  nth = number == NULL ? 0 : atol(number);
  if (report_file != NULL) chosen = getenv("FAULT_CALL");
}

__attribute__((destructor)) static void tell_calls(void) {
  char line[64];
  if (chosen == NULL) return;
  snprintf(line, sizeof line, "calls %ld\n", atomic_load(&calls));
  add_line(line);
}

#define FAIL(kind, code, result) \
  if (fails(kind)) {             \
    errno = code;                \
    return result;               \
  }

#define OPEN(name)                             \
  int name(const char* path, int flags, ...) { \
    REAL(name);                                \
    va_list rest;                              \
    va_start(rest, flags);                     \
    const mode_t mode = va_arg(rest, mode_t);  \
    va_end(rest);                              \
    FAIL("open", EMFILE, -1)                   \
    return real(path, flags, mode);            \
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
    FAIL("open", EMFILE, -1)                               \
    return real(folder, path, flags, mode);                \
  }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void* bytes, size_t count) {
  REAL(write);
  if (is_file(file)) {
    FAIL("write", ENOSPC, -1)
  }
  return real(file, bytes, count);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  REAL(pwrite64);
  if (is_file(file)) {
    FAIL("write", ENOSPC, -1)
  }
  return real(file, bytes, count, at);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  REAL(pwrite);
  if (is_file(file)) {
    FAIL("write", ENOSPC, -1)
  }
  return real(file, bytes, count, at);
}
ssize_t writev(int file, const struct iovec* pieces, int count) {
  REAL(writev);
  if (is_file(file)) {
    FAIL("write", ENOSPC, -1)
  }
  return real(file, pieces, count);
}

int fsync(int file) {
  REAL(fsync);
  FAIL("fsync", EIO, -1)
  return real(file);
}
int fdatasync(int file) {
  REAL(fdatasync);
  FAIL("fsync", EIO, -1)
  return real(file);
}
int msync(void* begin, size_t bytes, int flags) {
  REAL(msync);
  FAIL("fsync", EIO, -1)
  return real(begin, bytes, flags);
}

void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off64_t offset) {
  REAL(mmap64);
  FAIL("mmap", ENOMEM, MAP_FAILED)
  return real(at, bytes, protection, flags, file, offset);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  REAL(mmap);
  FAIL("mmap", ENOMEM, MAP_FAILED)
  return real(at, bytes, protection, flags, file, offset);
}

void* malloc(size_t bytes) {
  FAIL("malloc", ENOMEM, NULL)
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  FAIL("malloc", ENOMEM, NULL)
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  FAIL("malloc", ENOMEM, NULL)
  return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  FAIL("malloc", ENOMEM, NULL)
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  FAIL("malloc", ENOMEM, NULL)
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** into, size_t alignment, size_t bytes) {
  if (fails("malloc")) return ENOMEM;
  *into = __libc_memalign(alignment, bytes);
  return *into == NULL ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  REAL(pthread_create);
  if (fails("thread")) return EAGAIN;
  return real(thread, attributes, run, argument);
}
