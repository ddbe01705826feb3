// A tiny random model, a tokenizer of bytes and a data set in a temporary folder, for benchmarks
// that start whole runs. Owned by the benchmark, on its thread; gone with it unless a folder was
// named. Bounded by the shape.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::app {

struct LabShape {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, ffn = 160, context = 256;
};

class LabFiles {
 public:
  // `keep`: a folder that stays, or "" for a temporary one. Errors: kResources.
  static core::Result<LabFiles> make(const LabShape& shape, const std::string& keep);
  LabFiles(LabFiles&& other) noexcept;
  LabFiles& operator=(LabFiles&&) = delete;
  ~LabFiles();

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }
  std::string run() const { return (folder_ / "run").string(); }

  // The command line of `troupe train ppo` into run(): the files of this folder, then `more`.
  std::vector<std::string> train_words(const std::vector<std::string>& more) const;

 private:
  LabFiles(std::filesystem::path folder, bool keep) : folder_(std::move(folder)), keep_(keep) {}

  std::filesystem::path folder_;
  bool keep_ = false;
};

}  // namespace troupe::app
