#include "runtime/collective/rendezvous.hpp"

#include "runtime/collective/limits.hpp"
#include "runtime/net/gateway_auth.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <system_error>

namespace troupe::collective {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, int rank) {
  return folder / ("rank-" + std::to_string(rank));
}

// Written under another name first, so that others see all of it or nothing.
core::Result<void> publish(const fs::path& file, const RankAddress& mine) {
  const fs::path draft = file.string() + ".draft";
  std::ofstream out(draft);
  out << mine.host_id << '\n'
      << mine.socket << '\n'
      << mine.tcp_host << '\n'
      << mine.tcp_port << '\n';
  out.close();
  std::error_code error;
  if (out) fs::rename(draft, file, error);
  if (out && !error) return {};
  return fail(ErrorCode::kResources, "cannot write " + file.string());
}

// Empty as long as the file is not there.
core::Result<std::optional<RankAddress>> look(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::optional<RankAddress>();
  RankAddress address;
  std::getline(in, address.host_id);
  std::getline(in, address.socket);
  std::getline(in, address.tcp_host);
  in >> address.tcp_port;
  if (!in) return fail(ErrorCode::kData, file.string() + " is not the address of a rank");
  return std::optional<RankAddress>(address);
}

core::Result<void> check_private(const fs::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
      facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0)
    return {};
  return fail(
      ErrorCode::kConfig,
      "the folder " + folder.string() + " in which ranks meet is missing or open to other users",
      "make it mode 0700");
}

}  // namespace

core::Result<Meeting> FolderRendezvous::meet(int rank,
                                             int size,
                                             const RankAddress& mine,
                                             const std::atomic<bool>& given_up) {
  TROUPE_TRY(check_private(folder_));
  const fs::path key = folder_ / "key";
  if (rank == 0) TROUPE_TRY(net::create_token_file(key));  // before the address: others read then
  TROUPE_TRY(publish(file_of(folder_, rank), mine));
  Meeting meeting;
  while (static_cast<int>(meeting.addresses.size()) < size) {
    const int next = static_cast<int>(meeting.addresses.size());
    TROUPE_TRY_ASSIGN(there, look(file_of(folder_, next)));
    if (there) {
      meeting.addresses.push_back(*there);
      continue;
    }
    if (given_up.load()) return fail(ErrorCode::kClosed, "given up before all ranks were there");
    ::poll(nullptr, 0, static_cast<int>(limits::kRankLook.count()));
  }
  TROUPE_TRY_SET(meeting.key, net::read_token_file(key));
  return meeting;
}

}  // namespace troupe::collective
