// Parses JSON from untrusted sources. Depth and the number of names are bounded while parsing,
// before values are built, in time linear in the text (nlohmann's own callback visits all members
// again after each one). Stricter than nlohmann's parser: it refuses a NUL byte, and a byte order
// mark before the text. Stateless; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <limits>
#include <string_view>

namespace troupe::parse {

// A name that stands twice in one object: the later value counts, as in most readers, or it is an
// error.
enum class Repeats { kLastCounts, kRefused };

// Bounds that depend on where a value stands. It sees every value before one is made of it; after
// false nothing more is read.
class JsonWatch {
 public:
  virtual ~JsonWatch() = default;
  virtual void key(std::size_t depth, const std::string& name) = 0;
  // `depth`: of the lists and objects around the value, 0 for the whole text.
  virtual bool value(std::size_t depth, bool is_number) = 0;
};

struct JsonBounds {
  int depth_max = 64;  // lists and objects in each other
  JsonWatch* watch = nullptr;
  std::size_t names_max = std::numeric_limits<std::size_t>::max();  // of one object
  Repeats repeats = Repeats::kLastCounts;
};

// Errors (kData) are predicates; the caller puts the subject in front: "is not valid JSON: ...",
// "is nested deeper than 64 levels", "has the name `w` twice", "has more than 100 names in one
// object", "holds more than is read" (the watch knows what). Instantiated for nlohmann::json and
// nlohmann::ordered_json.
template <class Json>
core::Result<Json> bounded_json(std::string_view text, const JsonBounds& bounds);

}  // namespace troupe::parse
