#include "actors/data/data_state.hpp"

#include "actors/protocol/reward_member_json.hpp"

#include <set>
#include <string>

namespace troupe::actors::data {
namespace {

using nlohmann::json;

std::filesystem::path file_in(const std::filesystem::path& folder) {
  return folder / "data_state.json";
}

core::Failure damaged(const std::filesystem::path& path, const std::string& why) {
  return core::fail(ErrorCode::kData, path.string() + " is not the data role's state: " + why);
}

bool is_count(const json& object, const char* key) {
  return object.contains(key) && object[key].is_number_unsigned();
}

// A list of positions in the prompt stream; empty when `object` has none of that name.
core::Result<std::vector<std::uint64_t>> positions_of(const json& object,
                                                      const char* key,
                                                      const std::filesystem::path& path) {
  std::vector<std::uint64_t> positions;
  for (const json& position : object.value(key, json::array())) {
    if (!position.is_number_unsigned()) return damaged(path, "a prompt that is not a number");
    positions.push_back(position.get<std::uint64_t>());
  }
  return positions;
}

// The slots and prompts seen so far: no two tickets may share one.
struct Seen {
  std::set<std::pair<std::uint64_t, std::uint32_t>> slots;
  std::set<std::uint64_t> prompts;
};

core::Result<SavedTicket> ticket_from(const json& object,
                                      const std::filesystem::path& path,
                                      const PromptPositions& prompts_used,
                                      Seen& seen) {
  if (!object.is_object()) return damaged(path, "an open ticket is not an object");
  for (const char* key : {"update", "slot", "attempt", "prompt", "wanted"}) {
    if (!is_count(object, key)) return damaged(path, std::string("an open ticket without ") + key);
  }
  SavedTicket saved;
  saved.ticket.update = object["update"].get<std::uint64_t>();
  saved.ticket.slot = object["slot"].get<std::uint32_t>();
  saved.ticket.attempt = object["attempt"].get<std::uint32_t>();
  saved.prompt = object["prompt"].get<std::uint64_t>();
  saved.wanted = object["wanted"].get<std::int32_t>();
  if (saved.wanted < 1) return damaged(path, "an open ticket that wants no samples");
  TROUPE_TRY_ASSIGN(replaced, positions_of(object, "replaced", path));
  saved.replaced = std::move(replaced);
  std::vector<std::uint64_t> prompts = saved.replaced;
  prompts.push_back(saved.prompt);
  bool fresh = seen.slots.insert({saved.ticket.update, saved.ticket.slot}).second;
  for (const std::uint64_t prompt : prompts) {
    fresh = fresh && prompts_used.is_used(prompt) && seen.prompts.insert(prompt).second;
  }
  if (!fresh) return damaged(path, "an open ticket or its prompt comes twice");
  return saved;
}

json json_of(const SetRewards& set) {
  json object = {{"set", set.set}, {"from_update", set.from_update}, {"rewards", set.members}};
  if (!set.formula.empty()) object["formula"] = set.formula;
  return object;
}

core::Result<SetRewards> set_from(const json& object, const std::filesystem::path& path) {
  if (!object.is_object() || !is_count(object, "set") || !is_count(object, "from_update") ||
      !object.value("rewards", json()).is_array()) {
    return damaged(path, "a malformed reward set");
  }
  SetRewards set;
  set.set = object["set"].get<std::uint64_t>();
  set.from_update = object["from_update"].get<std::uint64_t>();
  for (const json& member : object["rewards"]) {
    if (!member.is_object() || !member.value("name", json()).is_string() ||
        !member.value("peer", json()).is_string() || !member.value("weight", json()).is_number()) {
      return damaged(path, "a reward without name, peer or weight");
    }
    set.members.push_back(member.get<RewardMember>());
  }
  const json formula = object.value("formula", json(""));
  if (!formula.is_string()) return damaged(path, "a reward set whose formula is not text");
  set.formula = formula.get<std::string>();
  return set;
}

}  // namespace

DataState state_of(const TicketBook& book) {
  DataState state;
  state.prompts = book.prompts();
  for (const BookGroup* group : book.groups())
    state.open.push_back(*group);
  state.dropped_samples = book.counts().dropped_samples;
  state.failed_groups = book.counts().failed_groups();
  return state;
}

core::Result<void> write_state(const DataState& state,
                               const std::filesystem::path& folder,
                               store::Disk& disk) {
  json open = json::array();
  for (const SavedTicket& saved : state.open) {
    open.push_back({{"update", saved.ticket.update},
                    {"slot", saved.ticket.slot},
                    {"attempt", saved.ticket.attempt},
                    {"prompt", saved.prompt},
                    {"wanted", saved.wanted},
                    {"replaced", saved.replaced}});
  }
  json sets = json::array();
  for (const SetRewards& set : state.reward_sets)
    sets.push_back(json_of(set));
  json object = {{"next_prompt", state.prompts.next()},
                 {"open", std::move(open)},
                 {"reward_sets", std::move(sets)},
                 {"dropped_samples", state.dropped_samples},
                 {"failed_groups", state.failed_groups}};
  if (!state.prompts.ahead().empty()) object["prompts_ahead"] = state.prompts.ahead();
  return disk.write_file(file_in(folder), object.dump(1) + "\n");
}

core::Result<DataState> read_state(const std::filesystem::path& folder, store::Disk& disk) {
  const auto path = file_in(folder);
  TROUPE_TRY_ASSIGN(text, disk.read_file(path));
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || !is_count(object, "next_prompt")) {
    return damaged(path, "it has no next_prompt");
  }
  DataState state;
  TROUPE_TRY_ASSIGN(ahead, positions_of(object, "prompts_ahead", path));
  state.prompts = PromptPositions(object["next_prompt"].get<std::uint64_t>(),
                                  std::set<std::uint64_t>(ahead.begin(), ahead.end()));
  Seen seen;
  const json open = object.value("open", json::array());
  if (!open.is_array()) return damaged(path, "its open tickets are no list");
  for (const json& one : open) {
    TROUPE_TRY_ASSIGN(saved, ticket_from(one, path, state.prompts, seen));
    state.open.push_back(std::move(saved));
  }
  const json sets = object.value("reward_sets", json::array());
  if (!sets.is_array()) return damaged(path, "its reward sets are no list");
  for (const json& one : sets) {
    TROUPE_TRY_ASSIGN(set, set_from(one, path));
    state.reward_sets.push_back(std::move(set));
  }
  return state;
}

}  // namespace troupe::actors::data
