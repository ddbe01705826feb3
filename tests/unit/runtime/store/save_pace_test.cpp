// When a checkpoint is due for the sake of time.
#include "runtime/store/save_pace.hpp"

#include <gtest/gtest.h>

namespace troupe::store {
namespace {

using namespace std::chrono_literals;

core::TimePoint at(core::Duration span) {
  return core::TimePoint(span);
}

TEST(SavePace, IsDueOnceAPeriod) {
  SavePace pace(15min, at(1min));
  EXPECT_FALSE(pace.due(at(16min - 1ns)));
  EXPECT_TRUE(pace.due(at(16min)));
  pace.saved(at(20min), at(21min));
  EXPECT_FALSE(pace.due(at(36min - 1ns)));
  EXPECT_TRUE(pace.due(at(36min)));
}

TEST(SavePace, ASlowSaveStretchesThePeriodToTenTimesItsTime) {
  SavePace pace(15min, at(0s));
  pace.saved(at(15min), at(17min));
  EXPECT_FALSE(pace.due(at(37min - 1ns)));
  EXPECT_TRUE(pace.due(at(37min)));
}

TEST(SavePace, WithoutAPeriodItIsNeverDue) {
  SavePace pace(0s, at(0s));
  EXPECT_FALSE(pace.due(at(1000h)));
}

}  // namespace
}  // namespace troupe::store
