#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

namespace batchwright::test {

bool eventually(const std::function<bool()>& holds, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

Process::Process(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string out_file = folder_ / "out";
  const std::string err_file = folder_ / "err";
  pid_ = ::fork();
  if (pid_ != 0) return;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open(out_file.c_str(), flags, 0600), STDOUT_FILENO);
  ::dup2(::open(err_file.c_str(), flags, 0600), STDERR_FILENO);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

Process::~Process() {
  if (pid_ <= 0 || !running()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { ::kill(pid_, number); }

bool Process::running() {
  if (code_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::optional<int> Process::wait(int seconds) {
  eventually([this] { return !running(); }, seconds);
  return code_;
}

std::string Process::out() const { return read_file(folder_ / "out"); }
std::string Process::err() const { return read_file(folder_ / "err"); }

Finished run(const std::vector<std::string>& words) {
  Process process(words);
  const int code = process.wait(120).value_or(-1);
  return {code, process.out(), process.err()};
}

std::string program(const std::string& name) { return std::string(BATCHWRIGHT_BIN) + "/" + name; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string http_get(unsigned short port, const std::string& path) {
  using boost::asio::ip::tcp;
  boost::asio::io_context loop;
  tcp::socket socket(loop);
  boost::system::error_code error;
  socket.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  if (error) return "";
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  boost::asio::write(socket, boost::asio::buffer(request), error);
  std::string answer;
  boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
  if (!answer.starts_with("HTTP/1.1 200")) return "";
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

}  // namespace batchwright::test
