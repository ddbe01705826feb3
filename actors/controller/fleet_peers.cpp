// Generators that come and go, and the weights they are given.
#include "actors/controller/fleet.hpp"
#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/core/rng.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

namespace {

// Doubles with each miss; up to a half of it is chance, so that many do not come at once.
core::Duration pause_after(std::uint64_t misses, std::uint64_t life, const std::string& name) {
  const std::uint64_t doublings = std::min<std::uint64_t>(misses - 1, 10);
  const auto most = std::min<core::Duration>(limits::kWeightsAgain_min * (1 << doublings),
                                             limits::kWeightsAgain_max);
  core::Rng rng(core::derive_seed(std::hash<std::string>()(name), life, misses));
  return most / 2 + core::Duration(static_cast<core::Duration::rep>(
                        rng.next_uniform() * static_cast<double>(most.count()) / 2));
}

}  // namespace

void Fleet::up(const std::string& name, std::uint64_t epoch) {
  Generator& generator = generators_[name];
  if (generator.up) lost(name, "it started again");
  Generator fresh;
  fresh.up = true;
  fresh.life = generator.life + 1;
  fresh.epoch = epoch;
  fresh.misses = generator.misses;
  generator = fresh;
  router_.up(name);
  listener_.on_peer(name, true, "");
  look_alone();
  if (scope_ != nullptr && latest_) start_push(name);
}

void Fleet::lost(const std::string& name, const std::string& cause) {
  const auto found = generators_.find(name);
  if (found == generators_.end() || !found->second.up) return;
  found->second.up = false;
  last_cause_ = name + ": " + cause;
  for (auto place = flights_.begin(); place != flights_.end();) {
    if (place->second.generator != name) {
      ++place;
      continue;
    }
    if (!place->second.forgotten) {
      ++counts_["generator lost"];
      queue_.put(std::move(place->second.work));
    }
    place = flights_.erase(place);
  }
  router_.down(name);
  listener_.on_peer(name, false, cause);
  look_alone();
  dispatch();
}

// A call to it ended so. Who starts generators knows of it, or finds it up and starts it again.
void Fleet::gone(const std::string& name, const core::Error& cause) {
  const std::uint64_t epoch = generators_.at(name).epoch;
  lost(name, cause.message);
  if (restart_) restart_(name, epoch, cause);
}

void Fleet::restart(const std::string& name, const core::Error& cause) {
  const Generator& generator = generators_.at(name);
  const std::uint64_t life = generator.life, epoch = generator.epoch;
  ++counts_["generator restarted"];
  lost(name, cause.message);
  if (restart_) return restart_(name, epoch, cause);
  scope_->spawn("", come_back(name, life));
}

async::task<core::Result<void>> Fleet::come_back(std::string name, std::uint64_t life) {
  co_await async::sleep_for(*context_.timers, limits::kRestartAfter);
  const Generator& generator = generators_.at(name);
  if (!generator.up && generator.life == life) up(name, generator.epoch);
  co_return core::Result<void>();
}

std::size_t Fleet::generators_able() const {
  return static_cast<std::size_t>(
      std::count_if(generators_.begin(), generators_.end(), [](const auto& entry) {
        const Generator& generator = entry.second;
        return generator.up && (generator.holds || generator.misses == 0);
      }));
}

void Fleet::look_alone() {
  if (scope_ == nullptr) return;
  const bool alone = generators_able() == 0;
  if (alone == is_alone_) return;
  is_alone_ = alone;
  ++alone_;
  if (alone) scope_->spawn("", wait_for_one(alone_));
}

async::task<core::Result<void>> Fleet::wait_for_one(std::uint64_t alone) {
  co_await async::sleep_for(*context_.timers, limits::kGeneratorWait);
  if (alone != alone_) co_return core::Result<void>();
  const std::string wait = std::to_string(limits::kGeneratorWait.count() / 1000);
  // No lost peer: going back to the last checkpoint, as for a lost policy, would bring no generator.
  co_return core::fail(
      ErrorCode::kDeadline,
      "no generator came up within " + wait + " s" +
          (last_cause_.empty() ? "" : " that is able to work (" + last_cause_ + ")") +
          "; run the same command again to go on from the last checkpoint");
}

