// Parses JSON from untrusted sources, with bounds on nesting and on the number of names in an
// object that are checked during parsing. (nlohmann's own parser callback could check them too, but
// it scans the parent's members again after each nested object.) Also refuses NUL bytes and a byte
// order mark, unlike nlohmann's parser. Stateless; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <limits>
#include <string_view>

namespace troupe::parse {

// What to do when a name occurs twice in one object: use the later value, as most parsers do, or
// refuse the text.
enum class Repeats { kLastCounts, kRefused };

// How to read a number that nlohmann's types cannot write as it was written: as the nearest
// double, or as a written number (written_numbers.hpp) for integers beyond 64 bits, or always.
// Chat templates print integers, so they need the second; JSON that is written out again needs
// the third.
enum class Numbers { kNearest, kWholeIntegers, kAsWritten };

// Lets a caller add bounds of its own: it sees every name and value during parsing. `depth` is the
// number of lists and objects that enclose the name or value; 0 for the root.
class JsonWatch {
 public:
  virtual ~JsonWatch() = default;
  virtual void key(std::size_t depth, const std::string& name) = 0;
  // Called before the value is built; false stops parsing with an error.
  virtual bool value(std::size_t depth, bool is_number) = 0;
};

struct JsonBounds {
  int depth_max = 64;  // nested lists and objects
  JsonWatch* watch = nullptr;
  std::size_t names_max = std::numeric_limits<std::size_t>::max();  // per object
  Repeats repeats = Repeats::kLastCounts;
  Numbers numbers = Numbers::kNearest;
};

// Parses `text` as one JSON value. Error messages (kData) begin with a verb; the caller puts the
// subject in front: "is not valid JSON: ...", "is nested deeper than 64 levels", "has the name `w`
// twice", "has more than 100 names in one object", "holds more than is read" (the watch returned
// false), "has a number of more than 4096 characters" (of those that are kept as written).
// Instantiated for nlohmann::json and nlohmann::ordered_json.
template <class Json>
core::Result<Json> bounded_json(std::string_view text, const JsonBounds& bounds);

}  // namespace troupe::parse
