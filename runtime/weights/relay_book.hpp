// Decides who gets a version of the weights from whom, so that few copies leave the publisher: the
// receivers that have a version, or the beginning of it, pass it on. Knows every receiver that has
// a connection with the publisher, what it has, and who feeds it. A pure state machine; owned by
// the server of weights, used on its thread.
//
// A receiver goes to one of its own host if that has begun the version, else to the publisher while
// fewer than kWeightCopies_max copies of the version leave it, else to the relay that is nearest to
// a whole copy and feeds the fewest (kRelayChildren_max at most), else to the publisher. One whose
// relay has failed it asks again: a relay that is lost, or gives wrong bytes, is left at once. One
// that is silent is left for a relay that has more buckets than the asker. If there is none, it is
// kept as long as it gets buckets itself and holds none back; so a slow link is no reason for
// another copy, and no deadline ends it. One of the asker's host, whose memory it waits for, is
// silent until it has all, and is kept in the same way. A receiver also asks now and then while its
// relay works: it moves to a relay that is far ahead of it and feeds fewer, or if its own relay has
// hardly more than it has itself. With a newer version all begin anew: of an older one only wrong
// bytes are remembered.
#pragma once

#include "runtime/weights/relay_tree.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::weights {

class RelayBook {
 public:
  struct Ask {
    RelayPlace place;        // of the asker; number 0: it passes nothing on and is not remembered
    std::uint64_t host = 0;  // Hello::host
    std::uint64_t turn = 0;  // number of this request; `leave` must name the latest
    RelayContent content;
    std::uint32_t buckets = 0;  // of them it has
    std::uint32_t avoid = 0;    // Hello::avoid
    RelayFault fault = RelayFault::kNone;
    bool direct = false;  // the publisher must serve it itself
  };
  // The relay to go to, with its socket if it is on the asker's host, else with its address. None:
  // the publisher serves the asker.
  std::optional<RelayPlace> choose(const Ask& ask, core::TimePoint now);
  // The receiver has that many buckets of its version now.
  void progress(std::uint32_t number, std::uint32_t buckets, core::TimePoint now);
  // The receiver's connection has ended.
  void leave(std::uint32_t number, std::uint64_t turn);

  // Copies of this version that leave the publisher, or have left it, for receivers that are here.
  std::size_t copies(const RelayContent& content) const { return tree_.copies(content); }
  // Two receivers that are here got wrong bytes from this one.
  bool is_set_aside(std::uint32_t number) const;
  std::size_t size() const { return tree_.all().size(); }
  std::string check_invariants() const { return tree_.check_invariants(); }

 private:
  bool has_moved_on(const Ask& ask) const;
  RelayEntry& enter(const Ask& ask, core::TimePoint now);
  void note_fault(RelayEntry& asker, const Ask& ask);
  const RelayEntry* find_parent(const RelayEntry& asker, const Ask& ask) const;
  bool may_feed(const RelayEntry& relay,
                const RelayEntry& asker,
                const Ask& ask,
                RelayTree::Counts& counts) const;
  bool keeps_silent_one(const RelayEntry& asker, const Ask& ask, core::TimePoint now) const;
  bool is_better(const RelayEntry& relay,
                 const RelayEntry& asker,
                 const Ask& ask,
                 RelayTree::Counts& counts) const;

  RelayTree tree_;
};

}  // namespace troupe::weights
