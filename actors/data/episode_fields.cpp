#include "actors/data/episode_fields.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

using experience::Trajectory;
using parse::CborItem;

template <class Has>
bool any_sample(const GroupTaken& event, Has has) {
  return std::any_of(event.samples.begin(), event.samples.end(), has);
}

// Calls `take` with each sample and its item of the list of that name, where there is one.
template <class Take>
void each(const CborItem& object,
          std::vector<Trajectory>& samples,
          std::string_view key,
          Take take) {
  const auto list = object.find(key);
  if (!list) return;
  const auto items = by_sample(*list, samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    take(items[i], samples[i]);
}

}  // namespace

EpisodeFields::EpisodeFields(const GroupTaken& event)
    : event_(event),
      turns_(any_sample(event, [](const Trajectory& one) { return !one.turns.empty(); })),
      episodes_(any_sample(event, [](const Trajectory& one) { return one.episode != 0; })),
      shares_(any_sample(event, [](const Trajectory& one) { return one.shares.has_value(); })),
      feedback_(any_sample(event, [](const Trajectory& one) { return one.feedback.has_value(); })),
      steps_(any_sample(event, [](const Trajectory& one) { return !one.feedback_steps.empty(); })),
      kept_(any_sample(event, [](const Trajectory& one) { return !one.log_kept_mass.empty(); })) {}

std::size_t EpisodeFields::count() const {
  std::size_t count = event_.prompt.empty() ? 0 : 1;
  for (const bool there : {turns_, kept_})
    count += there ? 2 : 0;
  for (const bool there : {episodes_, shares_, feedback_, steps_})
    count += there ? 1 : 0;
  return count;
}

void EpisodeFields::write(EventRecord& out) const {
  const auto& samples = event_.samples;
  if (!event_.prompt.empty()) {
    out.column(
        "prompt", std::span(&event_, 1), [](const GroupTaken& one) -> auto& { return one.prompt; });
  }
  if (turns_) {
    out.list("turns", samples, [](auto& list, const Trajectory& sample) {
      list.list(sample.turns.size());
      for (const experience::Turn& turn : sample.turns) {
        list.list(2);
        list.number(turn.begin);
        list.number(turn.context.size());
      }
    });
    std::vector<experience::Turn> turns;
    for (const Trajectory& sample : samples)
      turns.insert(turns.end(), sample.turns.begin(), sample.turns.end());
    out.column(
        "contexts", turns, [](const experience::Turn& turn) -> auto& { return turn.context; });
  }
  if (episodes_) {
    out.list("episodes", samples,
             [](auto& list, const Trajectory& sample) { list.number(sample.episode); });
  }
  if (shares_) {
    out.list("shares", samples, [](auto& list, const Trajectory& sample) {
      list.list(sample.shares ? 2 : 0);
      if (!sample.shares) return;
      list.number(sample.shares->sample);
      list.number(sample.shares->tokens);
    });
  }
  if (feedback_) {
    out.list("feedback", samples, [](auto& list, const Trajectory& sample) {
      sample.feedback ? list.real(*sample.feedback) : list.null();
    });
  }
  if (steps_) {
    out.list("feedback_steps", samples, [](auto& list, const Trajectory& sample) {
      write_steps(list, sample.feedback_steps);
    });
  }
  if (kept_) {
    out.list("kept_counts", samples, [](auto& list, const Trajectory& sample) {
      list.number(sample.log_kept_mass.size());
    });
    out.column(
        "kept", samples, [](const Trajectory& sample) -> auto& { return sample.log_kept_mass; });
  }
}

void read_episode_fields(const CborItem& object, GroupTaken& event) {
  auto& samples = event.samples;
  if (const auto prompt = object.find("prompt")) {
    Column<std::int32_t> ids(*prompt);
    event.prompt = ids.next(prompt->bytes().size() / sizeof(std::int32_t));
    ids.check_end();
  }
  each(object, samples, "episodes", [](const CborItem& number, Trajectory& sample) {
    sample.episode = static_cast<std::uint32_t>(number.number());
  });
  each(object, samples, "shares", [](const CborItem& shares, Trajectory& sample) {
    if (shares.items().empty()) return;
    const auto pair = by_sample(shares, 2);
    sample.shares = experience::Shares{static_cast<std::uint32_t>(pair[0].number()),
                                       static_cast<std::uint32_t>(pair[1].number())};
  });
  each(object, samples, "feedback", [](const CborItem& score, Trajectory& sample) {
    if (!score.is_null()) sample.feedback = score.real();
  });
  each(object, samples, "feedback_steps",
       [](const CborItem& steps, Trajectory& sample) { sample.feedback_steps = steps_of(steps); });
  if (const auto kept = object.find("kept")) {
    Column<float> masses(*kept);
    each(object, samples, "kept_counts", [&masses](const CborItem& count, Trajectory& sample) {
      sample.log_kept_mass = masses.next(count.number());
    });
    masses.check_end();
  }
  if (!object.find("turns")) return;
  Column<std::int32_t> contexts(object.at("contexts"));
  each(object, samples, "turns", [&contexts](const CborItem& turns, Trajectory& sample) {
    for (const CborItem& turn : turns.items()) {
      const auto pair = by_sample(turn, 2);
      sample.turns.push_back(
          {static_cast<std::uint32_t>(pair[0].number()), contexts.next(pair[1].number())});
    }
  });
  contexts.check_end();
}

}  // namespace troupe::actors
