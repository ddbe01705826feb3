// Finds calls of tools in the text of one response while it arrives. Text that may still become a
// call is held back; what turns out to be none comes out unchanged, so that nothing of a response
// but the marks around calls and the spaces behind them is lost. Owned by one choice of an answer,
// on its request's strand. Bound: kToolCalls_max; later calls are text.
#pragma once

#include "runtime/dialects/tools/json_end.hpp"
#include "runtime/dialects/tools/tool_format.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::dialects {

struct ToolCall {
  std::string name;
  std::string arguments;  // the text of a JSON object
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

// Text and tool calls parsed from one chunk.
struct ToolText {
  std::string content;
  std::vector<ToolCall> calls;
  std::vector<std::size_t> places;  // by call: how many bytes of `content` precede it
};

class ToolReader {
 public:
  // `names`: the tools that there are. Only kJson asks whether a call's name is among them.
  ToolReader(ToolFormat format, std::set<std::string> names)
      : format_(format), names_(std::move(names)) {}

  ToolText push(std::string_view text);
  ToolText finish(std::string_view last = {});  // the rest; no text follows

 private:
  // Within text, behind a mark that opens a call, within the JSON of one, or where the mark that
  // closes it is expected.
  enum class Place { kText, kOpened, kValue, kClosing };

  // Goes one place further through held_; false if that needs more text.
  bool step(bool at_end);
  bool find_mark(bool at_end);
  bool find_line();
  bool enter_value(bool at_end);
  bool read_value(bool at_end);
  bool close(bool at_end);
  bool skip_start_tag(bool at_end);
  // Adds the calls of a JSON value; false if it holds no calls.
  bool add_calls(std::string_view text);
  void give(std::size_t bytes);  // held text that belongs to no call
  void give_up();                // what was opened is not a call
  void drop(std::size_t bytes) { held_.erase(0, bytes); }
  std::size_t leading(std::string_view characters) const;  // how many of these held_ begins with

  const ToolFormat format_;
  const std::set<std::string> names_;
  Place place_ = Place::kText;
  std::string held_;
  std::string opened_;       // what precedes held_ since the mark, in case it is no call
  std::string name_;         // kMistral: of the call whose arguments follow
  JsonEnd end_;              // of the value with which held_ begins
  std::size_t scanned_ = 0;  // bytes of held_ that end_ has taken
  bool at_line_ = true;      // held_ begins a line
  bool begun_ = false;       // the response has text other than spaces
  bool after_call_ = false;  // nothing but a call precedes held_
  std::size_t calls_ = 0;
  ToolText out_;
};

}  // namespace troupe::dialects
