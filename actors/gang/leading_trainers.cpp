#include "actors/gang/leading_trainers.hpp"

#include "actors/gang/gang_command.hpp"
#include "actors/protocol/training_rows.hpp"

#include <type_traits>
#include <utility>

namespace troupe::actors::gang {
namespace {

// Tells the other ranks, does the same here, and agrees.
template <class Job>
std::invoke_result_t<Job&> lead(GangLink& gang, const GangCommand& command, Job job) {
  TROUPE_TRY_ASSIGN(bytes, to_bytes(command));
  TROUPE_TRY(gang.tell(bytes));
  auto result = job();
  TROUPE_TRY(gang.agree(result ? Result<void>() : Result<void>(result.failure())));
  return result;
}

// What all trainers have in common.
template <class Trainer>
class Leading : public Trainer {
 public:
  Leading(std::unique_ptr<Trainer> own, std::shared_ptr<GangLink> gang)
      : gang_(std::move(gang)), own_(std::move(own)) {}

  const model::ParamStore& master() const override { return own_->master(); }
  core::Version version() const override { return own_->version(); }
  Result<void> save_model(const std::filesystem::path& folder,
                          const std::filesystem::path& tokenizer_from) const override {
    return together({GangCall::kSaveModel, folder.string(), tokenizer_from.string()},
                    [&] { return own_->save_model(folder, tokenizer_from); });
  }
  Result<void> save_state(const std::filesystem::path& folder) const override {
    return together({GangCall::kSaveState, folder.string()},
                    [&] { return own_->save_state(folder); });
  }
  Result<void> load_state(const std::filesystem::path& folder) override {
    return together({GangCall::kLoadState, folder.string()},
                    [&] { return own_->load_state(folder); });
  }

 protected:
  template <class Job>
  std::invoke_result_t<Job&> together(const GangCommand& command, Job job) const {
    return lead(*gang_, command, std::move(job));
  }

  const std::shared_ptr<GangLink> gang_;  // outlives the trainer
  const std::unique_ptr<Trainer> own_;
};

class LeadingPolicy final : public Leading<learn::PolicyTrainer> {
 public:
  using Leading::Leading;

  Result<learn::ValueTargets> prepare(std::vector<experience::Group> groups) override {
    GangCommand command{GangCall::kPrepare};
    command.groups = std::move(groups);
    return together(command, [&] { return own_->prepare(std::move(command.groups)); });
  }
  Result<learn::UpdateReport> learn() override {
    return together({GangCall::kLearn}, [&] { return own_->learn(); });
  }
  std::shared_ptr<const model::PackedWeights> packed() override { return own_->packed(); }
  bool divided() const override { return own_->divided(); }
  Result<void> each_part(const See& see) override { return own_->each_part(see); }
  const model::ParamStore* average() const override { return own_->average(); }
};

class LeadingPublisher final : public weights::WeightPublisher {
 public:
  LeadingPublisher(std::unique_ptr<weights::WeightPublisher> own, std::shared_ptr<GangLink> gang)
      : gang_(std::move(gang)), own_(std::move(own)) {}

 private:
  Result<weights::WeightLocation> take(const weights::Offer& offer) override {
    return lead(*gang_, {GangCall::kPublish}, [&] { return own_->publish(offer); });
  }

  const std::shared_ptr<GangLink> gang_;  // outlives the publisher
  const std::unique_ptr<weights::WeightPublisher> own_;
};

class LeadingCritic final : public Leading<learn::CriticTrainer> {
 public:
  using Leading::Leading;

  Result<learn::TokenValues> values(const std::vector<experience::Group>& groups) override {
    GangCommand command{GangCall::kValues};
    command.groups = groups;
    return together(command, [&] { return own_->values(groups); });
  }
  Result<learn::CriticReport> update(const std::vector<experience::Group>& groups,
                                     const learn::TokenValues& old,
                                     const learn::TokenValues& returns) override {
    GangCommand command{GangCall::kTrain};
    command.groups = groups;
    command.old = old;
    command.returns = returns;
    return together(command, [&] { return own_->update(groups, old, returns); });
  }
};

class LeadingSupervised final : public Leading<learn::SupervisedTrainer> {
 public:
  using Leading::Leading;

  Result<learn::SupervisedStep> step(std::span<const troupe::data::SupervisedRow> rows) override {
    return together(with_rows(GangCall::kStep, rows), [&] { return own_->step(rows); });
  }
  Result<learn::SupervisedEvaluation> evaluate(
      std::span<const troupe::data::SupervisedRow> rows) override {
    return together(with_rows(GangCall::kEvaluate, rows), [&] { return own_->evaluate(rows); });
  }
  void set_score_scale(double mean, double std) override { own_->set_score_scale(mean, std); }

 private:
  static GangCommand with_rows(GangCall call, std::span<const troupe::data::SupervisedRow> rows) {
    GangCommand command{call};
    for (const troupe::data::SupervisedRow& row : rows)
      command.rows.push_back(stored(row));
    return command;
  }
};

}  // namespace

std::unique_ptr<learn::SupervisedTrainer> leading_supervised(
    std::unique_ptr<learn::SupervisedTrainer> own, std::shared_ptr<GangLink> gang) {
  return std::make_unique<LeadingSupervised>(std::move(own), std::move(gang));
}

std::unique_ptr<learn::PolicyTrainer> leading_policy(std::unique_ptr<learn::PolicyTrainer> own,
                                                     std::shared_ptr<GangLink> gang) {
  return std::make_unique<LeadingPolicy>(std::move(own), std::move(gang));
}

std::unique_ptr<weights::WeightPublisher> leading_publisher(
    std::unique_ptr<weights::WeightPublisher> own, std::shared_ptr<GangLink> gang) {
  return std::make_unique<LeadingPublisher>(std::move(own), std::move(gang));
}

std::unique_ptr<learn::CriticTrainer> leading_critic(std::unique_ptr<learn::CriticTrainer> own,
                                                     std::shared_ptr<GangLink> gang) {
  return std::make_unique<LeadingCritic>(std::move(own), std::move(gang));
}

}  // namespace troupe::actors::gang
