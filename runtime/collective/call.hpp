// One operation of a rank: what goes between it and each peer that takes part, and how that is
// moved. Inside of Collectives.
#pragma once

#include "runtime/collective/collectives.hpp"

#include <vector>

namespace troupe::collective {

// Both directions between this rank and one peer in one call: heads first, then bytes.
struct Transfer {
  Peer* peer = nullptr;
  core::Memory* memory = nullptr;
  MessageHead mine, theirs;
  std::size_t head_sent = 0, head_got = 0;
  const char* from = nullptr;
  char* to = nullptr;
  std::size_t unsent = 0, missing = 0;  // bytes after the heads; none where a link moves them
  bool flushed = true;

  // The heads of another meeting of the same operation.
  void meet_again(Way way) {
    mine.call = peer->calls++;
    mine.way = way;
    head_sent = head_got = 0;
  }
  bool reads() const { return head_got < sizeof theirs || missing > 0; }
  bool writes() const { return head_sent < sizeof mine || unsent > 0 || !flushed; }
  bool done() const { return !reads() && !writes(); }
  bool write_some();  // true if a byte moved
  core::Result<bool> read_some(int my_rank);
};

class Call {
 public:
  // `link`: of the gang, or null. The bytes go over it if it takes the memory, else through the
  // pipes. All outlive the call.
  Call(RankPeers& peers, int my_rank, core::Memory& memory, DeviceLink* link)
      : peers_(peers),
        my_rank_(my_rank),
        memory_(memory),
        link_(link != nullptr && link->takes(memory) ? link : nullptr) {}

  void add(int rank, Kind kind, int root, Source out, Place in);
  void move(Move::Kind kind, int rank, const void* at, std::size_t bytes) {
    if (link_ != nullptr && bytes > 0) moves_.push_back({kind, rank, const_cast<void*>(at), bytes});
  }
  core::Result<void> run();
  // Adds the bytes of all peers, without heads.
  void count(std::uint64_t& sent, std::uint64_t& received) const;

 private:
  core::Result<void> move_all();
  core::Result<void> move_by_link();
  bool moves_soon() const;
  void wait();
  core::Result<void> check_peers();
  core::Result<void> blame(const core::Error& failure);

  RankPeers& peers_;
  const int my_rank_;
  core::Memory& memory_;
  DeviceLink* const link_;
  std::vector<Transfer> transfers_;
  std::vector<Move> moves_;  // for the link
};

// Until what the link has begun is done. `check` says whether the gang is whole: its error is one
// of the gang; a failure is the link's.
using LinkFailure = std::optional<core::Error>;
core::Result<LinkFailure> wait_for_link(DeviceLink& link,
                                        RankPeers& peers,
                                        const std::function<core::Result<void>()>& check);

}  // namespace troupe::collective
