// Runs of `troupe train` on models drawn by seed, and the memory of the process that trains against
// what `troupe plan` says of it.
#pragma once

#include "processes.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/params.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::test {

// A model, a method and settings.
struct DrawnRun {
  model::ModelSpec spec;
  std::string method;
  std::vector<std::string> settings;
  std::int64_t rows = 0;  // of a micro-batch
  bool own_processes = false;
  int ranks = 1;  // of the policy

  std::string text() const {
    std::string all = "train " + method + ", " + std::to_string(spec.layers) + " layers of " +
                      std::to_string(spec.hidden) + ", ffn " + std::to_string(spec.ffn) +
                      ", vocabulary " + std::to_string(spec.vocab) + (spec.tied ? ", tied" : "");
    for (const std::string& word : settings)
      all += " " + word;
    return all;
  }
};

template <class T>
const T& one_of(core::Rng& rng, const std::vector<T>& all) {
  return all[rng.next_below(all.size())];
}

inline DrawnRun draw_run(const std::string& method, std::uint64_t seed) {
  core::Rng rng(seed);
  const std::int64_t heads = one_of<std::int64_t>(rng, {4, 6});
  DrawnRun run;
  run.method = method;
  run.spec = tiny_llama();
  run.spec.layers = one_of<std::int64_t>(rng, {2, 4, 5});
  run.spec.heads = heads;
  run.spec.kv_heads = 2;
  run.spec.head_dim = 64;
  run.spec.hidden = 64 * heads;
  run.spec.ffn = one_of<std::int64_t>(rng, {1024, 1408, 1792});
  run.spec.vocab = one_of<std::int64_t>(rng, {8192, 24576, 32768});
  run.spec.context = 1024;
  run.spec.tied = rng.next_below(2) == 0;
  run.rows = one_of<std::int64_t>(rng, {160, 256, 384});
  const auto with = [&](const std::string& key, const std::string& value) {
    run.settings.push_back("--" + key);
    run.settings.push_back(value);
  };
  with("train.micro_tokens_max", std::to_string(run.rows));
  with("train.threads", one_of<std::string>(rng, {"1", "2"}));
  with("actor.param_dtype", one_of<std::string>(rng, {"f32", "bf16"}));
  with("actor.gradient_checkpointing_enable", rng.next_below(2) == 0 ? "true" : "false");
  if (rng.next_below(3) == 0) with("actor.lora.rank", "8");
  if (rng.next_below(3) == 0) with("train.lanes", "2");
  return run;
}

// Texts, pairs and prompts that fill the micro-batches of a run.
inline void write_rows(const DrawnRun& run, const std::filesystem::path& file) {
  const std::string text(static_cast<std::size_t>(run.rows - 2), 'a');
  const std::string half(static_cast<std::size_t>(run.rows / 2 - 4), 'b');
  std::ofstream out(file);
  for (int i = 0; i < 8; ++i) {
    const std::string input = run.method == "sft" ? half : text;
    out << nlohmann::json({{"input", run.method == "ppo" ? "1+" + std::to_string(i) : input},
                           {"output", half},
                           {"prompt", "x" + std::to_string(i)},
                           {"chosen", half + "c"},
                           {"rejected", half + "d"},
                           {"label", "a"}})
        << '\n';
  }
}

