#include "apps/session/run_summary.hpp"

#include "apps/session/activity_words.hpp"
#include "apps/session/eval_figures.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/silence_watch.hpp"
#include "apps/session/status_text.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/learn/evaluation.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/store/run_start.hpp"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace troupe::session {
namespace {

using nlohmann::ordered_json;

constexpr int kResamples = 10'000;

void print_row(const char* name,
               const std::vector<double>& before,
               const std::vector<double>& after) {
  const auto interval = learn::paired_bootstrap(before, after, kResamples, 1);
  if (!interval) return;
  std::printf("  %-22s %8.3f %8.3f %+9.3f   [%+.3f, %+.3f]\n", name, mean_of(before),
              mean_of(after), interval->mean, interval->low, interval->high);
}

void print_evaluations(const store::RunFolder& folder, std::uint64_t updates) {
  const auto before = read_problem_means(folder.eval_file(0));
  const auto after = read_problem_means(folder.eval_file(updates));
  if (!before || !after) return;
  for (const auto& [set, first] : *before) {
    const auto last = after->find(set);
    if (last == after->end() || first.sampled.size() != last->second.sampled.size()) continue;
    const std::string of = set.empty() ? "" : set + ", ";
    std::printf("\nheld-out reward, %s%zu problems %17s %8s %9s   %s\n", of.c_str(),
                first.sampled.size(), "before", "after", "change",
                "95 % interval (paired bootstrap)");
    print_row("sampled", first.sampled, last->second.sampled);
    print_row("greedy", first.greedy, last->second.greedy);
  }
}

std::vector<ordered_json> metric_rows(const store::RunFolder& folder) {
  std::vector<ordered_json> rows;
  std::ifstream in(folder.metrics_file());
  for (std::string line; std::getline(in, line);) {
    auto row = ordered_json::parse(line, nullptr, false);
    if (row.is_object()) rows.push_back(std::move(row));
  }
  return rows;
}

// The sum of a metric that counts something per update, over all updates.
unsigned long long sum_of_metric(const store::RunFolder& folder, const char* name) {
  double sum = 0;
  for (const ordered_json& row : metric_rows(folder))
    sum += row.value(name, 0.0);
  return static_cast<unsigned long long>(sum);
}

// For asynchronous runs: how much work overlapped and how old the tokens were. `staleness`: trained
// tokens by age in updates.
void print_overlap(const store::RunFolder& folder,
                   const nlohmann::json& status,
                   const std::vector<unsigned long long>& staleness) {
  const double wall = status.value("watched_s", 0.0), both = status.value("busy_together_s", 0.0);
  std::printf("\ngenerators and policy busy at once %12.1f s of %.1f s (%.0f %%)\n", both, wall,
              100 * both / std::max(wall, 1e-9));
  const auto tokens = std::accumulate(staleness.begin(), staleness.end(), 0ull);
  std::printf("trained tokens by age in updates  ");
  for (std::size_t age = 0; age < staleness.size(); ++age) {
    std::printf(
        "  %zu: %llu (%.0f %%)", age, staleness[age],
        100.0 * static_cast<double>(staleness[age]) / static_cast<double>(std::max(tokens, 1ull)));
  }
  std::printf("\nsequences across a new version    %llu\n", sum_of_metric(folder, "async/crossed"));
}

// Prints how the roles spent their time, from the status.json that a run over several processes
// leaves. Prints nothing without that file.
void print_company(const store::RunFolder& folder) {
  std::ifstream in(folder.path() / "status.json");
  const auto status = nlohmann::json::parse(in, nullptr, false);
  if (!status.is_object() || !status.contains("run")) return;
  const auto staleness = status["run"].value("staleness_tokens", std::vector<unsigned long long>{});
  if (staleness.size() > 1) print_overlap(folder, status, staleness);
  std::printf("\n");
  for (const auto& role : status["roles"]) {
    const RoleShares shares = shares_of(role);
    std::printf("  %-22s busy %3.0f %%; %s %.0f %%\n", role.value("name", "").c_str(),
                100 * shares.busy, shares.idle_cause.c_str(), 100 * shares.idle);
  }
}

// Peak memory of this process or of its largest child, whichever is more, in GB.
double peak_gb() {
  rusage own{}, children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  return static_cast<double>(std::max(own.ru_maxrss, children.ru_maxrss)) / 1e6;
}

// What to do with a model of this kind.
std::string next_command(const std::string& run, const config::TrainConfig& config, bool chats) {
  const bool supervised = (config.method & config::kSupervised) != 0;
  if (supervised && supervised_method(config).scores)
    return "troupe score --model " + run + " --data ROWS.jsonl --out SCORED.jsonl";
  if (supervised && supervised_method(config).steps())
    return "troupe score --process-model " + run + " --data ROWS.jsonl --out SCORED.jsonl";
  return "troupe generate --model " + run + (chats ? " --chat" : "") + " --prompt 'TEXT'";
}

// A run folder stands for its newest model in every command.
void print_model(const store::RunFolder& folder, const config::TrainConfig& config, bool chats) {
  const auto found = model::resolve_model(folder.path().string());
  if (!found || *found == folder.path()) return;
  std::printf("model %s; use it with: %s\n", found->c_str(),
              next_command(core::shell_word(folder.path().string()), config, chats).c_str());
}

}  // namespace

