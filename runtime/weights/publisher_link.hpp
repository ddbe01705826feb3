// The conversation of one fetch with its publisher: it says which version is wanted and what is
// here of it, hears where to get it, and reports from the relay that it was sent to. Used on the
// subscriber's fetching thread.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/weights/partial_snapshot.hpp"

namespace troupe::weights {

class PublisherLink {
 public:
  // Both outlive the object.
  PublisherLink(const StreamContext& context, const PartialSnapshot& partial)
      : context_(context), partial_(partial) {}

  // Asks on this connection, which outlives the object. Error kPeerLost: it has ended.
  core::Result<void> ask(const net::OwnedFd& socket);
  // Tells what the relay did, and hears where to go now. Error kPeerLost: the publisher has ended.
  core::Result<void> ask_again(std::uint32_t relay, RelayFault fault);
  void report(Report::Kind kind);
  // kProgress, if the last report was long ago.
  void report_progress();

  // The last answer, and the relay that it names; null: the publisher itself serves.
  const Answer& answer() const { return answer_; }
  const RelayPlace* relay() const {
    return answer_.says(AnswerStatus::kAtRelay) ? &relay_ : nullptr;
  }
  bool is_lost() const { return lost_; }

 private:
  core::Result<void> hear(Hello hello);

  const StreamContext& context_;
  const PartialSnapshot& partial_;
  const net::OwnedFd* socket_ = nullptr;
  Answer answer_;
  RelayPlace relay_;
  bool lost_ = false;
  core::TimePoint reported_;
};

}  // namespace troupe::weights
