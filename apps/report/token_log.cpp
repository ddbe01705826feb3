#include "apps/report/token_log.hpp"

#include "actors/data/book_events.hpp"
#include "apps/report/line_reader.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/store/step_log.hpp"
#include "runtime/text/stream_decoder.hpp"

#include <set>
#include <variant>

namespace troupe::report {
namespace {

// What the events of one update say of a group.
struct LoggedGroup {
  std::vector<experience::Trajectory> samples;
  std::vector<std::vector<float>> reference, teacher;
  std::set<std::size_t> unscored;
};

using Place = std::pair<std::uint64_t, std::uint64_t>;

class EventReader {
 public:
  explicit EventReader(std::uint64_t step) : step_(step) {}

  void add(actors::data::BookEvent event) {
    const bool ends_others = std::holds_alternative<actors::data::GroupsDropped>(event);
    if (ends_others) return groups_.clear();
    const std::uint64_t update = actors::data::update_of(event);
    if (experience::is_evaluation(update) || experience::step_of(update) != step_) return;
    if (auto* const taken = std::get_if<actors::data::GroupTaken>(&event)) {
      at(taken->ticket).samples = std::move(taken->samples);
    } else if (const auto* const scored = std::get_if<actors::data::GroupScored>(&event)) {
      for (std::size_t i = 0; i < scored->scores.size(); ++i) {
        if (!scored->scores[i]) at(scored->ticket).unscored.insert(i);
      }
    } else if (auto* const referenced = std::get_if<actors::data::GroupReferenced>(&event)) {
      LoggedGroup& group = at(referenced->ticket);
      const bool teacher = referenced->by == actors::data::FrozenModel::kTeacher;
      (teacher ? group.teacher : group.reference) = std::move(referenced->logprobs);
    }
  }

  const std::map<Place, LoggedGroup>& groups() const { return groups_; }

 private:
  LoggedGroup& at(const experience::Ticket& ticket) {
    return groups_[{ticket.slot, ticket.attempt}];
  }

  std::uint64_t step_;
  std::map<Place, LoggedGroup> groups_;
};

std::vector<SampleTokens> tokens_of(const LoggedGroup& group) {
  std::vector<SampleTokens> out;
  for (std::size_t i = 0; i < group.samples.size(); ++i) {
    if (group.unscored.contains(i)) continue;
    SampleTokens one{group.samples[i].tokens, group.samples[i].behaviour, {}, {}};
    const auto take = [&](const std::vector<std::vector<float>>& from, std::vector<float>& to) {
      if (i < from.size() && from[i].size() == one.ids.size()) to = from[i];
    };
    take(group.reference, one.reference);
    take(group.teacher, one.teacher);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::optional<TokenLog> TokenLog::read(const std::filesystem::path& file,
                                       std::uint64_t step,
                                       Notes& notes) {
  const auto whole = read_whole(file, limits::kReportStep_bytes_max);
  if (!whole) return std::nullopt;
  const std::string name = "experience/" + file.filename().string();
  EventReader reader(step);
  std::string_view rest = whole->text;
  bool strange = false;
  while (const auto record = store::next_record(rest)) {
    auto event = actors::data::event_of(*record);
    if (event) reader.add(std::move(*event));
    strange = strange || !event;
  }
  if (strange) notes.add(name + ": records of no known event are left out");
  if (whole->cut) {
    notes.add(name + ": only the first " + std::to_string(limits::kReportStep_bytes_max >> 20) +
              " MiB are read");
  } else if (!rest.empty()) {
    notes.add(name + ": the end is incomplete or damaged; what stands before it is read");
  }
  TokenLog log;
  for (const auto& [place, group] : reader.groups())
    log.groups_.emplace(place, tokens_of(group));
  return log;
}

const std::vector<SampleTokens>* TokenLog::find(std::uint64_t slot, std::uint64_t attempt) const {
  const auto found = groups_.find({slot, attempt});
  return found == groups_.end() ? nullptr : &found->second;
}

std::optional<TokenTexts> TokenTexts::load(const std::vector<std::string>& models) {
  for (const std::string& model : models) {
    const auto folder = model::resolve_model(model);
    if (!folder) continue;
    auto tokenizer = text::Tokenizer::load(*folder);
    if (tokenizer) return TokenTexts(std::move(*tokenizer));
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> TokenTexts::of(const std::vector<std::int32_t>& ids) const {
  text::StreamDecoder decoder(tokenizer_, /*skip_special=*/false);
  std::vector<std::string> texts;
  for (const std::int32_t id : ids) {
    texts.emplace_back();
    if (!tokenizer_.id_to_token(id)) continue;
    auto piece = decoder.push(id);
    if (!piece) return std::nullopt;
    texts.back() = std::move(*piece);
  }
  auto rest = decoder.finish();
  if (rest && !texts.empty()) texts.back() += *rest;
  return texts;
}

}  // namespace troupe::report
