#include "apps/session/truth_alarm.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>

namespace troupe::session {
namespace {

double mean_of_values(const std::map<std::uint64_t, double>& means) {
  double sum = 0;
  for (const auto& [problem, mean] : means)
    sum += mean;
  return sum / static_cast<double>(means.size());
}

}  // namespace

std::string TruthAlarm::Alarm::text() const {
  char line[400];
  std::snprintf(
      line, sizeof line,
      "alarm: the training reward rose from %.4g to %.4g since update %llu while held-out "
      "%s fell from %.4g to %.4g (change %+.4g, 95 %% interval [%+.4g, %+.4g]): the policy "
      "pleases its reward and gets worse",
      reward_before, reward_now, static_cast<unsigned long long>(since),
      set.empty() ? "problems" : set.c_str(), truth_before, truth_now, fall.mean, fall.low,
      fall.high);
  return line;
}

void TruthAlarm::on_reward(double mean) {
  if (rewards_ == 0) {
    // The untrained policy sampled the first update.
    for (auto& [set, best] : best_)
      if (!best.reward) best.reward = mean;
  }
  reward_sum_ += mean;
  ++rewards_;
}

std::optional<TruthAlarm::Alarm> TruthAlarm::compared(const std::string& set,
                                                      const Best& best,
                                                      const Means& now) const {
  constexpr int kResamples = 1000;
  constexpr std::size_t kProblems_min = 10;  // of fewer, a bootstrap interval is too narrow
  const double reward = reward_sum_ / static_cast<double>(rewards_);
  if (!best.reward || reward <= *best.reward) return std::nullopt;
  std::vector<double> before, after;
  for (const auto& [problem, mean] : best.means) {
    const auto found = now.find(problem);
    if (found == now.end()) continue;  // it has no score now
    before.push_back(mean);
    after.push_back(found->second);
  }
  if (before.size() < kProblems_min) return std::nullopt;
  const auto fall = learn::paired_bootstrap(before, after, kResamples, 1);
  if (!fall || fall->high >= 0) return std::nullopt;
  return Alarm{set, best.done, *best.reward, reward, best.truth, mean_of_values(now), *fall};
}

std::vector<TruthAlarm::Alarm> TruthAlarm::on_evaluation(std::uint64_t done,
                                                         const std::vector<EvalProblem>& problems) {
  std::map<std::string, Means> sets;
  for (const EvalProblem& problem : problems)
    sets[problem.set][problem.id] = mean_of(problem.scores);
  std::vector<Alarm> alarms;
  for (auto& [set, means] : sets) {
    const auto best = best_.find(set);
    if (best != best_.end() && rewards_ > 0) {
      if (auto alarm = compared(set, best->second, means)) alarms.push_back(std::move(*alarm));
    }
    const double truth = mean_of_values(means);
    if (best != best_.end() && truth <= best->second.truth) continue;
    Best& now = best_[set];
    now = {done, std::nullopt, truth, std::move(means)};
    if (rewards_ > 0) now.reward = reward_sum_ / static_cast<double>(rewards_);
  }
  reward_sum_ = 0;
  rewards_ = 0;
  return alarms;
}

void TruthAlarm::restore(const store::RunFolder& folder) {
  std::ifstream in(folder.metrics_file());
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    if (const auto mean = row.find("reward/mean"); mean != row.end() && mean->is_number())
      on_reward(mean->get<double>());
    const auto step = row.find("step");
    const bool sampled = row.contains("alarm/reward_up_truth_down");
    if (!sampled || step == row.end() || !step->is_number_unsigned()) continue;
    const auto done = step->get<std::uint64_t>();
    if (const auto problems = read_problems(folder.eval_file(done), {}))
      static_cast<void>(on_evaluation(done, *problems));
  }
}

}  // namespace troupe::session
