#include "apps/session/node/pass_file.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

// The process id in the file; 0 when it holds none.
pid_t pid_in(int file) {
  char text[32] = {};
  const auto count = ::pread(file, text, sizeof text - 1, 0);
  pid_t pid = 0;
  if (count > 0) std::from_chars(text, text + count, pid);
  return pid;
}

bool is_locked(int file) {
  if (::flock(file, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(file, LOCK_UN);
  return false;
}

}  // namespace

Result<void> write_pass(const fs::path& file, const CompanyPass& pass) {
  const std::string text =
      nlohmann::json{{"socket", pass.socket}, {"pass", pass.pass}}.dump() + "\n";
  const fs::path fresh = file.string() + ".new";
  const core::OwnedFd out(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  const bool written =
      out && ::write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(fresh.c_str(), file.c_str()) != 0)
    return store::io_failure("write", file, errno);
  return {};
}

Result<CompanyPass> read_pass(const fs::path& file) {
  const auto text = store::read_all(file);
  const auto object = nlohmann::json::parse(text ? *text : "", nullptr, false);
  if (!object.is_object() || !object.contains("socket") || !object.contains("pass") ||
      !object["socket"].is_string() || !object["pass"].is_string()) {
    return core::fail(ErrorCode::kNotFound, file.string() + " holds no pass of a company");
  }
  return CompanyPass{object["socket"].get<std::string>(), object["pass"].get<std::string>()};
}

Result<core::OwnedFd> hold_pid_file(const fs::path& file) {
  core::OwnedFd held(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!held) {
    return core::fail(ErrorCode::kResources,
                      "cannot write " + file.string() + ": " + std::strerror(errno));
  }
  if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
    return core::fail(ErrorCode::kInvalidArgument, "process " + std::to_string(pid_in(held.get())) +
                                                       " holds " + file.string() +
                                                       ": this node runs already");
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  const bool written =
      ::ftruncate(held.get(), 0) == 0 &&
      ::pwrite(held.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written) {
    return core::fail(ErrorCode::kResources,
                      "cannot write " + file.string() + ": " + std::strerror(errno));
  }
  return held;
}

bool lies_there(const core::OwnedFd& held, const fs::path& file) {
  struct stat ours {
  }, there{};
  if (::fstat(held.get(), &ours) != 0) return true;
  if (::stat(file.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

std::optional<OtherProcess> OtherProcess::holder_of(const fs::path& file) {
  const core::OwnedFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened || !is_locked(opened.get())) return std::nullopt;
  const pid_t pid = pid_in(opened.get());
  if (pid <= 0) return std::nullopt;
  core::OwnedFd descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // The lock, looked at again, shows that the descriptor is that process's and not a later one's.
  if (!descriptor || !is_locked(opened.get())) return std::nullopt;
  return OtherProcess(pid, std::move(descriptor));
}

bool OtherProcess::running() const {
  pollfd ended{descriptor_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0;
}

void OtherProcess::kill() const noexcept {
  if (!running()) return;
  ::kill(-pid_, SIGKILL);  // it leads its group
  ::syscall(SYS_pidfd_send_signal, descriptor_.get(), SIGKILL, nullptr, 0);
}

}  // namespace troupe::session