void print_summary(const config::TrainConfig& config,
                   const store::RunFolder& folder,
                   std::uint64_t updates,
                   double load_s,
                   const std::vector<std::pair<std::string, double>>& phases,
                   bool chats) {
  print_evaluations(folder, updates);
  double total = load_s;
  for (const auto& [name, seconds] : phases)
    total += seconds;
  std::printf("\nwall time of the run by phase %13s %8s\n", "seconds", "share");
  std::printf("  %-22s %16.1f %7.1f%%\n", "load", load_s, 100 * load_s / total);
  for (const auto& [name, seconds] : phases) {
    std::printf("  %-22s %16.1f %7.1f%%\n", phase_name(name).c_str(), seconds,
                100 * seconds / total);
  }
  std::printf("  %-22s %16.1f\n", "all", total);
  print_company(folder);
  if (const auto missing = sum_of_metric(folder, "reward/missing"); missing > 0) {
    std::printf("\nsamples without a score           %llu (metric reward/missing; causes in %s)\n",
                missing, folder.log_file().c_str());
  }
  SilenceWatch silence(samples_of_update(config));
  silence.restore(folder);
  for (const std::string& line : silence.summary())
    std::printf("\n%s\n", line.c_str());
  std::printf("\npeak memory of one process %.2f GB; run folder %s\n", peak_gb(),
              folder.path().c_str());
  print_model(folder, config, chats);
}

void print_held_out(const store::RunFolder& folder, std::uint64_t steps) {
  ordered_json first, last;
  for (const ordered_json& row : metric_rows(folder)) {
    if (!row.contains("eval/loss")) continue;
    const auto step = row.value("step", std::uint64_t{0});
    if (step == 0) first = row;
    if (step == steps) last = row;
  }
  if (first.is_null() || last.is_null()) return;
  std::printf("\nheld-out rows %26s %10s %10s\n", "before", "after", "change");
  for (const auto& [name, value] : last.items()) {
    if (!name.starts_with("eval/") || !value.is_number() || !first.contains(name) ||
        !first[name].is_number()) {
      continue;
    }
    const double before = first[name].get<double>(), after = value.get<double>();
    std::printf("  %-27s %10.4f %10.4f %+10.4f\n", name.c_str() + 5, before, after, after - before);
  }
}

core::Result<void> say_finished(const config::TrainConfig& config,
                                const store::Checkpoint& newest,
                                std::uint64_t asked,
                                const std::string& unit) {
  const std::string done = std::to_string(newest.step), all = std::to_string(asked);
  if (newest.step > asked) {
    return core::fail(core::ErrorCode::kConfig,
                      "the run was asked for " + all + " " + unit + " and has done " + done + " (" +
                          newest.folder.string() + ")",
                      "raise --train.max_steps to go on");
  }
  const std::string longer =
      may_grow(config)
          ? "a larger --train.max_steps goes on from there"
          : "a longer run has another learning rate, so it is another run: the same command with a "
            "larger --train.max_steps and " +
                store::branch_flags(newest.folder, config.run.path) + " goes on from there";
  std::printf("already finished: %s of %s %s (%s); %s\n", done.c_str(), all.c_str(), unit.c_str(),
              newest.folder.c_str(), longer.c_str());
  return {};
}

}  // namespace troupe::session
