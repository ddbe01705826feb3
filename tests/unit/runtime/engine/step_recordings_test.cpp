// When the work of a step is run, recorded and replayed.
#include "runtime/engine/step_recordings.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::engine {
namespace {

// Writes down what it is asked for; records only if told so.
class Scribe final : public core::TeamRunner {
 public:
  explicit Scribe(bool records) : records_(records) {}
  void run(const std::function<void(core::Team)>& region) override { region({}); }
  int size() const noexcept override { return 1; }
  std::unique_ptr<core::Recording> record(const std::function<void(core::Team)>&) override {
    said += 'r';
    if (!records_) return nullptr;
    return std::make_unique<Said>(said);
  }
  std::string said;

 private:
  struct Said final : core::Recording {
    explicit Said(std::string& where) : to(where) {}
    void submit() override { to += 's'; }
    std::string& to;
  };
  const bool records_;
};

StepRecordings::Places at(const int& place) {
  StepRecordings::Places places{};
  places[25] = &place;
  return places;
}

TEST(StepRecordings, TheSecondStepIsRecordedAndTwoSetsOfAddressesAreKept) {
  Scribe team(true);
  StepRecordings recordings;
  const int place[3] = {};
  const auto step = [&](std::int64_t size, int which) {
    team.said.clear();
    return recordings.submit(size, at(place[which]), team, [](core::Team) {}) ? team.said : "run";
  };
  EXPECT_EQ(step(4, 0), "run");
  EXPECT_EQ(step(4, 0), "rs");
  EXPECT_EQ(step(4, 0), "s");
  EXPECT_EQ(step(8, 0), "run");  // another size
  EXPECT_EQ(step(4, 1), "run");
  EXPECT_EQ(step(4, 1), "rs");
  EXPECT_EQ(step(4, 0), "s");  // the set before is still there
  EXPECT_EQ(step(4, 1), "s");
  EXPECT_EQ(step(4, 2), "run");  // takes the place of 0
  EXPECT_EQ(step(4, 1), "s");
  EXPECT_EQ(step(4, 0), "run");
  EXPECT_EQ(recordings.submitted(), 6u);
  recordings.forget();
  EXPECT_EQ(step(4, 1), "run");
}

TEST(StepRecordings, ATeamThatCannotRecordIsAskedOnce) {
  Scribe team(false);
  StepRecordings recordings;
  const int place = 0;
  for (int i = 0; i < 4; ++i)
    EXPECT_FALSE(recordings.submit(4, at(place), team, [](core::Team) {}));
  EXPECT_EQ(team.said, "r");
  EXPECT_EQ(recordings.submitted(), 0u);
}

}  // namespace
}  // namespace troupe::engine
