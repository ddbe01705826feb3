// Reading the plan, and an engine and a subscriber that follow it.
#include "apps/session/roles/fault_plan.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;

std::optional<ErrorCode> code_named(std::string name) {
  for (char& letter : name)
    if (letter == '_') letter = ' ';
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    if (core::error_name(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

// All but the steps are the inner engine's.
class FaultyEngine final : public engine::Engine {
 public:
  FaultyEngine(std::unique_ptr<engine::Engine> inner, FaultPlan& plan, std::string role)
      : inner_(std::move(inner)), plan_(plan), role_(std::move(role)) {}

  core::Result<std::vector<engine::Sample>> step() override {
    if (const auto error = plan_.at_call(role_, "step")) return core::fail(*error);
    return inner_->step();
  }
  core::Result<void> submit(engine::GroupRequest request) override {
    return inner_->submit(std::move(request));
  }
  std::vector<engine::Sample> abort(core::GroupId group) override { return inner_->abort(group); }
  std::optional<core::GroupId> broken_group() const override { return inner_->broken_group(); }
  bool idle() const override { return inner_->idle(); }
  std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) override {
    return inner_->drawn(group, index);
  }
  const engine::Sample* unfinished(core::GroupId group, std::int32_t index) override {
    return inner_->unfinished(group, index);
  }
  core::Result<std::vector<engine::Sample>> pause(engine::PauseMode mode) override {
    return inner_->pause(mode);
  }
  core::Result<void> resume() override { return inner_->resume(); }
  core::Result<engine::MemoryReport> sleep(engine::SleepParts parts) override {
    return inner_->sleep(parts);
  }
  core::Result<engine::MemoryReport> wake(engine::SleepParts parts) override {
    return inner_->wake(parts);
  }
  engine::EngineState state() const override { return inner_->state(); }
  core::Result<void> set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                 engine::KvAction action) override {
    return inner_->set_weights(std::move(weights), action);
  }
  const model::PackedWeights& weights() const override { return inner_->weights(); }
  const model::ModelSpec& spec() const override { return inner_->spec(); }
  engine::EngineCounters counters() const override { return inner_->counters(); }

 private:
  std::unique_ptr<engine::Engine> inner_;
  FaultPlan& plan_;
  const std::string role_;
};

class FaultySubscriber final : public weights::WeightSubscriber {
 public:
  FaultySubscriber(std::shared_ptr<weights::WeightSubscriber> inner,
                   FaultPlan& plan,
                   std::string role)
      : inner_(std::move(inner)), plan_(plan), role_(std::move(role)) {}

  core::Result<std::unique_ptr<weights::WeightIntake>> fetch(
      core::Version at_least,
      const weights::WeightLocation& location,
      core::Duration patience) override {
    if (const auto error = plan_.at_call(role_, "fetch")) return core::fail(*error);
    return inner_->fetch(at_least, location, patience);
  }
  void close() override { inner_->close(); }

 private:
  std::shared_ptr<weights::WeightSubscriber> inner_;
  FaultPlan& plan_;
  const std::string role_;
};

}  // namespace

core::Result<std::unique_ptr<FaultPlan>> FaultPlan::parse(const std::string& text) {
  auto plan = std::make_unique<FaultPlan>();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    Fault fault;
    std::string code, more;
    const bool read = words >> fault.role >> fault.what >> code >> fault.call && !(words >> more);
    const auto named = code_named(code);
    if (!read || !named || fault.call == 0 || (fault.what != "step" && fault.what != "fetch")) {
      return core::fail(ErrorCode::kConfig, "TROUPE_FAULTS: '" + part +
                                                "' is not ROLE step|fetch ERROR NUMBER, as in "
                                                "generator/1 step resources 40");
    }
    fault.code = *named;
    plan->faults_.push_back(std::move(fault));
  }
  return core::Result<std::unique_ptr<FaultPlan>>(std::move(plan));
}

core::Result<std::unique_ptr<FaultPlan>> FaultPlan::from_environment() {
  const char* const text = std::getenv("TROUPE_FAULTS");
  if (text == nullptr || *text == 0) return std::unique_ptr<FaultPlan>();
  return parse(text);
}

std::optional<core::Error> FaultPlan::at_call(const std::string& role, const std::string& what) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t call = ++calls_[{role, what}];
  for (const Fault& fault : faults_) {
    if (fault.role != role || fault.what != what || fault.call != call) continue;
    return core::Error{fault.code,
                       what + " " + std::to_string(call) + " fails as TROUPE_FAULTS says"};
  }
  return std::nullopt;
}

actors::EngineMaker FaultPlan::around(const std::string& role, actors::EngineMaker maker) {
  return [this, role, maker = std::move(maker)](std::shared_ptr<const model::PackedWeights> weights)
             -> core::Result<std::unique_ptr<engine::Engine>> {
    TROUPE_TRY_ASSIGN(inner, maker(std::move(weights)));
    return std::unique_ptr<engine::Engine>(
        std::make_unique<FaultyEngine>(std::move(inner), *this, role));
  };
}

std::shared_ptr<weights::WeightSubscriber> FaultPlan::around(
    const std::string& role, std::shared_ptr<weights::WeightSubscriber> subscriber) {
  return std::make_shared<FaultySubscriber>(std::move(subscriber), *this, role);
}

}  // namespace troupe::app
