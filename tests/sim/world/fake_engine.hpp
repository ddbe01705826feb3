// The steps of an engine whose arithmetic is a hash of seed, sample, place and version, and weights
// that are a version and nothing else. Engine, scheduler, driver and everything around them are
// real.
#pragma once

#include "runtime/engine/driver.hpp"
#include "runtime/model/params.hpp"
#include "runtime/weights/weight_channel.hpp"
#include "tests/sim/virtual_time.hpp"
#include "tests/sim/world/links.hpp"
#include "tests/sim/world/truth.hpp"

#include <memory>
#include <string>

namespace troupe::sim {

struct EngineFacts {
  std::string role;        // "generator/1"
  core::Duration token{};  // time of a step
  std::uint64_t length_max = 24;
};

// The token at `place` of a sample of the ticket with that seed, drawn with these weights.
std::int32_t drawn_token(std::uint64_t seed,
                         std::size_t sample,
                         std::size_t place,
                         core::Version version,
                         std::uint64_t length_max = EngineFacts{}.length_max);

const model::ParamStore& no_params();
// Weights of the smallest model; the same for the same version.
std::shared_ptr<const model::PackedWeights> weights_of(core::Version version);

// `text` and `team` outlive the engines.
engine::EngineMaker fake_engines(cluster::sim::VirtualTime& time,
                                 Truth& truth,
                                 EngineFacts facts,
                                 const engine::TokenText& text,
                                 core::TeamRunner& team);

// Publishes versions in the name of a process, and fetches them over the world's links.
std::shared_ptr<weights::WeightPublisher> fake_publisher(Truth& truth, const Process& process);

struct WeightWays {
  Links* links = nullptr;
  // The process of that number, null when it is gone.
  std::function<const Process*(std::uint64_t number)> process;
  double bytes = 1e6;  // of a version
};
std::shared_ptr<weights::WeightSubscriber> fake_subscriber(cluster::sim::VirtualTime& time,
                                                           Truth& truth,
                                                           const Process& process,
                                                           std::string role,
                                                           WeightWays ways);

// Token t is the text "t,".
class Numbers final : public engine::TokenText {
 public:
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens)
      text += std::to_string(token) + ",";
    return text;
  }
};

}  // namespace troupe::sim
