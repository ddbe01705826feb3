// The same of programs that hang, and a run of which every row hangs.
#include "sick_environments.hpp"

namespace troupe::test {

class AgentFaultsDay : public SickEnvironments {};

TEST_F(AgentFaultsDay, AProgramThatHangsCostsItsRowAndNoOther) {
  std::unique_ptr<CompanyRun> runs[2];
  for (const int hangs : {0, 1}) {
    const auto file =
        write("agent" + std::to_string(hangs) + ".py",
              with_how(kSickProgram, "", hangs == 0 ? "os._exit(3)" : "time.sleep(3600)"));
    const auto more = words({"--env.command", "python3 " + core::shell_word(file.string()),
                             "--env.confined", "false", "--env.episode_timeout_s", "4"});
    runs[hangs] = std::make_unique<CompanyRun>(files_, "run" + std::to_string(hangs), more);
    ASSERT_EQ(runs[hangs]->wait(150), 0) << runs[hangs]->output();
  }
  expect_same_bits(runs[0]->folder(), runs[1]->folder(), 4);
}

// Every row hangs: the run ends, since there are no others.
TEST_F(AgentFaultsDay, WhenEveryRowHangsTheRunEndsWithTheCause) {
  write("rows.jsonl", R"({"prompt": "2+1=", "answer": "a"})"
                      "\n");
  const auto file = write("all.py", with_how(kSickClass, "def", "time.sleep(3600)"));
  CompanyRun run(files_, "all",
                 words({"--env.python", file.string(), "--rollout.batch_size", "1"}));
  EXPECT_EQ(run.wait(150), 4) << run.output();
  EXPECT_NE(run.output().find("4 groups in a row, with the only prompt that there is, failed"),
            std::string::npos)
      << run.output();
  EXPECT_NE(run.output().find("it did not answer in time"), std::string::npos) << run.output();
}

}  // namespace troupe::test
