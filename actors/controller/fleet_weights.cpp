// The weights of a fleet's generators: who is sent which version, and what follows when it does not
// arrive.
#include "actors/controller/fleet.hpp"
#include "actors/controller/patience.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

void Fleet::offer(const Published& published) {
  latest_ = published;
  if (run_.scope == nullptr) return;
  for (const auto& [name, generator] : generators_) {
    if (generator.up && generator.pushes < 2) start_push(name);
  }
}

void Fleet::start_push(const std::string& name) {
  Generator& generator = generators_.at(name);
  generator.sent = latest_->version;
  ++generator.pushes;
  run_.scope->spawn("", push(name, generator.life));
}

// Sends one version of the weights to one generator. If a newer one overtakes it, ignores its
// failure.
async::task<void> Fleet::push(std::string name, std::uint64_t life) {
  const core::Version version = latest_->version;
  UpdateWeights request{version, latest_->source, run_.plan.recompute_kv};
  auto reply = co_await ask(run_.context, name, std::move(request));
  Generator& generator = generators_.at(name);
  if (!generator.up || generator.life != life) co_return;
  --generator.pushes;
  if (reply) {
    generator.misses = 0;
    generator.holds = std::max(generator.holds.value_or(0), version);
    router_.holds(name, *generator.holds);
    look_alone();
    dispatch();
  } else if (is_loss(reply.error().code)) {
    co_return gone(name, without_name(reply.error(), name));
  } else if (generator.pushes == 0) {
    co_return missed(name, version, without_name(reply.error(), name));
  }
  if (generator.sent < latest_->version) start_push(name);
}

// Handles that a generator could not take new weights; it keeps those that it has. After a link
// error the weights are sent again; a generator that repeatedly rejects what arrived is restarted.
void Fleet::missed(const std::string& name, core::Version version, const core::Error& error) {
  Generator& generator = generators_.at(name);
  const bool of_link = reaction_to(AskedFor::kWeights, error.code) == Reaction::kAgain;
  const bool outrun = error.code == ErrorCode::kNotFound && latest_->version > version;
  last_cause_ = name + ": " + error.message;
  ++run_.counts["weights missed"];
  if (generator.misses++ == 0) {
    run_.listener.on_note(name + " could not take new weights: " + error.message +
                          "; they are sent again");
  }
  look_alone();
  if (!of_link && !outrun && generator.misses % limits::kGeneratorFailures_max == 0) {
    return restart(name, {error.code, "it could not take the weights: " + error.message});
  }
  if (!std::exchange(generator.again, true)) {
    run_.scope->spawn("", push_again(name, generator.life));
  }
}

async::task<void> Fleet::push_again(std::string name, std::uint64_t life) {
  const std::uint64_t misses = generators_.at(name).misses;
  co_await async::sleep_for(*run_.context.timers, pause_after(misses, life, name));
  Generator& generator = generators_.at(name);
  if (!generator.up || generator.life != life) co_return;
  generator.again = false;
  const bool behind = !generator.holds || *generator.holds < latest_->version;
  if (behind && generator.pushes == 0) start_push(name);
}

}  // namespace troupe::actors
