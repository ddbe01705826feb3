#include "actors/generator/generator_role.hpp"

#include "actors/generator/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/group_bytes.hpp"
#include "runtime/core/limits.hpp"

namespace troupe::actors::generator {

namespace {

core::Result<std::shared_ptr<const engine::TokenGuide>> guide_of(
    const std::shared_ptr<guide::GuideMaker>& guides, const std::string& text) {
  if (!guides) return core::fail(ErrorCode::kUnsupported, "this generator has no guided decoding");
  TROUPE_TRY_ASSIGN(grammar, guide::grammar_of(text));
  return guides->make(grammar);
}

}  // namespace

GeneratorRole::GeneratorRole(RoleContext context,
                             EngineMaker maker,
                             std::shared_ptr<const engine::TokenText> text,
                             std::shared_ptr<weights::WeightSubscriber> subscriber,
                             async::DeviceQueue& fetch_thread,
                             std::string data_peer,
                             bool sleep_idle,
                             std::shared_ptr<guide::GuideMaker> guides)
    : context_(std::move(context)),
      text_(std::move(text)),
      data_peer_(std::move(data_peer)),
      weights_(context_, std::move(subscriber), fetch_thread, [this] { wake(); }),
      sleep_idle_(sleep_idle),
      guides_(std::move(guides)) {
  TROUPE_CHECK(context_.device != nullptr && context_.team != nullptr,
               "a generator has a device thread and a team on it");
  driver_ = std::make_shared<engine::EngineDriver>(std::move(maker), *context_.team,
                                                   context_.activity, *context_.timers);
  say_idle();
}

async::task<core::Result<Generated>> GeneratorRole::on(Generate request) {
  const core::TimePoint begin = context_.timers->now();
  auto call = std::make_shared<GenerateCall>();
  for (const experience::Ticket& ticket : request.tickets) {
    book_.ask(ticket, request.sampling, request.version_min, call);
  }
  if (!std::exchange(fetching_, true)) context_.scope->spawn("prompts", fetch_prompts());
  if (call->open > 0) co_await async::Event::wait(call->done);
  if (call->error) co_return core::fail(*call->error);
  call->totals.seconds = std::chrono::duration<double>(context_.timers->now() - begin).count();
  co_return call->totals;
}

async::task<core::Result<Completed>> GeneratorRole::on(Complete request) {
  std::shared_ptr<const engine::TokenGuide> guide;
  if (!request.grammar.empty()) {
    auto job = [guides = guides_, text = request.grammar] { return guide_of(guides, text); };
    auto making = context_.device->run(std::move(job));
    TROUPE_CO_TRY_SET(guide, co_await std::move(making));
  }
  const auto answer = calls_.ask(std::move(request), std::move(guide));
  wake();
  auto result = co_await CallBook::Answer::take(answer);
  co_return result;
}

async::task<core::Result<Ack>> GeneratorRole::on(CutGroups request) {
  for (const core::GroupId id : book_.cut(request.tickets))
    aborts_.push_back(id);
  wake();
  co_return Ack{};
}

async::task<void> GeneratorRole::fetch_prompts() {
  for (;;) {
    auto tickets = book_.take_asked(limits::kFetchTickets_max);
    if (tickets.empty()) break;
    co_await fetch_some(std::move(tickets));
    wake();
  }
  fetching_ = false;
}

// Fetches prompts. If the data role refuses one ticket of several, asks for each alone, so that
// only the refused ticket fails.
async::task<void> GeneratorRole::fetch_some(std::vector<experience::Ticket> tickets) {
  FetchPrompts fetch{tickets};
  auto prompts = co_await ask_until_taken(context_, data_peer_, std::move(fetch));
  if (!prompts && tickets.size() > 1) {
    for (const experience::Ticket& ticket : tickets) {
      std::vector<experience::Ticket> one(1, ticket);
      co_await fetch_some(std::move(one));
    }
    co_return;
  }
  if (!prompts) {
    std::optional<core::Error> error;
    if (prompts.error().code != ErrorCode::kNotFound) error = prompts.error();  // else not open
    co_return book_.end(tickets.front(), nullptr, error);
  }
  for (PromptTask& task : prompts->tasks) {
    std::erase(tickets, task.ticket);
    book_.put_prompt(std::move(task));
  }
  for (const experience::Ticket& ticket : tickets)
    book_.end(ticket, nullptr, std::nullopt);  // the data role gave no prompt for it
}

void GeneratorRole::wake() {
  if (!std::exchange(pumping_, true)) context_.scope->spawn("engine", pump());
}

engine::EngineWork GeneratorRole::next_work() {
  engine::EngineWork work;
  work.aborts = std::exchange(aborts_, {});
  if (weights_.version()) {
    for (engine::GroupRequest& request : book_.submit(*weights_.version()))
      work.submits.push_back({std::move(request)});
    for (engine::GroupRequest& request : calls_.submit(*weights_.version()))
      work.submits.push_back({std::move(request)});
  }
  work.intake = weights_.intake();
  work.kv = weights_.kv();
  return work;
}

async::task<void> GeneratorRole::pump() {
  bool rested = false;
  for (;;) {
    engine::EngineWork work = next_work();
    if (work.aborts.empty() && !work.intake && book_.running() + calls_.running() == 0) {
      if (!sleep_idle_ || resting_ || rested || !weights_.version()) break;
      work.rest = true;
    }
    rested = work.rest;  // do not ask again, even if the engine did not sleep
    context_.set_idle("waiting for the device");
    const std::vector<core::GroupId> aborts = work.aborts;
    auto turn = co_await take_turn(std::move(work));
    if (!turn) {
      fail_running(turn.error());
      if (weights_.intake()) weights_.broken(turn.error());
      continue;
    }
    digest(std::move(*turn), aborts);
  }
  pumping_ = false;
  say_idle();
}

// Runs one turn of the engine. When the queue of the device thread is full, it refuses the turn
// before the engine sees it; this then tries again.
async::task<core::Result<engine::EngineTurn>> GeneratorRole::take_turn(engine::EngineWork work) {
  const auto held = std::make_shared<engine::EngineWork>(std::move(work));
  const auto begun = std::make_shared<bool>(false);
  for (;;) {
    auto job = [driver = driver_, held, begun]() -> core::Result<engine::EngineTurn> {
      *begun = true;
      return driver->turn(std::move(*held));
    };
    auto turn = co_await context_.device->run(std::move(job));
    const bool refused = !turn && turn.error().code == ErrorCode::kOverloaded && !*begun;
    if (!refused) co_return turn;
    co_await async::sleep_for(*context_.timers, actors::limits::kOverloadBackoff);
  }
}

void GeneratorRole::digest(engine::EngineTurn turn, const std::vector<core::GroupId>& aborts) {
  counters_ = turn.counters;
  resting_ = turn.resting;
  if (turn.swapped) weights_.swapped(*turn.swapped);
  if (turn.intake_error) weights_.broken(*turn.intake_error);
  for (const core::GroupId id : aborts) {
    if (auto group = book_.aborted(id)) {
      context_.scope->spawn("deliver", deliver(std::move(*group)));
    }
  }
  for (engine::GroupNews& news : turn.news) {
    for (engine::Sample& sample : news.finished) {
      if (calls_.has(sample.group)) {
        tokens_ += sample.tokens.size();
        calls_.put_sample(std::move(sample));
      } else if (auto group = book_.put_sample(std::move(sample))) {
        context_.scope->spawn("deliver", deliver(std::move(*group)));
      }
    }
    if (!news.error) continue;
    calls_.fail(news.group, *news.error);
    if (const auto ticket = book_.ticket_of(news.group)) book_.end(*ticket, nullptr, news.error);
  }
}

// After an exception in a turn the engine's samples cannot be used: fails their groups, and has the
// engine drop them in its next turn.
void GeneratorRole::fail_running(const core::Error& error) {
  for (const auto& [id, ticket] : book_.running_groups()) {
    aborts_.push_back(id);
    book_.end(ticket, nullptr, error);
  }
  for (const core::GroupId id : calls_.running_groups()) {
    aborts_.push_back(id);
    calls_.fail(id, error);
  }
  if (!weights_.version()) aborts_.clear();
}

async::task<void> GeneratorRole::deliver(PutGroup group) {
  std::uint64_t tokens = 0, text = 0;
  for (experience::Trajectory& sample : group.samples) {
    sample.text = text_->decode(sample.tokens);
    tokens += sample.tokens.size();
    text += sample.text.size();
  }
  tokens_ += tokens;
  if (core::group_bytes(0, group.samples.size(), tokens, text) > core::limits::kGroup_bytes_max) {
    group.too_long = static_cast<std::uint32_t>(group.samples.size());
    group.samples.clear();
  }
  auto answer = co_await ask_until_taken(context_, data_peer_, group);
  std::optional<core::Error> error;
  if (!answer) error = answer.error();
  book_.end(group.ticket, &group, error);
  if (!pumping_) say_idle();
}

std::string GeneratorRole::state() const {
  if (!weights_.version()) return "stale";
  if (book_.running() + calls_.running() > 0) return "sampling";
  if (book_.held() + calls_.held() > 0) return "waiting for weights";
  return book_.size() > 0 ? "waiting for data" : "no tickets";
}

void GeneratorRole::say_idle() {
  const char* cause = book_.asked() > 0 ? "waiting for prompts" : "no tickets";
  if (book_.held() + calls_.held() > 0 || !weights_.version()) cause = "waiting for weights";
  context_.set_idle(cause);
}

wire::Amounts GeneratorRole::amounts() const {
  return {{"version", static_cast<double>(weights_.version().value_or(0))},
          {"tokens", static_cast<double>(tokens_)},
          {"running", static_cast<double>(counters_.running_sequences)},
          {"waiting", static_cast<double>(book_.asked() + book_.held() + calls_.held())},
          {"kv_blocks", static_cast<double>(counters_.total_blocks)},
          {"kv_blocks_used", static_cast<double>(counters_.total_blocks - counters_.free_blocks)},
          {"preempted", static_cast<double>(counters_.preempted)},
          {"prefix_hit_tokens", static_cast<double>(counters_.prefix_hit_tokens)},
          {"resting", resting_ ? 1.0 : 0.0}};
}

}  // namespace troupe::actors::generator
