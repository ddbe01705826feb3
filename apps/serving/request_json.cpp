#include "apps/serving/request_json.hpp"

#include "runtime/engine/request_check.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"

#include <utility>
#include <vector>

namespace troupe::app {

using nlohmann::json;

namespace {

class Watch final : public parse::JsonWatch {
 public:
  explicit Watch(const ServeBounds& bounds) : bounds_(bounds) {}

  void key(std::size_t depth, const std::string& name) override {
    if (depth == 1) field_ = name.substr(0, 64);
  }

  // One value more in the list or object at hand.
  bool value(std::size_t depth, bool is_number) override {
    counts_.resize(depth);  // those deeper have been closed since
    if (depth == 0) return true;
    const std::size_t now = ++counts_.back();
    const bool ids = is_number && ((field_ == "prompt" && (depth == 2 || depth == 3)) ||
                                   (field_ == "tokens" && depth == 2));
    if (ids) return now <= bounds_.tokens_max || too_many_ids();
    if (depth == 2) {
      if (field_ == "logit_bias" && now > engine::kLogitBias_max) {
        return too_many(engine::kLogitBias_max, "entries");
      }
      if (field_ == "stop" && now > engine::kStopStrings_max) {
        return too_many(engine::kStopStrings_max, "strings");
      }
      if (field_ == "stop_token_ids" && now > engine::kStopTokens_max) {
        return too_many(engine::kStopTokens_max, "tokens");
      }
      const auto prompts = static_cast<std::size_t>(bounds_.prompts_max);
      if (field_ == "prompt" && now > prompts) return too_many(prompts, "prompts");
    }
    if (++values_ <= bounds_.values_max) return true;
    return refuse("the JSON has more than " + std::to_string(bounds_.values_max) +
                  " values, token ids of prompts not counted");
  }

  const std::optional<ApiError>& error() const { return error_; }

 private:
  bool refuse(std::string message) {
    error_.emplace();
    error_->param = field_;
    error_->message = std::move(message);
    return false;
  }
  bool too_many(std::size_t most, const char* what) {
    return refuse("'" + field_ + "' holds more than the " + std::to_string(most) + " " + what +
                  " that are taken");
  }
  bool too_many_ids() {
    refuse("'" + field_ + "' holds a list of more than " + std::to_string(bounds_.tokens_max) +
           " token ids, the most that are taken");
    if (field_ == "prompt") error_->code = "context_length_exceeded";
    return false;
  }

  const ServeBounds& bounds_;
  std::vector<std::size_t> counts_;  // of the open lists and objects
  std::string field_;                // of the body's own
  std::size_t values_ = 0;
  std::optional<ApiError> error_;
};

}  // namespace

std::variant<json, ApiError> read_object(const std::string& body, const ServeBounds& bounds) {
  Watch watch(bounds);
  auto value = parse::bounded_json<json>(
      body, {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max), .watch = &watch});
  if (watch.error()) return *watch.error();
  if (value && value->is_object()) return std::move(*value);
  ApiError error;
  error.message = value ? "the body is no JSON object" : "the body " + value.error().message;
  return error;
}

}  // namespace troupe::app
