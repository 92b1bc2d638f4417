#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <string>

namespace batchwright::test {

/// Runs `work` in a child process; it shall not return.
template <class Work>
pid_t fork_child(Work work) {
  const pid_t child = fork();
  if (child != 0) return child;
  work();
  _exit(99);
}

/// Reaps a child: its exit code, or 128 and the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline bool wait_for_byte(int from) {
  char byte = 0;
  return read(from, &byte, 1) == 1;
}

/// A process of its own, which answers with one text and ends. Killed and reaped with this object.
class Child {
 public:
  /// The child's end: ready() lets the parent go on, and waits for it to tell() the child to.
  class Parent {
   public:
    Parent(int to, int from) : to_(to), from_(from) {}
    void ready() const {
      char byte = '+';
      static_cast<void>(!write(to_, &byte, 1));
      static_cast<void>(!read(from_, &byte, 1));
    }

   private:
    int to_;
    int from_;
  };

  explicit Child(const std::function<std::string(const Parent& parent)>& act) {
    std::array<int, 2> answer{-1, -1};
    std::array<int, 2> orders{-1, -1};
    if (pipe(answer.data()) != 0 || pipe(orders.data()) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(answer[0]);
      close(orders[1]);
      const std::string text = act(Parent(answer[1], orders[0]));
      static_cast<void>(!write(answer[1], text.data(), text.size()));
      _exit(0);
    }
    close(answer[1]);
    close(orders[0]);
    answer_ = answer[0];
    orders_ = orders[1];
  }
  ~Child() {
    close(orders_);
    close(answer_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits until the child is ready, or has answered: then false, and the answer goes on from here.
  bool is_ready() {
    char byte = 0;
    if (read(answer_, &byte, 1) != 1) return false;
    if (byte == '+') return true;
    begun_ = byte;
    return false;
  }
  void tell() const { static_cast<void>(!write(orders_, "x", 1)); }
  /// What it answers, whole.
  std::string answer() const {
    std::string text = begun_;
    std::array<char, 512> buffer{};
    for (;;) {
      const ssize_t bytes = read(answer_, buffer.data(), buffer.size());
      if (bytes <= 0) return text;
      text.append(buffer.data(), static_cast<std::size_t>(bytes));
    }
  }

 private:
  pid_t pid_ = -1;
  int answer_ = -1;
  int orders_ = -1;
  std::string begun_;
};

/// What a child answers that needs no orders.
inline std::string answer_of(const std::function<std::string()>& act) {
  return Child([&act](const Child::Parent&) { return act(); }).answer();
}

/// Gives this process mounts of its own, which end with it. False where that is not allowed.
inline bool has_own_mounts() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// What a child answers that may not do what its test takes.
inline constexpr const char* kNotAllowed = "not allowed here";

}  // namespace batchwright::test