// The words of `troupe train METHOD` and, without the first two, of `troupe plan`.
inline std::vector<std::string> words_of(const DrawnRun& run, const std::filesystem::path& folder) {
  std::vector<std::string> words = {"--actor.model_name_or_path",
                                    (folder / "tiny").string(),
                                    "--run.path",
                                    (folder / "run").string(),
                                    "--train.max_steps",
                                    "2",
                                    "--logger.tensorboard",
                                    "false"};
  words = words + run.settings;
  const std::string rows = (folder / "rows.jsonl").string();
  if (run.method == "ppo") {
    // Groups of one micro-batch: a prompt of a few tokens and four responses.
    const std::int64_t response = (run.rows - 4) / 4;
    words = words + std::vector<std::string>{"--data.prompt_dataset",
                                             rows,
                                             "--data.label_key",
                                             "label",
                                             "--reward.rule",
                                             "regex",
                                             "--reward.rule_pattern",
                                             "[a-m]",
                                             "--data.prompt_max_len",
                                             "16",
                                             "--rollout.max_new_tokens",
                                             std::to_string(response),
                                             "--rollout.batch_size",
                                             "4",
                                             "--rollout.n_samples_per_prompt",
                                             "4",
                                             "--rollout.kv_cache_gb",
                                             "0.005",
                                             "--train.max_steps",
                                             "2"};
    if (!run.own_processes)
      words = words + std::vector<std::string>{"--cluster.transport", "loopback"};
    return words;
  }
  return words + std::vector<std::string>{"--method",           run.method,
                                          "--data.dataset",     rows,
                                          "--data.max_len",     std::to_string(run.rows),
                                          "--train.batch_size", "4"};
}

// A field of /proc/PID/smaps_rollup in bytes; 0 when the process is gone.
inline double smaps_bytes(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) != 0) continue;
    return 1024 * std::stod(line.substr(field.size()));
  }
  return 0;
}

// The process itself, or its child that is named `--name NAME`; 0: none yet.
inline pid_t process_named(pid_t parent, const std::string& name) {
  if (name.empty()) return parent;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task", gone)) {
    std::ifstream in(thread.path() / "children");
    for (pid_t child = 0; in >> child;) {
      std::string words = text_of("/proc/" + std::to_string(child) + "/cmdline");
      std::replace(words.begin(), words.end(), '\0', ' ');
      if (words.find("--name " + name + " ") != words.npos) return child;
    }
  }
  return 0;
}

// What a process alone has of anonymous pages, and what it has of memory that it shares with
// receivers of weights and other ranks.
inline double own_memory(pid_t pid) {
  return smaps_bytes(pid, "Anonymous:") + 1048576 * bench::memory_mb(pid, "RssShmem:");
}

// Most of it that a process had.
inline double most_memory(Background& program, const std::string& name) {
  double most = 0;
  while (!program.wait(0.02)) {
    const pid_t pid = process_named(program.pid(), name);
    if (pid != 0) most = std::max(most, own_memory(pid));
  }
  return most;
}

// Bytes that the plan gives the roles of the process.
inline double planned_memory(const std::vector<std::string>& words, const std::string& role) {
  const ProgramRun plan = run_troupe(std::vector<std::string>{"plan", "--json"} + words);
  EXPECT_EQ(plan.status, 0) << plan.output;
  double bytes = 0;
  for (const auto& one : plan.line.value("roles", nlohmann::json::array())) {
    if (role.empty() || one.value("role", "") == role) bytes += one.value("bytes", 0.0);
  }
  return bytes;
}

// The model and the rows of a run.
inline void write_inputs(const DrawnRun& run, const ScratchFolder& scratch) {
  make_tiny_model(scratch, run.spec,
                  [](model::ParamStore& params) { model::randomise(params, 7, 0.02f); });
  const std::filesystem::path folder = scratch / "";
  write_byte_tokenizer(folder / "tiny");
  write_rows(run, folder / "rows.jsonl");
}

// Runs it and expects the plan to be within a tenth of what was measured.
inline void expect_plan_holds(const DrawnRun& run) {
  const ScratchFolder scratch;
  write_inputs(run, scratch);
  const std::filesystem::path folder = scratch / "";
  const std::vector<std::string> words = words_of(run, folder);
  const std::string role = run.own_processes ? "policy" : "";
  const double planned = planned_memory(words, role);
  Background program =
      start_troupe(std::vector<std::string>{"train", run.method} + words, folder / "log.txt");
  const double most = most_memory(program, role);
  ASSERT_EQ(program.wait(60), 0) << run.text() << "\n" << program.text();
  EXPECT_NEAR(planned / most, 1, 0.1) << run.text();
  std::printf("planned %.1f MB, measured %.1f MB (%.3f): %s\n", planned / 1e6, most / 1e6,
              planned / most, run.text().c_str());
}

}  // namespace troupe::test
