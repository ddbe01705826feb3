// A reward function written for TRL's conversational datasets, on a whole run: async, with message
// lists, token ids and values beside the score.
#include "tests/integration/processes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::test {
namespace {

const char* const kReward = R"PY(
import asyncio

arrived = 0

async def lengths(prompts, completions, completion_ids, answer, trainer_state, log_metric, log_extra):
    global arrived
    arrived += 1
    both = (arrived + 1) // 2 * 2
    while arrived < both:  # answers once both groups of the update are sampled
        await asyncio.sleep(0.01)
    assert all(p[-1]["role"] == "user" for p in prompts)
    assert all(len(a) == 1 for a in answer)
    texts = [c[0]["content"] for c in completions]
    log_metric("step", trainer_state.global_step)
    log_extra("asked", [p[-1]["content"] for p in prompts])
    return [len(t) + len(i) / 100 for t, i in zip(texts, completion_ids)]
)PY";

TEST(PythonReward, OfTrlsConversationsScoresARunAndReportsBesideTheScore) {
  const TinyRun files;
  std::ofstream(std::filesystem::path(files.model()) / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
  std::ofstream rows(files / "chats.jsonl");
  for (const char* const asked : {"1+1=", "2+2=", "3+3=", "4+4="}) {
    rows << nlohmann::json{{"prompt", {{{"role", "user"}, {"content", asked}}}}, {"answer", "a"}}
         << "\n";
  }
  rows.close();
  std::ofstream(files / "reward.py") << kReward;
  std::ofstream(files / "chats.yaml")
      << "rollout: {batch_size: 2, n_samples_per_prompt: 2, max_new_tokens: 6}\n"
         "data: {input_key: prompt, label_key: answer, prompt_max_len: 64, apply_chat_template: "
         "true}\n"
         "train: {max_steps: 2, threads: 2, seed: 5}\ncluster: {transport: loopback}\n";
  const Ended run = troupe_ends(
      {"train", "ppo", (files / "chats.yaml").string(), "--actor.model_name_or_path", files.model(),
       "--data.prompt_dataset", (files / "chats.jsonl").string(), "--reward.python",
       (files / "reward.py").string(), "--run.path", (files / "run").string()},
      files / "run.log", 60);
  ASSERT_EQ(run.status, 0) << run.text;
  EXPECT_NE(run.text.find("\n  waiting for scores "), std::string::npos) << run.text;
  const auto metrics = metrics_of(files / "run");
  ASSERT_EQ(metrics.size(), 2u);
  EXPECT_EQ(metrics.at(1).value("reward/extra/step", -1.0), 0.0);
  EXPECT_EQ(metrics.at(2).value("reward/extra/step", -1.0), 1.0);
  EXPECT_FALSE(metrics.at(1).contains("reward/extra/asked")) << "a text is no metric";
  std::ifstream rollouts(files / "run" / "rollouts" / "step_000001.jsonl");
  std::size_t samples = 0;
  for (std::string line; std::getline(rollouts, line); ++samples) {
    const auto row = nlohmann::json::parse(line);
    const std::string asked = row.at("extra").at("asked");
    EXPECT_NE(row.at("prompt").get<std::string>().find("user: " + asked), std::string::npos);
    // The number of tokens is behind the point, whatever text they are.
    const double hundredths = std::round(row.at("reward").get<double>() * 100);
    EXPECT_EQ(std::fmod(hundredths, 100), row.at("tokens").get<double>());
  }
  EXPECT_EQ(samples, 4u);
}

}  // namespace
}  // namespace troupe::test
