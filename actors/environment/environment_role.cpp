#include "actors/environment/environment_role.hpp"

#include "actors/environment/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/group_bytes.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/experience/row.hpp"

#include <algorithm>

namespace troupe::actors::environment {

namespace {

// Tokens that were drawn while others could not be.
std::uint64_t restricted_tokens(const sessions::SessionTree& tree) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < tree.size(); ++i)
    count += static_cast<std::uint64_t>(std::ranges::count_if(
        tree.at(i).drawn.facts.log_kept_mass, [](float kept) { return kept < 0.0f; }));
  return count;
}

}  // namespace

EnvironmentRole::EnvironmentRole(RoleContext context, EnvironmentParts parts)
    : context_(std::move(context)),
      parts_(std::move(parts)),
      sessions_(context_, parts_),
      free_(*context_.timers) {
  if (parts_.environment) parts_.environment->begin(context_);
  if (parts_.program) parts_.program->begin(context_);
  context_.set_idle("no tickets");
}

async::task<core::Result<Generated>> EnvironmentRole::on(Generate request) {
  const core::TimePoint begin = context_.timers->now();
  std::vector<std::shared_ptr<Waiter>> waiters;
  for (const experience::Ticket& ticket : request.tickets) {
    GroupPtr& group = groups_[ticket];
    if (!group) {
      group = std::make_shared<Group>();
      group->sampling = request.sampling;
      group->version_min = request.version_min;
      context_.scope->spawn("episodes", run_group(ticket, group));
    }
    waiters.push_back(group->waiters.emplace_back(std::make_shared<Waiter>()));
  }
  Generated totals;
  for (const std::shared_ptr<Waiter>& waiter : waiters) {
    TROUPE_CO_TRY_ASSIGN(one, co_await Waiter::take(waiter));
    totals.samples += one.samples;
    totals.tokens += one.tokens;
    totals.prompt_tokens += one.prompt_tokens;
  }
  totals.seconds = std::chrono::duration<double>(context_.timers->now() - begin).count();
  co_return totals;
}

async::task<core::Result<Ack>> EnvironmentRole::on(CutGroups request) {
  for (const experience::Ticket& ticket : request.tickets) {
    const auto found = groups_.find(ticket);
    if (found == groups_.end()) continue;
    found->second->cut = true;
    if (found->second->scope != nullptr) found->second->scope->cancel();
  }
  co_return Ack{};
}

async::task<void> EnvironmentRole::run_group(experience::Ticket ticket, GroupPtr group) {
  auto sampling = sample(ticket, group);
  const core::Result<Generated> result = co_await std::move(sampling);
  groups_.erase(ticket);
  for (const std::shared_ptr<Waiter>& waiter : group->waiters)
    waiter->set(result);
  if (groups_.empty()) context_.set_idle("no tickets");
}

async::task<core::Result<Generated>> EnvironmentRole::sample(experience::Ticket ticket,
                                                             GroupPtr group) {
  FetchEpisodes request{std::vector<experience::Ticket>(1, ticket)};
  auto fetched = co_await ask_until_taken(context_, parts_.data_peer, std::move(request));
  // Not open any more: another attempt has its slot.
  if (!fetched && fetched.error().code == ErrorCode::kNotFound) co_return Generated();
  if (!fetched) co_return fetched.failure();
  group->task = std::make_shared<const EpisodeTask>(std::move(fetched->tasks.front()));
  group->ends.resize(static_cast<std::size_t>(std::max(group->task->samples, 1)));
  auto running = async::with_scope(&EnvironmentRole::episodes, this, group);
  const auto ran = co_await std::move(running);
  group->scope = nullptr;
  if (!ran) co_return ran.failure();
  auto delivering = deliver(ticket, group);
  auto delivered = co_await std::move(delivering);
  co_return delivered;
}

async::task<core::Result<void>> EnvironmentRole::episodes(async::Scope& scope,
                                                          EnvironmentRole* self,
                                                          GroupPtr group) {
  group->scope = &scope;
  for (std::size_t i = 0; i < group->ends.size(); ++i)
    scope.spawn("", self->one(group, static_cast<std::uint32_t>(i)));
  if (group->cut) scope.cancel();
  co_return core::Result<void>();
}

async::task<void> EnvironmentRole::one(GroupPtr group, std::uint32_t index) {
  while (running_ >= parts_.episodes_max) {
    const bool woken = co_await free_.wait(async::Deadline::none());
    static_cast<void>(woken);
  }
  ++running_;
  context_.set_idle("episodes under way");
  const core::AtExit ended([this] {
    --running_;
    free_.notify_all();
  });
  EpisodeOrder order{group->task, index, group->sampling, group->version_min};
  Loss loss = Loss::kNone;
  auto first = run_once(order, &loss);
  auto end = co_await std::move(first);
  while (!end && loss != Loss::kNone) {
    if (loss == Loss::kPerhapsOwn && ++order.losses == limits::kEpisodeLosses_max) break;
    ++again_;
    auto next = run_once(order, &loss);
    end = co_await std::move(next);
  }
  if (end) {
    count(*end);
    group->ends[index] = std::move(*end);
    co_return;
  }
  ++failed_;
  group->cause = end.error().message;
  if (parts_.note && failed_ == 1) {
    parts_.note(
        core::with_fact("an episode failed: " + group->cause, "its group goes on without it"));
  }
}

