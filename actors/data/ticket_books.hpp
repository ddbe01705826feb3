// The two ticket books of a run, of training groups and of held-out ones, and the prompts of their
// open tickets. Owned by the data role, used on its strand.
#pragma once

#include "actors/data/prompt_source.hpp"
#include "actors/data/ticket_book.hpp"
#include "actors/protocol/messages.hpp"
#include "runtime/core/find_value.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace troupe::actors::data {

struct TicketBooks {
  TicketBook train, held_out;

  TicketBook& of(std::uint64_t update) {
    return experience::is_evaluation(update) ? held_out : train;
  }
  const TicketBook& of(std::uint64_t update) const {
    return experience::is_evaluation(update) ? held_out : train;
  }
  bool waits_for(const std::string& reward) const {
    return train.waits_for(reward) || held_out.waits_for(reward);
  }
};

class OpenPrompts {
 public:
  // `held_out` may be null.
  OpenPrompts(std::unique_ptr<PromptSource> train, std::unique_ptr<PromptSource> held_out)
      : train_(std::move(train)), held_out_(std::move(held_out)) {}

  std::uint64_t epoch_size() const { return train_->size(); }  // training prompts
  bool has_held_out() const noexcept { return held_out_ != nullptr; }
  PromptSource& source_of(const experience::Ticket& ticket) const {
    return ticket.kind() == experience::TicketKind::kEvaluation ? *held_out_ : *train_;
  }
  // The prompt of a group; it is kept until `forget`. Errors: those of its source.
  core::Result<const Prompt*> of(const BookGroup& group) {
    if (const Prompt* const open = core::find_value(open_, group.ticket)) return open;
    TROUPE_TRY_ASSIGN(prompt, source_of(group.ticket).at(group.prompt));
    return &open_.emplace(group.ticket, std::move(prompt)).first->second;
  }
  void forget(const experience::Ticket& ticket) { open_.erase(ticket); }

 private:
  std::unique_ptr<PromptSource> train_, held_out_;
  std::map<experience::Ticket, Prompt> open_;
};

}  // namespace troupe::actors::data
