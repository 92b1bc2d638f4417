/* A library that is loaded before all others (LD_PRELOAD), and has a file system stand still.
 *
 * Calls about HOLD_UNDER, and files below it, wait while the file HOLD_WHILE is there and names
 * their kind: "open", "stat", "read", "write" (with sync, rename and close) or "map", which is
 * any read of a memory map, and advice on one. HOLD_WHILE with ".held" after it is there once all
 * that follows waits, and gone once nothing does.
 *
 * A map that stands still may not be read: its reader gets SIGSEGV, waits in the handler, and reads
 * again. Handlers of the program get what is not of such a map. */
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, STAT = 2, READ = 4, WRITE = 8, MAP = 16 };
enum { MOST_MAPS = 256 };

struct map {
  char* begin;
  size_t bytes;
  int protection;
};

static const char* under;
static const char* control;
static atomic_int held; /* kinds */
static struct map maps[MOST_MAPS];
static int map_count;
static pthread_mutex_t maps_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction of_program; /* for SIGSEGV */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void wait_while(int kind) {
  const int before = errno;
  for (int now = atomic_load(&held); (now & kind) != 0; now = atomic_load(&held)) {
    syscall(SYS_futex, &held, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
  }
  errno = before;
}

static int is_under(const char* path) {
  if (under == NULL || path == NULL || strncmp(path, under, strlen(under)) != 0) return 0;
  const char next = path[strlen(under)];
  return next == '\0' || next == '/';
}

static int is_file_under(int file) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const long bytes = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (bytes < 0) return 0;
  path[bytes] = '\0';
  return is_under(path);
}

static void at_path(int kind, const char* path) {
  if ((atomic_load(&held) & kind) != 0 && is_under(path)) wait_while(kind);
}

static void at_file(int kind, int file) {
  if ((atomic_load(&held) & kind) != 0 && is_file_under(file)) wait_while(kind);
}

static int is_in_map(const char* address) {
  int found = 0;
  pthread_mutex_lock(&maps_mutex);
  for (int i = 0; i < map_count; ++i) {
    found |= address >= maps[i].begin && address < maps[i].begin + maps[i].bytes;
  }
  pthread_mutex_unlock(&maps_mutex);
  return found;
}

static void on_fault(int number, siginfo_t* info, void* context) {
  if (is_in_map(info->si_addr)) {
    wait_while(MAP);
    return;
  }
  if ((of_program.sa_flags & SA_SIGINFO) != 0 && of_program.sa_sigaction != NULL) {
    of_program.sa_sigaction(number, info, context);
    return;
  }
  signal(number, SIG_DFL);
  raise(number);
}

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  if (number != SIGSEGV || under == NULL) return REAL(sigaction)(number, action, before);
  const struct sigaction had = of_program;
  if (action != NULL) of_program = *action;
  if (before != NULL) *before = had;
  return 0;
}

static void protect(int is_held) {
  pthread_mutex_lock(&maps_mutex);
  for (int i = 0; i < map_count; ++i) {
    syscall(SYS_mprotect, maps[i].begin, maps[i].bytes, is_held ? PROT_NONE : maps[i].protection);
  }
  pthread_mutex_unlock(&maps_mutex);
}

static int wanted(void) {
  static const struct {
    const char* name;
    int kind;
  } kinds[] = {{"open", OPEN}, {"stat", STAT}, {"read", READ}, {"write", WRITE}, {"map", MAP}};
  char text[256];
  const int file = (int)syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return 0;
  const long bytes = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  text[bytes > 0 ? bytes : 0] = '\0';
  int all = 0;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strstr(text, kinds[i].name) != NULL) all |= kinds[i].kind;
  }
  return all;
}

static void* watch(void* unused) {
  char told[PATH_MAX];
  snprintf(told, sizeof told, "%s.held", control);
  const struct timespec pause = {0, 2000000};
  for (;;) {
    const int now = wanted();
    const int before = atomic_load(&held);
    if (now != before) {
      if ((now & MAP) != 0) protect(1);
      atomic_store(&held, now);
      if ((now & MAP) == 0) protect(0);
      syscall(SYS_futex, &held, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
      if (now != 0) {
        syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, told, O_CREAT | O_WRONLY, 0600));
      } else {
        syscall(SYS_unlinkat, AT_FDCWD, told, 0);
      }
    }
    syscall(SYS_nanosleep, &pause, NULL);
  }
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  control = getenv("HOLD_WHILE");
  if (control == NULL) return;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  REAL(sigaction)(SIGSEGV, &action, NULL);
  under = getenv("HOLD_UNDER");
  atomic_store(&held, wanted()); /* of the program's first calls, too */
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  pthread_create(&thread, NULL, watch, NULL);
  pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void* add_map(void* begin, size_t bytes, int protection, int file) {
  if (begin == MAP_FAILED || under == NULL || file < 0 || !is_file_under(file)) return begin;
  pthread_mutex_lock(&maps_mutex);
  if (map_count < MOST_MAPS) maps[map_count++] = (struct map){begin, bytes, protection};
  pthread_mutex_unlock(&maps_mutex);
  return begin;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (file >= 0) at_file(MAP, file);
  return add_map((void*)syscall(SYS_mmap, at, bytes, protection, flags, file, offset), bytes,
                 protection, file);
}

