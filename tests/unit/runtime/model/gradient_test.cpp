// The hand-written backward pass against finite differences, and its bits.
//
// The loss is sum_i c_i logprob_i + e_i entropy_i in double. Finite differences in f32 are noisy,
// so a tensor's gradient g is checked along directions: (L(w + h d) - L(w - h d)) / 2h against <g,
// d>.
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_tape.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace troupe::model {
namespace {

struct Problem {
  explicit Problem(const ModelSpec& model_spec) : spec(model_spec), model(model_spec, 0.15f) {
    prompts = {some_tokens(21, spec.vocab, 1), some_tokens(16, spec.vocab, 2)};
    for (int i = 0; i < 5; ++i)
      responses.push_back(some_tokens(1 + 9 * i, spec.vocab, 10 + i));
    groups = {{prompts[0], {responses[0], responses[3], responses[2]}},
              {prompts[1], {responses[1], responses[4]}}};
  }
  GroupPlan plan(int members) const {
    GroupPlan out;
    EXPECT_TRUE(build_group_plan(groups, spec, members, out));
    return out;
  }
  ModelSpec spec;
  TestModel model;
  std::vector<std::vector<std::int32_t>> prompts, responses;
  std::vector<SampleGroup> groups;
};

constexpr float kTemperature = 0.8f;

struct Coefficients {
  explicit Coefficients(const TokenTargets& targets) {
    for (std::int64_t i = 0; i < targets.size(); ++i) {
      logprob.push_back(0.3f + 0.1f * static_cast<float>(i % 7));
      entropy.push_back(0.2f - 0.05f * static_cast<float>(i % 5));
    }
  }
  std::vector<float> logprob, entropy;
};

void forward(TrainTape& tape, const PackedWeights& weights, const GroupPlan& plan) {
  tape.begin(weights, plan.plan);
  tape.forward_embedding();
  for (std::int64_t i = 0; i < tape.spec().layers; ++i)
    tape.forward_layer(i);
  tape.forward_final_norm();
  tape.head().forward(plan.targets, kTemperature, true);
}

void backward(TrainTape& tape, const Coefficients& c) {
  tape.head().backward(c.logprob.data(), c.entropy.data());
  tape.backward_final_norm();
  for (std::int64_t i = tape.spec().layers; i-- > 0;)
    tape.backward_layer(i);
  tape.backward_embedding();
}

double loss_of(const TrainTape& tape, const Coefficients& c) {
  double loss = 0;
  for (std::size_t i = 0; i < c.logprob.size(); ++i) {
    loss += static_cast<double>(c.logprob[i]) * static_cast<double>(tape.head().logprobs()[i]);
    loss += static_cast<double>(c.entropy[i]) * static_cast<double>(tape.head().entropies()[i]);
  }
  return loss;
}

ParamStore gradient_of(Problem& problem, core::TeamRunner& team) {
  ParamStore grads = problem.model.params.same_layout();
  const GroupPlan plan = problem.plan(team.size());
  TrainTape tape(team, problem.model.params, &grads);
  forward(tape, problem.model.weights, plan);
  backward(tape, Coefficients(plan.targets));
  return grads;
}

class Gradient : public testing::TestWithParam<ModelSpec> {};

TEST_P(Gradient, EveryTensorAgreesWithFiniteDifferences) {
  // Every token passes all experts: then no choice flips when a weight moves a little.
  ModelSpec spec = GetParam();
  spec.moe.experts = spec.moe.experts_per_token;
  Problem problem(spec);
  core::SerialTeam serial;
  const ParamStore grads = gradient_of(problem, serial);
  const GroupPlan plan = problem.plan(1);
  const Coefficients c(plan.targets);
  TrainTape tape(serial, problem.model.params, nullptr);
  const auto loss_at = [&] {
    problem.model.repack();
    forward(tape, problem.model.weights, plan);
    return loss_of(tape, c);
  };
  for (const ParamView& view : problem.model.params.layout().views) {
    const float* gradient = grads.data() + view.offset;
    float* weights = problem.model.params.data() + view.offset;
    double norm = 0;
    for (std::int64_t i = 0; i < view.count; ++i)
      norm += std::pow(static_cast<double>(gradient[i]), 2);
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0) << view.name;
    const std::vector<float> saved(weights, weights + view.count);
    for (int direction = 0; direction < 2; ++direction) {
      // Along the gradient itself (its length), then along a mix of it and fixed signs (its place).
      std::vector<double> d(static_cast<std::size_t>(view.count));
      double expected = 0, length = 0;
      const auto signs = some_tokens(view.count, 2, direction);
      for (std::size_t i = 0; i < d.size(); ++i) {
        d[i] = static_cast<double>(gradient[i]) / norm;
        if (direction == 1) {
          d[i] = d[i] * (signs[i] == 0 ? 2.0 : 0.5);
        }
        length += d[i] * d[i];
      }
      for (double& x : d)
        x /= std::sqrt(length);
      for (std::size_t i = 0; i < d.size(); ++i)
        expected += d[i] * static_cast<double>(gradient[i]);
      const double h = 4e-3;
      const auto step = [&](double by) {
        for (std::size_t i = 0; i < d.size(); ++i) {
          weights[i] = static_cast<float>(static_cast<double>(saved[i]) + by * d[i]);
        }
        const double loss = loss_at();
        std::copy(saved.begin(), saved.end(), weights);
        return loss;
      };
      // Fourth-order central differences.
      const double slope = (8 * (step(h) - step(-h)) - (step(2 * h) - step(-2 * h))) / (12 * h);
      EXPECT_NEAR(slope / expected, 1.0, 4e-3) << view.name << " direction " << direction;
    }
  }
}

TEST_P(Gradient, TeamsOfOneAndTwoGiveTheSameBits) {
  Problem problem(GetParam());
  core::SerialTeam serial;
  PairTeam pair;
  const ParamStore one = gradient_of(problem, serial);
  const ParamStore two = gradient_of(problem, pair);
  for (const ParamView& view : one.layout().views) {
    ASSERT_EQ(std::memcmp(one.data() + view.offset, two.data() + view.offset,
                          static_cast<std::size_t>(view.count) * sizeof(float)),
              0)
        << view.name;
  }
}

// The prompt's rows are computed once for all samples: their gradient is the sum over the samples.
TEST_P(Gradient, SharedPromptsGetTheSumOverSamples) {
  Problem problem(GetParam());
  core::SerialTeam serial;
  const ParamStore shared = gradient_of(problem, serial);
  const Coefficients c(problem.plan(1).targets);
  ParamStore separate = problem.model.params.same_layout();
  TrainTape tape(serial, problem.model.params, &separate);
  std::size_t done = 0;
  for (const SampleGroup& group : problem.groups) {
    for (const auto response : group.responses) {
      const SampleGroup alone{group.prompt, {response}};
      GroupPlan plan;
      ASSERT_TRUE(build_group_plan({&alone, 1}, problem.spec, 1, plan));
      Coefficients part(plan.targets);
      for (std::size_t i = 0; i < part.logprob.size(); ++i, ++done) {
        part.logprob[i] = c.logprob[done];
        part.entropy[i] = c.entropy[done];
      }
      forward(tape, problem.model.weights, plan);
      backward(tape, part);
    }
  }
  for (const ParamView& view : shared.layout().views) {
    double difference = 0, norm = 0;
    for (std::int64_t i = view.offset; i < view.offset + view.count; ++i) {
      difference += std::pow(
          static_cast<double>(shared.data()[i]) - static_cast<double>(separate.data()[i]), 2);
      norm += std::pow(static_cast<double>(shared.data()[i]), 2);
    }
    // Of an expert that nobody chose, both are zero.
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << view.name;
  }
}

TEST_P(Gradient, AccumulatesOverMicroBatches) {
  Problem problem(GetParam());
  core::SerialTeam serial;
  ParamStore grads = problem.model.params.same_layout();
  const GroupPlan plan = problem.plan(1);
  TrainTape tape(serial, problem.model.params, &grads);
  const Coefficients c(plan.targets);
  forward(tape, problem.model.weights, plan);
  backward(tape, c);
  const std::vector<float> once(grads.data(), grads.data() + grads.size());
  forward(tape, problem.model.weights, plan);
  backward(tape, c);
  for (std::size_t i = 0; i < once.size(); ++i) {
    ASSERT_NEAR(grads.data()[i], 2 * once[i], 1e-5f + std::abs(once[i]) * 1e-4f);
  }
}

INSTANTIATE_TEST_SUITE_P(Specs, Gradient, testing::ValuesIn(varied_specs()), [](const auto& i) {
  return i.param.architecture;
});

TEST(TrainTape, LogprobsAreTheScorers) {
  Problem problem(qwen_spec());
  core::SerialTeam serial;
  const GroupPlan plan = problem.plan(1);
  TrainTape tape(serial, problem.model.params, nullptr);
  forward(tape, problem.model.weights, plan);
  std::vector<float> logprobs(plan.targets.token.size()), entropies = logprobs;
  ScoreScratch scratch;
  score_logprobs(serial, problem.model.weights, plan.plan, plan.targets, kTemperature, scratch,
                 logprobs, entropies);
  EXPECT_EQ(std::memcmp(tape.head().logprobs().data(), logprobs.data(), logprobs.size() * 4), 0);
  EXPECT_EQ(std::memcmp(tape.head().entropies().data(), entropies.data(), logprobs.size() * 4), 0);
}

}  // namespace
}  // namespace troupe::model
