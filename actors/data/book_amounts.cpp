#include "actors/data/book_amounts.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe::actors::data {

void add_book_amounts(const TicketBook& train, const TicketBook& held_out, wire::Amounts& amounts) {
  const auto add = [&](std::string name, std::uint64_t value) {
    amounts.emplace_back(std::move(name), static_cast<double>(value));
  };
  std::array<std::uint64_t, experience::kGroupStates.size()> open{};
  for (const TicketBook* book : {&train, &held_out}) {
    for (const BookGroup* group : book->groups())
      ++open[static_cast<std::size_t>(group->state)];
  }
  for (std::size_t i = 0; i < open.size(); ++i)
    add("open_groups/" + std::string(experience::kGroupStates[i]), open[i]);
  const BookCounts &a = train.counts(), &b = held_out.counts();
  for (std::size_t i = 0; i < kFailureKinds.size(); ++i)
    add("failed_groups/" + std::string(kFailureKinds[i]), a.failed[i] + b.failed[i]);
  for (std::size_t i = 0; i < kDuplicateKinds.size(); ++i)
    add("duplicate_groups/" + std::string(kDuplicateKinds[i]), a.duplicates[i] + b.duplicates[i]);
  add("dropped_samples", a.dropped_samples + b.dropped_samples);
  add("cut_groups", a.cut_groups + b.cut_groups);
  add("stale_refused", a.stale_refused + b.stale_refused);
  add("put_tokens", a.put_tokens + b.put_tokens);
}

}  // namespace troupe::actors::data
