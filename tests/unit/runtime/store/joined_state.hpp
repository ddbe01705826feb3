// The files of a trainer's state as one process would have written them, whoever wrote them: the
// parts that ranks wrote are put together as docs/run_folder.md says, without the code under test.
#pragma once

#include "runtime/store/safetensors.hpp"
#include "runtime/store/sha256.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::test {

using FilesByName = std::map<std::string, std::string>;

// One of the buffers, from the blocks of all ranks.
inline std::vector<float> joined_numbers(const std::filesystem::path& folder,
                                         const nlohmann::json& ranks,
                                         const std::string& part,
                                         std::size_t elements) {
  const auto count = ranks.at("ranks").get<std::size_t>();
  const auto block = ranks.at("block").get<std::size_t>();
  std::vector<float> all(elements);
  std::size_t found = 0;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::string name =
        "rank-" + std::to_string(rank) + "-of-" + std::to_string(count) + ".safetensors";
    const auto file = store::SafetensorsFile::open(folder / name);
    EXPECT_TRUE(file) << name;
    if (!file) return all;
    const auto bytes = file->bytes(*file->find(part));
    const std::size_t numbers = bytes.size() / sizeof(float);
    for (std::size_t i = 0; i < numbers; i += block) {
      const std::size_t at = (i / block * count + rank) * block;
      const std::size_t some = std::min(block, numbers - i);
      EXPECT_LE(at + some, elements) << name;
      if (at + some > elements) return all;
      std::memcpy(&all[at], bytes.data() + i * sizeof(float), some * sizeof(float));
      found += some;
    }
  }
  EXPECT_EQ(found, elements) << part;
  return all;
}

inline std::string whole_tensors(const std::vector<float>& numbers, const nlohmann::json& tensors) {
  const TempFolder made;
  std::vector<store::TensorSource> sources;
  for (const auto& tensor : tensors)
    sources.push_back({tensor.at("name"), store::Dtype::kF32,
                       tensor.at("shape").get<std::vector<std::int64_t>>(),
                       numbers.data() + tensor.at("offset").get<std::size_t>()});
  EXPECT_TRUE(store::write_safetensors(made / "whole", sources, {}));
  return read_file(made / "whole");
}

// All files of the folder by name, but for the list of those that were hashed while they were
// written, every line of which has to be true.
inline FilesByName joined_state(const std::filesystem::path& folder) {
  FilesByName files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = read_file(entry.path());
  if (const auto list = files.find("written_files.json"); list != files.end()) {
    for (const auto& file : nlohmann::json::parse(list->second)) {
      const std::string& text = files[file.at("path")];
      EXPECT_EQ(file.at("bytes"), text.size()) << file;
      EXPECT_EQ(file.at("sha256"), store::sha256_text(text)) << file;
    }
    files.erase(list);
  }
  if (!files.contains("ranks.json")) return files;
  const auto ranks = nlohmann::json::parse(files.at("ranks.json"));
  for (const std::string part : {"weights", "adam_m", "adam_v"}) {
    if (part == "adam_v" && !ranks.value("second_moment", true)) continue;
    const auto& buffer = ranks.at(part == "weights" ? "weights" : "moments");
    files[part + ".safetensors"] = whole_tensors(
        joined_numbers(folder, ranks, part, buffer.at("elements")), buffer.at("tensors"));
  }
  files.erase("ranks.json");
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("rank-"); });
  auto counts = nlohmann::json::parse(files.at("trainer_state.json"));
  EXPECT_EQ(counts.at("format"), 2);
  EXPECT_EQ(counts.at("ranks"), ranks.at("ranks"));
  counts["format"] = 1;
  counts.erase("ranks");
  files["trainer_state.json"] = counts.dump(2) + "\n";
  return files;
}

}  // namespace troupe::test
