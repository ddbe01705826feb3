#include "runtime/dialects/tools/tool_reader.hpp"

#include "runtime/dialects/json_text.hpp"
#include "runtime/dialects/limits.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"
#include "runtime/text/messages.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::dialects {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kPythonTag = "<|python_tag|>", kClose = "</tool_call>";
constexpr std::size_t kName_bytes_max = 512;

std::string_view mark_of(ToolFormat format) {
  return format == ToolFormat::kHermes ? "<tool_call>" : "[TOOL_CALLS]";
}

// Length of the longest end of `text` with which `mark` begins.
std::size_t begun(std::string_view text, std::string_view mark) {
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

// Arguments are an object, or a text that holds one; a call may have none.
std::optional<ToolCall> call_of(const Json& object) {
  if (!object.is_object() || !object.contains("name") || !object["name"].is_string())
    return std::nullopt;
  ToolCall call{object["name"].get<std::string>(), "{}"};
  for (const char* key : {"arguments", "parameters"}) {
    if (!object.contains(key)) continue;
    const Json& given = object[key];
    const bool nothing = given.is_null() || given == Json("");
    if (nothing || !text::arguments_of(given)) return std::nullopt;
    call.arguments = given.is_string() ? given.get<std::string>() : json_text(given);
    break;
  }
  if (call.name.empty()) return std::nullopt;
  return call;
}

}  // namespace

ToolText ToolReader::push(std::string_view text) {
  held_ += text;
  while (step(false)) {
  }
  return std::exchange(out_, {});
}

ToolText ToolReader::finish(std::string_view last) {
  held_ += last;
  while (step(true)) {
  }
  return std::exchange(out_, {});
}

bool ToolReader::step(bool at_end) {
  switch (place_) {
    case Place::kText:
      if (format_ == ToolFormat::kHermes || format_ == ToolFormat::kMistral)
        return find_mark(at_end);
      return skip_start_tag(at_end) && find_line();
    case Place::kOpened:
      return enter_value(at_end);
    case Place::kValue:
      return read_value(at_end);
    case Place::kClosing:
      return close(at_end);
  }
  return false;
}

std::size_t ToolReader::leading(std::string_view characters) const {
  return std::min(held_.find_first_not_of(characters), held_.size());
}

void ToolReader::give(std::size_t bytes) {
  std::string_view piece = std::string_view(held_).substr(0, bytes);
  const std::size_t space = std::min(piece.find_first_not_of(kSpace), piece.size());
  const bool blank = space == piece.size();
  if (after_call_) piece.remove_prefix(space);  // no content
  out_.content += piece;
  begun_ = begun_ || !blank;
  after_call_ = after_call_ && blank;
  drop(bytes);
}

void ToolReader::give_up() {
  out_.content += std::exchange(opened_, {});
  begun_ = true;
  after_call_ = false;
  name_.clear();
  place_ = Place::kText;
}

bool ToolReader::find_mark(bool at_end) {
  const std::string_view mark = mark_of(format_);
  const std::size_t at = held_.find(mark);
  if (at == held_.npos) {
    give(held_.size() - (at_end ? 0 : begun(held_, mark)));
    return false;
  }
  give(at);
  drop(mark.size());
  opened_ = mark;
  place_ = Place::kOpened;
  return true;
}

// Drops the tag with which a response of kLlama3 may begin; false while it is not known.
bool ToolReader::skip_start_tag(bool at_end) {
  if (format_ != ToolFormat::kLlama3 || begun_ || calls_ > 0) return true;
  const std::size_t space = leading(kSpace);
  const std::string_view rest = std::string_view(held_).substr(space);
  if (rest.starts_with(kPythonTag)) {
    drop(space + kPythonTag.size());
    return true;
  }
  return at_end || rest.empty() || !kPythonTag.starts_with(rest);
}

// Looks for a `{` that begins a line; in kLlama3 it must begin the response or follow a call.
bool ToolReader::find_line() {
  if (after_call_) {
    const std::size_t between = leading(" \t\r\n;,");
    at_line_ = at_line_ || between > 0;
    drop(between);
  }
  bool line = at_line_;
  bool first = after_call_ || (!begun_ && calls_ == 0);  // no text precedes it
  std::size_t at = 0;
  for (; at < held_.size(); ++at) {
    const char c = held_[at];
    if (c == '{' && line && (first || format_ == ToolFormat::kJson)) break;
    const bool space = kSpace.find(c) != kSpace.npos;
    line = c == '\n' || (line && space);
    first = first && space;
  }
  const bool found = at < held_.size();
  give(at);
  at_line_ = line;
  if (found) place_ = Place::kValue;
  return found;
}

bool ToolReader::enter_value(bool at_end) {
  const std::size_t space = leading(kSpace);
  opened_ += held_.substr(0, space);
  drop(space);
  if (held_.empty()) {
    if (at_end) give_up();
    return false;
  }
  const bool list = held_[0] == '[' && format_ == ToolFormat::kMistral;
  if (held_[0] != '{' && !list) {
    if (format_ == ToolFormat::kHermes) {
      give_up();
      return true;
    }
    const std::size_t brace = held_.find('{');
    if (brace == held_.npos && held_.size() < kName_bytes_max && !at_end) return false;
    if (brace == held_.npos || brace > kName_bytes_max) {
      give_up();
      return true;
    }
    name_ = held_.substr(0, std::min(held_.find('['), brace));  // of [ARGS]
    name_.erase(std::min(name_.find_last_not_of(kSpace) + 1, name_.size()));
    opened_ += held_.substr(0, brace);
    drop(brace);
  }
  place_ = Place::kValue;
  return true;
}

bool ToolReader::read_value(bool at_end) {
  scanned_ += end_.push(std::string_view(held_).substr(scanned_));
  if (!end_.found() && !at_end) return false;
  const std::string value = held_.substr(0, scanned_);
  const bool called = end_.found() && add_calls(value);
  drop(scanned_);
  scanned_ = 0;
  end_ = {};
  at_line_ = false;
  if (!called) {
    opened_ += value;
    give_up();
    return true;
  }
  opened_.clear();
  name_.clear();
  after_call_ = true;
  place_ = format_ == ToolFormat::kHermes ? Place::kClosing : Place::kText;
  return true;
}

bool ToolReader::close(bool at_end) {
  drop(leading(kSpace));
  if (held_.starts_with(kClose)) {
    drop(kClose.size());
  } else if (kClose.starts_with(held_) && !at_end) {
    return false;
  }
  place_ = Place::kText;
  return true;
}

bool ToolReader::add_calls(std::string_view text) {
  const auto value =
      parse::bounded_json<Json>(text, {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max),
                                       .numbers = parse::Numbers::kAsWritten});
  if (!value) return false;
  std::vector<ToolCall> calls;
  if (!name_.empty()) {
    if (!value->is_object()) return false;
    calls.push_back({name_, std::string(text)});
  } else {
    for (const Json& one : value->is_array() ? *value : Json::array({*value})) {
      auto call = call_of(one);
      if (!call || (format_ == ToolFormat::kJson && !names_.contains(call->name))) return false;
      calls.push_back(std::move(*call));
    }
  }
  if (calls_ + calls.size() > limits::kToolCalls_max) return false;
  calls_ += calls.size();
  out_.places.insert(out_.places.end(), calls.size(), out_.content.size());
  out_.calls.insert(out_.calls.end(), std::make_move_iterator(calls.begin()),
                    std::make_move_iterator(calls.end()));
  return true;
}

}  // namespace troupe::dialects
