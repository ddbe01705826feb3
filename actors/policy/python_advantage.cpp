#include "actors/policy/python_advantage.hpp"

#include "actors/policy/advantage_worker_source.hpp"
#include "actors/policy/limits.hpp"
#include "actors/reward/worker_process.hpp"
#include "actors/reward/worker_words.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors::policy {
namespace {

using learn::TokenNumbers;
using learn::UpdateArrays;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

constexpr std::pair<const char*, std::vector<double> UpdateArrays::*> kArrays[] = {
    {"scores", &UpdateArrays::scores},
    {"groups", &UpdateArrays::groups},
    {"lengths", &UpdateArrays::lengths},
    {"truncated", &UpdateArrays::truncated},
    {"advantages", &UpdateArrays::advantages},
    {"logprobs", &UpdateArrays::logprobs},
    {"sampled_logprobs", &UpdateArrays::sampled_logprobs},
    {"reference_logprobs", &UpdateArrays::reference_logprobs},
    {"teacher_logprobs", &UpdateArrays::teacher_logprobs},
    {"versions", &UpdateArrays::versions},
    {"values", &UpdateArrays::values},
    {"episodes", &UpdateArrays::episodes},
    {"turns", &UpdateArrays::turns}};

std::vector<double> doubles_of(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

// "token 3 of sample 5 (prompt 1)", all from 0, of the token at `flat`.
std::string place_of(const UpdateArrays& update, std::size_t flat) {
  std::size_t sample = 0;
  while (flat >= static_cast<std::size_t>(update.lengths[sample]))
    flat -= static_cast<std::size_t>(update.lengths[sample++]);
  return "token " + std::to_string(flat) + " of sample " + std::to_string(sample) + " (prompt " +
         std::to_string(static_cast<std::uint64_t>(update.groups[sample])) + ")";
}

class PythonAdvantage final : public learn::AdvantageSource {
 public:
  explicit PythonAdvantage(AdvantageOptions options) : options_(std::move(options)) {}

  Result<void> ensure_loaded() {
    if (worker_.running()) return {};
    TROUPE_TRY(worker_.start({"python3", "-c", kAdvantageWorkerSource, file(), "3"}));
    auto line = worker_.read_line(reward::kWorkerStart);
    if (!line) {
      worker_.kill();
      return core::fail(line.error().within(where()));
    }
    const json ready = reward::first_words(*line);
    if (ready.value("ready", false)) {
      names_ = ready.value("names", std::vector<std::string>());
      takes_all_ = ready.value("all", false);
      return {};
    }
    worker_.kill();
    return reward::refused_file(ready, where(), "");
  }

  // Whether the run has what the function asks for by name.
  Result<void> check_names() const {
    const auto refuse = [&](const std::string& name, const std::string& why,
                            std::string_view advice = {}) {
      return core::fail(ErrorCode::kConfig, where() + " reads " + name + ", and " + why, advice);
    };
    if (takes_all_) return {};
    for (const std::string& name : names_) {
      if (name == "reference_logprobs" && !options_.has_reference)
        return refuse(name, "the run has no reference model", "give --algo.kl.init_coef above 0");
      if (name == "teacher_logprobs" && !options_.has_teacher)
        return refuse(name, "the run has no teacher", "give --teacher.model_name_or_path");
      if (name == "values" && !options_.has_critic)
        return refuse(name, "the run has no critic", "give --algo.advantage.estimator gae");
    }
    return {};
  }

  Result<TokenNumbers> compute(const UpdateArrays& update) override {
    for (std::uint64_t tries = 1;; ++tries) {
      auto numbers = ask(update);
      if (numbers) return numbers;
      worker_.kill();
      const core::Error& error = numbers.error();
      const bool again = error.code == ErrorCode::kClosed || error.code == ErrorCode::kDeadline;
      if (!again) return core::fail(error.within(where()));
      if (tries > limits::kAdvantageRetries_max) {
        const bool late = error.code == ErrorCode::kDeadline;
        // kClosed would say that the policy itself has ended.
        return core::fail(
            late ? error.code : ErrorCode::kResources,
            core::with_fact(where() + ": " + error.message, std::to_string(tries) + " tries"),
            late ? "raise --algo.advantage_deadline_s" : "");
      }
      if (options_.note)
        options_.note(core::with_fact(where() + ": " + error.message, "it is started again"));
    }
  }

 private:
  std::string file() const { return options_.advantage_file.string(); }
  std::string where() const { return "advantage function " + file(); }

  bool takes(std::string_view name) const {
    return name == "lengths" || std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  Result<TokenNumbers> ask(const UpdateArrays& update) {
    TROUPE_TRY(ensure_loaded());
    const auto until =
        core::TimePoint(std::chrono::steady_clock::now()) + options_.advantage_deadline_s;
    const auto left = [&] { return until - core::TimePoint(std::chrono::steady_clock::now()); };
    json request = {{"id", ++next_id_},
                    {"update", update.update},
                    {"seed", options_.seed},
                    {"arrays", json::array()}};
    std::string bytes;
    for (const auto& [name, array] : kArrays) {
      const std::vector<double>& numbers = update.*array;
      if (numbers.empty() || !takes(name)) continue;
      request["arrays"].push_back({name, numbers.size()});
      bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
    }
    TROUPE_TRY(worker_.send_line(request.dump(), left()));
    TROUPE_TRY(worker_.send_bytes(bytes, left()));
    TROUPE_TRY_ASSIGN(line, worker_.read_line(left()));
    const json reply = json::parse(line, nullptr, false);
    if (!reply.is_object() || reply.value("id", std::uint64_t{0}) != next_id_)
      return core::fail(ErrorCode::kData, "the worker's reply does not answer its request");
    if (reply.contains("error")) {
      return core::fail(ErrorCode::kData,
                        "raised:" + core::foreign(reply["error"].get<std::string>()));
    }
    const std::size_t tokens = update.advantages.size();
    TokenNumbers result{update.advantages, std::vector<double>(tokens, 1.0)};
    for (const json& name : reply.value("arrays", json::array())) {
      TROUPE_TRY_ASSIGN(answer, worker_.read_bytes(tokens * sizeof(double), left()));
      (name == "weights" ? result.weights : result.advantages) = doubles_of(answer);
    }
    constexpr double kMost = limits::kAdvantage_max;
    TROUPE_TRY(check_numbers(update, "advantage", result.advantages, -kMost));
    TROUPE_TRY(check_numbers(update, "weight", result.weights, 0));
    return result;
  }

  static Result<void> check_numbers(const UpdateArrays& update,
                                    const char* what,
                                    const std::vector<double>& numbers,
                                    double least) {
    for (std::size_t t = 0; t < numbers.size(); ++t) {
      // A NaN compares as false.
      if (numbers[t] >= least && numbers[t] <= double{limits::kAdvantage_max}) continue;
      return core::fail(ErrorCode::kData,
                        std::string("the ") + what + " of " + place_of(update, t) +
                            core::printed(" is %g; it must be a number from %g to %g", numbers[t],
                                          least, double{limits::kAdvantage_max}));
    }
    return {};
  }

  const AdvantageOptions options_;
  reward::WorkerProcess worker_{"advantage worker"};
  std::vector<std::string> names_;  // of the arguments that the function takes
  bool takes_all_ = false;          // **kwargs: it is given what there is
  std::uint64_t next_id_ = 0;
};

}  // namespace

Result<std::shared_ptr<learn::AdvantageSource>> make_python_advantage(AdvantageOptions options) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.advantage_file, error)) {
    return core::fail(ErrorCode::kConfig,
                      "algo.advantage_file: there is no file " + options.advantage_file.string());
  }
  auto source = std::make_shared<PythonAdvantage>(std::move(options));
  if (auto loaded = source->ensure_loaded(); !loaded)
    return core::fail(ErrorCode::kConfig, "algo.advantage_file: " + loaded.error().message);
  if (auto known = source->check_names(); !known)
    return core::fail(ErrorCode::kConfig, "algo.advantage_file: " + known.error().message);
  return std::shared_ptr<learn::AdvantageSource>(std::move(source));
}

}  // namespace troupe::actors::policy
