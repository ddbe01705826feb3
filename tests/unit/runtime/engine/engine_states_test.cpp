// Which event each state of an engine admits.
#include "runtime/engine/engine_states.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::engine {
namespace {

// A letter for each event that the state admits: Step, sleep of Weights, of Kv, wake of weights
// (w), of kv (k), New weights.
std::string admitted(WeightsState weights, bool kv_asleep) {
  const EngineState state{weights, kv_asleep, false};
  std::string all;
  if (check_awake(state, "a step")) all += 'S';
  if (check_sleep(state, {true, false})) all += 'W';
  if (check_sleep(state, {false, true})) all += 'K';
  if (check_wake(state, {true, false})) all += 'w';
  if (check_wake(state, {false, true})) all += 'k';
  if (check_set_weights(state)) all += 'N';
  return all;
}

TEST(EngineStates, EachAdmitsItsEvents) {
  EXPECT_EQ(admitted(WeightsState::kAwake, false), "SWKN");
  EXPECT_EQ(admitted(WeightsState::kAwake, true), "WkN");
  EXPECT_EQ(admitted(WeightsState::kAsleep, false), "Kw");
  EXPECT_EQ(admitted(WeightsState::kAsleep, true), "w");
  EXPECT_EQ(admitted(WeightsState::kAwaited, false), "KN");
  EXPECT_EQ(admitted(WeightsState::kAwaited, true), "N");
}

TEST(EngineStates, SleepTakesBothPartsAndWakeOne) {
  const EngineState awake, asleep{WeightsState::kAsleep, true, false};
  EXPECT_TRUE(check_sleep(awake, {true, true}));
  EXPECT_FALSE(check_sleep(awake, {false, false}));
  EXPECT_FALSE(check_wake(asleep, {true, true}));
  EXPECT_FALSE(check_wake(asleep, {false, false}));
}

}  // namespace
}  // namespace troupe::engine
