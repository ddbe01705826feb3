#include "actors/data/book_history.hpp"

#include "actors/data/limits.hpp"
#include "actors/data/logged_groups.hpp"

namespace troupe::actors::data {

BookHistory::BookHistory(const RoleContext& context,
                         GroupLogOptions options,
                         std::string settings,
                         Note note,
                         TicketBooks& books,
                         const RewardSets& sets,
                         GroupScoring& scoring)
    : context_(context),
      settings_(std::move(settings)),
      note_(std::move(note)),
      books_(books),
      set_of_([&sets](std::uint64_t number) { return sets.numbered(number); }),
      scoring_(scoring),
      replays_(*context.timers),
      log_(context, std::move(options), note_) {
  if (!log_.kept()) return;
  books_.train.when_changed(&log_);
  books_.held_out.when_changed(&log_);
}

async::task<core::Result<void>> BookHistory::logged() {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, context_.call_deadline);
  for (;;) {
    auto kept = co_await log_.durable();
    if (kept || deadline.remaining(*context_.timers) <= core::Duration::zero()) co_return kept;
    co_await async::sleep_for(*context_.timers, limits::kDiskPause_min);
  }
}

async::task<core::Result<void>> BookHistory::replay(std::uint64_t update) {
  const auto turn = co_await replays_.take();
  reopen();
  if (!log_.holds(update)) co_return core::Result<void>();
  TROUPE_CO_TRY_ASSIGN(events, co_await log_.take(update));
  TicketBook& book = books_.of(update);
  if (experience::is_evaluation(update)) {
    const auto* const begun = events.empty() ? nullptr : std::get_if<EvaluationBegun>(&events[0]);
    if (begun == nullptr || begun->settings != settings_) co_return core::Result<void>();
    book.begin_prompts_again();
  }
  book.replay(update, std::move(events), set_of_);
  for (const BookGroup* group : book.groups_of(update))
    scoring_.begin(book, group->ticket);
  co_return core::Result<void>();
}

void BookHistory::begin_evaluation(std::uint64_t update) {
  books_.held_out.begin_prompts_again();
  log_.on_event(EvaluationBegun{update, settings_});
}

// A run whose log cannot be read goes on: memory has the same groups.
async::task<std::shared_ptr<const TicketBook>> BookHistory::read_back(std::uint64_t update) {
  if (!log_.kept()) co_return nullptr;
  auto reading = logged_book(update);
  auto logged = co_await std::move(reading);
  if (logged) co_return *logged;
  if (note_)
    note_(experience::name_of_update(update) +
          " is written down from memory: " + logged.error().message);
  co_return nullptr;
}

async::task<core::Result<std::shared_ptr<const TicketBook>>> BookHistory::logged_book(
    std::uint64_t update) {
  auto reading = log_.read(update);
  TROUPE_CO_TRY_ASSIGN(events, co_await std::move(reading));
  const TicketBook& book = books_.of(update);
  co_return logged_groups(book.empty(), update, std::move(events), book, set_of_);
}

// Opens the tickets that the log holds, the first time.
void BookHistory::reopen() {
  const LoggedRun found = log_.take_found();
  books_.train.reopen(found.issued, set_of_);
  if (!note_ || (found.groups == 0 && found.evaluations.empty())) return;
  std::string what =
      std::to_string(found.groups) + " groups of " + std::to_string(found.updates) + " updates";
  if (!found.evaluations.empty())
    what += " and " + std::to_string(found.evaluations.size()) + " evaluations";
  note_(what + " after the checkpoint are in the experience log and are not sampled again");
}

}  // namespace troupe::actors::data
