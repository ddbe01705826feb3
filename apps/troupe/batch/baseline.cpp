#include "apps/troupe/batch/baseline.hpp"

#include "runtime/data/default_columns.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::app {
namespace {

using Json = nlohmann::ordered_json;

struct Sums {
  double rewards = 0, rated = 0;
  std::uint64_t samples = 0, rated_samples = 0;
};

}  // namespace

Result<Baseline> read_baseline(const std::filesystem::path& file, const std::string& input_key) {
  std::ifstream in(file);
  if (!in) {
    return fail(ErrorCode::kNotFound, "--against: cannot read " + file.string(),
                "give a file that `eval --out` has written");
  }
  Baseline out;
  std::vector<Sums> sums;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto row = parse::bounded_json<Json>(line, {.numbers = parse::Numbers::kAsWritten});
    const auto usable = [&](const char* key) {
      return row && row->is_object() && row->contains(key) && (*row)[key].is_number();
    };
    const std::string prompt_key =
        row && row->is_object() ? data::prompt_column(*row, input_key) : input_key;
    if (!usable("prompt_id") || !usable("reward") || !row->contains(prompt_key)) {
      return fail(ErrorCode::kData,
                  "--against: " + file.string() + ":" + std::to_string(number) +
                      ": no row with prompt_id, reward and '" + input_key + "'",
                  "give a file that `eval --out` has written from the same data");
    }
    const std::string prompt = parse::written_text((*row)[prompt_key]);
    const auto id = (*row)["prompt_id"].get<std::uint64_t>();
    if (id == sums.size()) {
      sums.emplace_back();
      out.prompts.push_back(prompt);
    } else if (id + 1 != sums.size() || out.prompts.back() != prompt) {
      return fail(ErrorCode::kData, "--against: " + file.string() + ":" + std::to_string(number) +
                                        ": its problems are not in order");
    }
    Sums& sum = sums.back();
    sum.rewards += (*row)["reward"].get<double>();
    ++sum.samples;
    if (usable("reward_model")) {
      sum.rated += (*row)["reward_model"].get<double>();
      ++sum.rated_samples;
    }
  }
  const bool rated =
      std::ranges::all_of(sums, [](const Sums& sum) { return sum.rated_samples == sum.samples; });
  for (const Sums& sum : sums) {
    out.rewards.push_back(sum.rewards / static_cast<double>(sum.samples));
    if (rated) out.rated.push_back(sum.rated / static_cast<double>(sum.samples));
  }
  return out;
}

Result<std::vector<session::EvalFigure>> differences(
    const std::vector<session::EvalProblem>& problems,
    const std::vector<std::string>& prompts,
    const Baseline& baseline,
    int resamples) {
  if (prompts != baseline.prompts) {
    return fail(ErrorCode::kData,
                "--against holds " + std::to_string(baseline.prompts.size()) +
                    " problems that are not the " + std::to_string(prompts.size()) + " of --data",
                "evaluate both models on the same file");
  }
  std::vector<double> rewards, rated;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    rewards.push_back(session::mean_of(problems[i].scores) - baseline.rewards[i]);
    if (!problems[i].rated.empty() && !baseline.rated.empty())
      rated.push_back(session::mean_of(problems[i].rated) - baseline.rated[i]);
  }
  std::vector<session::EvalFigure> out;
  TROUPE_TRY_ASSIGN(difference, learn::bootstrap_mean(rewards, resamples, 1));
  out.push_back({"reward_difference", difference});
  if (!rated.empty() && rated.size() == rewards.size()) {
    TROUPE_TRY_ASSIGN(by_model, learn::bootstrap_mean(rated, resamples, 1));
    out.push_back({"reward_model_difference", by_model});
  }
  return out;
}

}  // namespace troupe::app
