// A tiny model and rows for every supervised method, and what such a run has recorded.
#pragma once

#include "processes.hpp"

namespace troupe::test {

// A supervised method, its rows, and the flags that they need.
struct Method {
  const char* name;
  const char* file;
  std::vector<std::string> flags;
};

inline const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {"sft", "answers.jsonl", {}},
      {"pretrain", "answers.jsonl", {}},
      {"rm", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"dpo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"ipo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"cdpo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"kto", "rated.csv", {}},
      {"orpo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"simpo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"cpo", "pairs.jsonl", {"--data.prompt_key", "input"}},
      {"bco", "rated.csv", {}},
      {"distill", "answers.jsonl", {}},
  };
  return all;
}

// Model, tokenizer and rows in one folder.
class TinySupervised {
 public:
  TinySupervised() {
    model_ = make_tiny_model(folder_);
    write_byte_tokenizer(model_);
    teacher_ = make_tiny_teacher(folder_);
    std::ofstream answers(file("answers.jsonl")), pairs(file("pairs.jsonl"));
    std::ofstream rated(file("rated.csv"));
    rated << "input,output,label\n";
    for (int i = 0; i < 12; ++i) {
      const std::string prompt = std::to_string(i) + "+1=", good = std::to_string(i + 1);
      answers << nlohmann::json({{"input", prompt}, {"output", good}}) << '\n';
      pairs << nlohmann::json({{"input", prompt}, {"chosen", good}, {"rejected", "fish"}}) << '\n';
      rated << prompt << ',' << (i % 2 == 0 ? good : "\"a \"\"fish\"\"\"") << ','
            << (i % 2 == 0 ? "true" : "false") << '\n';
    }
    std::ofstream(file("tiny.yaml")) << "train: {batch_size: 4, threads: 2, seed: 5, "
                                        "micro_tokens_max: 40}\n"
                                        "actor: {adam: {lr: 1e-3}}\n"
                                        "ckpt: {save_steps: 1, max_num: 2}\n"
                                        "eval: {steps: 2}\n";
  }

  std::vector<std::string> words(const Method& method, const std::string& run, int steps) const {
    std::vector<std::string> words = {"train",
                                      method.name,
                                      file("tiny.yaml"),
                                      "--actor.model_name_or_path",
                                      model_,
                                      "--data.dataset",
                                      file(method.file),
                                      "--eval.dataset",
                                      file(method.file),
                                      "--run.path",
                                      file(run),
                                      "--train.max_steps",
                                      std::to_string(steps)};
    words.insert(words.end(), method.flags.begin(), method.flags.end());
    if (std::string_view(method.name) == "distill")
      words.insert(words.end(), {"--teacher.model_name_or_path", teacher_});
    return words;
  }
  const std::string& model() const { return model_; }
  const std::string& teacher() const { return teacher_; }
  // A chat template for the model.
  void write_template() const {
    std::ofstream(std::filesystem::path(model_) / "chat_template.jinja")
        << "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{{ '\\n' }}{% endfor %}"
           "{% if add_generation_prompt %}[assistant] {% endif %}";
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  ScratchFolder folder_;
  std::string model_, teacher_;
};

inline std::size_t steps_in(const std::filesystem::path& run) {
  std::ifstream in(run / "metrics.jsonl");
  std::size_t steps = 0;
  for (std::string line; std::getline(in, line);)
    steps += line.find("policy/loss") != line.npos ? 1 : 0;
  return steps;
}

// The metrics lines, evaluations too, without times and speeds.
inline std::vector<nlohmann::json> lines_of(const std::filesystem::path& run) {
  std::vector<nlohmann::json> rows;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    nlohmann::json kept;
    const auto row = nlohmann::json::parse(line);
    for (const auto& [name, value] : row.items()) {
      const bool varies =
          name == "time" || name.rfind("time/", 0) == 0 || name.rfind("perf/", 0) == 0;
      if (!varies) kept[name] = value;
    }
    rows.push_back(std::move(kept));
  }
  return rows;
}

}  // namespace troupe::test
