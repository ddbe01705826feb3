// Takes the groups that generators and environments deliver into the ticket books and has them
// scored. One that is longer than a group, or than a row, may be fails, and its slot gets another
// prompt. Owned by the data role, used on its strand.
#pragma once

#include "actors/data/group_scoring.hpp"
#include "actors/data/ticket_books.hpp"

#include <cstdint>

namespace troupe::actors::data {

class GroupIntake {
 public:
  // `row_tokens_max`: of a sample's row with its prompt, in a training group; 0: any. `changed` is
  // notified when a group has changed. All outlive the object.
  GroupIntake(std::uint64_t row_tokens_max,
              TicketBooks& books,
              OpenPrompts& prompts,
              GroupScoring& scoring,
              async::Notifier& changed)
      : row_tokens_max_(row_tokens_max),
        books_(books),
        prompts_(prompts),
        scoring_(scoring),
        changed_(changed) {}

  // Acknowledges and counts a group that came before or whose slot was issued again.
  core::Result<Ack> take(PutGroup request);
  core::Result<Ack> set_aside(const SetAside& request);

  // Samples of groups beyond kGroup_bytes_max.
  std::uint64_t too_long_samples() const noexcept { return too_long_samples_; }

 private:
  void fail_too_long(const PutGroup& request);
  bool refuse_long_rows(const PutGroup& request);

  const std::uint64_t row_tokens_max_;
  TicketBooks& books_;
  OpenPrompts& prompts_;
  GroupScoring& scoring_;
  async::Notifier& changed_;
  std::uint64_t too_long_samples_ = 0;
};

}  // namespace troupe::actors::data
