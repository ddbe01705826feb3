#include "actors/data/logged_groups.hpp"

#include "runtime/experience/sample_fields.hpp"

#include <algorithm>

namespace troupe::actors::data {
namespace {

bool same_group(const BookGroup* a, const BookGroup* b) {
  return static_cast<const SavedTicket&>(*a) == *b && a->state == b->state &&
         a->rewards->number == b->rewards->number && a->begins_with == b->begins_with &&
         std::equal(a->samples.begin(), a->samples.end(), b->samples.begin(), b->samples.end(),
                    experience::compares_equal);
}

}  // namespace

core::Result<std::shared_ptr<const TicketBook>> logged_groups(TicketBook empty,
                                                              std::uint64_t update,
                                                              std::vector<BookEvent> events,
                                                              const TicketBook& held,
                                                              const TicketBook::SetOf& set_of) {
  auto book = std::make_shared<TicketBook>(std::move(empty));
  book->replay(update, std::move(events), set_of);
  const auto logged = book->groups_of(update), wanted = held.groups_of(update);
  const auto differ =
      std::mismatch(logged.begin(), logged.end(), wanted.begin(), wanted.end(), same_group);
  if (differ.first == logged.end() && differ.second == wanted.end())
    return std::shared_ptr<const TicketBook>(std::move(book));
  const BookGroup& first = differ.second == wanted.end() ? **differ.first : **differ.second;
  return core::fail(core::ErrorCode::kData, "the experience log does not have the group of " +
                                                name_of(first.ticket) + " as it was learned from");
}

}  // namespace troupe::actors::data
