// The shell of the generator role.
#include "actors/generator/generator_role.hpp"

#include <algorithm>

#include "actors/protocol/ask.hpp"

namespace troupe::actors {
namespace {

engine::GroupRequest request_of(core::GroupId id, PromptTask task, const SamplingSpec& sampling) {
  engine::GroupRequest request;
  request.id = id;
  request.prompt = std::move(task.tokens);
  request.samples = task.samples;
  request.seed = task.seed;
  request.sampling.temperature = sampling.temperature;
  request.sampling.top_p = sampling.top_p;
  request.sampling.min_p = sampling.min_p;
  request.sampling.top_k = sampling.top_k;
  request.sampling.max_new_tokens = sampling.max_new_tokens;
  request.sampling.stop_strings = sampling.stop;
  return request;
}

}  // namespace

GeneratorRole::GeneratorRole(RoleContext context, std::unique_ptr<engine::Engine> engine,
                             std::shared_ptr<const engine::TokenText> text,
                             std::shared_ptr<weights::WeightSubscriber> subscriber,
                             std::string data_peer)
    : context_(std::move(context)),
      engine_(std::move(engine)),
      text_(std::move(text)),
      subscriber_(std::move(subscriber)),
      data_peer_(std::move(data_peer)) {}

async::task<core::Result<Generated>> GeneratorRole::on(Generate request) {
  const core::TimePoint begin = context_.timers->now();
  FetchPrompts fetch{request.tickets};
  auto prompts = co_await ask(context_, data_peer_, std::move(fetch));
  if (!prompts) co_return prompts.failure();
  auto round = std::make_shared<Round>();
  for (const PromptTask& task : prompts->tasks) {
    round->totals.prompt_tokens += task.tokens.size();
  }
  TROUPE_CO_TRY(co_await submit(std::move(prompts->tasks), request.sampling, round));
  if (!pumping_) {
    pumping_ = true;
    context_.scope->spawn("engine", pump());
  }
  if (round->open_groups > 0) co_await async::Event::wait(round->done);
  if (round->error) co_return core::fail(*round->error);
  round->totals.seconds =
      std::chrono::duration<double>(context_.timers->now() - begin).count();
  co_return round->totals;
}

async::task<core::Result<std::size_t>> GeneratorRole::submit(std::vector<PromptTask> tasks,
                                                             SamplingSpec sampling,
                                                             std::shared_ptr<Round> round) {
  std::vector<engine::GroupRequest> requests;
  for (PromptTask& task : tasks) {
    const core::GroupId id{next_group_++};
    OpenGroup group;
    group.ticket = task.ticket;
    group.wanted = task.samples;
    group.round = round;
    open_.emplace(id, std::move(group));
    ++round->open_groups;
    requests.push_back(request_of(id, std::move(task), sampling));
  }
  engine::Engine* engine = engine_.get();
  auto job = [engine, requests]() -> core::Result<void> {
    for (const auto& one : requests) TROUPE_TRY(engine->submit(one));
    return {};
  };
  auto submitted = co_await context_.device->run(std::move(job));
  if (!submitted) {
    // Nothing of this round stays behind: what had been taken is aborted and forgotten.
    auto undo = [engine, requests]() -> core::Result<void> {
      for (const auto& one : requests) engine->abort(one.id);
      return {};
    };
    auto undone = co_await context_.device->run(std::move(undo));
    for (const auto& one : requests) open_.erase(one.id);
    if (!undone) co_return undone.failure();
    co_return submitted.failure();
  }
  co_return requests.size();
}

async::task<core::Result<void>> GeneratorRole::pump() {
  engine::Engine* engine = engine_.get();
  while (!open_.empty()) {
    auto job = [engine]() { return engine->step(); };
    auto finished = co_await context_.device->run(std::move(job));
    if (!finished) {
      pumping_ = false;
      fail_all(finished.error());
      co_return core::Result<void>();
    }
    for (engine::Sample& sample : *finished) {
      const auto place = open_.find(sample.group);
      if (place == open_.end()) continue;
      place->second.samples.push_back(std::move(sample));
      if (static_cast<std::int32_t>(place->second.samples.size()) < place->second.wanted) continue;
      OpenGroup whole = std::move(place->second);
      open_.erase(place);
      context_.scope->spawn("deliver", deliver(std::move(whole)));
    }
  }
  pumping_ = false;
  co_return core::Result<void>();
}

async::task<core::Result<void>> GeneratorRole::deliver(OpenGroup group) {
  std::sort(group.samples.begin(), group.samples.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  PutGroup put;
  put.ticket = group.ticket;
  std::uint64_t tokens = 0;
  for (engine::Sample& sample : group.samples) {
    DeliveredSample delivered;
    tokens += sample.tokens.size();
    delivered.text = text_->decode(sample.tokens);
    delivered.tokens = std::move(sample.tokens);
    delivered.behaviour = std::move(sample.logprobs);
    delivered.kept_mass = std::move(sample.kept_mass);
    delivered.versions = std::move(sample.versions);
    delivered.finish = std::string(engine::finish_name(sample.finish));
    put.samples.push_back(std::move(delivered));
  }
  group.round->totals.samples += group.samples.size();
  group.round->totals.tokens += tokens;
  auto answer = co_await ask(context_, data_peer_, std::move(put));
  std::optional<core::Error> error;
  if (!answer) error = answer.error();
  finish(*group.round, std::move(error));
  co_return core::Result<void>();
}

void GeneratorRole::finish(Round& round, std::optional<core::Error> error) {
  if (error && !round.error) round.error = std::move(error);
  if (--round.open_groups == 0) round.done->fire();
}

void GeneratorRole::fail_all(const core::Error& error) {
  auto open = std::move(open_);
  open_.clear();
  for (auto& [id, group] : open) finish(*group.round, error);
}

async::task<core::Result<Ack>> GeneratorRole::on(UpdateWeights request) {
  weights::WeightLocation location;
  location.host_id = request.source.host_id;
  location.socket = request.source.socket;
  location.tcp_host = request.source.tcp_host;
  location.tcp_port = request.source.tcp_port;
  location.key = request.source.key;
  TROUPE_CO_TRY_ASSIGN(fetched, subscriber_->fetch(request.version, location, core::limits::kCallDeadline));
  std::shared_ptr<weights::WeightIntake> intake = std::move(fetched);
  engine::Engine* engine = engine_.get();
  auto job = [engine, intake]() -> core::Result<void> {
    core::SerialTeam team;
    for (bool done = false; !done;) {
      TROUPE_TRY_ASSIGN(more, intake->advance(team, core::limits::kCallDeadline));
      done = more;
    }
    engine->set_weights(intake->take(), engine::KvAction::kRecompute);
    return {};
  };
  TROUPE_CO_TRY(co_await context_.device->run(std::move(job)));
  co_return Ack{};
}

}  // namespace troupe::actors
