// How the ranks of a gang find each other: each publishes where it listens and learns where all
// listen, and the key by which they know each other. The control plane can be one; FolderRendezvous
// is one for processes that share a folder. One thread.
#pragma once

#include "runtime/core/result.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::collective {

// Where a rank listens while its gang forms. An empty socket, or port 0, means that this way is not
// available.
struct RankAddress {
  std::string host_id;   // net::own_host_id(); ranks with equal ids share memory
  std::string socket;    // path of its Unix socket
  std::string tcp_host;  // an address, or the path of a local Unix socket that leads to the rank
                         // (a tunnel)
  std::uint32_t tcp_port = 0;
};

struct Meeting {
  std::string key;                     // 64 hexadecimal digits, the gang's alone
  std::vector<RankAddress> addresses;  // by rank
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Publishes `mine` as the address of `rank` and waits, without a deadline, until all `size` ranks
  // have done so. Error kClosed: `given_up` became true before.
  virtual core::Result<Meeting> meet(int rank,
                                     int size,
                                     const RankAddress& mine,
                                     const std::atomic<bool>& given_up) = 0;
};

// Over a folder of mode 0700 that is this gang's alone, this generation's alone. Rank 0 writes the
// file `key`, every rank a file `rank-R`.
class FolderRendezvous final : public Rendezvous {
 public:
  explicit FolderRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Further errors: kConfig (the folder is missing, open to others or was used before), kData (a
  // file is not an address), kResources.
  core::Result<Meeting> meet(int rank,
                             int size,
                             const RankAddress& mine,
                             const std::atomic<bool>& given_up) override;

 private:
  const std::filesystem::path folder_;
};

}  // namespace troupe::collective
