#include "runtime/store/file_hashes.hpp"

#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/sha256.hpp"
#include "runtime/store/troupe_home.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kThreads_max = 4;
constexpr std::int64_t kWorthKeeping_bytes = 1 << 20;
// A file that changed less than this ago is not cached: a second change within one tick of the file
// system's clock would leave its times as they are.
constexpr std::chrono::seconds kSettled{2};

fs::path cache_folder() {
  const fs::path home = troupe_home();
  return home.empty() ? home : home / "hashes";
}

std::chrono::nanoseconds time_of(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Size, device, inode and times of a file. A change of its content changes one of them.
std::string facts_of(const struct stat& file) {
  return std::to_string(file.st_size) + " " + std::to_string(file.st_dev) + " " +
         std::to_string(file.st_ino) + " " + std::to_string(time_of(file.st_mtim).count()) + " " +
         std::to_string(time_of(file.st_ctim).count());
}

bool is_settled(const struct stat& file, std::chrono::system_clock::time_point now) {
  return std::max(time_of(file.st_mtim), time_of(file.st_ctim)) + kSettled < now.time_since_epoch();
}

std::optional<std::string> look_up(const fs::path& entry, const std::string& facts) {
  std::ifstream in(entry);
  std::string known, hash;
  if (!std::getline(in, known) || !std::getline(in, hash)) return std::nullopt;
  if (known != facts || hash.size() != 64) return std::nullopt;
  return hash;
}

// A failed write to the cache only means that the file is hashed again.
void keep(const fs::path& entry, const std::string& facts, const std::string& hash) {
  if (auto made = make_folder(entry.parent_path()); !made) return;
  auto kept = replace_file(entry, facts + "\n" + hash + "\n");
  static_cast<void>(kept);
}

}  // namespace

Result<std::string> cached_sha256(const fs::path& file,
                                  const std::atomic<bool>* stop,
                                  std::chrono::system_clock::time_point now) {
  struct stat before {};
  if (::stat(file.c_str(), &before) != 0) return io_failure("look at", file, errno);
  std::error_code error;
  const fs::path whole = fs::absolute(file, error);
  const fs::path folder = cache_folder();
  const fs::path entry = folder.empty() ? folder : folder / sha256_text(whole.string());
  const std::string facts = facts_of(before);
  if (!entry.empty()) {
    if (auto known = look_up(entry, facts)) return *known;
  }
  TROUPE_TRY_ASSIGN(digest, sha256_file(file, stop));
  struct stat after {};
  const bool same = ::stat(file.c_str(), &after) == 0 && facts_of(after) == facts;
  const bool worth_it = before.st_size >= kWorthKeeping_bytes && is_settled(before, now);
  if (!entry.empty() && same && worth_it) keep(entry, facts, digest.sha256);
  return digest.sha256;
}

Result<std::string> sha256_of_files(const std::vector<fs::path>& files,
                                    const std::atomic<bool>* stop) {
  std::vector<std::optional<Result<std::string>>> hashes(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++)
      hashes[i].emplace(cached_sha256(files[i], stop));
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(files.size(), kThreads_max); ++i)
        helpers.emplace_back(work);
    } catch (const std::system_error&) {  // no thread is left: fewer do it
    }
    work();
  }
  std::string all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!*hashes[i]) return hashes[i]->failure();
    all += files[i].filename().string() + " " + **hashes[i] + "\n";
  }
  return files.size() == 1 ? **hashes[0] : sha256_text(all);
}

}  // namespace troupe::store
