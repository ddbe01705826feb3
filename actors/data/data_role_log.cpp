// What the data role does with the experience log: brings back what an earlier life sampled, and
// reads back what it commits.
#include "actors/data/data_role.hpp"
#include "actors/limits.hpp"

namespace troupe::actors {

// Waits until all that has happened is in the log; a full disk only delays it.
async::task<core::Result<void>> DataRole::logged() {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
  for (;;) {
    auto kept = co_await log_.durable();
    if (kept || deadline.remaining(*context_.timers) <= core::Duration::zero()) co_return kept;
    co_await async::sleep_for(*context_.timers, limits::kDiskPause_min);
  }
}

async::task<core::Result<void>> DataRole::replay_log(std::uint64_t update) {
  const auto turn = co_await replays_.take();
  const TicketBook::SetOf set_of = [this](std::uint64_t number) { return sets_.numbered(number); };
  reopen(set_of);
  if (!log_.holds(update)) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(events, co_await log_.take(update));
  if (experience::is_evaluation(update)) {
    const auto* const begun = events.empty() ? nullptr : std::get_if<EvaluationBegun>(&events[0]);
    if (begun == nullptr || begun->settings != options_.evaluation_settings)
      co_return core::Result<void>();
    evaluation_book_.begin_prompts_again();
  }
  TicketBook& book = book_of(update);
  book.replay(update, std::move(events), set_of);
  for (const BookGroup* group : book.groups_of(update))
    scoring_.begin(book, group->ticket);
  co_return core::Result<void>();
}

// A run whose log cannot be read goes on: memory has the same groups.
async::task<std::shared_ptr<const TicketBook>> DataRole::read_back(std::uint64_t update) {
  if (!log_.kept()) co_return nullptr;
  auto reading = log_.read(update);
  auto events = co_await std::move(reading);
  std::string why;
  if (events) {
    const auto logged = logged_book(update, std::move(*events));
    if (logged) co_return *logged;
    why = logged.error().message;
  } else {
    why = events.error().message;
  }
  if (options_.scoring.note)
    options_.scoring.note(experience::name_of_update(update) +
                          " is written down from memory: " + why);
  co_return nullptr;
}

core::Result<std::shared_ptr<const TicketBook>> DataRole::logged_book(
    std::uint64_t update, std::vector<BookEvent> events) const {
  const bool held_out = experience::is_evaluation(update);
  TicketBook empty(options_.samples, held_out ? FrozenModels() : options_.scoring.frozen(),
                   held_out ? std::nullopt : options_.filter);
  const TicketBook::SetOf set_of = [this](std::uint64_t number) { return sets_.numbered(number); };
  return logged_groups(std::move(empty), update, std::move(events),
                       held_out ? evaluation_book_ : book_, set_of);
}

// Every evaluation starts from the first held-out prompt again.
void DataRole::begin_evaluation(std::uint64_t update) {
  evaluation_book_.begin_prompts_again();
  log_.on_event(EvaluationBegun{update, options_.evaluation_settings});
}

void DataRole::reopen(const TicketBook::SetOf& set_of) {
  const LoggedRun found = log_.take_found();
  book_.reopen(found.issued, set_of);
  if (!options_.scoring.note || (found.groups == 0 && found.evaluations.empty())) return;
  std::string what =
      std::to_string(found.groups) + " groups of " + std::to_string(found.updates) + " updates";
  if (!found.evaluations.empty())
    what += " and " + std::to_string(found.evaluations.size()) + " evaluations";
  options_.scoring.note(what +
                        " after the checkpoint are in the experience log and are not sampled "
                        "again");
}

}  // namespace troupe::actors
