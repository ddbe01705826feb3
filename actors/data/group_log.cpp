#include "actors/data/group_log.hpp"

#include "actors/data/limits.hpp"
#include "runtime/store/kept_lines.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace troupe::actors::data {
namespace {

// Events up to the first record that is none.
struct Events {
  std::vector<BookEvent> list;
  bool whole = true;
  std::string damage;       // what is wrong where, if it is not whole
  std::uint64_t bytes = 0;  // of the records before that
};

// Whether the event is a change of rewards that holds for a run that had committed so many updates.
bool is_earlier_change(const BookEvent& event, std::uint64_t committed) {
  const auto* const changed = std::get_if<SetChanged>(&event);
  return changed != nullptr && changed->committed <= committed;
}

core::Result<Events> read_events(const store::StepLog& log, std::uint64_t step) {
  TROUPE_TRY_ASSIGN(content, log.read(step));
  Events events;
  if (content.cut_bytes > 0)
    events.damage = "is damaged or incomplete at byte " + std::to_string(content.bytes);
  for (const std::string& record : content.records) {
    constexpr std::size_t kFrame_bytes = 8;
    auto event = event_of(record);
    const bool own = event && experience::step_of(update_of(*event)) == step;
    if (!own) {
      events.damage = record.empty() ? "had lost its beginning before the end of the run"
                      : event        ? "has records of another update"
                                     : "has a record that cannot be read";
      break;
    }
    events.bytes += kFrame_bytes + record.size();
    if (const auto* const dropped = std::get_if<GroupsDropped>(&*event)) {
      std::erase_if(events.list, [dropped](const BookEvent& one) {
        return !is_earlier_change(one, dropped->committed);
      });
    } else {
      events.list.push_back(std::move(*event));
    }
  }
  events.whole = events.damage.empty();
  return events;
}

// The events of one update or evaluation; of an evaluation, since it last began.
std::vector<BookEvent> events_of(std::uint64_t update, std::vector<BookEvent> events) {
  std::vector<BookEvent> own;
  for (BookEvent& event : events) {
    if (update_of(event) != update) continue;
    if (std::holds_alternative<EvaluationBegun>(event)) own.clear();
    own.push_back(std::move(event));
  }
  return own;
}

// The tickets of one update's events.
struct EventTickets {
  std::map<std::uint32_t, TicketIssued> last;  // by slot
  std::set<experience::Ticket> taken, failed;

  explicit EventTickets(const std::vector<BookEvent>& events) {
    for (const BookEvent& event : events) {
      if (experience::is_evaluation(update_of(event))) continue;
      if (const auto* const issued = std::get_if<TicketIssued>(&event)) {
        last.insert_or_assign(issued->saved.ticket.slot, *issued);
      } else if (const auto* const group = std::get_if<GroupTaken>(&event)) {
        taken.insert(group->ticket);
      } else if (const auto* const failure = std::get_if<GroupFailed>(&event)) {
        failed.insert(failure->ticket);
      }
    }
  }

  // True when the update broke off because of failures that its groups do not show: a reward that
  // answered with errors, an engine, the reference. Then its first attempts are made again, so that
  // a synchronous run has the bits of one without the failure.
  bool broken_off() const {
    return !failed.empty() && std::any_of(last.begin(), last.end(), [this](const auto& entry) {
      const experience::Ticket& ticket = entry.second.saved.ticket;
      return failed.contains(ticket) || !taken.contains(ticket);
    });
  }
};

// Drops what a step's file has for another run than the one that has committed that many updates.
// Only adds to a file that has a change of rewards, so that no crash loses that.
core::Result<void> drop_groups(const store::StepLog& log,
                               std::uint64_t step,
                               std::uint64_t committed,
                               std::vector<BookEvent>& events) {
  const auto dropped = std::erase_if(
      events, [committed](const BookEvent& event) { return !is_earlier_change(event, committed); });
  if (events.empty()) return log.remove(step);
  if (dropped == 0) return {};
  store::StepLog more = log;
  more.add(step, record_of(GroupsDropped{step - std::min<std::uint64_t>(step, 1), committed}));
  auto batch = more.take();
  return log.write(batch);
}

// Adds up what the files of successive updates hold.
class Reader {
 public:
  explicit Reader(std::uint64_t first_update) { run_.first_update = first_update; }

  std::uint64_t next() const { return run_.end(); }

  void add(const std::vector<BookEvent>& events) {
    for (const BookEvent& event : events) {
      if (const auto* const changed = std::get_if<SetChanged>(&event))
        sets_.insert_or_assign(changed->set.set, *changed);
      if (const auto* const begun = std::get_if<EvaluationBegun>(&event))
        run_.evaluations.insert(begun->update);
    }
  }
  void add(EventTickets tickets) {
    for (auto& [slot, issued] : tickets.last) {
      run_.groups += tickets.taken.contains(issued.saved.ticket) ? 1 : 0;
      run_.issued.push_back(std::move(issued));
    }
    if (!tickets.last.empty()) ++run_.updates;
  }

  // What was made later than this run goes on belongs to another one.
  LoggedRun finish() {
    for (auto& [number, changed] : sets_) {
      if (changed.committed <= next()) run_.sets.push_back(std::move(changed.set));
    }
    std::erase_if(run_.evaluations,
                  [this](std::uint64_t one) { return experience::step_of(one) > next(); });
    return std::move(run_);
  }

 private:
  LoggedRun run_;
  std::map<std::uint64_t, SetChanged> sets_;
};

}  // namespace

