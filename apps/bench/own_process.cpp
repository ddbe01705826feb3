#include "apps/bench/own_process.hpp"

#include "runtime/core/child_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::app {
namespace {

using core::ErrorCode;

std::string read_all(int from) {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t n = ::read(from, chunk, sizeof chunk);
    if (n > 0 && text.size() < kOwnProcess_output_max) {
      text.append(chunk, static_cast<std::size_t>(n));
    } else if (n == 0 || (n < 0 && errno != EINTR)) {
      return text;
    }
  }
}

}  // namespace

core::Result<std::string> run_own_process(const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return core::fail(ErrorCode::kResources, std::string("no pipe: ") + std::strerror(errno));
  }
  core::ChildSpec spec;
  spec.words = arguments;
  spec.words.insert(spec.words.begin(), "troupe");
  spec.this_program = true;
  spec.environment = core::merged_environment(environment);
  spec.descriptors = {{ends[1], STDOUT_FILENO}};
  auto child = core::ChildProcess::start("a second process", std::move(spec));
  ::close(ends[1]);
  if (!child) {
    ::close(ends[0]);
    return child.failure();
  }
  std::string output = read_all(ends[0]);
  ::close(ends[0]);
  const int status = child->wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return core::fail(ErrorCode::kPeerLost, "the second process (troupe " + arguments.front() + ") " +
                                              core::how_it_ended(status) +
                                              "; its message is above");
}

}  // namespace troupe::app
