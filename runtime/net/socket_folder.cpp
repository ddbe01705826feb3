#include "runtime/net/socket_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

namespace troupe::net {
namespace {

constexpr char kPrefix[] = "troupe-sockets-";
constexpr std::size_t kPlace_bytes_max = 60;  // leaves room for the names of folder and socket

// Where socket folders are made: in $TMPDIR, or in /tmp if that is unset, relative or too long.
std::string place() {
  const char* const named = std::getenv("TMPDIR");
  std::string folder = named == nullptr ? "" : named;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  return folder.empty() || folder[0] != '/' || folder.size() > kPlace_bytes_max ? "/tmp" : folder;
}

// Opens and locks a private folder of this user. Empty if it is none or a live process holds its
// lock.
OwnedFd locked(const std::string& folder) {
  OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  if (!fd || ::fstat(fd.get(), &facts) != 0 || facts.st_uid != ::geteuid() ||
      (facts.st_mode & 077) != 0 || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return {};
  }
  return fd;
}

// Removes the sockets in a folder, then the folder; it stays if it holds anything else.
void remove_folder(const std::string& folder, const OwnedFd& fd) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  while (entries) {
    const dirent* const entry = ::readdir(entries.get());
    if (entry == nullptr) break;
    struct stat facts {};
    if (::fstatat(fd.get(), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(facts.st_mode)) {
      ::unlinkat(fd.get(), entry->d_name, 0);
    }
  }
  ::rmdir(folder.c_str());
}

// Removes the socket folders of dead processes.
void sweep(const std::string& place) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (const OwnedFd stale = locked(entry.path().string()))
      remove_folder(entry.path().string(), stale);
  }
}

}  // namespace

core::Result<SocketFolder> SocketFolder::make() {
  const std::string base = place();
  sweep(base);
  for (;;) {
    std::string path = base + "/" + kPrefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return core::fail(core::ErrorCode::kResources,
                        "cannot make a folder for sockets in " + base + ": " + std::strerror(errno),
                        "name another place by TMPDIR");
    }
    OwnedFd lock = locked(path);
    struct stat facts {};
    // Before the lock was taken, another process may have removed the folder as stale.
    if (lock && ::fstat(lock.get(), &facts) == 0 && facts.st_nlink > 0)
      return SocketFolder(std::move(path), std::move(lock));
  }
}

SocketFolder::~SocketFolder() {
  if (lock_) remove_folder(path_, lock_);
}

}  // namespace troupe::net