std::map<std::uint64_t, core::Version> earlier_starts(const LoggedRun& logged,
                                                      std::uint64_t staleness_max) {
  std::map<std::uint64_t, core::Version> starts;
  for (const TicketIssued& issued : logged.issued) {
    const std::uint64_t update = issued.saved.ticket.update;
    const std::uint64_t oldest = update - std::min(update, staleness_max);
    if (oldest < logged.first_update) starts.emplace(oldest, issued.version_min);
  }
  return starts;
}

core::Result<LoggedRun> read_log(const store::StepLog& log, std::uint64_t first_update) {
  TROUPE_TRY_ASSIGN(steps, log.steps());
  Reader reader(first_update);
  bool belongs = true;
  std::string damage;
  std::set<std::uint64_t> again;  // updates whose groups are lost by it
  for (const std::uint64_t step : steps) {
    // Step 0 has the evaluations of the model as it was given; those of a checkpoint came before
    // it.
    if (step <= first_update && first_update > 0) continue;
    TROUPE_TRY_ASSIGN(events, read_events(log, step));
    EventTickets tickets(events.list);
    // Behind a gap there may only be changes of rewards that begin later.
    const bool gap = step != reader.next() + 1;
    const bool groups = !tickets.last.empty();
    if (belongs && gap && groups) damage = log.file_of(reader.next() + 1).string() + " is missing";
    if (belongs && !events.whole) damage = log.file_of(step).string() + " " + events.damage;
    belongs = belongs && (!gap || !groups);
    if (!events.whole) TROUPE_TRY(log.cut(step, events.bytes));
    if (step > 0 && (!events.whole || (!belongs && groups))) again.insert(step);
    const bool begins_anew = belongs && step == steps.back() && tickets.broken_off();
    if (!belongs || begins_anew) {
      TROUPE_TRY(drop_groups(log, step, reader.next(), events.list));
    } else {
      reader.add(std::move(tickets));
    }
    reader.add(events.list);
    belongs = belongs && events.whole;
  }
  LoggedRun run = reader.finish();
  if (!damage.empty() && !again.empty())
    run.notes.push_back(damage + ": groups of " + store::updates_text(again) +
                        " that were in the experience log are sampled again");
  return run;
}

core::Result<std::uint64_t> positions_end(const store::StepLog& log) {
  // Tickets of that many updates may be open at once (train.staleness_max).
  constexpr std::size_t kUpdates_max = 66;
  TROUPE_TRY_ASSIGN(steps, log.steps());
  if (steps.size() > kUpdates_max)
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kUpdates_max));
  std::uint64_t end = 0;
  for (const std::uint64_t step : steps) {
    TROUPE_TRY_ASSIGN(events, read_events(log, step));
    for (const BookEvent& event : events.list) {
      const auto* const issued = std::get_if<TicketIssued>(&event);
      if (issued == nullptr || experience::is_evaluation(issued->saved.ticket.update)) continue;
      end = std::max(end, issued->saved.prompt + 1);
      for (const std::uint64_t replaced : issued->saved.replaced)
        end = std::max(end, replaced + 1);
    }
  }
  return end;
}

GroupLog::GroupLog(const RoleContext& context, GroupLogOptions options, Note note)
    : context_(context),
      options_(std::move(options)),
      log_(options_.folder, *options_.disk, options_.kept),
      note_(std::move(note), *context.timers, limits::kNotesEvery),
      wake_(*context.timers),
      written_more_(*context.timers) {
  for (std::uint64_t update = options_.found.first_update; update < options_.found.end(); ++update)
    held_.insert(update);
  held_.insert(options_.found.evaluations.begin(), options_.found.evaluations.end());
}

void GroupLog::on_event(const BookEvent& event) {
  if (!kept()) return;
  log_.add(experience::step_of(update_of(event)), record_of(event));
  ++added_;
  if (writing_) return;
  writing_ = true;
  context_.scope->spawn("experience log", keep_writing());
}

async::task<core::Result<void>> GroupLog::durable() {
  const std::uint64_t upto = added_;
  const std::uint64_t failures = failures_;
  urgent_ = true;
  wake_.notify_all();
  while (written_ < upto && failures_ == failures)
    co_await written_more_.wait(async::Deadline::none());
  if (written_ < upto) co_return core::fail(*error_);
  co_return core::Result<void>();
}

// Ends early when a caller waits.
async::task<void> GroupLog::pause(core::Duration span) {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, span);
  while (!urgent_) {
    const bool woken = co_await wake_.wait(deadline);
    if (!woken) break;
  }
  urgent_ = false;
}

async::task<void> GroupLog::keep_writing() {
  while (!log_.empty()) {
    co_await pause(error_ ? limits::kDiskPause_min : limits::kLogEvery);
    const std::uint64_t upto = added_;
    auto batch = std::make_shared<store::StepLog::Batch>(log_.take());
    auto job = [this, batch]() -> core::Result<void> {
      if (!options_.here()) return {};
      return log_.write(*batch);
    };
    auto written = co_await context_.device->run(std::move(job));
    if (written) {
      written_ = upto;
      error_.reset();
    } else {
      log_.put_back(std::move(*batch));
      error_ = written.error().within("the experience log");
      ++failures_;
      note_(error_->message);
    }
    written_more_.notify_all();
  }
  writing_ = false;
}

async::task<core::Result<std::vector<BookEvent>>> GroupLog::read(std::uint64_t update) {
  auto job = [this, update]() -> core::Result<std::vector<BookEvent>> {
    TROUPE_TRY_ASSIGN(events, read_events(log_, experience::step_of(update)));
    return events_of(update, std::move(events.list));
  };
  auto events = co_await context_.device->run(std::move(job));
  co_return events;
}

async::task<core::Result<std::vector<BookEvent>>> GroupLog::take(std::uint64_t update) {
  auto reading = read(update);
  auto events = co_await std::move(reading);
  if (events) held_.erase(update);
  co_return events;
}

}  // namespace troupe::actors::data
