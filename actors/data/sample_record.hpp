// The samples of a delivery in its record of the experience log: a column or list a field, as
// experience/sample_fields.hpp says. Fields of episodes that no sample has are left out. Internal
// to this room.
#pragma once

#include "actors/data/event_fields.hpp"
#include "runtime/experience/sample_fields.hpp"

#include <cstddef>
#include <vector>

namespace troupe::actors::data {

class SampleRecord {
 public:
  explicit SampleRecord(const std::vector<experience::Trajectory>& samples);  // which outlive it

  std::size_t fields() const noexcept { return fields_; }
  void write_always(EventRecord& out) const;
  void write_some(EventRecord& out) const;

 private:
  const std::vector<experience::Trajectory>& samples_;
  std::size_t fields_ = 0;
};

std::vector<experience::Trajectory> samples_of(const parse::CborItem& object);

}  // namespace troupe::actors::data
