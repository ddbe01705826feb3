// Reads CBOR (RFC 8949) in place: texts and byte strings are views of the input, which outlives
// them. Items of definite length only; no tags, and no simple values but true, false and null.
// Asking an item for what it is not, or has not, throws std::out_of_range with a message that names
// it; whoever reads a whole record catches once. Any one thread at a time.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::parse {

class CborItems;

// One item of a CborItems, which outlives it. Cheap to copy.
class CborItem {
 public:
  std::uint64_t number() const;
  double real() const;
  bool boolean() const;
  bool is_null() const;
  std::string_view text() const;
  std::span<const std::byte> bytes() const;
  CborItem at(std::string_view key) const;  // of a map: the value of its first such key
  std::optional<CborItem> find(std::string_view key) const;  // the same; none without the key
  std::vector<CborItem> items() const;                       // of a list

 private:
  friend class CborItems;
  CborItem(const CborItems& all, std::size_t place) : all_(&all), place_(place) {}

  const CborItems* all_;
  std::size_t place_;
};

class CborItems {
 public:
  // Error kData: `input` is not one such item, whole and with nothing after it.
  static core::Result<CborItems> read(std::string_view input);

  CborItem root() const { return {*this, 0}; }

 private:
  friend class CborItem;
  friend struct CborBuilder;
  enum class Kind { kNumber, kReal, kBoolean, kNull, kText, kBytes, kList, kMap };
  struct Entry {
    Kind kind = Kind::kNull;
    std::size_t next = 0;      // the place after all that this one holds
    std::uint64_t number = 0;  // also a boolean; of a list or map, how many items it holds directly
    double real = 0;
    std::string_view view{};  // text or bytes
  };
  const Entry& entry(std::size_t place, Kind wanted) const;

  std::vector<Entry> entries_;  // each before those that it holds
};

}  // namespace troupe::parse
