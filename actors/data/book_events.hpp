// What happens to the groups of the ticket books, as values that the group log keeps: issued,
// taken, scored, given log-probs of reference or teacher, failed. A book that gets the same events
// again in their order holds the same groups. As a record, an event is a CBOR map; ids and
// log-probs are byte strings of little-endian 4-byte numbers, one after the other for all samples.
// docs/run_folder.md lists the keys.
#pragma once

#include "actors/data/book_group.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::actors::data {

// A slot got this ticket, for its first or for another attempt.
struct TicketIssued {
  SavedTicket saved;
  core::Version version_min = 0;
  std::uint64_t set = 0;  // number of the reward set
};

// The samples of a group were taken. Without log-probs of frozen models, values and scores.
struct GroupTaken {
  experience::Ticket ticket;
  std::vector<experience::Trajectory> samples;
  bool cut = false;
  std::vector<std::int32_t> prompt{};  // the prompt that came along; empty: the dataset's
};

// A reward of the group's set gave its scores: as in TicketBook::put_scores.
struct GroupScored {
  experience::Ticket ticket;
  std::uint64_t member = 0;
  std::vector<std::optional<double>> scores;
  std::vector<std::string> causes{};
  std::vector<std::string> extras{};
  std::string row{};
  std::vector<std::vector<experience::StepReward>> steps{};  // by sample, or empty
};

// A frozen model gave its log-probs.
struct GroupReferenced {
  experience::Ticket ticket;
  std::vector<std::vector<float>> logprobs;  // by sample and token
  FrozenModel by = FrozenModel::kReference;
};

// The group failed for a reason that its samples and scores do not show.
struct GroupFailed {
  experience::Ticket ticket;
  FailureKind kind = FailureKind::kReward;
  std::string cause;
};

// The rewards were changed, when that many updates had been committed.
struct SetChanged {
  SetRewards set;
  std::uint64_t committed = 0;
};

// An evaluation begins; what stands before it of the same one does not count. `settings` says what
// it measures, and how.
struct EvaluationBegun {
  std::uint64_t update = 0;  // number of the evaluation
  std::string settings;
};

// What stands before it in its file belongs to another run, but for changes of rewards that were
// made when no more than `committed` updates had been committed.
struct GroupsDropped {
  std::uint64_t update = 0;  // the first of the file
  std::uint64_t committed = 0;
};

using BookEvent = std::variant<TicketIssued,
                               GroupTaken,
                               GroupScored,
                               GroupReferenced,
                               GroupFailed,
                               SetChanged,
                               EvaluationBegun,
                               GroupsDropped>;

// The update or evaluation that the event belongs to; of a change of rewards, the first that it
// holds for.
std::uint64_t update_of(const BookEvent& event);

std::string record_of(const BookEvent& event);
// Error kData: the record is not of an event, or its lists differ in length.
core::Result<BookEvent> event_of(std::string_view record);

// Hears of each event of a book, in order. Called on the book's strand.
class BookListener {
 public:
  virtual ~BookListener() = default;
  virtual void on_event(const BookEvent& event) = 0;
};

}  // namespace troupe::actors::data
