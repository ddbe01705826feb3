// What the experience log does for the ticket books: brings back what an earlier life sampled, once
// and before tickets are issued, and reads back what is committed. Owned by the data role, used on
// its strand.
#pragma once

#include "actors/data/group_log.hpp"
#include "actors/data/group_scoring.hpp"
#include "actors/data/reward_sets.hpp"
#include "actors/data/ticket_books.hpp"
#include "runtime/async/turns.hpp"

#include <memory>
#include <string>

namespace troupe::actors::data {

class BookHistory {
 public:
  // `settings` decides the results of an evaluation: one in the log that began with other settings
  // is made again. All references outlive the object.
  BookHistory(const RoleContext& context,
              GroupLogOptions options,
              std::string settings,
              Note note,
              TicketBooks& books,
              const RewardSets& sets,
              GroupScoring& scoring);

  GroupLog& log() noexcept { return log_; }
  const GroupLog& log() const noexcept { return log_; }
  // Waits until all that has happened is in the log; a full disk only delays it.
  async::task<core::Result<void>> logged();

  // Brings back what the log holds of an update or evaluation, and has its groups scored.
  async::task<core::Result<void>> replay(std::uint64_t update);
  // Every evaluation starts from the first held-out prompt again.
  void begin_evaluation(std::uint64_t update);
  // The groups of a commit, read back from the log; null, with a note, where it does not have them.
  async::task<std::shared_ptr<const TicketBook>> read_back(std::uint64_t update);

 private:
  void reopen();
  async::task<core::Result<std::shared_ptr<const TicketBook>>> logged_book(std::uint64_t update);

  const RoleContext& context_;
  const std::string settings_;
  const Note note_;
  TicketBooks& books_;
  const TicketBook::SetOf set_of_;
  GroupScoring& scoring_;
  async::Turns replays_;
  GroupLog log_;
};

}  // namespace troupe::actors::data
