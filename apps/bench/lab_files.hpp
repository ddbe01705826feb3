// A tiny random model, a tokenizer of bytes, a data set and a configuration in one folder, for
// benchmarks that start whole runs. Owned by the benchmark, on its thread. Bounded by the shape.
#pragma once

#include "apps/bench/temporary_folder.hpp"

#include <cstdint>
#include <optional>

namespace troupe::app {

struct LabShape {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, ffn = 160, context = 256;
};

class LabFiles {
 public:
  // `keep`: a folder that stays, or "" for a temporary one. Errors: kResources.
  static core::Result<LabFiles> make(const LabShape& shape, const std::string& keep = "");

  // "model" and "train.jsonl"; "run.yaml", whose run goes on until it is interrupted.
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::string run() const { return *this / "run"; }

 private:
  LabFiles() = default;

  std::filesystem::path folder_;
  std::optional<TemporaryFolder> temporary_;
};

}  // namespace troupe::app
