#include "actors/data/book_events.hpp"

#include "actors/data/event_fields.hpp"
#include "actors/data/sample_record.hpp"

#include <exception>
#include <stdexcept>
#include <utility>

namespace troupe::actors::data {
namespace {

using experience::StepReward;
using experience::Ticket;
using parse::CborItem;

Ticket ticket_of(const CborItem& object) {
  return {object.at("update").number(), static_cast<std::uint32_t>(object.at("slot").number()),
          static_cast<std::uint32_t>(object.at("attempt").number())};
}

std::vector<std::string> texts_of(const CborItem& list) {
  std::vector<std::string> texts;
  for (const CborItem& text : list.items())
    texts.emplace_back(text.text());
  return texts;
}

void write(std::string& record, const TicketIssued& event) {
  EventRecord out(record, "issued", event.saved.ticket, 5);
  out.number("prompt", event.saved.prompt);
  out.number("wanted", static_cast<std::uint64_t>(event.saved.wanted));
  out.list("replaced", event.saved.replaced,
           [](auto& list, std::uint64_t prompt) { list.number(prompt); });
  out.number("version_min", event.version_min);
  out.number("set", event.set);
}

TicketIssued issued_of(const CborItem& object) {
  TicketIssued event;
  event.saved.ticket = ticket_of(object);
  event.saved.prompt = object.at("prompt").number();
  event.saved.wanted = static_cast<std::int32_t>(object.at("wanted").number());
  for (const CborItem& prompt : object.at("replaced").items())
    event.saved.replaced.push_back(prompt.number());
  event.version_min = object.at("version_min").number();
  event.set = object.at("set").number();
  return event;
}

void write(std::string& record, const GroupTaken& event) {
  const SampleRecord samples(event.samples);
  EventRecord out(record, "taken", event.ticket,
                  1 + samples.fields() + (event.prompt.empty() ? 0 : 1));
  out.boolean("cut", event.cut);
  samples.write_always(out);
  if (!event.prompt.empty()) {
    out.column(
        "prompt", std::span(&event, 1), [](const GroupTaken& one) -> auto& { return one.prompt; });
  }
  samples.write_some(out);
}

GroupTaken taken_of(const CborItem& object) {
  GroupTaken event{ticket_of(object), samples_of(object), object.at("cut").boolean(), {}};
  if (const auto prompt = object.find("prompt")) {
    Column<std::int32_t> ids(*prompt);
    event.prompt = ids.next(prompt->bytes().size() / sizeof(std::int32_t));
    ids.check_end();
  }
  return event;
}

void write(std::string& record, const GroupScored& event) {
  const std::size_t more = (event.row.empty() ? 0 : 1) + (event.steps.empty() ? 0 : 1);
  EventRecord out(record, "scored", event.ticket, 4 + more);
  out.number("member", event.member);
  out.list("scores", event.scores, [](auto& list, const std::optional<double>& score) {
    score ? list.real(*score) : list.null();
  });
  out.texts("causes", event.causes);
  out.texts("extras", event.extras);
  if (!event.row.empty()) out.text("row", event.row);
  if (event.steps.empty()) return;
  out.list("steps", event.steps,
           [](auto& list, const std::vector<StepReward>& steps) { write_steps(list, steps); });
}

GroupScored scored_of(const CborItem& object) {
  GroupScored event{ticket_of(object), object.at("member").number(), {}, {}, {}};
  for (const CborItem& score : object.at("scores").items())
    event.scores.push_back(score.is_null() ? std::nullopt : std::optional(score.real()));
  event.causes = texts_of(object.at("causes"));
  event.extras = texts_of(object.at("extras"));
  if (const auto row = object.find("row")) event.row = row->text();
  const auto steps = object.find("steps");
  if (!steps) return event;
  for (const CborItem& sample : by_sample(*steps, event.scores.size()))
    event.steps.push_back(steps_of(sample));
  return event;
}

void write(std::string& record, const GroupReferenced& event) {
  const bool teacher = event.by == FrozenModel::kTeacher;
  EventRecord out(record, teacher ? "taught" : "referenced", event.ticket, 2);
  out.list("counts", event.logprobs,
           [](auto& list, const std::vector<float>& sample) { list.number(sample.size()); });
  out.column(
      "logprobs", event.logprobs, [](const std::vector<float>& sample) -> auto& { return sample; });
}

GroupReferenced referenced_of(const CborItem& object, FrozenModel by) {
  GroupReferenced event{ticket_of(object), {}, by};
  Column<float> logprobs(object.at("logprobs"));
  for (const CborItem& count : object.at("counts").items())
    event.logprobs.push_back(logprobs.next(count.number()));
  logprobs.check_end();
  return event;
}

void write(std::string& record, const GroupFailed& event) {
  EventRecord out(record, "failed", event.ticket, 2);
  out.number("kind", static_cast<std::uint64_t>(event.kind));
  out.text("cause", event.cause);
}

GroupFailed failed_of(const CborItem& object) {
  const std::uint64_t kind = object.at("kind").number();
  if (kind >= kFailureKinds.size()) throw std::out_of_range("an unknown kind of failure");
  return {ticket_of(object), static_cast<FailureKind>(kind),
          std::string(object.at("cause").text())};
}

void write(std::string& record, const SetChanged& event) {
  const bool formula = !event.set.formula.empty();
  EventRecord out(record, "rewards", formula ? 6 : 5);
  out.number("set", event.set.set);
  out.number("from_update", event.set.from_update);
  out.list("members", event.set.members, [](auto& list, const RewardMember& member) {
    list.map(3);
    list.text("name");
    list.text(member.name);
    list.text("peer");
    list.text(member.peer);
    list.text("weight");
    list.real(member.weight);
  });
  out.texts("lost", event.set.lost);
  out.number("committed", event.committed);
  if (formula) out.text("formula", event.set.formula);
}

SetChanged changed_of(const CborItem& object) {
  SetChanged event;
  event.set.set = object.at("set").number();
  event.set.from_update = object.at("from_update").number();
  for (const CborItem& member : object.at("members").items()) {
    event.set.members.push_back({std::string(member.at("name").text()),
                                 std::string(member.at("peer").text()),
                                 member.at("weight").real()});
  }
  event.set.lost = texts_of(object.at("lost"));
  event.committed = object.at("committed").number();
  if (const auto formula = object.find("formula")) event.set.formula = formula->text();
  return event;
}

void write(std::string& record, const EvaluationBegun& event) {
  EventRecord out(record, "evaluation", 2);
  out.number("update", event.update);
  out.text("settings", event.settings);
}

EvaluationBegun begun_of(const CborItem& object) {
  return {object.at("update").number(), std::string(object.at("settings").text())};
}

void write(std::string& record, const GroupsDropped& event) {
  EventRecord out(record, "dropped", 2);
  out.number("update", event.update);
  out.number("committed", event.committed);
}

GroupsDropped dropped_of(const CborItem& object) {
  return {object.at("update").number(), object.at("committed").number()};
}

BookEvent read_event(const CborItem& object) {
  const std::string_view event = object.at("event").text();
  if (event == "issued") return issued_of(object);
  if (event == "taken") return taken_of(object);
  if (event == "scored") return scored_of(object);
  if (event == "referenced") return referenced_of(object, FrozenModel::kReference);
  if (event == "taught") return referenced_of(object, FrozenModel::kTeacher);
  if (event == "failed") return failed_of(object);
  if (event == "rewards") return changed_of(object);
  if (event == "evaluation") return begun_of(object);
  if (event == "dropped") return dropped_of(object);
  throw std::out_of_range("an unknown event: " + std::string(event));
}

struct UpdateOf {
  std::uint64_t operator()(const TicketIssued& one) const { return one.saved.ticket.update; }
  std::uint64_t operator()(const SetChanged& one) const { return one.set.from_update; }
  std::uint64_t operator()(const EvaluationBegun& one) const { return one.update; }
  std::uint64_t operator()(const GroupsDropped& one) const { return one.update; }
  std::uint64_t operator()(const auto& one) const { return one.ticket.update; }
};

}  // namespace

std::uint64_t update_of(const BookEvent& event) {
  return std::visit(UpdateOf{}, event);
}

std::string record_of(const BookEvent& event) {
  std::string record;
  std::visit([&record](const auto& one) { write(record, one); }, event);
  return record;
}

core::Result<BookEvent> event_of(std::string_view record) {
  auto items = parse::CborItems::read(record);
  if (!items) return core::fail(items.error().within("a record of the experience log"));
  try {
    return read_event(items->root());
  } catch (const std::exception& error) {
    return core::fail(core::ErrorCode::kData,
                      std::string("a record of the experience log is malformed: ") + error.what());
  }
}

}  // namespace troupe::actors::data
