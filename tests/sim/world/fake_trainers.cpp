// Hashes in place of weights.
#include "tests/sim/world/fake_trainers.hpp"

#include "runtime/core/rng.hpp"
#include "tests/sim/world/fake_engine.hpp"
#include "tests/sim/world/trainer_book.hpp"

#include <sstream>
#include <vector>

namespace troupe::sim {
namespace {

using core::Result;

constexpr std::size_t kSamples_max = 8;  // of a group
using learn::TokenValues;

class FakePolicyTrainer final : public OfBook<learn::PolicyTrainer> {
 public:
  using OfBook::OfBook;

  Result<learn::ValueTargets> prepare(std::vector<experience::Group> groups) override {
    check(groups);
    learn::ValueTargets targets;
    if (book_.facts().has_critic) {
      for (const experience::Group& group : groups) {
        targets.returns.emplace_back();
        for (const experience::Trajectory& sample : group.samples)
          targets.returns.back().push_back(sample.values);
      }
    }
    groups_ = std::move(groups);
    return targets;
  }

  Result<learn::UpdateReport> learn() override {
    TROUPE_TRY(book_.work());
    std::uint64_t hash = book_.updates();
    for (const experience::Group& group : groups_)
      hash = mix(hash, hash_of(group));
    groups_.clear();
    // Whoever learns an update again, after a loss or a crash, learns it from the same groups.
    const auto [known, first] = book_.truth().learned.emplace(book_.updates(), hash);
    book_.truth().expect(
        first || known->second == hash,
        experience::name_of_update(book_.updates()) + " is learned again from other groups");
    if (!first) book_.truth().census.count("event", "an update is learned again");
    book_.learn(hash);
    learn::UpdateReport report;
    report.version = book_.version();
    report.metrics = {{"policy/loss", static_cast<double>(book_.chain() % 1000)}};
    return report;
  }

  std::shared_ptr<const model::PackedWeights> packed() override { return nullptr; }
  const model::ParamStore* average() const override { return nullptr; }

 private:
  // Whether the sample was drawn for this ticket, and not for another one of its slot.
  bool drawn_for(const experience::Ticket& ticket, const experience::Trajectory& sample) const {
    const std::uint64_t seed =
        core::derive_seed(book_.facts().seed, ticket.update, ticket.slot, ticket.attempt);
    const std::vector<core::Version> versions(sample.versions.begin(), sample.versions.end());
    for (std::size_t number = 0; number < kSamples_max; ++number) {
      std::size_t place = 0;
      while (place < sample.tokens.size() &&
             sample.tokens[place] == drawn_token(seed, number, place, versions[place]))
        ++place;
      if (place == sample.tokens.size()) return true;
    }
    return false;
  }

  // An update is trained on once, whole, in its turn, and holds no token that is too old.
  void check(const std::vector<experience::Group>& groups) {
    const TrainerFacts& facts = book_.facts();
    Truth& truth = book_.truth();
    truth.expect(groups.size() == facts.groups, "an update without all of its groups");
    for (std::uint32_t slot = 0; slot < groups.size(); ++slot) {
      const experience::Group& group = groups[slot];
      const std::string name = name_of(group.ticket);
      truth.expect(group.ticket.update == book_.updates(),
                   name + " is trained on by a policy that has learned from " +
                       std::to_string(book_.updates()) + " updates");
      truth.expect(group.ticket.slot == slot, name + " stands in another slot");
      const core::Version oldest = Truth::oldest_for(group.ticket.update, facts.staleness_max);
      for (const experience::Trajectory& sample : group.samples) {
        truth.expect(sample.versions.oldest() >= oldest, name + " holds a token that is too old");
        truth.expect(sample.versions.newest() <= book_.version(),
                     name + " holds a token of weights that are still to be learned");
        truth.expect(drawn_for(group.ticket, sample), name + " holds a sample of another ticket");
        truth.expect(sample.score.has_value(), name + " has a sample without a score");
        truth.expect(!facts.has_reference || sample.reference.size() == sample.tokens.size(),
                     name + " has no reference log-probs");
        truth.expect(!facts.has_critic || sample.values.size() == sample.tokens.size(),
                     name + " has no values");
      }
    }
  }

  std::vector<experience::Group> groups_;
};

class FakeCriticTrainer final : public OfBook<learn::CriticTrainer> {
 public:
  using OfBook::OfBook;

  // A value tells how many updates the critic has learned from.
  Result<TokenValues> values(const std::vector<experience::Group>& groups) override {
    TokenValues result;
    for (const experience::Group& group : groups) {
      book_.truth().expect(group.ticket.update == book_.updates(),
                           name_of(group.ticket) + " gets its values from a critic that has " +
                               "learned from " + std::to_string(book_.updates()) + " updates");
      result.emplace_back();
      for (const experience::Trajectory& sample : group.samples)
        result.back().emplace_back(sample.tokens.size(), static_cast<float>(book_.updates()));
    }
    return result;
  }
  Result<learn::CriticReport> update(const std::vector<experience::Group>& groups,
                                     const TokenValues& old,
                                     const TokenValues& returns) override {
    TROUPE_TRY(book_.work());
    book_.truth().expect(old.size() == groups.size() && returns.size() == groups.size(),
                         "a critic's update with other lists than groups");
    std::uint64_t hash = book_.updates();
    for (const experience::Group& group : groups)
      hash = mix(hash, mix(group.ticket.update, group.ticket.attempt));
    book_.learn(hash);
    return learn::CriticReport{book_.version(), {{"value/loss", 0.5}}};
  }
};

}  // namespace

std::string Learned::text() const {
  std::string text = std::to_string(updates.size()) + "\n";
  for (const std::uint64_t one : updates)
    text += std::to_string(one) + "\n";
  return text;
}

core::Result<Learned> Learned::of(const std::string& text) {
  std::istringstream words(text);
  std::size_t count = 0;
  Learned learned;
  words >> count;
  for (std::uint64_t one = 0; words >> one;)
    learned.updates.push_back(one);
  if (!text.empty() && learned.updates.size() == count) return learned;
  return core::fail(core::ErrorCode::kData, "the state of a trainer is torn");
}

std::uint64_t hash_of(const experience::Group& group) {
  std::uint64_t hash = mix(group.ticket.update, group.ticket.slot);
  hash = mix(hash, group.ticket.attempt);
  for (const std::int32_t token : group.prompt)
    hash = mix(hash, static_cast<std::uint64_t>(token));
  for (const experience::Trajectory& sample : group.samples) {
    hash = mix(hash, sample.tokens.size());
    for (const std::int32_t token : sample.tokens)
      hash = mix(hash, static_cast<std::uint64_t>(token));
    for (const core::Version version : sample.versions)
      hash = mix(hash, version);
    hash = mix(hash, static_cast<std::uint64_t>(sample.score.value_or(-1) * 1e6));
  }
  return hash;
}

std::unique_ptr<learn::PolicyTrainer> fake_policy_trainer(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          DiskView& disk,
                                                          TrainerFacts facts) {
  return std::make_unique<FakePolicyTrainer>(Book(time, truth, disk, std::move(facts)));
}

std::unique_ptr<learn::CriticTrainer> fake_critic_trainer(cluster::sim::VirtualTime& time,
                                                          Truth& truth,
                                                          DiskView& disk,
                                                          TrainerFacts facts) {
  return std::make_unique<FakeCriticTrainer>(Book(time, truth, disk, std::move(facts)));
}

}  // namespace troupe::sim