void* mmap64(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(at, bytes, protection, flags, file, offset);
}

int munmap(void* begin, size_t bytes) {
  pthread_mutex_lock(&maps_mutex);
  for (int i = 0; i < map_count; ++i) {
    if (maps[i].begin == begin) maps[i--] = maps[--map_count];
  }
  pthread_mutex_unlock(&maps_mutex);
  return (int)syscall(SYS_munmap, begin, bytes);
}

int madvise(void* begin, size_t bytes, int advice) {
  if ((atomic_load(&held) & MAP) != 0 && is_in_map(begin)) wait_while(MAP);
  return (int)syscall(SYS_madvise, begin, bytes, advice);
}

static mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

#define OPENS(name)                            \
  int name(const char* path, int flags, ...) { \
    va_list more;                              \
    va_start(more, flags);                     \
    const mode_t mode = mode_of(flags, more);  \
    va_end(more);                              \
    at_path(OPEN, path);                       \
    return REAL(name)(path, flags, mode);      \
  }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                 \
  int name(int at, const char* path, int flags, ...) { \
    va_list more;                                      \
    va_start(more, flags);                             \
    const mode_t mode = mode_of(flags, more);          \
    va_end(more);                                      \
    at_path(OPEN, path);                               \
    return REAL(name)(at, path, flags, mode);          \
  }
OPENS_AT(openat)
OPENS_AT(openat64)

#define AT_PATH(kind, type, name, declared, passed) \
  type name declared {                              \
    at_path(kind, path);                            \
    return REAL(name) passed;                       \
  }
AT_PATH(STAT, int, stat, (const char* path, struct stat* into), (path, into))
AT_PATH(STAT, int, lstat, (const char* path, struct stat* into), (path, into))
AT_PATH(STAT, int, stat64, (const char* path, struct stat64* into), (path, into))
AT_PATH(STAT, int, lstat64, (const char* path, struct stat64* into), (path, into))
AT_PATH(STAT, int, statvfs, (const char* path, struct statvfs* into), (path, into))
AT_PATH(STAT, int, statvfs64, (const char* path, struct statvfs64* into), (path, into))
AT_PATH(STAT, int, access, (const char* path, int mode), (path, mode))
AT_PATH(STAT, int, fstatat, (int at, const char* path, struct stat* into, int flags),
        (at, path, into, flags))
AT_PATH(WRITE, int, rename, (const char* path, const char* to), (path, to))
AT_PATH(WRITE, int, unlink, (const char* path), (path))

#define AT_FILE(kind, type, name, declared, passed) \
  type name declared {                              \
    at_file(kind, file);                            \
    return REAL(name) passed;                       \
  }
AT_FILE(STAT, int, fstat, (int file, struct stat* into), (file, into))
AT_FILE(STAT, int, fstat64, (int file, struct stat64* into), (file, into))
AT_FILE(STAT, int, flock, (int file, int how), (file, how))
AT_FILE(READ, ssize_t, read, (int file, void* into, size_t bytes), (file, into, bytes))
AT_FILE(READ, ssize_t, pread, (int file, void* into, size_t bytes, off_t at),
        (file, into, bytes, at))
AT_FILE(READ, ssize_t, pread64, (int file, void* into, size_t bytes, off64_t at),
        (file, into, bytes, at))
AT_FILE(READ, int, posix_fadvise, (int file, off_t at, off_t bytes, int advice),
        (file, at, bytes, advice))
AT_FILE(WRITE, ssize_t, write, (int file, const void* from, size_t bytes), (file, from, bytes))
AT_FILE(WRITE, ssize_t, pwrite, (int file, const void* from, size_t bytes, off_t at),
        (file, from, bytes, at))
AT_FILE(WRITE, ssize_t, writev, (int file, const struct iovec* from, int count),
        (file, from, count))
AT_FILE(WRITE, int, fsync, (int file), (file))
AT_FILE(WRITE, int, fdatasync, (int file), (file))
AT_FILE(WRITE, int, ftruncate, (int file, off_t bytes), (file, bytes))
AT_FILE(WRITE, int, close, (int file), (file))
