// Mistakes in prompts and rewards that show only once a real model and its tokenizer are loaded,
// with the small real model (label `model`).
#include "tests/integration/exact_support.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace troupe::test {
namespace {

class BadData : public testing::Test {
 protected:
  void SetUp() override {
    const char* model = std::getenv("TROUPE_TEST_MODEL");
    if (model == nullptr || !std::filesystem::exists(std::string(model) + "/config.json")) {
      GTEST_SKIP() << "the small real model is not here: ./dev demo fetches it";
    }
    model_ = model;
  }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(scratch_ / name) << text;
    return (scratch_ / name).string();
  }

  void expect_train(const std::string& prompts,
                    const std::vector<std::string>& more,
                    int status,
                    const std::vector<std::string>& parts) {
    const char* folder = std::getenv("TROUPE_BUILD_DIR");
    std::string command = quoted(std::string(folder != nullptr ? folder : "build") + "/troupe");
    std::vector<std::string> words = {"train",
                                      "ppo",
                                      "--actor.model_name_or_path",
                                      model_,
                                      "--data.prompt_dataset",
                                      prompts,
                                      "--data.label_key",
                                      "answer",
                                      "--reward.rule",
                                      "exact",
                                      "--rollout.max_new_tokens",
                                      "4",
                                      "--data.prompt_max_len",
                                      "16",
                                      "--run.path",
                                      (scratch_ / "run").string()};
    words.insert(words.end(), more.begin(), more.end());
    for (const std::string& word : words)
      command += " " + quoted(word);
    const std::string errors = (scratch_ / "errors").string();
    const int ended = std::system((command + " >/dev/null 2>" + quoted(errors)).c_str());
    std::ifstream in(errors);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_EQ(WIFEXITED(ended) ? WEXITSTATUS(ended) : -1, status) << text.str();
    for (const std::string& part : parts) {
      EXPECT_NE(text.str().find(part), std::string::npos) << part << "\n" << text.str();
    }
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "run")) << "nothing is made before the checks";
  }

  ScratchFolder scratch_;
  std::string model_;
};

TEST_F(BadData, BadLineOfADatasetIsNamed) {
  const std::string prompts =
      file("p.jsonl", "{\"input\": \"a\", \"answer\": \"b\"}\n{\"input\": \n");
  expect_train(prompts, {}, 4, {"p.jsonl:2: not valid JSON"});
}

TEST_F(BadData, MissingColumnNamesTheFlag) {
  const std::string prompts = file("p.jsonl", "{\"question\": \"a\", \"answer\": \"b\"}\n");
  expect_train(prompts, {}, 4, {"p.jsonl:1: no column 'input'", "--data.input_key"});
}

TEST_F(BadData, EmptyDataset) {
  expect_train(file("p.jsonl", "\n"), {}, 4, {"p.jsonl", "no rows"});
}

TEST_F(BadData, PromptLongerThanAllowedNamesItsLine) {
  std::string words;
  for (int i = 0; i < 50; ++i)
    words += "word ";
  const std::string prompts =
      file("p.jsonl", "{\"input\": \"a\", \"answer\": \"b\"}\n{\"input\": \"" + words +
                          "\", \"answer\": \"b\"}\n");
  expect_train(prompts, {}, 4, {"p.jsonl:2", "--data.prompt_max_len"});
}

TEST_F(BadData, LengthsBeyondTheContext) {
  const std::string prompts = file("p.jsonl", "{\"input\": \"a\", \"answer\": \"b\"}\n");
  expect_train(prompts, {"--data.prompt_max_len", "9000"}, 2, {"context"});
}

}  // namespace
}  // namespace troupe::test