void Fleet::offer(const Published& published) {
  latest_ = published;
  if (scope_ == nullptr) return;
  for (const auto& [name, generator] : generators_) {
    if (generator.up && generator.pushes < 2) start_push(name);
  }
}

void Fleet::start_push(const std::string& name) {
  Generator& generator = generators_.at(name);
  generator.sent = latest_->version;
  ++generator.pushes;
  scope_->spawn("", push(name, generator.life));
}

// One version to one generator. A newer one may overtake it; then this one's outcome is of no
// matter.
async::task<core::Result<void>> Fleet::push(std::string name, std::uint64_t life) {
  UpdateWeights request;
  request.version = latest_->version;
  request.source = latest_->source;
  request.recompute_kv = plan_.recompute_kv;
  const core::Version version = request.version;
  auto reply = co_await ask(context_, name, std::move(request));
  Generator& generator = generators_.at(name);
  if (!generator.up || generator.life != life) co_return core::Result<void>();
  --generator.pushes;
  if (reply) {
    generator.misses = 0;
    generator.holds = std::max(generator.holds.value_or(0), version);
    router_.holds(name, *generator.holds);
    look_alone();
    dispatch();
  } else if (reply.error().code == ErrorCode::kPeerLost ||
             reply.error().code == ErrorCode::kClosed) {
    gone(name, without_name(reply.error(), name));
    co_return core::Result<void>();
  } else if (generator.pushes == 0) {
    missed(name, version, without_name(reply.error(), name));
    co_return core::Result<void>();
  }
  if (generator.sent < latest_->version) start_push(name);
  co_return core::Result<void>();
}

// It works on with the weights that it holds, if any. Weights that a link did not carry are sent
// again; one that refuses what arrived is sick.
void Fleet::missed(const std::string& name, core::Version version, const core::Error& error) {
  Generator& generator = generators_.at(name);
  const bool of_link = error.code == ErrorCode::kDeadline || error.code == ErrorCode::kOverloaded;
  const bool outrun = error.code == ErrorCode::kNotFound && latest_->version > version;
  last_cause_ = name + ": " + error.message;
  ++counts_["weights missed"];
  if (generator.misses++ == 0) {
    listener_.on_note(name + " could not take new weights: " + error.message +
                         "; they are sent again");
  }
  look_alone();
  if (!of_link && !outrun && generator.misses % limits::kGeneratorFailures_max == 0) {
    return restart(name, {error.code, "it could not take the weights: " + error.message});
  }
  if (!std::exchange(generator.again, true)) {
    scope_->spawn("", push_again(name, generator.life));
  }
}

async::task<core::Result<void>> Fleet::push_again(std::string name, std::uint64_t life) {
  const std::uint64_t misses = generators_.at(name).misses;
  co_await async::sleep_for(*context_.timers, pause_after(misses, life, name));
  Generator& generator = generators_.at(name);
  if (!generator.up || generator.life != life) co_return core::Result<void>();
  generator.again = false;
  const bool behind = !generator.holds || *generator.holds < latest_->version;
  if (behind && generator.pushes == 0) start_push(name);
  co_return core::Result<void>();
}

std::vector<GeneratorLine> Fleet::lines() const {
  std::vector<GeneratorLine> all;
  for (const auto& [name, generator] : generators_) {
    GeneratorLine line;
    line.name = name;
    line.state = !generator.up ? "lost" : router_.is_fresh(name) ? "fresh" : "stale";
    line.groups = router_.groups(name);
    line.samples = router_.samples(name);
    line.version = generator.holds;
    all.push_back(std::move(line));
  }
  return all;
}

}  // namespace troupe::actors
