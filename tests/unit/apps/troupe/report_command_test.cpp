// `troupe report` with bad input, and what it writes.
#include "apps/cli/words.hpp"
#include "apps/troupe/commands.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace troupe::app {
namespace {

class ReportCommand : public testing::Test {
 protected:
  ReportCommand() {
    std::filesystem::create_directories(run_);
    test::put_file(folder_ / "run/metrics.jsonl",
                   "{\"step\":1,\"reward/mean\":1}\n{\"step\":2,\"reward/mean\":2}\n");
  }
  // What the user reads of the error, and its exit status.
  std::string refusal(std::vector<std::string> words, int status = 2) {
    words.insert(words.begin(), "report");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto done = run_command(words);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    if (done) return "";
    EXPECT_EQ(core::exit_status(done.error().code), status) << done.error().message;
    return cli::error_text(done.error());
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  test::TempFolder folder_;
  const std::string run_ = at("run");
  std::string out_, err_;
};

}  // namespace

TEST_F(ReportCommand, RefusesWhatIsNoRun) {
  EXPECT_EQ(refusal({}),
            "error: troupe report: no run is given\n  hint: give the folder of a run (its "
            "--run.path)\n");
  EXPECT_EQ(refusal({at("none")}), "error: troupe report: " + at("none") +
                                       " is not there\n  hint: give the folder of a run (its "
                                       "--run.path)\n");
  EXPECT_EQ(refusal({at("run/metrics.jsonl")}),
            "error: troupe report: " + at("run/metrics.jsonl") +
                " is not a folder\n  hint: give the folder of a run (its --run.path)\n");
  EXPECT_EQ(refusal({run_, run_ + "/../run/"}), "error: troupe report: " + run_ +
                                                    "/../run/ is given twice\n  hint: give it "
                                                    "once\n");
  EXPECT_EQ(refusal({folder_.path().string()}), "error: troupe report: " + folder_.path().string() +
                                                    " is a folder of runs\n  hint: give some of them: " +
                                                    run_ + "\n");
  const std::vector<std::string> many(17, run_);
  EXPECT_NE(refusal(many).find("17 runs are given\n  hint: give at most 16"), std::string::npos);
}

TEST_F(ReportCommand, RefusesWrongFlags) {
  EXPECT_NE(refusal({run_, "--outt", "x"}).find("did you mean --out?"), std::string::npos);
  EXPECT_NE(refusal({run_, "--rollouts", "-1"}).find("expected 0 to 20000"), std::string::npos);
  EXPECT_NE(refusal({run_, "--rollouts", "many"}).find("--rollouts"), std::string::npos);
  EXPECT_EQ(refusal({run_, "--log"}),
            "error: --log is for --svg\n  hint: the page has a switch for it\n");
  EXPECT_EQ(
      refusal({run_, "--svg", "reward/maen"}),
      "error: --svg reward/maen: no run has this metric\n  hint: did you mean reward/mean?\n");
}

// A mistyped --out destroys nothing.
TEST_F(ReportCommand, RefusesToReplaceAFileOfAnother) {
  const std::string metrics = at("run/metrics.jsonl"), before = test::read_file(metrics);
  EXPECT_EQ(refusal({run_, "--out", metrics}),
            "error: --out " + metrics +
                " is there and was not written by troupe report\n"
                "  hint: choose another name, or remove it\n");
  EXPECT_EQ(test::read_file(metrics), before);
  EXPECT_EQ(refusal({run_, "--out", run_}),
            "error: --out " + run_ + " is a folder\n  hint: give the name of a file\n");
  EXPECT_NE(refusal({run_, "--out", at("none/x.html")}), "");
  EXPECT_NE(refusal({run_, "--svg", "reward/mean", "--out", metrics}), "");
}

TEST_F(ReportCommand, WritesAPageAndReplacesItsOwn) {
  const std::string page = at("page.html");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(refusal({"--out", page, run_, "--rollouts=5"}), "");
    EXPECT_TRUE(out_.starts_with(page + ": 1 run, 0 rollouts, ")) << out_;
    EXPECT_NE(err_.find("warning: run: resolved_config.yaml is not there"), std::string::npos)
        << err_;
    EXPECT_TRUE(test::read_file(page).starts_with("<!doctype html>"));
  }
}

TEST_F(ReportCommand, WritesOneChart) {
  std::filesystem::copy(run_, at("other"));
  const std::string chart = at("chart.svg");
  EXPECT_EQ(refusal({run_, at("other"), "--svg", "reward/mean", "--out", chart}), "");
  EXPECT_EQ(out_, chart + ": reward/mean of 2 runs\n");
  const std::string text = test::read_file(chart);
  EXPECT_TRUE(text.starts_with("<svg ")) << text;
  EXPECT_NE(text.find(">other</text>"), std::string::npos);
}

}  // namespace troupe::app
