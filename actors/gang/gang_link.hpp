// What the ranks of a gang say to each other besides the bytes of their common work (ADR 0026):
// rank 0 tells the others what to do next, and after it all ranks agree on how it went. So all do
// the same things in the same order. Owned by a rank; one thread at a time.
#pragma once

#include "runtime/collective/collectives.hpp"
#include "runtime/core/result.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe::actors::gang {

class GangLink {
 public:
  virtual ~GangLink() = default;

  // Rank 0 tells all others. Error kPeerLost: the gang is over.
  virtual core::Result<void> tell(std::span<const std::byte> command) = 0;
  // The other ranks wait for what rank 0 tells, however long. Error kPeerLost: the gang is over.
  virtual core::Result<std::vector<std::byte>> hear() = 0;
  // Every rank says how its part went and gets the same answer: the error of the lowest rank that
  // has one, with that rank's number; one that only tells of another rank's counts last. Or the
  // gang is over, and `together` becomes false: errors are then this rank's own, else what another
  // rank gave up with, kPeerLost (a rank is gone) or kInternal (the ranks do not do the same
  // things).
  virtual core::Result<void> agree(const core::Result<void>& mine, bool* together = nullptr) = 0;
};

// Over the collectives of the gang, which the trainer uses between `tell` and `agree`.
class CollectiveLink final : public GangLink {
 public:
  explicit CollectiveLink(std::shared_ptr<collective::Collectives> ranks)
      : ranks_(std::move(ranks)) {}

  core::Result<void> tell(std::span<const std::byte> command) override;
  core::Result<std::vector<std::byte>> hear() override;
  core::Result<void> agree(const core::Result<void>& mine, bool* together = nullptr) override;

 private:
  const std::shared_ptr<collective::Collectives> ranks_;
};

}  // namespace troupe::actors::gang
