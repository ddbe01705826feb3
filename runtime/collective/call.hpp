// One operation of a rank: what goes between it and each peer that takes part. Inside of
// Collectives.
#pragma once

#include "runtime/collective/collectives.hpp"

#include <vector>

namespace troupe::collective {

// Both directions between this rank and one peer in one call: heads first, then bytes.
struct Collectives::Transfer {
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

  // True if a byte moved.
  bool write_some() {
    bool moved = false;
    if (head_sent < sizeof mine) {
      const std::size_t n =
          peer->pipe().write(core::host_memory(), reinterpret_cast<const char*>(&mine) + head_sent,
                             sizeof mine - head_sent);
      head_sent += n;
      return n > 0;
    }
    flushed = peer->pipe().flush(moved);
    if (unsent == 0 || !flushed) return moved;
    const std::size_t n = peer->pipe().write(*memory, from, unsent);
    from += n;
    unsent -= n;
    flushed = peer->pipe().flush(moved);
    return moved || n > 0;
  }

  core::Result<bool> read_some(int my_rank) {
    if (head_got < sizeof theirs) {
      const std::size_t n =
          peer->pipe().read(core::host_memory(), reinterpret_cast<char*>(&theirs) + head_got,
                            sizeof theirs - head_got);
      head_got += n;
      if (head_got == sizeof theirs)
        TROUPE_TRY(check_same_call(my_rank, mine, peer->rank(), theirs));
      return n > 0;
    }
    if (missing == 0) return false;
    const std::size_t n = peer->pipe().read(*memory, to, missing);
    to += n;
    missing -= n;
    return n > 0;
  }
};

struct Collectives::Call {
  core::Memory& memory;
  DeviceLink* link = nullptr;  // null: the bytes go through the pipes
  std::vector<Transfer> transfers;
  std::vector<Move> moves;  // for the link

  void move(Move::Kind kind, int rank, const void* at, std::size_t bytes) {
    if (link != nullptr && bytes > 0) moves.push_back({kind, rank, const_cast<void*>(at), bytes});
  }
};

}  // namespace troupe::collective
