// A pipeline on a tiny model: its file, its call, and what it left.
#pragma once

#include "processes.hpp"

namespace troupe::test {

class TinyPipeline {
 public:
  TinyPipeline() {
    write("pairs.jsonl",
          "{\"prompt\": \"1+1=\", \"chosen\": \"b\", \"rejected\": \"fish\"}\n"
          "{\"prompt\": \"1+2=\", \"chosen\": \"c\", \"rejected\": \"no\"}\n");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(files_ / name, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  const std::string& model() const { return files_.model(); }

  // `troupe pipeline FILE` into the folder `out`; FILE is p.yaml here, or one of configs/pipelines.
  std::vector<std::string> words(const std::string& file,
                                 std::vector<std::string> more = {},
                                 const std::string& folder = "out") const {
    const bool own = file == "p.yaml";
    std::vector<std::string> out = {
        "pipeline",
        own ? path(file)
            : (std::filesystem::path(TROUPE_RECIPES_DIR) / "pipelines" / file).string(),
        "--folder", path(folder)};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  Ended run(const std::vector<std::string>& more = {}, const std::string& folder = "out") const {
    return troupe_ends(words("p.yaml", more, folder), files_ / "log.txt", 120);
  }

  nlohmann::json record(const std::string& stage, const std::string& folder = "out") const {
    return nlohmann::json::parse(text_of(files_ / folder / stage / "stage.json"), nullptr, false);
  }
  nlohmann::json summary(const std::string& folder = "out") const {
    return nlohmann::json::parse(text_of(files_ / folder / "pipeline.json"), nullptr, false);
  }
  // The bytes of the weights that a training stage ends with.
  std::string weights(const std::string& stage, const std::string& folder = "out") const {
    std::string newest;
    std::error_code error;
    const auto checkpoints = files_ / folder / stage / "run/ckpt";
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints, error)) {
      const auto model = entry.path() / "model/model.safetensors";
      if (std::filesystem::exists(model)) newest = std::max(newest, model.string());
    }
    return newest.empty() ? "" : text_of(newest);
  }
  std::filesystem::path operator/(const std::string& name) const { return files_ / name; }

 private:
  TinyRun files_;
};

// A test of a file of configs/pipelines, with what it begins from.
class PipelineRecipes : public ::testing::Test {
 protected:
  // `troupe pipeline FILE --set ...` to its end.
  Ended run(const std::string& file,
            const std::vector<std::string>& settings,
            const std::string& folder = "out") {
    std::vector<std::string> more;
    for (const std::string& setting : settings) {
      more.push_back("--set");
      more.push_back(setting);
    }
    return troupe_ends(files_.words(file, more, folder), files_ / "log.txt", 300);
  }
  void troupe(const std::vector<std::string>& words) {
    const Ended ended = troupe_ends(words, files_ / "log.txt", 120);
    ASSERT_EQ(ended.status, 0) << ended.text;
  }
  std::string model_in(const std::string& run) {
    for (const auto& entry : std::filesystem::directory_iterator(files_ / run / "ckpt")) {
      if (std::filesystem::exists(entry.path() / "model")) return (entry.path() / "model").string();
    }
    return "";
  }
  // A reward model with the mean and the deviation of its scores.
  std::string reward_model() {
    troupe({"train",
            "rm",
            "--actor.model_name_or_path",
            files_.model(),
            "--data.dataset",
            files_.path("pairs.jsonl"),
            "--eval.dataset",
            files_.path("pairs.jsonl"),
            "--data.prompt_key",
            "prompt",
            "--data.max_len",
            "64",
            "--train.batch_size",
            "2",
            "--train.max_steps",
            "1",
            "--train.threads",
            "1",
            "--run.path",
            files_.path("rm")});
    return model_in("rm");
  }
  // A model that is right now and then on the arithmetic task, so that there are pairs.
  std::string arithmetic_model(const std::string& digits, const std::string& prompt) {
    troupe({"data", "arithmetic", "--out", files_.path("task"), "--digits", digits});
    troupe({"train",
            "sft",
            "--actor.model_name_or_path",
            files_.model(),
            "--data.dataset",
            files_.path("task/train.jsonl"),
            "--data.input_key",
            prompt,
            "--data.output_key",
            "target",
            "--data.max_len",
            "64",
            "--data.max_samples",
            "400",
            "--train.batch_size",
            "16",
            "--train.max_epochs",
            "8",
            "--train.max_steps",
            "100",
            "--actor.adam.lr",
            "1e-2",
            "--run.path",
            files_.path("first")});
    return model_in("first");
  }
  std::vector<std::string> loop(std::vector<std::string> more) {
    std::vector<std::string> out = {"model=" + files_.model(),
                                    "reward_model=" + reward_model(),
                                    "prompts=" + files_.path("train.jsonl"),
                                    "n=4",
                                    "max_new_tokens=6",
                                    "max_len=64",
                                    "batch_size=8",
                                    "lr=1e-3"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  TinyPipeline files_;
};

// The only child of a process; 0 while there is none.
inline pid_t child_of(pid_t parent) {
  std::ifstream in("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                   "/children");
  pid_t child = 0;
  in >> child;
  return child;
}

}  // namespace troupe::test
