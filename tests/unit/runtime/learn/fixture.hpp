// A tiny model and random updates for the tests of this folder, and a team of real threads.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "runtime/core/rng.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/experience.hpp"
#include "runtime/model/params.hpp"

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

}  // namespace troupe::learn