async::task<core::Result<EpisodeEnd>> EnvironmentRole::run_once(EpisodeOrder order, Loss* loss) {
  *loss = Loss::kNone;
  if (parts_.environment) {
    EpisodeRun run(context_, *parts_.model, parts_.settings, *parts_.environment, std::move(order));
    auto running = EpisodeRun::run(&run);
    auto end = co_await std::move(running);
    *loss = run.loss();
    co_return end;
  }
  auto running = sessions_.run(std::move(order), loss);
  auto end = co_await std::move(running);
  co_return end;
}

void EnvironmentRole::count(const EpisodeEnd& end) {
  ++episodes_;
  turns_ += end.turns;
  cut_by_limit_ += end.out_of_room ? 1 : 0;
  if (end.forked_by_template > 0 && forked_by_template_ == 0 && parts_.note) {
    parts_.note("the chat template of " + parts_.model->names.front() +
                " renders earlier turns differently than before, so that a turn begins a "
                "fork; --session.history keep keeps the tokens of those turns");
  }
  forked_by_template_ += end.forked_by_template;
  const std::uint64_t restricted = restricted_tokens(end.tree);
  if (restricted > 0 && restricted_ == 0 && parts_.note) {
    parts_.note(
        "an episode has tokens drawn under a grammar, a forced call or truncation; the "
        "policy's ratios are those of the full distribution, so learning is biased there "
        "(docs/agents.md, kept mass)");
  }
  restricted_ += restricted;
}

async::task<core::Result<Generated>> EnvironmentRole::deliver(experience::Ticket ticket,
                                                              GroupPtr group) {
  PutGroup request{.ticket = ticket};
  Generated totals;
  std::uint64_t text = 0, context = 0;
  for (std::size_t i = 0; i < group->ends.size(); ++i) {
    if (!group->ends[i]) continue;
    auto samples = sessions::samples_of(group->ends[i]->tree, static_cast<std::uint32_t>(i + 1),
                                        request.samples.size(), group->ends[i]->rewards);
    ++totals.samples;
    for (experience::Trajectory& sample : samples) {
      totals.tokens += sample.tokens.size();
      text += sample.text.size();
      context += experience::turn_bytes(sample);
      request.samples.push_back(std::move(sample));
    }
  }
  const bool whole = totals.samples == group->ends.size();
  if (group->cut && !whole && totals.samples < 2) {
    co_return core::fail(ErrorCode::kDeadline, "cut with too few episodes");
  }
  auto prompt = whole || totals.samples >= 2 ? sessions::take_prompt(request.samples)
                                             : core::fail(ErrorCode::kData, group->cause);
  if (!prompt) {
    group->cause = prompt.error().message;
    auto setting = set_aside(ticket, group);
    auto set = co_await std::move(setting);
    co_return set;
  }
  request.prompt = std::move(*prompt);
  totals.prompt_tokens = request.prompt.size();
  request.cut = !whole;
  if (parts_.environment) request.modules = parts_.environment->take_modules();
  const std::uint64_t bytes =
      context +
      core::group_bytes(request.prompt.size(), request.samples.size(), totals.tokens, text);
  if (bytes > core::limits::kGroup_bytes_max) {
    request.too_long = static_cast<std::uint32_t>(totals.samples);
    request.samples.clear();
  }
  TROUPE_CO_TRY(co_await ask_until_taken(context_, parts_.data_peer, std::move(request)));
  co_return totals;
}

async::task<core::Result<Generated>> EnvironmentRole::set_aside(experience::Ticket ticket,
                                                                GroupPtr group) {
  SetAside request{ticket, "too few of its episodes ended well: " + group->cause};
  TROUPE_CO_TRY(co_await ask(context_, parts_.data_peer, std::move(request)));
  co_return Generated();
}

std::string EnvironmentRole::state() const {
  return groups_.empty() ? "no tickets" : "running episodes";
}

wire::Amounts EnvironmentRole::amounts() const {
  return {{"episodes", static_cast<double>(episodes_)},
          {"running", static_cast<double>(running_)},
          {"failed", static_cast<double>(failed_)},
          {"again", static_cast<double>(again_)},
          {"turns", static_cast<double>(turns_)},
          {"forked_by_template", static_cast<double>(forked_by_template_)},
          {"cut_by_limit", static_cast<double>(cut_by_limit_)},
          {"unrewarded", static_cast<double>(sessions_.unrewarded())},
          {"restricted_tokens", static_cast<double>(restricted_)}};
}

}  // namespace troupe::actors::environment
