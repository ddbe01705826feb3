#include "actors/data/book_events.hpp"

#include "actors/protocol/reward_member_json.hpp"

#include <bit>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

namespace troupe::actors {
namespace {

using experience::Ticket;
using experience::Trajectory;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "records are written as memory has them");

template <class T>
void append_column(json::binary_t& bytes, const std::vector<T>& values) {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(values.data());
  bytes.insert(bytes.end(), from, from + values.size() * sizeof(T));
}

// Reads a column that holds the lists of all samples one after the other.
template <class T>
class Column {
 public:
  explicit Column(const json& bytes) : rest_(bytes.get_binary()) {}

  std::vector<T> next(std::size_t count) {
    if (count > rest_.size() / sizeof(T)) throw std::out_of_range("a column is too short");
    std::vector<T> values(count);
    std::memcpy(values.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return values;
  }
  void check_end() const {
    if (!rest_.empty()) throw std::out_of_range("a column is too long");
  }

 private:
  std::span<const std::uint8_t> rest_;
};

json with_ticket(const char* event, const Ticket& ticket) {
  return {{"event", event},
          {"update", ticket.update},
          {"slot", ticket.slot},
          {"attempt", ticket.attempt}};
}

Ticket ticket_of(const json& object) {
  return {object.at("update").get<std::uint64_t>(), object.at("slot").get<std::uint32_t>(),
          object.at("attempt").get<std::uint32_t>()};
}

json json_of(const TicketIssued& event) {
  json object = with_ticket("issued", event.saved.ticket);
  object["prompt"] = event.saved.prompt;
  object["wanted"] = event.saved.wanted;
  object["replaced"] = event.saved.replaced;
  object["version_min"] = event.version_min;
  object["set"] = event.set;
  return object;
}

json json_of(const GroupTaken& event) {
  json object = with_ticket("taken", event.ticket);
  json counts = json::array(), runs = json::array(), finish = json::array(), text = json::array();
  json::binary_t ids, logprobs;
  for (const Trajectory& sample : event.samples) {
    counts.push_back(sample.tokens.size());
    json versions = json::array();
    for (const auto& run : sample.versions.runs())
      versions.push_back({run.version, run.count});
    runs.push_back(std::move(versions));
    finish.push_back(static_cast<int>(sample.finish));
    text.push_back(sample.text);
    append_column(ids, sample.tokens);
    append_column(logprobs, sample.behaviour);
  }
  object["cut"] = event.cut;
  object["counts"] = std::move(counts);
  object["versions"] = std::move(runs);
  object["finish"] = std::move(finish);
  object["text"] = std::move(text);
  object["ids"] = std::move(ids);
  object["logprobs"] = std::move(logprobs);
  return object;
}

GroupTaken taken_of(const json& object) {
  GroupTaken event{ticket_of(object), {}, object.at("cut").get<bool>()};
  const json& counts = object.at("counts");
  Column<std::int32_t> ids(object.at("ids"));
  Column<float> logprobs(object.at("logprobs"));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    Trajectory& sample = event.samples.emplace_back();
    const auto count = counts[i].get<std::size_t>();
    sample.tokens = ids.next(count);
    sample.behaviour = logprobs.next(count);
    for (const json& run : object.at("versions").at(i)) {
      sample.versions.add(run.at(0).get<core::Version>(), run.at(1).get<std::uint64_t>());
    }
    const auto finish = object.at("finish").at(i).get<std::uint64_t>();
    if (finish > static_cast<std::uint64_t>(experience::FinishReason::kAborted)) {
      throw std::out_of_range("an unknown finish reason");
    }
    sample.finish = static_cast<experience::FinishReason>(finish);
    sample.text = object.at("text").at(i).get<std::string>();
  }
  ids.check_end();
  logprobs.check_end();
  return event;
}

json json_of(const GroupScored& event) {
  json object = with_ticket("scored", event.ticket);
  json scores = json::array();
  for (const auto& score : event.scores)
    scores.push_back(score ? json(*score) : json());
  object["member"] = event.member;
  object["scores"] = std::move(scores);
  object["causes"] = event.causes;
  object["extras"] = event.extras;
  return object;
}

GroupScored scored_of(const json& object) {
  GroupScored event{ticket_of(object), object.at("member").get<std::uint64_t>(), {}, {}, {}};
  for (const json& score : object.at("scores")) {
    event.scores.push_back(score.is_null() ? std::nullopt : std::optional(score.get<double>()));
  }
  event.causes = object.at("causes").get<std::vector<std::string>>();
  event.extras = object.at("extras").get<std::vector<std::string>>();
  return event;
}

json json_of(const GroupReferenced& event) {
  json object = with_ticket("referenced", event.ticket);
  json counts = json::array();
  json::binary_t logprobs;
  for (const auto& sample : event.logprobs) {
    counts.push_back(sample.size());
    append_column(logprobs, sample);
  }
  object["counts"] = std::move(counts);
  object["logprobs"] = std::move(logprobs);
  return object;
}

GroupReferenced referenced_of(const json& object) {
  GroupReferenced event{ticket_of(object), {}};
  Column<float> logprobs(object.at("logprobs"));
  for (const json& count : object.at("counts"))
    event.logprobs.push_back(logprobs.next(count.get<std::size_t>()));
  logprobs.check_end();
  return event;
}

json json_of(const GroupFailed& event) {
  json object = with_ticket("failed", event.ticket);
  object["kind"] = static_cast<int>(event.kind);
  object["cause"] = event.cause;
  return object;
}

GroupFailed failed_of(const json& object) {
  const auto kind = object.at("kind").get<std::uint64_t>();
  if (kind >= kFailureKinds.size()) throw std::out_of_range("an unknown kind of failure");
  return {ticket_of(object), static_cast<FailureKind>(kind), object.at("cause").get<std::string>()};
}

json json_of(const SetChanged& event) {
  return {{"event", "rewards"},
          {"set", event.set.set},
          {"from_update", event.set.from_update},
          {"members", event.set.members},
          {"lost", event.set.lost},
          {"committed", event.committed}};
}

SetChanged changed_of(const json& object) {
  SetChanged event;
  event.set.set = object.at("set").get<std::uint64_t>();
  event.set.from_update = object.at("from_update").get<std::uint64_t>();
  event.set.members = object.at("members").get<std::vector<RewardMember>>();
  event.set.lost = object.at("lost").get<std::vector<std::string>>();
  event.committed = object.at("committed").get<std::uint64_t>();
  return event;
}

json json_of(const EvaluationBegun& event) {
  return {{"event", "evaluation"}, {"update", event.update}, {"settings", event.settings}};
}

EvaluationBegun begun_of(const json& object) {
  return {object.at("update").get<std::uint64_t>(), object.at("settings").get<std::string>()};
}

json json_of(const GroupsDropped& event) {
  return {{"event", "dropped"}, {"update", event.update}, {"committed", event.committed}};
}

GroupsDropped dropped_of(const json& object) {
  return {object.at("update").get<std::uint64_t>(), object.at("committed").get<std::uint64_t>()};
}

TicketIssued issued_of(const json& object) {
  TicketIssued event;
  event.saved.ticket = ticket_of(object);
  event.saved.prompt = object.at("prompt").get<std::uint64_t>();
  event.saved.wanted = object.at("wanted").get<std::int32_t>();
  event.saved.replaced = object.at("replaced").get<std::vector<std::uint64_t>>();
  event.version_min = object.at("version_min").get<core::Version>();
  event.set = object.at("set").get<std::uint64_t>();
  return event;
}

BookEvent read_event(const json& object) {
  const auto event = object.at("event").get<std::string>();
  if (event == "issued") return issued_of(object);
  if (event == "taken") return taken_of(object);
  if (event == "scored") return scored_of(object);
  if (event == "referenced") return referenced_of(object);
  if (event == "failed") return failed_of(object);
  if (event == "rewards") return changed_of(object);
  if (event == "evaluation") return begun_of(object);
  if (event == "dropped") return dropped_of(object);
  throw std::out_of_range("an unknown event: " + event);
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
  const json object = std::visit([](const auto& one) { return json_of(one); }, event);
  std::string record;
  json::to_cbor(object, record);
  return record;
}

core::Result<BookEvent> event_of(std::string_view record) {
  try {
    return read_event(json::from_cbor(record));
  } catch (const std::exception& error) {
    return core::fail(core::ErrorCode::kData,
                      std::string("a record of the experience log is none: ") + error.what());
  }
}

}  // namespace troupe::actors
