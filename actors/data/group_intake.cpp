#include "actors/data/group_intake.hpp"

#include "actors/data/group_experience.hpp"
#include "runtime/core/limits.hpp"

namespace troupe::actors::data {

core::Result<Ack> GroupIntake::take(PutGroup request) {
  TicketBook& book = books_.of(request.ticket.update);
  if (request.too_long > 0) {
    fail_too_long(request);
    return Ack{};
  }
  scoring_.tell_modules("the environment", request.modules);
  TROUPE_TRY(check_delivery(request));
  if (refuse_long_rows(request)) return Ack{};
  // False: the group came before, or its slot was reissued.
  TROUPE_TRY_ASSIGN(taken, book.put_samples(request.ticket, std::move(request.samples), request.cut,
                                            std::move(request.prompt)));
  if (!taken) return Ack{};
  changed_.notify_all();
  scoring_.begin(book, request.ticket);
  return Ack{};
}

core::Result<Ack> GroupIntake::set_aside(const SetAside& request) {
  TicketBook& book = books_.of(request.ticket.update);
  const BookGroup* const group = book.find(request.ticket);
  if (group == nullptr) return Ack{};
  TROUPE_TRY_ASSIGN(prompt, prompts_.of(*group));
  const std::string cause = with_row(request.cause, *prompt);
  if (book.fail(request.ticket, FailureKind::kSetAside, cause)) changed_.notify_all();
  return Ack{};
}

// Fails a group whose samples the generator did not send because they are too long. The slot is
// reissued with another prompt.
void GroupIntake::fail_too_long(const PutGroup& request) {
  const std::string cause =
      "its " + std::to_string(request.too_long) + " samples are longer than the " +
      std::to_string(core::limits::kGroup_bytes_max) +
      " bytes of a group; ask for shorter responses or fewer samples a prompt "
      "(--rollout.max_new_tokens, --rollout.n_samples_per_prompt)";
  if (!books_.of(request.ticket.update).fail(request.ticket, FailureKind::kTooLong, cause)) return;
  too_long_samples_ += request.too_long;
  changed_.notify_all();
}

// Refuses a group with a row that no micro-batch holds: episodes grow while they run.
bool GroupIntake::refuse_long_rows(const PutGroup& request) {
  const BookGroup* const group = books_.train.find(request.ticket);
  if (group == nullptr || group->state != GroupState::kIssued || row_tokens_max_ == 0) return false;
  const std::uint64_t longest = longest_row(request.samples);
  std::uint64_t prompt = request.prompt.size();
  if (const auto own = prompts_.of(*group); own && prompt == 0) prompt = (*own)->tokens.size();
  if (prompt + longest <= row_tokens_max_) return false;
  const std::string cause = row_too_long(prompt + longest, row_tokens_max_);
  if (books_.train.fail(request.ticket, FailureKind::kTooLong, cause)) changed_.notify_all();
  return true;
}

}  // namespace troupe::actors::data
