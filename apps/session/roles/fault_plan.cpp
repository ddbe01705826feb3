#include "apps/session/roles/fault_plan.hpp"

#include "runtime/engine/step_computer.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

namespace troupe::session {
namespace {

std::optional<ErrorCode> code_named(std::string name) {
  for (char& letter : name)
    if (letter == '_') letter = ' ';
  for (int i = 0; i < core::kErrorCodes; ++i) {
    if (core::error_name(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

class FaultySteps final : public engine::StepComputer {
 public:
  FaultySteps(std::unique_ptr<engine::StepComputer> inner, FaultPlan& plan, std::string role)
      : inner_(std::move(inner)), plan_(plan), role_(std::move(role)) {}

  core::Result<std::span<const engine::Draw>> run(const model::PackedWeights& weights,
                                                  engine::StepPlan& step,
                                                  model::KvPool& pool) override {
    if (const auto error = plan_.at_call(role_, "step")) return core::fail(*error);
    return inner_->run(weights, step, pool);
  }
  void forget_places() override { inner_->forget_places(); }
  std::uint64_t replayed() const override { return inner_->replayed(); }

 private:
  std::unique_ptr<engine::StepComputer> inner_;
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

core::Result<std::unique_ptr<FaultPlan>> FaultPlan::from_environment() {
  const char* const text = std::getenv("TROUPE_FAULTS");
  if (text == nullptr || *text == 0) return std::unique_ptr<FaultPlan>();
  auto plan = std::make_unique<FaultPlan>();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    Fault fault;
    std::string code, more;
    const bool read = words >> fault.role >> fault.what >> code >> fault.call && !(words >> more);
    fault.wedges = code == "wedge";
    const auto named = fault.wedges ? std::optional(ErrorCode::kInternal) : code_named(code);
    if (!read || !named || fault.call == 0 || (fault.what != "step" && fault.what != "fetch")) {
      return core::fail(ErrorCode::kConfig, "TROUPE_FAULTS: '" + part +
                                                "' is not ROLE step|fetch ERROR NUMBER, as in "
                                                "generator/1 step resources 40");
    }
    fault.code = *named;
    plan->faults_.push_back(std::move(fault));
  }
  return plan;
}

std::optional<core::Error> FaultPlan::at_call(const std::string& role, const std::string& what) {
  std::unique_lock lock(mutex_);
  const std::uint64_t call = ++calls_[{role, what}];
  for (const Fault& fault : faults_) {
    if (fault.role != role || fault.what != what || fault.call != call) continue;
    if (fault.wedges) {
      lock.unlock();
      for (;;)
        ::pause();
    }
    return core::Error{fault.code,
                       what + " " + std::to_string(call) + " fails as TROUPE_FAULTS says"};
  }
  return std::nullopt;
}

engine::EngineMaker FaultPlan::around(const std::string& role, engine::EngineMaker maker) {
  return [this, role, maker = std::move(maker)](std::shared_ptr<const model::PackedWeights> weights)
             -> core::Result<std::unique_ptr<engine::Engine>> {
    TROUPE_TRY_ASSIGN(made, maker(std::move(weights)));
    made->wrap_steps([this, role](std::unique_ptr<engine::StepComputer> inner) {
      return std::make_unique<FaultySteps>(std::move(inner), *this, role);
    });
    return made;
  };
}

std::shared_ptr<weights::WeightSubscriber> FaultPlan::around(
    const std::string& role, std::shared_ptr<weights::WeightSubscriber> subscriber) {
  return std::make_shared<FaultySubscriber>(std::move(subscriber), *this, role);
}

}  // namespace troupe::session
