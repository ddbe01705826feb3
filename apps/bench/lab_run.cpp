#include "apps/bench/lab_run.hpp"

#include "apps/cli/byte_tokenizer.hpp"
#include "apps/cli/random_model.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <signal.h>

#include <algorithm>
#include <fstream>

namespace troupe::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kShown_bytes_max = 2000;

json part_named(const json& list, const std::string& name) {
  for (const json& part : list) {
    if (part.value("name", "") == name) return part;
  }
  return json::object();
}

core::Result<void> write_model(const LabShape& shape, const std::filesystem::path& folder) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = shape.layers;
  spec.hidden = shape.hidden;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.head_dim = shape.hidden / shape.heads;
  spec.ffn = shape.ffn;
  spec.vocab = cli::kByteTokenizer_end + 1;
  spec.context = shape.context;
  spec.eos = {static_cast<int>(cli::kByteTokenizer_end)};
  return cli::write_random_model(spec, 7, 0.2f, model::StorageDtype::kF32, folder);
}

std::string additions() {
  std::string lines;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      const json row = {{"prompt", std::to_string(a) + "+" + std::to_string(b) + "="},
                        {"answer", std::to_string(a + b)}};
      lines += row.dump() + "\n";
    }
  }
  return lines;
}

}  // namespace

core::Result<LabFiles> LabFiles::make(const LabShape& shape, const std::string& keep) {
  LabFiles files;
  if (keep.empty()) {
    TROUPE_TRY_ASSIGN(temporary, TemporaryFolder::make("troupe-bench"));
    files.folder_ = files.temporary_.emplace(std::move(temporary)).path();
  } else {
    TROUPE_TRY(store::make_folder(keep));
    files.folder_ = std::filesystem::absolute(keep);
  }
  TROUPE_TRY(write_model(shape, files / "model"));
  TROUPE_TRY(store::write_file(files / "train.jsonl", additions()));
  TROUPE_TRY(store::write_file(files / "run.yaml",
                               "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
                               "reward: {rule: regex, rule_pattern: \"[A-Za-z]{2}\"}\n"
                               "actor: {adam: {lr: 1e-4}}\n"
                               "algo: {kl: {init_coef: 0}}\n"
                               "train: {seed: 5, max_steps: 1000000}\n"));
  return files;
}

core::Result<LabRun> LabRun::start(const LabFiles& files,
                                   const LabSizes& sizes,
                                   const std::vector<std::string>& more,
                                   double limit_s) {
  std::vector<std::string> words = {
      "train",
      "ppo",
      files / "run.yaml",
      "--run.path=" + files.run(),
      "--actor.model_name_or_path=" + files / "model",
      "--data.prompt_dataset=" + files / "train.jsonl",
      "--train.staleness_max=" + std::to_string(sizes.staleness_max),
      "--rollout.batch_size=" + std::to_string(sizes.groups),
      "--rollout.n_samples_per_prompt=" + std::to_string(sizes.samples),
      "--rollout.max_new_tokens=" + std::to_string(sizes.new_tokens)};
  words.insert(words.end(), more.begin(), more.end());
  TROUPE_TRY_ASSIGN(process, LoggedProcess::start("", std::move(words), files / "run.log"));
  return LabRun(files, std::move(process), limit_s);
}

std::uint64_t LabRun::updates() const {
  std::ifstream in(files_->run() + "/metrics.jsonl", std::ios::binary);
  return static_cast<std::uint64_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

core::Result<void> LabRun::reach(std::uint64_t updates) {
  bool ended = false;
  const bool there = holds_within(limit_s_, [&] {
    ended = !process_.running();
    return ended || this->updates() >= updates;
  });
  if (there && this->updates() >= updates) return {};
  return trouble(ended ? "ended before update " + std::to_string(updates)
                       : "did not reach update " + std::to_string(updates) + " within " +
                             std::to_string(limit_s_) + " s");
}

core::Result<json> LabRun::status() const {
  TROUPE_TRY_ASSIGN(text, run_command_logged({"status", "--join", files_->run(), "--json"},
                                             *files_ / "status.log", limit_s_));
  json status = json::parse(text, nullptr, false);
  if (status.is_object()) return status;
  return core::fail(core::ErrorCode::kData, "troupe status --json printed no JSON: " + text);
}

core::Result<void> LabRun::interrupt() {
  process_.signal(SIGINT);
  const auto status = process_.wait(limit_s_);
  if (status == 130 || status == 0) return {};
  return trouble(status ? "ended with status " + std::to_string(*status) + " when interrupted"
                        : "did not end within " + std::to_string(limit_s_) + " s of an interrupt");
}

core::Failure LabRun::trouble(const std::string& what) const {
  std::string text = process_.output();
  if (text.size() > kShown_bytes_max) text.erase(0, text.size() - kShown_bytes_max);
  return core::fail(core::ErrorCode::kPeerLost, "the run " + what, "it printed:\n" + text);
}

std::vector<double> LabRun::metric(const std::string& name, std::uint64_t first) const {
  std::vector<double> values;
  std::ifstream in(files_->run() + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains(name)) continue;
    if (row.value("step", std::uint64_t{0}) >= first) values.push_back(row[name].get<double>());
  }
  return values;
}

double RoleTimes::idle_share() const {
  double sum = 0;
  for (const auto& [cause, seconds] : idle_s)
    sum += seconds;
  return sum / std::max(wall_s, 1e-9);
}

RoleTimes role_times(const json& before, const json& after, const std::string& role) {
  const json a = part_named(before.value("roles", json::array()), role);
  const json b = part_named(after.value("roles", json::array()), role);
  const json idle_before = a.value("idle_s", json::object());
  const json idle_after = b.value("idle_s", json::object());
  RoleTimes times;
  times.wall_s = b.value("wall_s", 0.0) - a.value("wall_s", 0.0);
  times.busy_s = b.value("busy_s", 0.0) - a.value("busy_s", 0.0);
  for (const auto& [cause, seconds] : idle_after.items())
    times.idle_s[cause] = seconds.get<double>() - idle_before.value(cause, 0.0);
  return times;
}

pid_t pid_of_role(const json& status, const std::string& role) {
  // "cast" lists every role from the start; "roles" only those that have reported, half a second
  // later.
  const json part = part_named(status.value("cast", json::array()), role);
  const json node = part_named(status.value("nodes", json::array()), part.value("node", ""));
  return node.value("pid", 0);
}

}  // namespace troupe::bench
