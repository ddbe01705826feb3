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

// What a drawing of the live line writes around it.
std::string drawn(const std::string& line) {
  return "\r\x1b[?7l" + line + "\x1b[K\x1b[?7h";
}

TEST(Progress, LiveLineIsDrawnOverItself) {
  Screen screen;
  core::ManualClock clock;
  {
    Progress progress(screen.file(), {ProgressForm::kLive, false, 120}, clock, 0, 4);
    progress.activity("generate 3/8");
    const std::string first = drawn("step 0/4  [........................]  0 s  generate 3/8");
    EXPECT_EQ(screen.text(), first);
    clock.advance(10s);
    progress.update(kRow);
    const std::string second = drawn(
        "step 2/4  [############............]  reward 0.500  kl 0.25000  812 tokens/s  10 s left  "
        "10 s so far  generate 3/8");
    EXPECT_EQ(screen.text(), first + second);
    progress.note("evaluated");
    EXPECT_EQ(screen.text(), first + second + "\r\x1b[K" + "evaluated\n" + second);
  }
  EXPECT_TRUE(screen.text().ends_with("6 s a step  10 s left  10 s so far\x1b[K\x1b[?7h\n"))
      << "the shell's prompt stands on a line of its own: " << screen.text();
}

TEST(Progress, LiveLineTellsOfTheCompanyAndItsClockGoesOn) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, false, 200}, clock, 0, 4);
  progress.redraw();
  EXPECT_EQ(screen.text(), "") << "nothing is drawn before there is something to tell";
  clock.advance(60s);
  progress.update(
      {2,
       0,
       {{"async/generators", 2}, {"async/staleness_mean", 0.5}, {"response/length_mean", 123.4}}});
  const std::string company = "generators up 2  age of tokens 0.5 updates  response 123 tokens";
  const std::string head = "step 2/4  [############............]  ";
  const std::string first = drawn(head + company + "  1 min 00 s left  1 min 00 s so far");
  EXPECT_EQ(screen.text(), first);
  clock.advance(20s);
  progress.redraw();
  EXPECT_EQ(screen.text(), first + drawn(head + company + "  40 s left  1 min 20 s so far"));
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

TEST(Progress, LiveLineFitsTheTerminal) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, false, 30}, clock, 0, 4);
  progress.activity(std::string(100, 'x'));
  // 29 columns: 8 of the step, a gap, 14 of the bar; no 12 are left for what goes on.
  EXPECT_EQ(screen.text(), drawn("step 0/4  [............]"));
}

TEST(Progress, ColourDimsWhatGoesOn) {
  Screen screen;
  core::ManualClock clock;
  Progress progress(screen.file(), {ProgressForm::kLive, true, 80}, clock, 0, 4);
  progress.activity("training\x1b[2J");
  EXPECT_EQ(screen.text(), drawn("step 0/4  [............]  0 s  \x1b[2mtraining[2J\x1b[0m"));
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
  EXPECT_EQ(observe::detect_style("auto", screen.file()).columns, 80u);
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
