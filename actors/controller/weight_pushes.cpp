#include "actors/controller/weight_pushes.hpp"

#include "actors/controller/patience.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"

#include <algorithm>

namespace troupe::actors::controller {

void WeightPushes::offer(const Published& published) {
  latest_ = published;
  if (run_.scope == nullptr) return;
  for (const auto& [name, member] : members_.all()) {
    if (member.up && member.pushes < 2) start(name);
  }
}

void WeightPushes::begin(const std::string& name) {
  if (run_.scope != nullptr && latest_) start(name);
}

void WeightPushes::start(const std::string& name) {
  FleetMembers::Member& member = members_.at(name);
  member.sent = latest_->version;
  ++member.pushes;
  run_.scope->spawn("", push(name, member.life));
}

// Sends one version of the weights to one member. If a newer one overtakes it, ignores its failure.
async::task<void> WeightPushes::push(std::string name, std::uint64_t life) {
  const core::Version version = latest_->version;
  UpdateWeights request{version, latest_->source, run_.plan.recompute_kv};
  auto reply = co_await ask(run_.context, name, std::move(request));
  if (!members_.lives(name, life)) co_return;
  FleetMembers::Member& member = members_.at(name);
  --member.pushes;
  if (reply) {
    member.misses = 0;
    member.holds = std::max(member.holds.value_or(0), version);
    members_.router().holds(name, *member.holds);
    members_.look();
    outcome_.took();
  } else if (is_loss(reply.error().code)) {
    co_return outcome_.gone(name, without_name(reply.error(), name));
  } else if (member.pushes == 0) {
    co_return missed(name, version, without_name(reply.error(), name));
  }
  if (member.sent < latest_->version) start(name);
}

// After a link error the weights are sent again; a member that repeatedly rejects what arrived is
// restarted.
void WeightPushes::missed(const std::string& name,
                          core::Version version,
                          const core::Error& error) {
  FleetMembers::Member& member = members_.at(name);
  const bool of_link = reaction_to(AskedFor::kWeights, error.code) == Reaction::kAgain;
  const bool outrun = error.code == ErrorCode::kNotFound && latest_->version > version;
  members_.failed(name, error.message);
  ++run_.counts["weights missed"];
  if (member.misses++ == 0) {
    run_.listener.on_note(name + " could not take new weights: " + error.message +
                          "; they are sent again");
  }
  members_.look();
  if (!of_link && !outrun && member.misses % limits::kGeneratorFailures_max == 0) {
    return outcome_.sick(name, {error.code, "it could not take the weights: " + error.message});
  }
  if (!std::exchange(member.again, true)) {
    run_.scope->spawn("", push_again(name, member.life));
  }
}

async::task<void> WeightPushes::push_again(std::string name, std::uint64_t life) {
  const std::uint64_t misses = members_.at(name).misses;
  co_await async::sleep_for(*run_.context.timers, pause_after(misses, life, name));
  if (!members_.lives(name, life)) co_return;
  FleetMembers::Member& member = members_.at(name);
  member.again = false;
  const bool behind = !member.holds || *member.holds < latest_->version;
  if (behind && member.pushes == 0) start(name);
}

}  // namespace troupe::actors::controller
