// A tiny model and random updates for the tests of this folder, and a team of real threads.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/score.hpp"

#include <functional>
#include <thread>
#include <vector>

namespace troupe::learn {

inline model::ModelSpec tiny_spec(bool tied = true) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 32;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 8;
  spec.ffn = 48;
  spec.vocab = 67;
  spec.context = 128;
  spec.tied = tied;
  return spec;
}

// Both layers of experts.
inline model::ModelSpec tiny_moe_spec() {
  model::ModelSpec spec = tiny_spec(false);
  spec.architecture = "MixtralForCausalLM";
  spec.moe.experts = 6;
  spec.moe.experts_per_token = 2;
  spec.moe.ffn = spec.ffn;
  spec.moe.norm_topk = true;
  spec.moe.names = model::MoeNames::kMixtral;
  return spec;
}

class ThreadTeam final : public core::TeamRunner {
 public:
  explicit ThreadTeam(int size) : size_(size) {}
  void run(const std::function<void(core::Team)>& region) override {
    core::TeamBarrier barrier(size_);
    std::vector<std::jthread> members;
    for (int rank = 1; rank < size_; ++rank) {
      members.emplace_back([&, rank] { region(core::Team{rank, size_, &barrier}); });
    }
    region(core::Team{0, size_, &barrier});
  }
  int size() const noexcept override { return size_; }

 private:
  int size_;
};

inline std::vector<std::int32_t> random_tokens(core::Rng& rng, std::uint64_t count) {
  std::vector<std::int32_t> tokens;
  for (; count > 0; --count)
    tokens.push_back(static_cast<std::int32_t>(rng.next_below(67)));
  return tokens;
}

// l of every token of the group under `weights`, [sample][token], each group computed alone.
inline std::vector<std::vector<float>> exact_logprobs(const model::PackedWeights& weights,
                                                      const experience::Group& group) {
  core::SerialTeam team;
  model::SampleGroup item;
  item.prompt = group.prompt;
  for (const auto& sample : group.samples)
    item.responses.emplace_back(sample.tokens);
  model::GroupPlan plan;
  const model::SampleGroup groups[] = {item};
  if (!model::build_group_plan(groups, weights.spec(), 1, plan)) return {};
  const auto flat = model::score_logprobs(team, weights, plan.plan, plan.targets, 1.0f);
  std::vector<std::vector<float>> result;
  auto next = flat.begin();
  for (const auto& sample : group.samples) {
    const auto count = static_cast<std::ptrdiff_t>(sample.tokens.size());
    result.emplace_back(next, next + count);
    next += count;
  }
  return result;
}

// Groups of random lengths and scores, sampled (so to speak) by `weights`.
inline std::vector<experience::Group> random_groups(const model::PackedWeights& weights,
                                                    std::uint64_t update,
                                                    std::size_t groups,
                                                    std::size_t samples) {
  core::Rng rng(100 + update);
  std::vector<experience::Group> result;
  for (std::uint32_t slot = 0; slot < groups; ++slot) {
    experience::Group group;
    group.ticket = {update, slot, 0};
    group.prompt = random_tokens(rng, 3 + rng.next_below(20));
    for (std::size_t i = 0; i < samples; ++i) {
      experience::Trajectory sample;
      sample.tokens = random_tokens(rng, 1 + rng.next_below(18));
      sample.score = rng.next_uniform();
      sample.versions = experience::VersionRuns::all(weights.version(), sample.tokens.size());
      group.samples.push_back(std::move(sample));
    }
    const auto logprobs = exact_logprobs(weights, group);
    for (std::size_t i = 0; i < samples; ++i) {
      group.samples[i].behaviour = logprobs[i];
      for (const float l : logprobs[i]) {
        group.samples[i].reference.push_back(l + 0.1f * static_cast<float>(rng.next_normal()));
        group.samples[i].teacher.push_back(l - 0.3f * static_cast<float>(i));
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

// A frozen random model, packed.
inline std::shared_ptr<const model::PackedWeights> frozen_model(
    std::uint64_t seed, model::ModelSpec spec = tiny_spec(false)) {
  model::ParamStore store(spec);
  model::randomise(store, seed, 0.25f);
  auto weights = std::make_shared<model::PackedWeights>(spec, kernels::PanelDtype::kF32);
  weights->fill(core::Team(), store, 0);
  return weights;
}

}  // namespace troupe::learn
