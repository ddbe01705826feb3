#include "runtime/learn/rl/batch_dump.hpp"

#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

namespace troupe::learn {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

template <class Value>
ordered_json numbers(const std::vector<Value>& values) {
  ordered_json list = ordered_json::array();
  for (const Value value : values)
    list.push_back(number(static_cast<double>(value)));
  return list;
}

// [[begin, context], ...]
ordered_json turns_of(const experience::Trajectory& sample) {
  ordered_json turns = ordered_json::array();
  for (const experience::Turn& turn : sample.turns)
    turns.push_back({turn.begin, turn.context});
  return turns;
}

}  // namespace

core::Result<void> dump_batch(const std::filesystem::path& path,
                              const UpdateContext& update,
                              const MiniBatch& mini,
                              const TokenTable<float>& logprobs,
                              const std::vector<double>& losses) {
  std::string text;
  for (std::size_t m = 0; m < mini.micro_batches.size(); ++m) {
    const ordered_json loss = m < losses.size() ? number(losses[m]) : ordered_json(nullptr);
    for (const GroupPart& part : mini.micro_batches[m].parts) {
      const experience::Group& group = update.groups[part.group];
      for (std::size_t i = part.sample_begin; i < part.sample_end; ++i) {
        const experience::Trajectory& sample = group.samples[i];
        const bool known = i < logprobs[part.group].size();
        ordered_json line = {
            {"update", group.ticket.update},
            {"slot", group.ticket.slot},
            {"sample", i},
            {"prompt", group.prompt},
            {"tokens", sample.tokens},
            {"versions",
             std::vector<core::Version>(sample.versions.begin(), sample.versions.end())},
            {"score", number(sample.total())},
            {"behaviour", numbers(sample.behaviour)},
            {"logprobs", known ? numbers(logprobs[part.group][i]) : ordered_json::array()},
            {"advantages", numbers(update.advantages[part.group][i])},
            {"micro_batch", m},
            {"loss", loss}};
        if (!sample.turns.empty()) line["turns"] = turns_of(sample);
        if (sample.episode != 0) line["episode"] = sample.episode;
        if (sample.shares) line["shares"] = {sample.shares->sample, sample.shares->tokens};
        text += line.dump() + "\n";
      }
    }
  }
  return store::write_file(path, text);
}

}  // namespace troupe::learn
