// Reads eval/step_N.jsonl.
#include "apps/troupe/train/evaluations.hpp"

#include <fstream>
#include <numeric>
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::app {
namespace {

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Evaluation::sampled_mean() const { return mean_of(sampled); }
double Evaluation::greedy_mean() const { return mean_of(greedy); }

core::Result<Evaluation> read_evaluation(const std::filesystem::path& file, std::uint64_t step) {
  std::ifstream in(file);
  if (!in) return core::fail(core::ErrorCode::kData, "no evaluation at " + file.string());
  Evaluation evaluation;
  evaluation.step = step;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("rewards") || !object["rewards"].is_array()) {
      return core::fail(core::ErrorCode::kData, file.string() + ":" + std::to_string(number) +
                                                    ": not a line of an evaluation");
    }
    std::vector<double> rewards;
    for (const auto& reward : object["rewards"]) rewards.push_back(reward.get<double>());
    auto& place = object.value("mode", "") == "greedy" ? evaluation.greedy : evaluation.sampled;
    place.push_back(mean_of(rewards));
  }
  return evaluation;
}

}  // namespace troupe::app
