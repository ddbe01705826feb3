// The reference role on a tiny model: rows with contexts give the log-probs of their drawn tokens,
// the bits of the plain rows.
#include "actors/reference/reference_role.hpp"

#include "runtime/model/params.hpp"
#include "runtime/model/randomise.hpp"
#include "tests/sim/sim_device.hpp"
#include "tests/unit/actors/reward/tiny_body.hpp"
#include "tests/unit/runtime/cluster/support.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reference {
namespace {

using Logs = std::vector<float>;

std::shared_ptr<const model::PackedWeights> reference_weights() {
  model::ModelSpec spec = reward::tiny_body(64);
  spec.vocab = 67;
  model::ParamStore store(spec);
  model::randomise(store, 3, 0.25f);
  auto weights = std::make_shared<model::PackedWeights>(spec, kernels::PanelDtype::kF32);
  weights->fill(core::Team(), store, 0);
  return weights;
}

core::Result<Logprobs> scored_by(ReferenceRole& role,
                                 cluster::sim::VirtualTime& time,
                                 ScoreLogprobs request) {
  cluster::testing::Later<core::Result<Logprobs>> asked(time.make_strand(),
                                                        role.on(std::move(request)));
  EXPECT_TRUE(time.run_for(std::chrono::seconds(1), cluster::testing::kSteps));
  return std::move(asked.value());
}

TEST(ReferenceRole, ContextsAreReadAndDrawnTokensScored) {
  cluster::sim::VirtualTime time;
  cluster::sim::SimDevice device(time, time.make_strand(), "compute");
  async::Scope scope(time.make_strand());
  core::SerialTeam team;
  RoleContext context;
  context.scope = &scope;
  context.timers = &time;
  context.device = &device;
  context.team = &team;
  ReferenceRole role(context, reference_weights(), 512);
  ScoreLogprobs request;
  request.prompt = {1, 2, 3};
  request.responses = {{10, 11, 50, 12}, {20, 21}, {30, 31, 32}};
  const auto plain = scored_by(role, time, request);
  ASSERT_TRUE(plain) << plain.error().message;
  request.targets = {{0, 1, 3}, {}, {2}};
  const auto rows = scored_by(role, time, request);
  ASSERT_TRUE(rows) << rows.error().message;
  const auto& all = plain->samples;
  EXPECT_EQ(rows->samples,
            (std::vector<Logs>{{all[0][0], all[0][1], all[0][3]}, all[1], {all[2][2]}}));
  request.targets = {{4}};
  const auto refused = scored_by(role, time, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::actors::reference
