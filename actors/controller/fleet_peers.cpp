// Generators that come and go, and the weights they are given.
#include "actors/controller/fleet.hpp"
#include "actors/protocol/ask.hpp"

namespace troupe::actors {

using core::ErrorCode;
namespace limits = core::limits;

void Fleet::up(const std::string& name) {
  Generator& generator = generators_[name];
  if (generator.up) lost(name, "it started again");
  generator = Generator{true, generator.life + 1, std::nullopt, 0, 0};
  ++alone_;
  router_.up(name);
  listener_.on_peer(name, true, "");
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
  check_alone();
  dispatch();
}

void Fleet::check_alone() {
  if (scope_ == nullptr || router_.generators() > 0) return;
  scope_->spawn("", wait_for_one(++alone_));
}

async::task<core::Result<void>> Fleet::wait_for_one(std::uint64_t alone) {
  co_await async::sleep_for(*context_.timers, limits::kGeneratorWait);
  if (alone != alone_) co_return core::Result<void>();
  const std::string wait = std::to_string(limits::kGeneratorWait.count() / 1000);
  co_return core::fail(
      ErrorCode::kPeerLost,
      "no generator came up within " + wait + " s" +
          (last_cause_.empty() ? "" : " after the last was lost (" + last_cause_ + ")") +
          "; run the same command again to go on from the last checkpoint");
}

void Fleet::offer(const Published& published) {
  latest_ = published;
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
  if (!reply && reply.error().code == ErrorCode::kOverloaded) {
    co_await async::sleep_for(*context_.timers, limits::kOverloadBackoff);
    if (!generator.up || generator.life != life) co_return core::Result<void>();
    generator.sent = 0;
  }
  --generator.pushes;
  if (reply) {
    generator.holds = std::max(generator.holds.value_or(0), version);
    router_.fresh(name);
    dispatch();
  } else {
    const core::Error& error = reply.error();
    if (error.code == ErrorCode::kPeerLost || error.code == ErrorCode::kClosed) {
      lost(name, error.message);
      co_return core::Result<void>();
    }
    const bool superseded = latest_->version > version;
    const bool unfit = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kData;
    if (unfit && !superseded && router_.generators() > 1) {
      // One that cannot take the weights is of no use, the others are.
      lost(name, "it could not take the weights: " + error.message);
      co_return core::Result<void>();
    }
    if (error.code != ErrorCode::kOverloaded && !superseded) co_return core::fail(error);
  }
  if (generator.sent < latest_->version) start_push(name);
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
