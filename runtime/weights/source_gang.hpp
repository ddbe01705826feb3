// The ranks of a trainer as the sources of one image. Those on rank 0's host each have a share of
// its buckets; ranks of other hosts have none, and take part in what all ranks do together. Rank 0
// signs the checksums of all. Used by the publisher of each rank, on the thread that owns the
// gang's collectives; all ranks make the same calls in the same order. The first error of the
// collectives ends the gang.
#pragma once

#include "runtime/collective/collectives.hpp"
#include "runtime/core/result.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::weights {

class SourceGang {
 public:
  // What rank 0 gives its sources: the secret that receivers send.
  struct Own {
    std::string host_id, socket;  // of this rank's server
    std::string secret;           // of rank 0
  };
  // Blocks until all ranks have come. `gang` is connected and outlives the object.
  static core::Result<SourceGang> meet(collective::Collectives& gang, const Own& own);

  bool leads() const { return gang_->rank() == 0; }
  Share share() const { return shares_[static_cast<std::size_t>(gang_->rank())]; }
  bool is_source() const { return share().number < share().of; }
  const std::string& secret() const { return secret_; }
  // The sockets of all sources, by number.
  const std::vector<std::string>& sockets() const { return sockets_; }

  // Rank 0's number, on every rank.
  core::Result<std::uint32_t> number_of_rank_zero(std::uint32_t own);
  // Nothing, if all ranks did well. Else an error on every rank: its own, or that of the lowest
  // rank that has one, as kResources.
  core::Result<void> all_well(const core::Result<void>& own);
  // Completes the table, of which each source has written its buckets' checksums, and returns the
  // head that rank 0 signs. `key`: of rank 0 alone. Error kInternal: it cannot be signed.
  core::Result<SnapshotHead> sign(const SnapshotShape& shape,
                                  core::Version version,
                                  std::span<std::uint32_t> table,
                                  const net::SigningKey& key);

 private:
  explicit SourceGang(collective::Collectives& gang) : gang_(&gang) {}
  // Every rank gives one and gets those of all, by rank.
  template <class T>
  core::Result<std::vector<T>> gather(const T& own);

  collective::Collectives* gang_;
  std::vector<Share> shares_;  // by rank
  std::vector<std::string> sockets_;
  std::string secret_;
};

}  // namespace troupe::weights
