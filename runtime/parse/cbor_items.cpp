#include "runtime/parse/cbor_items.hpp"

#include <cbor.h>

#include <stdexcept>
#include <string>

namespace troupe::parse {

// What libcbor's decoder tells of, one item after the other.
struct CborBuilder {
  using Kind = CborItems::Kind;
  using Entry = CborItems::Entry;

  struct Open {
    std::size_t place = 0;
    std::uint64_t missing = 0;
  };

  CborItems items;
  std::vector<Open> open;  // lists and maps that are not complete
  bool refused = false;

  bool complete() const { return open.empty() && !items.entries_.empty(); }

  void add(Entry entry, std::uint64_t held = 0) {
    std::vector<Entry>& entries = items.entries_;
    const std::size_t place = entries.size();
    entry.next = place + 1;
    entries.push_back(entry);
    if (!open.empty()) --open.back().missing;
    if (held > 0) open.push_back({place, held});
    while (!open.empty() && open.back().missing == 0) {
      entries[open.back().place].next = entries.size();
      open.pop_back();
    }
  }

  static CborBuilder& of(void* self) { return *static_cast<CborBuilder*>(self); }
  template <class Integer>
  static void number(void* self, Integer value) {
    of(self).add({.kind = Kind::kNumber, .number = value});
  }
  template <class Float>
  static void real(void* self, Float value) {
    of(self).add({.kind = Kind::kReal, .real = value});
  }
  static void boolean(void* self, bool value) {
    of(self).add({.kind = Kind::kBoolean, .number = value ? 1u : 0u});
  }
  static void null(void* self) { of(self).add({.kind = Kind::kNull}); }
  template <Kind kKind>
  static void view(void* self, cbor_data data, std::size_t size) {
    of(self).add({.kind = kKind, .view = {reinterpret_cast<const char*>(data), size}});
  }
  template <Kind kKind>
  static void holder(void* self, std::size_t count) {
    constexpr std::uint64_t each = kKind == Kind::kMap ? 2 : 1;
    if (count > UINT64_MAX / 2) return refuse(self);
    of(self).add({.kind = kKind, .number = count * each}, count * each);
  }
  static void refuse(void* self) { of(self).refused = true; }
  template <class Value>
  static void refuse_value(void* self, Value) {
    refuse(self);
  }

  static cbor_callbacks callbacks() {
    cbor_callbacks all = cbor_empty_callbacks;
    all.uint8 = number<std::uint8_t>;
    all.uint16 = number<std::uint16_t>;
    all.uint32 = number<std::uint32_t>;
    all.uint64 = number<std::uint64_t>;
    all.negint8 = refuse_value<std::uint8_t>;
    all.negint16 = refuse_value<std::uint16_t>;
    all.negint32 = refuse_value<std::uint32_t>;
    all.negint64 = refuse_value<std::uint64_t>;
    all.float2 = real<float>;
    all.float4 = real<float>;
    all.float8 = real<double>;
    all.boolean = boolean;
    all.null = null;
    all.string = view<Kind::kText>;
    all.byte_string = view<Kind::kBytes>;
    all.array_start = holder<Kind::kList>;
    all.map_start = holder<Kind::kMap>;
    all.tag = refuse_value<std::uint64_t>;
    all.undefined = refuse;
    all.string_start = refuse;
    all.byte_string_start = refuse;
    all.indef_array_start = refuse;
    all.indef_map_start = refuse;
    all.indef_break = refuse;
    return all;
  }
};

core::Result<CborItems> CborItems::read(std::string_view input) {
  static const cbor_callbacks callbacks = CborBuilder::callbacks();
  CborBuilder builder;
  std::string_view rest = input;
  while (!builder.complete() && !builder.refused) {
    const auto* const data = reinterpret_cast<cbor_data>(rest.data());
    const cbor_decoder_result one = cbor_stream_decode(data, rest.size(), &callbacks, &builder);
    if (one.status != CBOR_DECODER_FINISHED) break;
    rest.remove_prefix(one.read);
  }
  if (builder.refused || !builder.complete() || !rest.empty()) {
    return core::fail(core::ErrorCode::kData,
                      "not CBOR at byte " + std::to_string(input.size() - rest.size()));
  }
  return std::move(builder.items);
}

const CborItems::Entry& CborItems::entry(std::size_t place, Kind wanted) const {
  const Entry& entry = entries_[place];
  if (entry.kind != wanted) throw std::out_of_range("an item is of another kind");
  return entry;
}

std::uint64_t CborItem::number() const {
  return all_->entry(place_, CborItems::Kind::kNumber).number;
}

double CborItem::real() const {
  return all_->entry(place_, CborItems::Kind::kReal).real;
}

bool CborItem::boolean() const {
  return all_->entry(place_, CborItems::Kind::kBoolean).number != 0;
}

bool CborItem::is_null() const {
  return all_->entries_[place_].kind == CborItems::Kind::kNull;
}

std::string_view CborItem::text() const {
  return all_->entry(place_, CborItems::Kind::kText).view;
}

std::span<const std::byte> CborItem::bytes() const {
  const std::string_view view = all_->entry(place_, CborItems::Kind::kBytes).view;
  return std::as_bytes(std::span(view));
}

CborItem CborItem::at(std::string_view key) const {
  if (auto value = find(key)) return *value;
  throw std::out_of_range("it has no " + std::string(key));
}

std::optional<CborItem> CborItem::find(std::string_view key) const {
  const CborItems::Entry& map = all_->entry(place_, CborItems::Kind::kMap);
  for (std::size_t place = place_ + 1; place < map.next;) {
    const CborItem name(*all_, place);
    const std::size_t value = all_->entries_[place].next;
    if (name.text() == key) return CborItem(*all_, value);
    place = all_->entries_[value].next;
  }
  return std::nullopt;
}

std::vector<CborItem> CborItem::items() const {
  const CborItems::Entry& list = all_->entry(place_, CborItems::Kind::kList);
  std::vector<CborItem> items;
  for (std::size_t place = place_ + 1; place < list.next; place = all_->entries_[place].next)
    items.push_back({*all_, place});
  return items;
}

}  // namespace troupe::parse
