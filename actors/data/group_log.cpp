#include "actors/data/group_log.hpp"

#include <algorithm>
#include <memory>

namespace troupe::actors {
namespace {

struct UpdateOf {
  std::uint64_t operator()(const TicketIssued& one) const { return one.saved.ticket.update; }
  std::uint64_t operator()(const SetChanged& one) const { return one.set.from_update; }
  std::uint64_t operator()(const auto& one) const { return one.ticket.update; }
};

// Events up to the first record that is none.
struct Events {
  std::vector<BookEvent> list;
  bool whole = true;
};

core::Result<Events> read_events(const store::StepLog& log, std::uint64_t update) {
  TROUPE_TRY_ASSIGN(content, log.read(update + 1));
  Events events;
  events.whole = content.cut_bytes == 0;
  for (const std::string& record : content.records) {
    auto event = event_of(record);
    events.whole = events.whole && event.has_value();
    if (!event) break;
    events.list.push_back(std::move(*event));
  }
  return events;
}

// True when an update broke off because of failures that its groups do not show: a reward that
// answered with errors, an engine, the reference. Then its first attempts are made again, so that a
// synchronous run has the bits of one without the failure.
bool broken_off(const std::vector<BookEvent>& events) {
  std::map<std::uint32_t, experience::Ticket> last;
  std::set<experience::Ticket> taken, failed;
  for (const BookEvent& event : events) {
    if (const auto* const issued = std::get_if<TicketIssued>(&event)) {
      last[issued->saved.ticket.slot] = issued->saved.ticket;
    } else if (const auto* const group = std::get_if<GroupTaken>(&event)) {
      taken.insert(group->ticket);
    } else if (const auto* const failure = std::get_if<GroupFailed>(&event)) {
      failed.insert(failure->ticket);
    }
  }
  const bool open = std::any_of(last.begin(), last.end(), [&](const auto& entry) {
    return failed.contains(entry.second) || !taken.contains(entry.second);
  });
  return open && !failed.empty();
}

// Leaves of a step's file the changes of rewards alone.
core::Result<void> keep_sets(const store::StepLog& log,
                             std::uint64_t step,
                             std::vector<BookEvent>& events) {
  std::erase_if(events,
                [](const BookEvent& event) { return !std::holds_alternative<SetChanged>(event); });
  store::StepLog again = log;
  for (const BookEvent& event : events)
    again.add(step, record_of(event));
  TROUPE_TRY(log.remove(step));
  auto batch = again.take();
  return log.write(batch);
}

// Adds up what the files of successive updates hold.
class Reader {
 public:
  explicit Reader(std::uint64_t first_update) : first_(first_update) {}

  std::uint64_t next() const { return first_ + run_.updates; }

  // False: it holds no ticket.
  bool add(const std::vector<BookEvent>& events) {
    std::map<std::uint32_t, TicketIssued> last;
    std::set<experience::Ticket> taken;
    for (const BookEvent& event : events) {
      if (const auto* const issued = std::get_if<TicketIssued>(&event)) {
        last.insert_or_assign(issued->saved.ticket.slot, *issued);
      } else if (const auto* const group = std::get_if<GroupTaken>(&event)) {
        taken.insert(group->ticket);
      } else if (const auto* const changed = std::get_if<SetChanged>(&event)) {
        sets_.insert_or_assign(changed->set.set, *changed);
      }
    }
    for (auto& [slot, issued] : last) {
      const bool sampled = taken.contains(issued.saved.ticket);
      ++(sampled ? run_.groups : run_.unsampled);
      run_.next_prompt = std::max(run_.next_prompt, issued.saved.prompt + 1);
      for (const std::uint64_t prompt : issued.saved.replaced)
        run_.next_prompt = std::max(run_.next_prompt, prompt + 1);
      run_.issued.push_back(std::move(issued));
    }
    if (!last.empty()) ++run_.updates;
    return !last.empty();
  }

  // Changes that were made later than this run goes on belong to another one.
  LoggedRun finish() {
    for (auto& [number, changed] : sets_) {
      if (changed.committed <= next()) run_.sets.push_back(std::move(changed.set));
    }
    return std::move(run_);
  }

 private:
  const std::uint64_t first_;
  LoggedRun run_;
  std::map<std::uint64_t, SetChanged> sets_;
};

}  // namespace

core::Result<LoggedRun> read_log(const store::StepLog& log, std::uint64_t first_update) {
  TROUPE_TRY_ASSIGN(steps, log.steps());
  Reader reader(first_update);
  bool belongs = true;
  for (const std::uint64_t step : steps) {
    if (step <= first_update) continue;
    TROUPE_TRY_ASSIGN(events, read_events(log, step - 1));
    // Behind a gap there may only be changes of rewards that begin later.
    const bool gap = step - 1 != reader.next();
    const bool tickets = std::any_of(
        events.list.begin(), events.list.end(),
        [](const BookEvent& event) { return std::holds_alternative<TicketIssued>(event); });
    if (!belongs || (gap && tickets)) {
      belongs = false;
      TROUPE_TRY(log.remove(step));
      continue;
    }
    if (step == steps.back() && broken_off(events.list))
      TROUPE_TRY(keep_sets(log, step, events.list));
    reader.add(events.list);
    belongs = events.whole;
  }
  return reader.finish();
}

GroupLog::GroupLog(const RoleContext& context, GroupLogOptions options, Note note)
    : context_(context),
      options_(std::move(options)),
      log_(options_.folder, *options_.disk),
      note_(std::move(note), *context.timers, limits::kNotesEvery),
      wake_(*context.timers),
      written_more_(*context.timers) {}

void GroupLog::on_event(const BookEvent& event) {
  if (!kept()) return;
  log_.add(std::visit(UpdateOf{}, event) + 1, record_of(event));
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

// Ends early when somebody waits.
async::task<void> GroupLog::pause(core::Duration span) {
  const async::Deadline deadline = async::Deadline::after(*context_.timers, span);
  while (!urgent_ && co_await wake_.wait(deadline)) {
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

async::task<core::Result<LoggedRun>> GroupLog::open(std::uint64_t first_update) {
  auto job = [this, first_update] { return read_log(log_, first_update); };
  TROUPE_CO_TRY_ASSIGN(found, co_await context_.device->run(std::move(job)));
  opened_ = true;
  for (std::uint64_t i = 0; i < found.updates; ++i)
    held_.insert(first_update + i);
  co_return found;
}

async::task<core::Result<std::vector<BookEvent>>> GroupLog::take(std::uint64_t update) {
  auto job = [this, update]() -> core::Result<std::vector<BookEvent>> {
    TROUPE_TRY_ASSIGN(events, read_events(log_, update));
    return std::move(events.list);
  };
  TROUPE_CO_TRY_ASSIGN(events, co_await context_.device->run(std::move(job)));
  held_.erase(update);
  co_return std::move(events);
}

}  // namespace troupe::actors
