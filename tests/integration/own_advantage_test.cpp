// A user's own advantages on whole runs: the bits do not depend on processes, or on a worker that
// dies in between; a file that cannot serve ends the run with what is wrong and which key to
// change.
#include "company_support.hpp"

namespace troupe::test {
namespace {

// Dies once where a file `armed` lies beside it, in the middle of the run.
const char* const kAdvantage = R"PY(
import os
import random

armed = os.path.join(os.path.dirname(__file__), "armed")


def advantage(advantages, sampled_logprobs, lengths, seed, update):
    if update == 1 and os.path.exists(armed):
        os.remove(armed)
        os.kill(os.getpid(), 9)
    draw = random.Random(1000 * seed + update)
    return {"advantages": [a - l / 8 for a, l in zip(advantages, sampled_logprobs)],
            "weights": [[0.5 + draw.random()] * int(n) for n in lengths]}
)PY";

std::vector<std::string> keys(const TinyRun& files, std::vector<std::string> more) {
  std::ofstream(files / "advantage.py") << kAdvantage;
  more.insert(more.end(), {"--train.max_steps", "3", "--algo.advantage_file",
                           (files / "advantage.py").string()});
  return more;
}

TEST(OwnAdvantage, HasTheSameBitsInSeveralProcessesAndWhenItsWorkerDies) {
  const TinyRun files;
  CompanyRun one(files, "one", keys(files, {"--cluster.transport", "loopback"}));
  ASSERT_EQ(one.wait(), 0) << one.output();
  EXPECT_EQ(one.output().find("it is started again"), std::string::npos);
  std::ofstream(files / "armed") << "now";
  CompanyRun several(files, "several", keys(files, {"--rollout.generators", "1"}));
  ASSERT_EQ(several.wait(), 0) << several.output();
  EXPECT_FALSE(std::filesystem::exists(files / "armed"));
  expect_same_bits(one.folder(), several.folder(), 3);
  CompanyRun without(files, "without",
                     {"--train.max_steps", "3", "--cluster.transport", "loopback"});
  ASSERT_EQ(without.wait(), 0) << without.output();
  EXPECT_NE(metrics_of(one.folder()), metrics_of(without.folder()));
}

TEST(OwnAdvantage, AFileThatCannotServeEndsTheRunWithTheKey) {
  const TinyRun files;
  const auto ended = [&](const std::string& code, const std::string& run) {
    auto words = files.words(run);
    const auto more = keys(files, {"--cluster.transport", "loopback", "--ckpt.save_steps", "0"});
    words.insert(words.end(), more.begin(), more.end());
    std::ofstream(files / "advantage.py") << code;
    return troupe_ends(words, files / "log.txt", 60);
  };
  const Ended unknown = ended("def advantage(scores, rewards): pass\n", "unknown");
  EXPECT_EQ(unknown.status, 2) << unknown.text;
  EXPECT_NE(unknown.text.find("algo.advantage_file"), std::string::npos) << unknown.text;
  EXPECT_NE(unknown.text.find("has a parameter 'rewards'"), std::string::npos) << unknown.text;
  // The updates before it are saved, and the mended file goes on from there.
  const Ended nan = ended(
      "def advantage(advantages, update):\n"
      "    return [float('nan') if update else a for a in advantages]\n",
      "nan");
  EXPECT_EQ(nan.status, 4) << nan.text;
  EXPECT_NE(nan.text.find("the advantage of token 0 of sample 0 (prompt 0) is nan"),
            std::string::npos)
      << nan.text;
  EXPECT_TRUE(std::filesystem::exists(files / "nan/ckpt/step_000001/manifest.json")) << nan.text;
  const Ended mended = ended("def advantage(advantages, update): return list(advantages)\n", "nan");
  EXPECT_EQ(mended.status, 0) << mended.text;
  EXPECT_EQ(metrics_of(files / "nan").size(), 3u);
}

}  // namespace
}  // namespace troupe::test
