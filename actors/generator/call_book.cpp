#include "actors/generator/call_book.hpp"

#include "actors/protocol/call_values.hpp"

namespace troupe::actors::generator {
namespace {

engine::GroupRequest engine_request(core::GroupId id, const Complete& call) {
  engine::GroupRequest out;
  out.id = id;
  out.prompt = call.prompt;
  out.seed = call.seed;
  out.sampling = engine_sampling(call.sampling);
  return out;
}

}  // namespace

CallBook::Name CallBook::name_of(const Complete& request) {
  return {request.ticket, request.session, request.number};
}

std::shared_ptr<CallBook::Answer> CallBook::ask(Complete request,
                                                std::shared_ptr<const engine::TokenGuide> guide) {
  const Name name = name_of(request);
  const auto [place, fresh] = calls_.try_emplace(name);
  if (fresh) {
    place->second.request = std::move(request);
    place->second.guide = std::move(guide);
  }
  return place->second.answers.emplace_back(std::make_shared<Answer>());
}

std::vector<engine::GroupRequest> CallBook::submit(core::Version version) {
  std::vector<engine::GroupRequest> out;
  for (auto& [name, call] : calls_) {
    if (call.running || call.request.version_min > version) continue;
    const core::GroupId id{next_++};
    call.running = true;
    running_.emplace(id, name);
    out.push_back(engine_request(id, call.request));
    out.back().guide = call.guide;
  }
  return out;
}

void CallBook::put_sample(engine::Sample sample) {
  const core::GroupId id = sample.group;
  end(id, completed_of(std::move(sample)));
}

void CallBook::fail(core::GroupId id, const core::Error& error) {
  end(id, core::fail(error));
}

void CallBook::end(core::GroupId id, const core::Result<Completed>& result) {
  const auto name = running_.extract(id);
  if (name.empty()) return;
  const auto call = calls_.extract(name.mapped());
  for (const auto& answer : call.mapped().answers)
    answer->set(result);
}

std::vector<core::GroupId> CallBook::running_groups() const {
  std::vector<core::GroupId> out;
  for (const auto& [id, name] : running_)
    out.push_back(id);
  return out;
}

}  // namespace troupe::actors::generator
