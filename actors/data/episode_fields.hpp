// The fields of a delivery of episodes in its record: the prompt that came with it, turns,
// episodes, forks and feedback. Those that no sample has are left out, so a delivery of plain
// samples has none.
#pragma once

#include "actors/data/book_events.hpp"
#include "actors/data/event_fields.hpp"

#include <cstddef>

namespace troupe::actors {

class EpisodeFields {
 public:
  explicit EpisodeFields(const GroupTaken& event);  // which outlives it

  std::size_t count() const;
  void write(EventRecord& out) const;

 private:
  const GroupTaken& event_;
  bool turns_, episodes_, shares_, feedback_, steps_, kept_;
};

// Adds the fields to an event whose samples have their tokens.
void read_episode_fields(const parse::CborItem& object, GroupTaken& event);

}  // namespace troupe::actors
