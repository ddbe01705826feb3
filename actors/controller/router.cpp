#include "actors/controller/router.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>

namespace troupe::actors::controller {

namespace {

// A key for the work's prompt; 0 = none. An evaluation's slot always has the same problem.
std::uint64_t prompt_key(const TicketWork& work) {
  if (work.key != 0) return work.key;
  return work.kind == WorkKind::kEvaluation ? std::uint64_t{work.ticket.slot} + 1 : 0;
}

}  // namespace

void Router::up(const std::string& name) {
  lines_[name] = Line{};
}

void Router::down(const std::string& name) {
  lines_.erase(name);
  std::erase_if(last_, [&name](const auto& entry) { return entry.second == name; });
}

void Router::holds(const std::string& name, core::Version version) {
  if (Line* const line = core::find_value(lines_, name)) line->holds = version;
}

void Router::block(const std::string& name, bool blocked) {
  if (Line* const line = core::find_value(lines_, name)) line->blocked = blocked;
}

void Router::leave(const std::string& name) {
  if (Line* const line = core::find_value(lines_, name)) line->leaves = true;
}

bool Router::leaves(const std::string& name) const {
  const Line* const line = core::find_value(lines_, name);
  return line != nullptr && line->leaves;
}

bool Router::has_room(const Line& line, const TicketWork& work, std::uint32_t capacity) const {
  return line.holds && *line.holds >= work.version_min && !line.blocked && !line.leaves &&
         line.groups[0] + line.groups[1] <
             std::min({groups_max_, work.among, *line.among.begin()}) &&
         line.groups[static_cast<std::size_t>(work.kind)] < capacity;
}

std::optional<std::string> Router::pick(const TicketWork& work,
                                        std::uint32_t capacity,
                                        const std::set<std::string>& avoid) const {
  const std::pair<const std::string, Line>* least = nullptr;
  for (const auto& entry : lines_) {
    if (avoid.contains(entry.first) || !has_room(entry.second, work, capacity)) continue;
    if (least == nullptr || entry.second.samples < least->second.samples) least = &entry;
  }
  if (least == nullptr) return std::nullopt;
  if (const std::string* const known = core::find_value(last_, prompt_key(work))) {
    const Line* const line = core::find_value(lines_, *known);
    if (line != nullptr && !avoid.contains(*known) && has_room(*line, work, capacity) &&
        line->samples <= least->second.samples + margin_samples_) {
      return *known;
    }
  }
  return least->first;
}

void Router::sent(const std::string& name, const TicketWork& work) {
  Line& line = lines_.at(name);
  line.samples += work.samples;
  ++line.groups[static_cast<std::size_t>(work.kind)];
  line.among.insert(work.among);
  if (const std::uint64_t key = prompt_key(work); key != 0) last_[key] = name;
}

void Router::ended(const std::string& name, const TicketWork& work) {
  Line& line = lines_.at(name);
  auto& groups = line.groups[static_cast<std::size_t>(work.kind)];
  TROUPE_CHECK(groups > 0 && line.samples >= work.samples, "work ends once");
  line.samples -= work.samples;
  --groups;
  line.among.erase(line.among.find(work.among));
}

std::int64_t Router::samples(const std::string& name) const {
  const Line* const line = core::find_value(lines_, name);
  return line == nullptr ? 0 : line->samples;
}

std::uint32_t Router::groups(const std::string& name) const {
  const Line* const line = core::find_value(lines_, name);
  return line == nullptr ? 0 : line->groups[0] + line->groups[1];
}

bool Router::others_for(const TicketWork& work, const std::set<std::string>& names) const {
  return std::any_of(lines_.begin(), lines_.end(), [&](const auto& entry) {
    const auto& holds = entry.second.holds;
    return holds && *holds >= work.version_min && !entry.second.leaves &&
           !names.contains(entry.first);
  });
}

}  // namespace troupe::actors::controller
