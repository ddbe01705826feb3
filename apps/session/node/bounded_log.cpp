#include "apps/session/node/bounded_log.hpp"

#include "actors/node/limits.hpp"
#include "apps/session/limits.hpp"
#include "runtime/core/owned_fd.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace troupe::session {

std::string safe_log_line(std::string_view line) {
  return observe::terminal_line(line, actors::node::limits::kLogLine_bytes_max);
}

void append_to_log(const std::filesystem::path& file, const std::string& text) {
  struct stat now {};
  if (::stat(file.c_str(), &now) == 0 &&
      static_cast<std::uint64_t>(now.st_size) >= limits::kNodeLog_bytes_max) {
    ::rename(file.c_str(), (file.string() + ".1").c_str());
  }
  const core::OwnedFd out(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (out) [[maybe_unused]]
    const auto written = ::write(out.get(), text.data(), text.size());
}

std::string BoundedLines::told_drops() {
  const auto dropped = std::exchange(dropped_, 0);
  if (dropped == 0) return "";
  return "... " + std::to_string(dropped) + " lines were dropped here: too many at a time\n";
}

bool BoundedLines::has_room(core::TimePoint now) const {
  return now - second_ >= std::chrono::seconds(1) || bytes_ < limits::kNodeLog_rate_max;
}

bool BoundedLines::add(std::string_view safe, core::TimePoint now, std::string& text) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    bytes_ = 0;
  }
  if (bytes_ + safe.size() > limits::kNodeLog_rate_max) {
    ++dropped_;
    return false;
  }
  bytes_ += safe.size() + 1;
  text += told_drops();
  text += safe;
  text += '\n';
  return true;
}

}  // namespace troupe::session
