// What the terminal shows, and the phase timer.
#include "runtime/observe/progress.hpp"

#include "runtime/observe/log.hpp"
#include "runtime/observe/phase_timer.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

using namespace troupe;
using namespace std::chrono_literals;
using observe::MetricRow;
using observe::Progress;
using observe::ProgressForm;

// Collects what is written to it.
class Screen {
 public:
  Screen() : file_(::open_memstream(&data_, &size_)) {}
  ~Screen() {
    std::fclose(file_);
    std::free(data_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {data_, size_};
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

const MetricRow kRow{2,
                     0,
                     {{"reward/mean", 0.5},
                      {"kl/rollout_train", 0.25},
                      {"perf/tokens_per_s", 812.4},
                      {"time/step", 6.0}}};

TEST(Progress, LinesOutsideATerminal) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLines}, clock, 0, 10);
  clock.advance(20s);
  progress.activity("generate");
  progress.update(kRow);
  progress.note("saved \x1b[2J");
  EXPECT_EQ(screen.text(),
            "step=2/10 reward=0.500 kl=0.25000 tokens_per_s=812 step_s=6 eta=1min20s\n"
            "saved [2J\n");
}

TEST(Progress, ReferenceKlComesFirst) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLines}, clock, 0, 2);
  progress.update({2, 0, {{"kl/rollout_train", 0.25}, {"kl/ref", 0.125}}});
  EXPECT_EQ(screen.text(), "step=2/2 kl=0.12500\n");
}

TEST(Progress, JsonObjects) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kJson}, clock, 0, 10);
  progress.update(kRow);
  progress.note("a\"b");
  EXPECT_EQ(screen.text(),
            "{\"step\":2,\"steps\":10,\"reward\":0.5,\"kl\":0.25,\"tokens_per_s\":812.4,"
            "\"step_s\":6.0}\n{\"note\":\"a\\\"b\"}\n");
}

TEST(Progress, LiveBlockIsDrawnOverItself) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, false, 80}, clock, 0, 4);
  progress.activity("generate 3/8");
  const std::string first = "step 0/4  [........................]  0 s\ngenerate 3/8\n";
  EXPECT_EQ(screen.text(), first);
  clock.advance(10s);
  progress.update(kRow);
  const std::string second =
      "\x1b[2A\r\x1b[Jstep 2/4  [############............]  10 s, ETA 10 s\n"
      "reward 0.500   kl 0.25000   tokens/s 812   step 6 s\n"
      "generate 3/8\n";
  EXPECT_EQ(screen.text(), first + second);
  progress.note("evaluated");
  const std::string redrawn = second.substr(second.find("step"));
  EXPECT_EQ(screen.text(), first + second + "\x1b[3A\r\x1b[J" + "evaluated\n" + redrawn);
}

TEST(Progress, LiveBlockTellsOfTheCompanyAndItsClockGoesOn) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, false, 80}, clock, 0, 4);
  progress.redraw();
  EXPECT_EQ(screen.text(), "") << "nothing is drawn before there is something to tell";
  clock.advance(60s);
  progress.update(
      {2,
       0,
       {{"async/generators", 2}, {"async/staleness_mean", 0.5}, {"response/length_mean", 123.4}}});
  const std::string company = "generators up 2   age of tokens 0.5 updates   response 123 tokens\n";
  const std::string first =
      "step 2/4  [############............]  1 min 00 s, ETA 1 min 00 s\n" + company;
  EXPECT_EQ(screen.text(), first);
  clock.advance(20s);
  progress.redraw();
  EXPECT_EQ(screen.text(),
            first + "\x1b[2A\r\x1b[Jstep 2/4  [############............]  1 min 20 s, ETA 40 s\n" +
                company);
}

TEST(Progress, EtaIsThatOfTheLastSteps) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLines}, clock, 0, 100);
  clock.advance(1000s);  // the first one is slow
  progress.update({1, 0, {}});
  for (std::uint64_t step = 2; step <= Progress::kEtaSteps + 1; ++step) {
    clock.advance(2s);
    progress.update({step, 0, {}});
  }
  EXPECT_EQ(screen.text().find("step=1/100 eta=27h30min\n"), 0u) << screen.text();
  // 83 steps of 2 s.
  EXPECT_TRUE(screen.text().ends_with("step=17/100 eta=2min46s\n")) << screen.text();
}

TEST(Progress, EtaLeavesEvaluationsOut) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLines}, clock, 0, 100);
  clock.advance(600s);  // an evaluation before the first update
  progress.leave_out(600);
  clock.advance(2s);
  progress.update({1, 0, {}});
  clock.advance(300s);
  progress.leave_out(300);
  clock.advance(2s);
  progress.update({2, 0, {}});
  EXPECT_EQ(screen.text(), "step=1/100 eta=3min18s\nstep=2/100 eta=3min16s\n");
}

TEST(Progress, LiveBlockFitsTheTerminal) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, false, 20}, clock, 0, 4);
  progress.activity(std::string(100, 'x'));
  EXPECT_EQ(screen.text(), "step 0/4  [........\n" + std::string(19, 'x') + "\n");
}

TEST(Progress, ResumedRunCountsItsOwnStepsForTheEta) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLines}, clock, 90, 100);
  clock.advance(5s);
  progress.update({95, 0, {}});
  EXPECT_EQ(screen.text(), "step=95/100 eta=5s\n");
}

TEST(Progress, FormFollowsFlagAndPlace) {
  Screen screen;  // no terminal
  EXPECT_EQ(observe::choose_form("auto", screen.file()), ProgressForm::kLines);
  EXPECT_EQ(observe::choose_form("json", screen.file()), ProgressForm::kJson);
  EXPECT_EQ(observe::choose_form("plain", screen.file()), ProgressForm::kLines);
}

TEST(Progress, DurationsAreReadable) {
  EXPECT_EQ(observe::duration_text(59.4), "59 s");
  EXPECT_EQ(observe::duration_text(185), "3 min 05 s");
  EXPECT_EQ(observe::duration_text(7620), "2 h 07 min");
  EXPECT_EQ(observe::duration_text(-1), "?");
}

TEST(PhaseTimer, CountsEachSecondOnce) {
  core::ManualClock clock;
  observe::PhaseTimer timer(clock);
  clock.advance(5s);  // nothing runs yet
  timer.begin("generate");
  clock.advance(2s);
  timer.begin("train");
  clock.advance(3s);
  timer.begin("generate");
  clock.advance(1s);
  EXPECT_EQ(timer.current(), "generate");
  timer.end();
  using Totals = std::vector<std::pair<std::string, double>>;
  clock.advance(9s);
  EXPECT_EQ(timer.totals(), (Totals{{"generate", 3.0}, {"train", 3.0}}));
}

TEST(Log, KeepsOneLineAMessage) {
  test::TempFolder temp;
  {
    auto log = observe::Log::open(temp / "troupe.log");
    ASSERT_TRUE(log) << log.error().message;
    log->info("one");
    log->info("two {} \x1b[2J\nthree");
  }
  const std::string kept = test::read_file(temp / "troupe.log");
  EXPECT_NE(kept.find(" info one\n"), std::string::npos) << kept;
  EXPECT_NE(kept.find(" info two {} [2J three\n"), std::string::npos) << kept;
}

TEST(Log, UnwritableFileIsAResourceError) {
  auto log = observe::Log::open("/proc/no/troupe.log");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, core::ErrorCode::kResources);
}

}  // namespace
