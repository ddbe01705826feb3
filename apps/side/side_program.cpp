#include "apps/side/side_program.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace troupe::side {
namespace {

struct Pipe {
  core::OwnedFd read, write;
};

Result<Pipe> pipe_to(const std::string& what) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::kResources, "cannot reach " + what + ": " + std::strerror(errno));
  }
  return Pipe{core::OwnedFd(ends[0]), core::OwnedFd(ends[1])};
}

}  // namespace

Result<SideProgram> SideProgram::start(const Start& start) {
  TROUPE_TRY_ASSIGN(to_child, pipe_to(start.what));
  TROUPE_TRY_ASSIGN(from_child, pipe_to(start.what));
  core::ChildSpec spec;
  spec.words = {"python3", "-I", "-c", start.text,
                start.job.dump(-1, ' ', false, Json::error_handler_t::replace)};
  if (!start.environment.empty()) spec.environment = core::merged_environment(start.environment);
  spec.descriptors = {{to_child.read.get(), STDIN_FILENO}, {from_child.write.get(), STDOUT_FILENO}};
  if (start.errors >= 0) spec.descriptors.push_back({start.errors, STDERR_FILENO});
  SideProgram made;
  TROUPE_TRY_SET(made.child_, core::ChildProcess::start(start.what, std::move(spec)));
  made.in_ = std::move(to_child.write);
  made.out_ = std::move(from_child.read);
  ::fcntl(made.out_.get(), F_SETFL, O_NONBLOCK);
  made.what_ = start.what;
  made.line_bytes_max_ = start.line_bytes_max;
  made.heard_ = core::SteadyClock().now();
  return made;
}

void SideProgram::listen(core::Duration limit) {
  pollfd polled{out_.get(), POLLIN, 0};
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  if (!out_ || ::poll(&polled, 1, static_cast<int>(wait)) <= 0) return;
  std::array<char, 1 << 14> chunk;
  while (pending_.size() <= line_bytes_max_) {
    const ssize_t count = ::read(out_.get(), chunk.data(), chunk.size());
    if (count == 0) out_ = core::OwnedFd();  // it has ended
    if (count <= 0) return;
    pending_.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

std::optional<Json> SideProgram::next() {
  for (auto end = pending_.find('\n'); end != pending_.npos; end = pending_.find('\n')) {
    auto json = parse::bounded_json<Json>(std::string_view(pending_).substr(0, end), {});
    pending_.erase(0, end + 1);
    if (!json || !json->is_object()) continue;
    heard_ = core::SteadyClock().now();
    return std::move(*json);
  }
  return std::nullopt;
}

core::Duration SideProgram::silence() const {
  return core::SteadyClock().now() - heard_;
}

core::Failure SideProgram::lost() {
  constexpr int kNotFound = 127;  // what a child ends with that cannot become its program
  out_ = core::OwnedFd();         // one that is still writing ends by it
  const int status = child_.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) {
    return fail(ErrorCode::kResources, what_ + " needs a python3, and none can be started",
                "put one into PATH");
  }
  return fail(ErrorCode::kPeerLost, what_ + " " + core::how_it_ended(status));
}

void SideProgram::say(std::string_view line) {
  [[maybe_unused]] const auto written = ::write(in_.get(), line.data(), line.size());
}

}  // namespace troupe::side
