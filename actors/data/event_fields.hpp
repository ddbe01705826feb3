// The fields of a record of the experience log, written and read (book_events.hpp says what an
// event is). Readers throw std::out_of_range for what is none. Internal to this room.
#pragma once

#include "runtime/experience/group.hpp"
#include "runtime/parse/cbor_items.hpp"
#include "runtime/parse/cbor_writer.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::data {

static_assert(std::endian::native == std::endian::little, "records are written as memory has them");

// One record: a map of that many fields, the name of the event among them.
class EventRecord {
 public:
  EventRecord(std::string& record, std::string_view event, std::size_t fields) : out_(record) {
    out_.map(fields + 1);
    text("event", event);
  }
  // `fields` are those that the event has besides its ticket.
  EventRecord(std::string& record,
              std::string_view event,
              const experience::Ticket& ticket,
              std::size_t fields)
      : EventRecord(record, event, fields + 3) {
    number("update", ticket.update);
    number("slot", ticket.slot);
    number("attempt", ticket.attempt);
  }

  void number(std::string_view key, std::uint64_t value) {
    out_.text(key);
    out_.number(value);
  }
  void boolean(std::string_view key, bool value) {
    out_.text(key);
    out_.boolean(value);
  }
  void text(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }
  // `one` writes the value of an element with the writer that it is given.
  template <class Elements, class One>
  void list(std::string_view key, const Elements& elements, One one) {
    out_.text(key);
    out_.list(elements.size());
    for (const auto& element : elements)
      one(out_, element);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    list(key, values, [](auto& out, const std::string& value) { out.text(value); });
  }
  // The lists of all samples as one byte string; `of` returns the list of a sample.
  template <class Samples, class Of>
  void column(std::string_view key, const Samples& samples, Of of) {
    std::size_t length = 0;
    for (const auto& sample : samples)
      length += std::as_bytes(std::span(of(sample))).size();
    out_.text(key);
    out_.bytes(length);
    for (const auto& sample : samples)
      out_.append(std::as_bytes(std::span(of(sample))));
  }

 private:
  parse::CborWriter out_;
};

// Reads a column that holds the lists of all samples one after the other.
template <class T>
class Column {
 public:
  explicit Column(const parse::CborItem& bytes) : rest_(bytes.bytes()) {}

  std::vector<T> next(std::uint64_t count) {
    if (count > rest_.size() / sizeof(T)) throw std::out_of_range("a column is too short");
    std::vector<T> values(count);
    const std::size_t bytes = values.size() * sizeof(T);
    if (bytes > 0) std::memcpy(values.data(), rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return values;
  }
  void check_end() const {
    if (!rest_.empty()) throw std::out_of_range("a column is too long");
  }

 private:
  std::span<const std::byte> rest_;
};

// The items of a list that has one for each of `count` samples.
inline std::vector<parse::CborItem> by_sample(const parse::CborItem& list, std::size_t count) {
  auto items = list.items();
  if (items.size() != count) throw std::out_of_range("a list has another number of samples");
  return items;
}

inline void write_steps(parse::CborWriter& out, const std::vector<experience::StepReward>& steps) {
  out.list(steps.size());
  for (const experience::StepReward& step : steps) {
    out.list(2);
    out.number(step.token);
    out.real(step.reward);
  }
}

inline std::vector<experience::StepReward> steps_of(const parse::CborItem& list) {
  std::vector<experience::StepReward> steps;
  for (const parse::CborItem& step : list.items()) {
    const auto pair = by_sample(step, 2);
    steps.push_back({static_cast<std::uint32_t>(pair[0].number()), pair[1].real()});
  }
  return steps;
}

}  // namespace troupe::actors::data
