// The rendezvous of a gang over the control plane: each rank asks the company of its run, which
// answers when all ranks of that start have asked. One thread.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "runtime/collective/rendezvous.hpp"

#include <atomic>
#include <functional>
#include <string>

namespace troupe::actors::gang {

// Asks the company; blocks. Error kClosed: `given_up` became true before.
using AskToMeet =
    std::function<core::Result<GangMet>(MeetGang request, const std::atomic<bool>& given_up)>;

class CompanyRendezvous final : public collective::Rendezvous {
 public:
  // For this start of the role, which computes in that class of arithmetic.
  CompanyRendezvous(AskToMeet ask, std::string role, std::uint64_t epoch, std::string arithmetic)
      : ask_(std::move(ask)),
        role_(std::move(role)),
        epoch_(epoch),
        arithmetic_(std::move(arithmetic)) {}

  // Further errors: those of MeetGang, and kData when the company names another number of ranks.
  core::Result<collective::Meeting> meet(int rank,
                                         int size,
                                         const collective::RankAddress& mine,
                                         const std::atomic<bool>& given_up) override;

 private:
  const AskToMeet ask_;
  const std::string role_;
  const std::uint64_t epoch_;
  const std::string arithmetic_;
};

}  // namespace troupe::actors::gang
