#include "runtime/parse/bounded_json.hpp"

#include "runtime/parse/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::parse {
namespace {

// Builds the document from the parser's events. Stops at the first bound that the text exceeds.
template <class Json>
class Builder {
 public:
  explicit Builder(const JsonBounds& bounds) : bounds_(bounds) {}

  // The SAX events, with the names and signatures that nlohmann's parser expects.
  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(typename Json::number_integer_t value) {
    // The one integer of 64 bits with two spellings.
    if (value == 0 && bounds_.numbers == Numbers::kAsWritten) return put_written("-0");
    return put(value, true);
  }
  bool number_unsigned(typename Json::number_unsigned_t value) { return put(value, true); }
  bool number_float(typename Json::number_float_t value, const std::string& spelling) {
    const bool whole = spelling.find_first_of(".eE") == spelling.npos;
    const bool kept = bounds_.numbers == Numbers::kAsWritten
                          ? Json(value).dump() != spelling
                          : whole && bounds_.numbers == Numbers::kWholeIntegers;
    return kept ? put_written(spelling) : put(value, true);
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(typename Json::binary_t&) { return fail("is not valid JSON: it holds binary data"); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (bounds_.watch != nullptr) bounds_.watch->key(open_.size(), name);
    auto& object = open_.back()->template get_ref<typename Json::object_t&>();
    const auto [place, fresh] = object.emplace(name, nullptr);
    if (!fresh && bounds_.repeats == Repeats::kRefused)
      return fail("has the name `" + name + "` twice");
    if (object.size() > bounds_.names_max)
      return fail("has more than " + std::to_string(bounds_.names_max) + " names in one object");
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    // Removes the tag from "[json.exception.parse_error.101] parse error at line 1, column 5: ...".
    std::string why = error.what();
    if (const auto tag = why.find("] "); tag != why.npos) why.erase(0, tag + 2);
    return fail("is not valid JSON: " + why);
  }

  Result<Json> finish(bool parsed) {
    if (parsed) return std::move(root_);
    return core::fail(ErrorCode::kData, std::move(why_));
  }

 private:
  bool fail(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool seen(bool is_number) {
    const bool passes = bounds_.watch == nullptr || bounds_.watch->value(open_.size(), is_number);
    return passes || fail("holds more than is read");
  }

  // Where to store the next value: the root, a new last item of the open list, or the member whose
  // name was just read.
  Json& place() {
    if (open_.empty()) return root_;
    if (!open_.back()->is_array()) return *member_;
    open_.back()->push_back(nullptr);
    return open_.back()->back();
  }

  template <class Value>
  bool put(Value&& value, bool is_number = false) {
    if (!seen(is_number)) return false;
    place() = Json(std::forward<Value>(value));
    return true;
  }

  bool put_written(const std::string& spelling) {
    if (spelling.size() > limits::kJsonNumber_bytes_max) {
      return fail("has a number of more than " + std::to_string(limits::kJsonNumber_bytes_max) +
                  " characters");
    }
    return put(written_number<Json>(spelling), true);
  }

  bool open(Json&& empty) {
    if (static_cast<int>(open_.size()) >= bounds_.depth_max)
      return fail("is nested deeper than " + std::to_string(bounds_.depth_max) + " levels");
    if (!seen(false)) return false;
    Json& value = place();
    value = std::move(empty);
    // The pointer stays valid until `close`, because the container of `value` does not grow before.
    open_.push_back(&value);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonBounds& bounds_;
  Json root_;
  std::vector<Json*> open_;
  Json* member_ = nullptr;
  std::string why_;
};

}  // namespace

template <class Json>
Result<Json> bounded_json(std::string_view text, const JsonBounds& bounds) {
  // nlohmann's lexer would skip a byte order mark, and stop at a NUL.
  if (text.starts_with("\xEF\xBB\xBF"))
    return core::fail(ErrorCode::kData, "is not valid JSON: it begins with a byte order mark");
  if (const auto nul = text.find('\0'); nul != text.npos) {
    return core::fail(ErrorCode::kData,
                      "is not valid JSON: byte " + std::to_string(nul) + " is a NUL");
  }
  Builder<Json> builder(bounds);
  return builder.finish(Json::sax_parse(text.begin(), text.end(), &builder));
}

template Result<nlohmann::json> bounded_json(std::string_view text, const JsonBounds& bounds);
template Result<nlohmann::ordered_json> bounded_json(std::string_view text,
                                                     const JsonBounds& bounds);

}  // namespace troupe::parse
