// Parses JSON from untrusted sources. Checks depth and the number of names during parsing, before
// values are built, in time linear in the text. (nlohmann's own callback visits all members again
// after each one.) Stricter than nlohmann's parser: refuses NUL bytes and a byte order mark before
// the text. Stateless; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <limits>
#include <string_view>

namespace troupe::parse {

// How to treat a name that occurs twice in one object: use the later value, as most parsers do, or
// refuse it.
enum class Repeats { kLastCounts, kRefused };

// Lets the caller bound values by their place. It is called before each value is built; if it
// returns false, parsing stops.
class JsonWatch {
 public:
  virtual ~JsonWatch() = default;
  virtual void key(std::size_t depth, const std::string& name) = 0;
  // `depth`: how many lists and objects enclose the value; 0 for the root.
  virtual bool value(std::size_t depth, bool is_number) = 0;
};

struct JsonBounds {
  int depth_max = 64;  // nested lists and objects
  JsonWatch* watch = nullptr;
  std::size_t names_max = std::numeric_limits<std::size_t>::max();  // per object
  Repeats repeats = Repeats::kLastCounts;
};

// Error messages (kData) are predicates, before which the caller puts the subject: "is not valid
// JSON: ...", "is nested deeper than 64 levels", "has the name `w` twice", "has more than 100 names
// in one object", "holds more than is read" (the watch stopped it). Instantiated for nlohmann::json
// and nlohmann::ordered_json.
template <class Json>
core::Result<Json> bounded_json(std::string_view text, const JsonBounds& bounds);

}  // namespace troupe::parse
