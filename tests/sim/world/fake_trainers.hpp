// Trainers whose arithmetic is a hash: what they have learned from, in which order, is one number.
// They take time, save their state on the world's disk, and report groups that must not be trained
// on. Everything else of policy and critic is real.
#pragma once

#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "tests/sim/virtual_time.hpp"
#include "tests/sim/world/sim_disk.hpp"
#include "tests/sim/world/truth.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::sim {

// What a trainer has learned so far.
struct Learned {
  std::vector<std::uint64_t> updates;  // the hash of each update's groups
  std::string text() const;
  static core::Result<Learned> of(const std::string& text);
};

struct TrainerFacts {
  std::string role;  // "policy/0"
  std::uint64_t staleness_max = 0;
  std::uint32_t groups = 0;
  bool has_critic = false, has_reference = false;
  core::Duration step{};   // time of an update
  std::uint64_t seed = 0;  // of the run
};

std::uint64_t hash_of(const experience::Group& group);

std::unique_ptr<learn::PolicyTrainer> fake_policy_trainer(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          DiskView& disk,
                                                          TrainerFacts facts);
std::unique_ptr<learn::CriticTrainer> fake_critic_trainer(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          DiskView& disk,
                                                          TrainerFacts facts);

}  // namespace troupe::sim
