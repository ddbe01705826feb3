// A builder on nlohmann's events: a stack of open lists and objects, each with its count.
#include "apps/serving/request_json.hpp"

#include "runtime/engine/request_check.hpp"
#include "runtime/parse/limits.hpp"

#include <utility>
#include <vector>

namespace troupe::app {

using nlohmann::json;

namespace {

class Builder final : public nlohmann::json_sax<json> {
 public:
  explicit Builder(const ServeBounds& bounds) : bounds_(bounds) {}

  bool null() override { return put(json(), false); }
  bool boolean(bool value) override { return put(value, false); }
  bool number_integer(number_integer_t value) override { return put(value, true); }
  bool number_unsigned(number_unsigned_t value) override { return put(value, true); }
  bool number_float(number_float_t value, const string_t&) override { return put(value, true); }
  bool string(string_t& value) override { return put(std::move(value), false); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.size() == 1) field_ = name.substr(0, 64);
    slot_ = &(*open_.back().value)[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return refuse("", "the body is no JSON");
  }

  bool done() const { return !error_; }
  ApiError error() const { return *error_; }
  json take() { return std::move(root_); }

 private:
  struct Open {
    json* value;
    std::size_t count = 0;
  };

  bool refuse(const std::string& param, std::string message) {
    if (error_) return false;
    error_.emplace();
    error_->param = param;
    error_->message = std::move(message);
    return false;
  }

  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  bool put(json value, bool is_number) {
    if (!count(is_number)) return false;
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    if (open_.size() >= parse::limits::kJsonDepth_max) {
      return refuse(
          "", "the JSON is nested deeper than " + std::to_string(parse::limits::kJsonDepth_max));
    }
    if (!count(false)) return false;
    open_.push_back({place(std::move(value))});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  // One value more in the list or object at hand.
  bool count(bool is_number) {
    if (open_.empty()) return true;
    const std::size_t now = ++open_.back().count;
    const std::size_t depth = open_.size();
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
    return refuse(field_, "the JSON has more than " + std::to_string(bounds_.values_max) +
                              " values, token ids of prompts not counted");
  }
  bool too_many(std::size_t most, const char* what) {
    return refuse(field_, "'" + field_ + "' holds more than the " + std::to_string(most) + " " +
                              what + " that are taken");
  }
  bool too_many_ids() {
    refuse(field_, "'" + field_ + "' holds a list of more than " +
                       std::to_string(bounds_.tokens_max) + " token ids, the most that are taken");
    if (field_ == "prompt") error_->code = "context_length_exceeded";
    return false;
  }

  const ServeBounds& bounds_;
  json root_;
  json* slot_ = nullptr;  // of the key that was read last
  std::vector<Open> open_;
  std::string field_;  // of the body's own
  std::size_t values_ = 0;
  std::optional<ApiError> error_;
};

}  // namespace

std::variant<json, ApiError> read_object(const std::string& body, const ServeBounds& bounds) {
  Builder builder(bounds);
  json::sax_parse(body, &builder);
  if (!builder.done()) return builder.error();
  json value = builder.take();
  if (value.is_object()) return value;
  ApiError error;
  error.message = "the body is no JSON object";
  return error;
}

}  // namespace troupe::app
