#include "runtime/experience/episodes.hpp"

#include "runtime/experience/row.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace troupe::experience {
namespace {

// Where the tokens of each path stand in the rows of their samples. A fork has what it shares at
// the same places.
std::vector<std::uint32_t> places_on(const std::vector<Trajectory>& samples,
                                     const std::vector<std::vector<std::uint32_t>>& earlier,
                                     std::size_t sample) {
  std::vector<std::uint32_t> places;
  if (const auto& shares = samples[sample].shares) {
    const auto& other = earlier[shares->sample];
    places.assign(other.begin(), other.begin() + shares->tokens);
  }
  const Row row = row_of(samples[sample]);
  places.insert(places.end(), row.drawn.begin(), row.drawn.end());
  return places;
}

// Whether the first context of a fork has the first `length` ids of the other's row.
bool begins_with(const Trajectory& fork, const Trajectory& other, std::size_t length) {
  if (fork.turns.empty() || fork.turns.front().context.size() < length) return false;
  const auto first = fork.turns.front().context.begin();
  return std::equal(first, first + static_cast<std::ptrdiff_t>(length), row_of(other).ids.begin());
}

}  // namespace

std::vector<Episode> episodes_of(const std::vector<Trajectory>& samples) {
  std::vector<Episode> episodes;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool goes_on =
        i > 0 && samples[i].episode != 0 && samples[i].episode == samples[i - 1].episode;
    if (!goes_on) episodes.push_back({i, i});
    episodes.back().end = i + 1;
  }
  return episodes;
}

std::size_t tokens_of(const std::vector<Trajectory>& samples, const Episode& episode) {
  std::size_t tokens = 0;
  for (std::size_t i = episode.begin; i < episode.end; ++i)
    tokens += samples[i].tokens.size();
  return tokens;
}

std::vector<Path> paths_of(const std::vector<Trajectory>& samples) {
  std::vector<Path> paths;
  paths.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Trajectory& sample = samples[i];
    Path path;
    if (sample.shares) {
      const Path& other = paths[sample.shares->sample];
      path.tokens.assign(other.tokens.begin(), other.tokens.begin() + sample.shares->tokens);
      const auto end =
          std::lower_bound(other.turns.begin(), other.turns.end(), sample.shares->tokens);
      path.turns.assign(other.turns.begin(), end);
    }
    const auto shared = static_cast<std::uint32_t>(path.tokens.size());
    if (sample.turns.empty()) path.turns.push_back(shared);
    for (const Turn& turn : sample.turns)
      path.turns.push_back(shared + turn.begin);
    for (std::uint32_t t = 0; t < sample.tokens.size(); ++t)
      path.tokens.push_back({static_cast<std::uint32_t>(i), t});
    paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<StepReward> path_steps(const std::vector<Trajectory>& samples,
                                   const Path& path,
                                   std::vector<StepReward> Trajectory::*list) {
  std::vector<StepReward> steps;
  for (std::uint32_t at = 0; at < path.tokens.size();) {
    // The tokens of one sample follow each other, from its first on.
    const std::uint32_t owner = path.tokens[at].sample, begin = at;
    while (at < path.tokens.size() && path.tokens[at].sample == owner)
      ++at;
    for (const StepReward& step : samples[owner].*list) {
      if (step.token < at - begin) steps.push_back({begin + step.token, step.reward});
    }
  }
  return steps;
}

double path_total(const std::vector<Trajectory>& samples, const Path& path, double score) {
  for (const StepReward& step : path_steps(samples, path, &Trajectory::steps))
    score += step.reward;
  return score;
}

double sample_total(const std::vector<Trajectory>& samples, std::size_t sample) {
  if (!samples[sample].shares) return samples[sample].total();
  return path_total(samples, paths_of(samples)[sample], samples[sample].score.value_or(0.0));
}

double episode_total(const std::vector<Trajectory>& samples, const Episode& episode) {
  if (episode.leaves() == 1) return samples[episode.begin].total();
  double sum = 0;
  for (std::size_t i = episode.begin; i < episode.end; ++i)
    sum += sample_total(samples, i);
  return sum / static_cast<double>(episode.leaves());
}

core::Result<void> check_episodes(const std::vector<Trajectory>& samples) {
  std::set<std::uint32_t> seen;
  const bool forks = std::any_of(samples.begin(), samples.end(), [](const Trajectory& sample) {
    return sample.shares.has_value();
  });
  std::vector<std::vector<std::uint32_t>> places;  // only where a sample is a fork
  std::size_t begin = 0;                           // of the sample's episode
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Trajectory& sample = samples[i];
    const auto refuse = [i](const std::string& why, std::string_view advice = {}) {
      return core::fail(core::ErrorCode::kData, "sample " + std::to_string(i) + " " + why, advice);
    };
    const bool goes_on = i > 0 && sample.episode != 0 && sample.episode == samples[i - 1].episode;
    if (!goes_on) {
      begin = i;
      if (sample.episode != 0 && !seen.insert(sample.episode).second) {
        return refuse("is of episode " + std::to_string(sample.episode) +
                      ", whose other samples do not lie next to it");
      }
    }
    if (sample.shares) {
      const Shares& shares = *sample.shares;
      if (shares.sample < begin || shares.sample >= i) {
        return refuse("shares tokens of sample " + std::to_string(shares.sample) +
                      ", which is not an earlier one of its episode");
      }
      const auto& other = places[shares.sample];
      if (shares.tokens == 0 || shares.tokens > other.size()) {
        return refuse("shares " + std::to_string(shares.tokens) + " tokens of sample " +
                      std::to_string(shares.sample) + ", whose path has " +
                      std::to_string(other.size()));
      }
      const std::size_t length = other[shares.tokens - 1] + std::size_t{1};
      if (!begins_with(sample, samples[shares.sample], length)) {
        return refuse("shares " + std::to_string(shares.tokens) + " tokens of sample " +
                      std::to_string(shares.sample) + ", but its first context is not the " +
                      std::to_string(length) + " ids up to the last of them");
      }
    }
    if (forks) places.push_back(places_on(samples, places, i));
  }
  return {};
}

void mark_episodes(const std::vector<Trajectory>& samples, std::vector<bool>& marks) {
  for (const Episode& episode : episodes_of(samples)) {
    const auto first = marks.begin() + static_cast<std::ptrdiff_t>(episode.begin);
    const auto last = marks.begin() + static_cast<std::ptrdiff_t>(episode.end);
    if (std::find(first, last, true) != last) std::fill(first, last, true);
  }
}

void drop_samples(std::vector<Trajectory>& samples, const std::vector<bool>& marks) {
  std::vector<Trajectory> kept;
  std::vector<std::uint32_t> place(samples.size());  // index of a kept sample afterwards
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (marks[i]) continue;
    place[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(samples[i]));
    if (auto& shares = kept.back().shares) shares->sample = place[shares->sample];
  }
  samples = std::move(kept);
}

}  // namespace troupe::experience
