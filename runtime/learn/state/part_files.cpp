#include "runtime/learn/state/part_files.hpp"

#include "runtime/learn/ranks/block_shards.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace troupe::learn {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kPartsFormat = 1;

OrderedJson tensors_of(const model::ParamLayout& layout) {
  OrderedJson tensors = OrderedJson::array();
  for (const model::ParamView& view : layout.views)
    tensors.push_back({{"name", view.name}, {"shape", view.shape}, {"offset", view.offset}});
  return {{"elements", layout.total}, {"tensors", std::move(tensors)}};
}

// The first tensor that differs; empty when none does.
std::string other_tensor(const OrderedJson& found, const OrderedJson& expected) {
  const OrderedJson& theirs = found.at("tensors");
  const OrderedJson& ours = expected.at("tensors");
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (i < theirs.size() && theirs[i] == ours[i]) continue;
    const auto name = ours[i].at("name").get<std::string>();
    const bool known = i < theirs.size() && theirs[i].at("name") == name;
    return "tensor " + name + (known ? " has another shape or place" : " is not where it is here");
  }
  return found == expected ? std::string() : "it has more tensors";
}

}  // namespace

std::string part_file(int rank, int ranks) {
  return "rank-" + std::to_string(rank) + "-of-" + std::to_string(ranks) + ".safetensors";
}

bool is_other_part(std::string_view name, int ranks) {
  if (ranks == 0 && name == kRanksFile) return true;
  int rank = 0, of = 0, read = 0;
  const std::string text(name);
  if (std::sscanf(text.c_str(), "rank-%d-of-%d.safetensors%n", &rank, &of, &read) == 2)
    return static_cast<std::size_t>(read) == text.size() && of != ranks;
  if (ranks == 0) return false;
  for (const StatePart part : kStateParts)
    if (text == whole_file(part)) return true;
  return false;
}

std::string describe_parts(const StateLayouts& layouts, int ranks) {
  OrderedJson text = {{"format", kPartsFormat},
                      {"ranks", ranks},
                      {"block", BlockShards::kBlock},
                      {"weights", tensors_of(layouts.weights)},
                      {"moments", tensors_of(layouts.moments)}};
  if (!layouts.second_moment) text["second_moment"] = false;
  return text.dump() + "\n";
}

core::Result<void> check_description(const std::filesystem::path& path,
                                     const std::string& text,
                                     const StateLayouts& layouts,
                                     int ranks) {
  const std::string ours = describe_parts(layouts, ranks);
  if (text == ours) return {};
  const OrderedJson expected = OrderedJson::parse(ours);
  const auto found = OrderedJson::parse(text, nullptr, false);
  if (!found.is_object()) return unusable_part(path, "it is not a JSON object");
  try {
    for (const char* key : {"format", "ranks", "block"}) {
      if (found.at(key) == expected.at(key)) continue;
      return unusable_part(path, std::string("`") + key + "` is " + found.at(key).dump() +
                                     " and should be " + expected.at(key).dump());
    }
    for (const char* key : {"weights", "moments"}) {
      const std::string why = other_tensor(found.at(key), expected.at(key));
      if (!why.empty())
        return core::fail(
            core::ErrorCode::kData,
            path.string() + " is not of a state of this model: of the " + key + " " + why);
    }
  } catch (const nlohmann::json::exception&) {
    return unusable_part(path, "it is damaged");
  }
  return {};
}

PartFacts part_facts(int rank, int ranks, core::Version version, std::uint32_t description) {
  return {{"rank", std::to_string(rank)},
          {"ranks", std::to_string(ranks)},
          {"version", std::to_string(version)},
          {"description_crc32c", std::to_string(description)}};
}

core::Result<void> check_facts(const std::filesystem::path& path,
                               const PartFacts& found,
                               const PartFacts& expected) {
  for (const auto& [key, value] : expected) {
    const auto there = found.find(key);
    if (there != found.end() && there->second == value) continue;
    const std::string said = there == found.end() ? "none" : there->second;
    return unusable_part(path, "it is the file of another rank or state: its `" + key + "` is " +
                                   said + ", not " + value);
  }
  return {};
}

core::Failure unusable_part(const std::filesystem::path& path, const std::string& why) {
  return core::fail(core::ErrorCode::kData, path.string() + ": " + why,
                    "put the file back that this checkpoint was written with, or go on from "
                    "another checkpoint with --resume FOLDER");
}

}  // namespace troupe::learn
