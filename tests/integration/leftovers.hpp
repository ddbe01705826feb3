// What the processes of a run hold, and what is left of it when they were killed: those that the
// head started, shared memory, locks, and folders for temporary files in a place of the test's own.
#pragma once

#include "tests/integration/train_support.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <set>

namespace troupe::test {

// As long as it lives, processes that the test starts make their temporary folders in it.
class OwnTemporaries {
 public:
  OwnTemporaries() {
    const char* const before = std::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    char place[] = "/tmp/own-XXXXXX";  // short, since names of sockets are
    path_ = ::mkdtemp(place);
    ::setenv("TMPDIR", path_.c_str(), 1);
  }
  OwnTemporaries(const OwnTemporaries&) = delete;
  OwnTemporaries& operator=(const OwnTemporaries&) = delete;
  ~OwnTemporaries() {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  // Those whose names begin so.
  std::set<std::string> folders(const std::string& prefix) const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with(prefix)) found.insert(entry.path());
    }
    return found;
  }

 private:
  std::string path_, before_;
};

// What the descriptors of a process lead to.
inline std::set<std::string> opened_by(pid_t pid) {
  std::set<std::string> found;
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    found.insert(std::filesystem::read_symlink(entry.path(), error).string());
  return found;
}

// The folders with this in their names that a process holds open, and so keeps locked.
inline std::set<std::string> folders_of(pid_t pid, const std::string& part) {
  std::set<std::string> found = opened_by(pid);
  std::erase_if(found, [&](const auto& one) {
    return one.find(part) == one.npos || !std::filesystem::is_directory(one);
  });
  return found;
}

// Inodes of the memory without a file (memfd) that a process has open or mapped.
inline std::set<ino_t> memory_of(pid_t pid) {
  std::set<ino_t> found;
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd", error)) {
    struct stat facts {};
    const auto target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("/memfd:") && ::stat(entry.path().c_str(), &facts) == 0)
      found.insert(facts.st_ino);
  }
  std::istringstream maps(text_of(process / "maps"));
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == line.npos) continue;
    std::istringstream fields(line);
    std::string skipped;
    ino_t inode = 0;
    fields >> skipped >> skipped >> skipped >> skipped >> inode;
    found.insert(inode);
  }
  return found;
}

inline std::set<ino_t> both_of(const std::set<ino_t>& some, const std::set<ino_t>& others) {
  std::set<ino_t> found;
  std::set_intersection(some.begin(), some.end(), others.begin(), others.end(),
                        std::inserter(found, found.end()));
  return found;
}

// The processes that heads of this run folder have started, and that live; those of this name
// alone, if one is given.
inline std::set<pid_t> started_for(const std::filesystem::path& run, const std::string& name = "") {
  std::set<pid_t> found;
  const std::string pass =
      (run / "nodes").string() + "/" + (name.empty() ? "" : name + ".pass" + std::string(1, '\0'));
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string words = text_of(entry.path() / "cmdline");
    const bool local = words.find(std::string("\0--local\0", 9) + pass) != words.npos;
    if (local && text_of(entry.path() / "stat").find(") Z ") == std::string::npos)
      found.insert(pid);
  }
  return found;
}

inline void signal_all(const std::set<pid_t>& processes, int number) {
  for (const pid_t pid : processes)
    ::kill(pid, number);
}

inline bool any_of_these(const std::set<pid_t>& some, const std::set<pid_t>& others) {
  return std::any_of(some.begin(), some.end(), [&](pid_t pid) { return others.contains(pid); });
}

// Whether a process holds the lock of a file or folder.
inline bool is_locked(const std::filesystem::path& path) {
  const core::OwnedFd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(opened) << path;
  return ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace troupe::test
