// A run that plays over several processes, for tests that kill, freeze and stop them. Leads a
// process group of its own; every wait is bounded, and what is left at the end of the test is
// killed. Used on a test's main thread.
#pragma once

#include "apps/bench/ledger_check.hpp"
#include "processes.hpp"
#include "runtime/core/shell_word.hpp"

#include <set>

namespace troupe::test {

// Parent and state of a process; nothing when there is none.
struct ProcessFacts {
  pid_t parent = 0;
  char state = '?';
  std::vector<std::string> words;
};
inline std::optional<ProcessFacts> facts_of(pid_t pid) {
  const std::filesystem::path folder = "/proc/" + std::to_string(pid);
  const std::string stat = text_of(folder / "stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  std::istringstream fields(stat.substr(name_end + 1));
  fields >> facts.state >> facts.parent;
  std::istringstream words(text_of(folder / "cmdline"));
  for (std::string word; std::getline(words, word, '\0');)
    facts.words.push_back(word);
  return facts;
}

// How often the part is in the text.
inline std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

class CompanyRun {
 public:
  static constexpr double kLimit_s = 60;

  CompanyRun(const TinyRun& files,
             const std::string& name,
             const std::vector<std::string>& more = {})
      : CompanyRun(files / name, files.words(name) + more) {}
  // `folder`: the run folder that `words` name; what the program says goes beside it.
  CompanyRun(std::filesystem::path folder, const std::vector<std::string>& words)
      : folder_(std::move(folder)),
        program_(std::vector<std::string>{troupe_program()} + words, folder_.string() + ".out") {}
  CompanyRun(const CompanyRun&) = delete;
  CompanyRun& operator=(const CompanyRun&) = delete;
  ~CompanyRun() {
    if (!ended()) {
      nodes();
      program_.kill();
    }
    for (const pid_t pid : seen_) {
      if (is_node(pid)) ::kill(pid, SIGKILL);
    }
  }

  // pid by name ("policy", "generator-0"), of the node processes that live now.
  std::map<std::string, pid_t> nodes() {
    std::map<std::string, pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      const auto facts = pid > 0 ? facts_of(pid) : std::nullopt;
      if (!facts || facts->parent != program_.pid() || facts->state == 'Z') continue;
      for (std::size_t i = 0; i + 1 < facts->words.size(); ++i) {
        if (facts->words[i] == "--name") found[facts->words[i + 1]] = pid;
      }
      if (is_node(pid)) seen_.insert(pid);
    }
    return found;
  }

  // The node's process, once the run has recorded `steps` updates; 0 when that does not come.
  pid_t node_after(const std::string& name, std::size_t steps) {
    pid_t pid = 0;
    within(kLimit_s, [&] {
      if (this->steps() < steps) return ended();
      const auto now = nodes();
      if (const auto found = now.find(name); found != now.end()) pid = found->second;
      return pid > 0 || ended();
    });
    return pid;
  }
  bool await_steps(std::size_t steps) {
    return within(kLimit_s, [&] { return this->steps() >= steps || ended(); }) && !ended();
  }

  // Exit status, 128 + signal; nothing when it still runs at the limit: a hang.
  std::optional<int> wait(double limit_s = kLimit_s) { return program_.wait(limit_s); }
  void signal(int number) { program_.signal(number); }

  // True when every node process that was ever seen is gone, at the latest after `limit_s`.
  bool all_nodes_gone(double limit_s = 30) const {
    return within(limit_s, [this] {
      return std::none_of(seen_.begin(), seen_.end(), [](pid_t pid) { return is_node(pid); });
    });
  }

  std::size_t steps() const {
    const std::string text = text_of(folder_ / "metrics.jsonl");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string log() const { return text_of(folder_ / "troupe.log"); }
  std::string output() const { return program_.text(); }
  const std::filesystem::path& folder() const { return folder_; }
  pid_t pid() const { return program_.pid(); }

 private:
  static bool is_node(pid_t pid) {
    const auto facts = facts_of(pid);
    return facts && facts->state != 'Z' && facts->words.size() > 2 && facts->words[1] == "node" &&
           facts->words[2] == "--local";
  }
  bool ended() { return !program_.running(); }

  std::filesystem::path folder_;
  Background program_;
  std::set<pid_t> seen_;
};

inline void expect_clean_ledger(const std::filesystem::path& run) {
  const auto checked = bench::check_ledger(run);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->lost(), 0u);
  EXPECT_EQ(checked->doubled(), 0u);
  EXPECT_EQ(checked->wrong_scores, 0u);
  EXPECT_EQ(checked->unclear_sets, 0u);
  EXPECT_GT(checked->samples, 0u);
}

inline std::string checkpoint_name(int step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%06d", step);
  return name;
}

// Optimiser steps of an update, as the checkpoint after the last one counts them; 0: it has none,
// or the updates had different numbers.
inline std::uint64_t steps_of_update(const std::filesystem::path& run) {
  const auto updates = metrics_of(run).rbegin()->first;
  const auto folder = run / "ckpt" / checkpoint_name(static_cast<int>(updates));
  const auto state = nlohmann::json::parse(text_of(folder / "policy/trainer_state.json"));
  const auto steps = state["version"].get<std::uint64_t>();
  return steps % updates == 0 ? steps / updates : 0;
}

// Updates between the oldest token of any rollout and the weights that it trained. Versions of
// weights count optimiser steps.
inline std::uint64_t oldest_age(const std::filesystem::path& run) {
  const std::uint64_t steps = steps_of_update(run);
  if (steps == 0) {
    ADD_FAILURE() << "the age of tokens in updates is not known";
    return ~std::uint64_t{0};
  }
  std::uint64_t oldest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts")) {
    std::ifstream in(entry.path());
    for (std::string text; std::getline(in, text);) {
      const auto line = nlohmann::json::parse(text);
      const auto step = line["step"].get<std::uint64_t>();
      oldest = std::max(oldest, step - 1 - line["version_min"].get<std::uint64_t>() / steps);
    }
  }
  return oldest;
}

// Same weights, optimiser state, metrics (without times) and rollouts after `steps` updates.
inline void expect_same_bits(const std::filesystem::path& a,
                             const std::filesystem::path& b,
                             int steps) {
  auto metrics = metrics_of(a), others_metrics = metrics_of(b);
  // Beside the updates there may be evaluations of the model as it was given.
  EXPECT_EQ(metrics.size() - metrics.count(0), static_cast<std::size_t>(steps));
  for (auto* rows : {&metrics, &others_metrics}) {
    for (auto& [step, row] : *rows)
      row.erase("async/generators");  // how many there were
  }
  EXPECT_EQ(metrics, others_metrics);
  auto hashes = hashes_of(a / "ckpt" / checkpoint_name(steps));
  auto others = hashes_of(b / "ckpt" / checkpoint_name(steps));
  EXPECT_TRUE(hashes.contains("policy/weights.safetensors"));
  EXPECT_EQ(hashes, others);
  for (int step = 1; step <= steps; ++step) {
    const std::string name = "rollouts/" + checkpoint_name(step) + ".jsonl";
    EXPECT_FALSE(text_of(a / name).empty()) << name;
    EXPECT_EQ(text_of(a / name), text_of(b / name)) << name;
  }
}

}  // namespace troupe::test
